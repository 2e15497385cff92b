"""At what value of an input a recommendation changes: found by asking the rule itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.economics.archetypes import Choice, choose, without
from heatsoak.economics.offers import Price
from heatsoak.economics.rules import value
from heatsoak.profiles.archetypes import MUSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from heatsoak.economics.offers import CardSet, Energy, Needs, Offer, TrainingNeed
    from heatsoak.profiles.archetypes import Archetype, Criterion

FACTOR = 100.0
"""How far from its value an input is varied, up and down; further off is nothing to prepare for."""
GRID = 1.1
"""Step of the search for the first change."""
TOLERANCE = 1e-9
"""Relative width to which the value of a change is closed in."""
MOST_CONTEXT = 1 << 20
"""Tokens up to which the context is varied."""
ENERGY_INPUTS = ("price_per_kwh", "years", "utilisation_frac")

Side = Literal["above", "below", "with", "without"]


@dataclass(frozen=True, slots=True)
class Flip:
    """One change of an input that changes the recommendation."""

    input: str
    """`price:CARD`, `price_per_kwh`, `years`, `utilisation_frac`, `budget`, `power_w`, `context`,
    `must:NAME,...`, `recipe:LABEL`."""
    side: Side
    now: float | None
    """The value as it is; None where it was not entered, or is no number."""
    value: float | None
    """The first value with another recommendation; None where the input is no number."""
    then: tuple[CardSet, ...]
    """What is recommended there; empty: nothing."""
    equal_at: float | None = None
    """Where the criterion is equal for both; around it no difference is shown."""
    counts_energy: bool = False
    """Whether it was solved with the energy counted, beside the rule's own criterion."""


def boundary(
    decide: Callable[[float], Hashable], start: float, end: float
) -> tuple[float, float] | None:
    """The first change of a decision on the way from one value of its input to another.

    A geometric search for a bracket, then bisection of it. Of the rule it is assumed only that it
    does not change and change back within one step of the search.

    Args:
        decide: the decision at a value of the input.
        start: where to begin, above 0.
        end: how far to look, above 0.

    Returns:
        The last value with the decision of the start and the first with another one, at most a
        relative 1e-9 apart; None when nothing changes.
    """
    at_start = decide(start)
    same = other = start
    while decide(other) == at_start:
        if other == end:
            return None
        same = other
        other = min(other * GRID, end) if end > start else max(other / GRID, end)
    while abs(other - same) > TOLERANCE * max(other, same):
        middle = (same + other) / 2
        if decide(middle) == at_start:
            same = middle
        else:
            other = middle
    return same, other


def last_whole(holds: Callable[[int], bool], start: int, most: int) -> int | None:
    """The last whole number for which something that holds at the start still does, going up.

    Returns:
        None if it does not hold at the start, or still holds at the end.
    """
    if not holds(start) or holds(most):
        return None
    low, high = start, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule, what it is asked of, and what it said."""

    archetype: Archetype
    offers: tuple[Offer, ...]
    needs: Needs
    choice: Choice

    def again(self, **changes: Any) -> Choice:  # noqa: ANN401 - archetype, offers or needs
        """The rule asked again with something changed."""
        varied = replace(self, **changes)
        return choose(varied.archetype, varied.offers, varied.needs)

    @property
    def measured_only(self) -> Asked:
        """The same of the measured cards alone, which decide as long as one of them qualifies."""
        if self.choice.basis != "measured":
            return self
        measured = tuple(offer for offer in self.offers if offer.measured is not None)
        return replace(self, offers=measured)


def flips(
    archetype: Archetype, offers: Sequence[Offer], needs: Needs, choice: Choice
) -> tuple[Flip, ...]:
    """Everything that would change a recommendation; inputs that are numbers come first.

    Args:
        archetype: the rule.
        offers: what it was asked of.
        needs: the buyer's.
        choice: what it said.
    """
    asked = Asked(archetype, tuple(offers), needs, choice)
    found = [
        *_of_prices(asked), *_of_missing_prices(asked), *_of_limits(asked), *_of_context(asked),
        *_of_musts(asked), *_of_trainings(asked),
    ]  # fmt: skip
    counting = counting_energy(archetype)
    if needs.energy is not None and counting is not None:
        counted = choose(counting, offers, needs)
        if counted.steps and counted.steps[0].outcome != "not known":
            more = replace(asked, archetype=counting, choice=counted)
            changes = [*_of_prices(more), *_of_energy(more)]
            found += [replace(flip, counts_energy=True) for flip in changes]
    return tuple(found)


def counting_energy(archetype: Archetype) -> Archetype | None:
    """The same rule with units per price and energy first; None where price does not decide."""
    if "units_per_price" not in archetype.rank:
        return None
    rest = tuple(name for name in archetype.rank if name != "units_per_total")
    needs: Criterion | None = "units_per_total" if archetype.needs else None
    return replace(archetype, rank=("units_per_total", *rest), needs=needs)


def _along(
    name: str, now: float, most: float, asked: Asked, vary: Callable[[Asked, float], Choice]
) -> Iterator[Flip]:
    """The first change on either side of an input; `vary` asks again with another value of it."""
    sides: tuple[tuple[Side, float], ...] = (("above", most), ("below", now / FACTOR))
    quick = asked.measured_only
    for side, end in sides:
        found = None if end == now else boundary(lambda x: vary(quick, x).key, now, end)
        if found is not None:
            yield Flip(name, side, now, found[1], vary(asked, found[1]).recommended)


def _of_prices(asked: Asked) -> Iterator[Flip]:
    if asked.choice.basis != "measured":
        return
    for candidate in asked.choice.candidates:
        offer = candidate.cards.offer
        if not candidate.is_fit or not candidate.cards.is_measured or offer.price is None:
            continue
        now, card = offer.price.amount, offer.card

        def vary(asked: Asked, amount: float, card: str = card) -> Choice:
            return asked.again(offers=with_price(asked.offers, card, amount))

        for flip in _along(f"price:{card}", now, now * FACTOR, asked, vary):
            yield replace(flip, equal_at=_equal_price(asked, flip, card))


def _equal_price(asked: Asked, flip: Flip, card: str) -> float | None:
    """Where the criterion that decides is equal for the old and the new recommendation."""
    steps = [step for step in asked.choice.steps if step.outcome != "not known"]
    recommended = asked.choice.recommended
    if len(recommended) != 1 or len(flip.then) != 1 or not steps or flip.value is None:
        return None
    pair = (recommended[0], flip.then[0])

    def is_ahead(amount: float) -> bool | None:
        varied = {offer.card: offer for offer in with_price(asked.offers, card, amount)}
        one, other = (
            value(steps[0].criterion, replace(cards, offer=varied[cards.offer.card]), asked.needs)
            for cards in pair
        )
        return None if one is None or other is None else one.mean > other.mean

    near = boundary(is_ahead, flip.value / 2, flip.value * 2)
    return None if near is None else near[1]


def with_price(offers: Sequence[Offer], card: str, amount: float) -> tuple[Offer, ...]:
    """The same offers with another price of one card; the currency is that of the others."""
    known = next((offer.price for offer in offers if offer.price is not None), None)
    if known is None:
        return tuple(offers)
    price = Price(amount, known.currency, known.date)
    return tuple(replace(o, price=price) if o.card == card else o for o in offers)


def _of_missing_prices(asked: Asked) -> Iterator[Flip]:
    """Below which price a measured card would win that has none yet, while all others have."""
    pool = [c.cards.offer for c in asked.choice.candidates if c.is_fit and c.cards.is_measured]
    missing = [offer for offer in pool if offer.price is None]
    if asked.choice.lacking is None or len(missing) != 1 or len(pool) < 2:
        return
    card = missing[0].card
    amounts = [offer.price.amount for offer in pool if offer.price is not None]

    def vary(amount: float) -> Choice:
        return asked.again(offers=with_price(asked.offers, card, amount))

    low, high = min(amounts) / FACTOR, max(amounts) * FACTOR
    first = vary(low).recommended
    if [cards.offer.card for cards in first] == [card]:
        found = boundary(lambda amount: vary(amount).key, low, high)
        if found is not None:
            yield Flip(f"price:{card}", "below", None, found[0], first)


def _of_energy(asked: Asked) -> Iterator[Flip]:
    for name in ENERGY_INPUTS:
        now: float = getattr(asked.needs.energy, name)

        def vary(asked: Asked, amount: float, name: str = name) -> Choice:
            energy = asked.needs.energy
            varied = None if energy is None else with_energy(energy, name, amount)
            return asked.again(needs=replace(asked.needs, energy=varied))

        most = 1.0 if name == "utilisation_frac" else now * FACTOR
        yield from _along(name, now, most, asked, vary)


def with_energy(energy: Energy, name: str, amount: float) -> Energy:
    """The same with another value of one of `ENERGY_INPUTS`."""
    if name == "price_per_kwh":
        return replace(energy, price_per_kwh=amount)
    if name == "years":
        return replace(energy, years=amount)
    return replace(energy, utilisation_frac=amount)


def _of_limits(asked: Asked) -> Iterator[Flip]:
    def vary_budget(asked: Asked, amount: float) -> Choice:
        return asked.again(needs=replace(asked.needs, budget=amount))

    def vary_power(asked: Asked, amount: float) -> Choice:
        return asked.again(needs=replace(asked.needs, power_w=amount))

    if (budget := asked.needs.budget) is not None:
        yield from _along("budget", budget, budget * FACTOR, asked, vary_budget)
    if (power_w := asked.needs.power_w) is not None:
        yield from _along("power_w", power_w, power_w * FACTOR, asked, vary_power)


def named_training(archetype: Archetype, needs: Needs) -> TrainingNeed | None:
    """The training that has to fit; None where it is the measured workload."""
    return needs.trainings.get(needs.recipe or archetype.require.holds or "")


def _of_context(asked: Asked) -> Iterator[Flip]:
    need = named_training(asked.archetype, asked.needs)
    if need is None or not asked.choice.recommended:
        return
    start = need.training.context

    def vary(context: int) -> Choice:
        longer = replace(need, training=replace(need.training, context=context))
        trainings = {**asked.needs.trainings, need.label: longer}
        return asked.again(needs=replace(asked.needs, trainings=trainings))

    key = asked.choice.key
    most = need.shape.positions or MOST_CONTEXT
    last = last_whole(lambda context: vary(context).key == key, start, most)
    if last is not None:
        yield Flip("context", "above", start, last, vary(last + 1).recommended)


def _of_musts(asked: Asked) -> Iterator[Flip]:
    """With a must that nobody asked for, and without those that a measured card misses."""
    require, needs, choice = asked.archetype.require, asked.needs, asked.choice
    named = {must for must in MUSTS if getattr(require, must)} | needs.musts
    changes: dict[tuple[str, ...], tuple[list[str], tuple[CardSet, ...]]] = {}
    for must in MUSTS:
        if must not in named:
            changed = asked.again(needs=replace(needs, musts=needs.musts | {must}))
            if changed.key != choice.key:
                changes.setdefault(changed.key, ([], changed.recommended))[0].append(must)
    for musts, then in changes.values():
        yield Flip(f"must:{','.join(musts)}", "with", None, None, then)
    for candidate in choice.candidates:
        names = [clause.name for clause in candidate.missed]
        if not candidate.cards.is_measured or not names or not set(names) <= set(MUSTS):
            continue
        looser, rest = without(asked.archetype, needs, names)
        changed = asked.again(archetype=looser, needs=rest)
        if changed.key != choice.key and changed.recommended:
            yield Flip(f"must:{','.join(names)}", "without", None, None, changed.recommended)


def _of_trainings(asked: Asked) -> Iterator[Flip]:
    """With another way to train the same model at the same context."""
    need = named_training(asked.archetype, asked.needs)
    if need is None:
        return
    seen = {asked.choice.key}
    for label, other in asked.needs.trainings.items():
        is_same_model = other.shape == need.shape
        if (
            label == need.label
            or not is_same_model
            or other.training.context != need.training.context
        ):
            continue
        changed = asked.again(needs=replace(asked.needs, recipe=label))
        if changed.recommended and changed.key not in seen:
            seen.add(changed.key)
            yield Flip(f"recipe:{label}", "with", None, None, changed.recommended)
