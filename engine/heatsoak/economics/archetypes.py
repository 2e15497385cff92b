"""Which card for whom: an archetype's rule, applied to what was measured and what is known. Pure.

A card is recommended only if every requirement is known to be met. Among those that were measured
the archetype's criteria decide, one after the other; two whose 95 % intervals overlap show no
difference, and the next criterion is asked. A card that was not measured is never ranked by what it
would sustain: where no measured card qualifies it is named as a reference, or as one to measure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from heatsoak.economics.memory_fit import plan_memory
from heatsoak.economics.offers import CardSet
from heatsoak.economics.rules import (
    LESS_IS_BETTER,
    Clause,
    clauses,
    is_shown_better,
    measured_peak,
    memory_of,
    needs_ecc,
    value,
)
from heatsoak.profiles.archetypes import MEASURED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.economics.estimate import Estimate
    from heatsoak.economics.memory_fit import MemoryPlan
    from heatsoak.economics.offers import Needs, Offer, Provenance
    from heatsoak.economics.rules import Peak
    from heatsoak.profiles.archetypes import Archetype, Criterion

COUNTS = (1, 2, 4, 8)
"""Sizes of sets that are tried; sharding wants powers of two."""
MEASUREMENTS: frozenset[Criterion] = frozenset(
    {"units_per_price", "units_per_total", "units_per_joule", "rate"}
)
"""Criteria that only a measured card has."""

Outcome = Literal["decides", "narrows", "no difference shown", "not known"]
Basis = Literal["measured", "reference", "none"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One set of cards and how it meets the requirements."""

    cards: CardSet
    clauses: tuple[Clause, ...]

    @property
    def is_fit(self) -> bool | None:
        """Whether it meets all of them; None: none is missed, but not all are known."""
        met = [clause.is_met for clause in self.clauses]
        return False if False in met else None if None in met else True

    @property
    def missed(self) -> tuple[Clause, ...]:
        """The requirements it does not meet."""
        return tuple(clause for clause in self.clauses if clause.is_met is False)

    @property
    def unknown(self) -> tuple[Clause, ...]:
        """The requirements of which it is not known."""
        return tuple(clause for clause in self.clauses if clause.is_met is None)


@dataclass(frozen=True, slots=True)
class Step:
    """One criterion, asked of the sets that were left, the best first."""

    criterion: Criterion
    values: tuple[tuple[CardSet, Estimate | None], ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Choice:
    """What the rule says."""

    basis: Basis
    recommended: tuple[CardSet, ...]
    """Empty with basis `none`; several: no criterion shows a difference between them."""
    steps: tuple[Step, ...]
    candidates: tuple[Candidate, ...]
    """Every measured card, then every other one."""
    lacking: Criterion | None = None
    """The criterion without which nothing is recommended, where it is not known of a card."""

    @property
    def key(self) -> tuple[str, ...]:
        """What is recommended, so that two choices can be compared."""
        return (self.basis, *sorted(cards.label for cards in self.recommended))

    @property
    def provenance(self) -> Provenance | None:
        """Whose figures the answer stands on; None where there is no answer."""
        if not self.recommended:
            return None
        measured = self.recommended[0].offer.measured
        return "reference" if measured is None else measured.provenance

    @property
    def also(self) -> tuple[CardSet, ...]:
        """Sets that meet every requirement and were not measured."""
        return tuple(
            candidate.cards
            for candidate in self.candidates
            if candidate.is_fit
            and not candidate.cards.is_measured
            and candidate.cards not in self.recommended
        )


def choose(archetype: Archetype, offers: Sequence[Offer], needs: Needs) -> Choice:
    """Apply an archetype's rule.

    Args:
        archetype: the kind of buyer.
        offers: all cards that come into question, measured or not.
        needs: what this buyer insists on.
    """
    peak = measured_peak(offers)
    ordered = sorted(offers, key=lambda offer: offer.measured is None)
    candidates = tuple(_candidate(archetype, offer, needs, peak) for offer in ordered)
    pool = [c.cards for c in candidates if c.is_fit and c.cards.is_measured]
    if pool:
        left, steps, lacking = _rank(archetype, pool, needs)
        if lacking is not None:
            return Choice("none", (), steps, candidates, lacking)
        return Choice("measured", tuple(left), steps, candidates)
    if archetype.needs in MEASUREMENTS:
        return Choice("none", (), (), candidates)
    references = _references(archetype, [c.cards for c in candidates if c.is_fit])
    return Choice("reference" if references else "none", references, (), candidates)


def _candidate(archetype: Archetype, offer: Offer, needs: Needs, peak: Peak | None) -> Candidate:
    cards = card_set(archetype, offer, needs)
    return Candidate(cards, clauses(archetype.require, cards, needs, peak))


def card_set(archetype: Archetype, offer: Offer, needs: Needs) -> CardSet:
    """As few of a card as hold the training; one, or as many as were measured, without one.

    Where no count holds it, the largest count that was tried, with its plan.
    """
    most = archetype.require.cards_at_most
    measured = offer.measured
    fallback = measured.n if measured is not None and measured.n <= most else 1
    label = needs.recipe or archetype.require.holds
    need = needs.trainings.get(label or "")
    if label in (None, MEASURED) or need is None or offer.profile is None:
        return CardSet(offer, fallback)
    total = memory_of(offer.profile, with_ecc=needs_ecc(archetype.require, needs))
    if total is None:
        return CardSet(offer, fallback)
    card = replace(offer.profile, memory_total_bytes=total)
    tight: CardSet | None = None
    last: CardSet | None = None
    one: MemoryPlan | None = None
    for n in [count for count in COUNTS if count <= most]:
        sharded = replace(need.training, shard="none" if n == 1 else "zero3")
        plan = plan_memory(need.shape, sharded, card, n)
        one = one or plan
        last = CardSet(offer, n, plan, one if n > 1 else None)
        if plan.verdict == "yes":
            return last
        if plan.verdict == "tight" and tight is None:
            tight = last
    return tight or last or CardSet(offer, fallback)


def _rank(
    archetype: Archetype, pool: Sequence[CardSet], needs: Needs
) -> tuple[list[CardSet], tuple[Step, ...], Criterion | None]:
    left, steps = list(pool), []
    for criterion in archetype.rank:
        found = [(cards, value(criterion, cards, needs)) for cards in left]
        known = {cards.label: estimate for cards, estimate in found if estimate is not None}
        found.sort(key=lambda pair: _place(pair[1], criterion))
        if len(known) < len(found):
            steps.append(Step(criterion, tuple(found), "not known"))
            if criterion == archetype.needs:
                return [], tuple(steps), criterion
            continue
        best = known[found[0][0].label]
        tied = [cards for cards in left if not is_shown_better(best, known[cards.label], criterion)]
        outcome: Outcome = (
            "no difference shown" if len(tied) == len(left) and len(left) > 1
            else "decides" if len(tied) == 1
            else "narrows"
        )  # fmt: skip
        steps.append(Step(criterion, tuple(found), outcome))
        left = tied
        if len(left) == 1:
            break
    return left, tuple(steps), None


def _place(estimate: Estimate | None, criterion: Criterion) -> tuple[bool, float]:
    """The best first, what is not known last."""
    if estimate is None:
        return True, 0.0
    return False, estimate.mean if criterion in LESS_IS_BETTER else -estimate.mean


def _references(archetype: Archetype, fit: Sequence[CardSet]) -> tuple[CardSet, ...]:
    """The article's own picks, as far as they qualify; else the smallest set that does.

    Nothing here was measured, so nothing is ranked by speed.
    """
    by_card = {cards.offer.card: cards for cards in fit}
    picks = tuple(by_card[card] for card in archetype.article_cards if card in by_card)
    if picks or not fit:
        return picks
    return (min(fit, key=lambda cards: (cards.n, _memory(cards), cards.label)),)


def _memory(cards: CardSet) -> float:
    profile = cards.offer.profile
    return float(profile.memory_total_bytes or 0) if profile else 0.0


def without(archetype: Archetype, needs: Needs, names: Sequence[str]) -> tuple[Archetype, Needs]:
    """The same rule without some of the musts, whoever asked for them.

    Args:
        archetype: the kind of buyer.
        needs: the buyer's.
        names: of clauses: `ecc`, `isv`, `support`, `mig`.
    """
    require = archetype.require
    for name in names:
        blank: object = None if name == "mig" else False
        require = replace(require, **{name: blank})  # type: ignore[arg-type]
    musts = frozenset(must for must in needs.musts if must not in names)
    return replace(archetype, require=require), replace(needs, musts=musts)
