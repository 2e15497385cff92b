"""The sentences of advice: the rule, why, why not, and what would flip it. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from heatsoak.economics.flip import named_training
from heatsoak.economics.rules import LEAST_MIG, MUST_WORDS, TIER_WORDS
from heatsoak.economics.words import (
    CRITERION_WORDS,
    amount,
    criterion_figure,
    criterion_unit,
    gib,
    listed,
    money,
)
from heatsoak.profiles.archetypes import MEASURED, MUSTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heatsoak.economics.archetypes import Candidate, Choice, Step
    from heatsoak.economics.flip import Flip
    from heatsoak.economics.offers import CardSet, Needs, Offer
    from heatsoak.profiles.archetypes import Archetype

INPUT_WORDS = {
    "price_per_kwh": "price per kWh",
    "years": "years the cards are kept",
    "utilisation_frac": "share of time under load",
    "budget": "budget",
    "power_w": "power envelope in W",
    "context": "context in tokens",
}
"""What an input of a flip is called."""
BY_WORDS = {
    "measured": "by your measurement", "synthetic": "by synthetic figures",
    "imported": "by imported figures", "reference": "by the profiles alone",
}  # fmt: skip
"""By what an answer was found."""
RAN_WORDS = {"measured": "measured", "synthetic": "simulated", "imported": "imported"}
"""What was done with a card."""
USUAL_FLAGS = frozenset({"power-capped", "smoke"})
"""Flags that are no caution here: many cards run at their power limit by design, and SMOKE is said
in every block."""
ENTER_PRICE = "heatsoak prices set {card} --invoice AMOUNT --currency USD --date YYYY-MM-DD"


def rule_text(archetype: Archetype, needs: Needs) -> str:
    """The rule in one sentence: what is required, then what decides."""
    require = archetype.require
    count = require.cards_at_most
    wanted = ["one card" if count == 1 else f"at most {count} cards of a kind"]
    if require.tiers is not None:
        wanted.append(" or ".join(TIER_WORDS[tier] for tier in require.tiers))
    if require.memory_gb is not None:
        low, high = require.memory_gb
        wanted.append(f"{low:g} GB" if low == high else f"{low:g} to {high:g} GB")
    label = needs.recipe or require.holds
    if label is not None:
        what = "the measured workload" if label == MEASURED else label
        wanted.append(f"memory for {what}")
    for must in MUSTS:
        if getattr(require, must) or must in needs.musts:
            extra = f" of {require.mig or LEAST_MIG} instances" if must == "mig" else ""
            wanted.append(MUST_WORDS[must] + extra)
    if require.nvlink_gb_per_s is not None:
        wanted.append(f"NVLink of {require.nvlink_gb_per_s:g} GB/s")
    if needs.budget is not None:
        wanted.append(f"a budget of {needs.budget:,.0f}")
    if needs.power_w is not None:
        wanted.append(f"{needs.power_w:,.0f} W together")
    then = ", then ".join(CRITERION_WORDS[criterion] for criterion in archetype.rank)
    return f"Require {listed(wanted)}; among the measured cards left: {then}."


def fired(choice: Choice) -> str:
    """Which part of the rule gave the answer."""
    if choice.basis == "reference":
        return "no measured card qualifies; by the card profiles these do"
    if choice.basis == "none":
        if choice.lacking is not None:
            return f"{CRITERION_WORDS[choice.lacking]} is not known of every card"
        return "no measured card meets every requirement"
    pool = [c for c in choice.candidates if c.is_fit and c.cards.is_measured]
    if len(pool) == 1:
        return "one measured card meets every requirement"
    last = next((s for s in choice.steps if s.outcome == "decides"), None)
    return CRITERION_WORDS[last.criterion] if last else "no criterion shows a difference"


def why(archetype: Archetype, choice: Choice, currency: str | None) -> str:
    """Why it is recommended, with the figures; or why nothing is."""
    if choice.basis == "none":
        return because(choice)
    labels = listed([cards.label for cards in choice.recommended], "or")
    if choice.basis == "reference":
        return f"{labels}: meets every requirement by its profile; not measured here."
    unit = unit_of(choice)
    steps = list(_step_sentences(choice.steps, unit, currency))
    pool = [c for c in choice.candidates if c.is_fit and c.cards.is_measured]
    if len(pool) == 1:
        steps.insert(0, "The only measured card that meets every requirement.")
    return " ".join([archetype.why, *steps])


def unit_of(choice: Choice) -> str | None:
    """What the measured workload counts."""
    measured = [c.cards.offer.measured for c in choice.candidates]
    return next((m.unit for m in measured if m is not None), None)


def _step_sentences(steps: Sequence[Step], unit: str | None, currency: str | None) -> Iterator[str]:
    for step in steps:
        unit_words = criterion_unit(step.criterion, unit, currency)
        if step.outcome == "not known":
            unknown = [cards.label for cards, estimate in step.values if estimate is None]
            yield f"{unit_words[:1].upper()}{unit_words[1:]}: not known of {listed(unknown)}."
            continue
        (first, best), *others = step.values
        if best is None:
            continue
        text = f"{first.label} {criterion_figure(step.criterion, best, currency)} {unit_words}"
        rest = [
            f"{cards.label} {criterion_figure(step.criterion, estimate, currency)}"
            for cards, estimate in others
            if estimate is not None
        ]
        if rest:
            text += f", {', '.join(rest)}"
        ends = {"no difference shown": ": no difference shown.", "narrows": "."}
        yield text + ends.get(step.outcome, ".")


def because(choice: Choice) -> str:
    """Why nothing is recommended, and what would be needed."""
    if choice.lacking is None:
        measured = [c for c in choice.candidates if c.cards.offer.measured is not None]
        return "; ".join(_misses(candidate) for candidate in measured) or "nothing was measured"
    unknown = [cards for cards, estimate in choice.steps[-1].values if estimate is None]
    return "; ".join(_lacks(cards, CRITERION_WORDS[choice.lacking]) for cards in unknown)


def _lacks(cards: CardSet, wanted: str) -> str:
    """Why a criterion is not known of a set."""
    measured = cards.offer.measured
    if measured is not None and measured.n != cards.n:
        ran = RAN_WORDS[measured.provenance]
        return (
            f"{measured.n} {cards.offer.name} were {ran} together, which says little of {cards.n}"
        )
    if cards.offer.price is None:
        return f"no price of {cards.offer.name}: {enter_price(cards.offer)}"
    return f"{wanted} is not known of {cards.label}"


def enter_price(offer: Offer) -> str:
    """The command that enters what is missing."""
    return ENTER_PRICE.format(card=shlex.quote(offer.card))


def _misses(candidate: Candidate) -> str:
    measured = candidate.cards.offer.measured
    label = candidate.cards.label
    if measured is not None and measured.spoiled is not None:
        return f"{label}: {measured.spoiled}"
    if candidate.missed:
        return f"{label}: {', '.join(f'{c.wanted}: {c.text}' for c in candidate.missed)}"
    unknown = ", ".join(f"{c.wanted}: {c.text}" for c in candidate.unknown)
    return f"{label}: not known: {unknown}"


def flip_text(flip: Flip, offers: Sequence[Offer], currency: str | None) -> str:
    """One change that would flip the recommendation, in one sentence without its end."""
    then = listed([cards.label for cards in flip.then], "or") or "none"
    name, _, rest = flip.input.partition(":")
    counted = " with the energy counted" if flip.counts_energy else ""
    if name == "must":
        musts = listed([MUST_WORDS[must] for must in MUSTS if must in rest.split(",")],
                       "or" if flip.side == "with" else "and")  # fmt: skip
        return f"{flip.side} {musts}: {then}"
    if name == "recipe":
        return f"with {rest}: {then}"
    if flip.value is None:
        return then
    if name == "price":
        return _price_flip(flip, rest, offers, currency or "")
    words = INPUT_WORDS[name]
    if name == "price_per_kwh":
        value, now = (money(x or 0.0, currency or "", 3) for x in (flip.value, flip.now))
    else:
        value, now = amount(flip.value), amount(flip.now or 0.0)
    return f"{words} {flip.side} {value}{counted} (now {now}): {then}"


def _price_flip(flip: Flip, card: str, offers: Sequence[Offer], currency: str) -> str:
    """`GeForce RTX 5090 loses to RTX PRO 6000 above USD 3,790 (now USD 2,899)`."""
    name = next((offer.name for offer in offers if offer.card == card), card)
    then = listed([cards.label for cards in flip.then], "or")
    is_then = card in {cards.offer.card for cards in flip.then}
    if is_then and len(flip.then) == 1:
        what, end = f"{name} wins", ""
    elif then and not is_then:
        what, end = f"{name} loses to {then}", ""
    else:
        what, end = name, f": {then or 'none'}"
    now = "not entered" if flip.now is None else f"now {money(flip.now, currency)}"
    value = flip.value if flip.value is not None else 0.0
    if flip.equal_at is not None and abs(flip.equal_at / value - 1) > 1e-6:
        now += f"; equal at {money(flip.equal_at, currency)}"
    energy = " with the energy at your price" if flip.counts_energy else ""
    return f"{what} {flip.side} {money(value, currency)}{energy} ({now}){end}"


def cautions(archetype: Archetype, choice: Choice, needs: Needs) -> Iterator[str]:
    """What else to plan for, from what was seen of the recommended cards."""
    need = named_training(archetype, needs)
    for cards in choice.recommended:
        measured = cards.offer.measured
        if measured is None:
            yield f"{cards.label} was not measured here; soak one before you order."
            continue
        if measured.n != cards.n:
            yield (
                f"{_count(measured.n)} {cards.offer.name} was {RAN_WORDS[measured.provenance]}, "
                f"{cards.n} together were not: what more cards add has to be measured."
            )
        if measured.ecc_is_on is False and (archetype.require.ecc or "ecc" in needs.musts):
            yield f"{cards.offer.name} was measured with ECC off; switch it on and soak again."
        flags = [flag for flag in measured.flags if flag not in USUAL_FLAGS]
        if flags:
            yield f"{cards.offer.name} ran with the flags {', '.join(flags)}; see its result."
    if need is not None and choice.basis == "measured":
        yield f"Memory is planned for {need.label}; rates are of the workload that was measured."


def _count(n: int) -> str:
    return "One" if n == 1 else str(n)


def article_text(archetype: Archetype, choice: Choice) -> str:
    """How the answer stands to the article's."""
    says = f"The article says: {archetype.article_says}."
    cards = {cards.offer.card for cards in choice.recommended}
    if not cards:
        return f"{says} Here nothing is recommended yet."
    is_same = cards <= set(archetype.article_cards)
    picks = [c for c in choice.candidates if c.cards.offer.card in archetype.article_cards]
    missed = [
        f"{c.cards.offer.name} ({', '.join(clause.wanted for clause in c.missed)})"
        for c in picks
        if c.missed
    ]
    if is_same:
        how = BY_WORDS[choice.provenance or "reference"]
        short = f" Of its picks these do not qualify: {listed(missed)}." if missed else ""
        return f"{says} The same here, {how}.{short}"
    unmeasured = [c.cards.offer.name for c in picks if c.is_fit and not c.cards.is_measured]
    parts = [says, "Not so here:"]
    if missed:
        parts.append(f"these of its picks do not qualify: {listed(missed)}.")
    if unmeasured:
        parts.append(f"not measured: {listed(unmeasured)}.")
    if not missed and not unmeasured:
        parts.append("your measurement and prices say otherwise.")
    return " ".join(parts)


def other_text(
    label: str, price: tuple[float, float] | None, price_words: str,
    rate: tuple[float, float] | None, unit: str | None, currency: str | None,
) -> str:  # fmt: skip
    """What a card that was not measured would have to sustain, at a price that says whose it is."""
    if price is None:
        return f"{label}: no price is known"
    text = f"{label}: {_range(price, currency or 'USD')} ({price_words})"
    if rate is None:
        return text
    low, high = (amount(value) for value in rate)
    needed = low if low == high else f"{low} to {high}"
    return f"{text}; it would have to sustain more than {needed} {unit or 'units'}/s"


def _range(price: tuple[float, float], currency: str) -> str:
    low, high = price
    text = money(low, currency)
    return text if low == high else f"{text} to {high:,.0f}"


def glance(choice: Choice, currency: str | None) -> str:
    """Why, in a few words for one line."""
    if choice.basis == "reference":
        return "reference, not measured here"
    if choice.basis == "none":
        if choice.lacking == "units_per_price":
            return "no price: heatsoak prices set"
        return "no measured card has all it needs"
    cards = choice.recommended[0]
    if cards.plan is not None:
        used = gib(cards.plan.peak_bytes).removesuffix(" GiB")
        holds = f"{used} of {gib(cards.plan.usable_bytes)}"
        if cards.one is None:
            return f"one card holds it: {holds}"
        return f"{holds} a card; one alone needs {gib(cards.one.peak_bytes)}"
    step: Step | None = next(
        (s for s in choice.steps if s.outcome in ("decides", "no difference shown")), None
    )
    if step is None or step.values[0][1] is None:
        return "the only measured card that qualifies"
    best, *rest = (
        criterion_figure(step.criterion, estimate, currency)
        for _, estimate in step.values
        if estimate is not None
    )
    unit = criterion_unit(step.criterion, unit_of(choice), currency)
    if not rest:
        return f"the only one to qualify: {best} {unit}"
    if step.outcome == "no difference shown":
        return f"no difference shown: {best} and {rest[0]} {unit}"
    return f"most {unit}: {best}, next {rest[0]}"


def recommended_label(choice: Choice) -> str:
    """`4 x RTX PRO 5000 72GB Blackwell`, several joined by `or`, `none`."""
    labels: list[CardSet] = list(choice.recommended)
    return listed([cards.label for cards in labels], "or") or "none"
