"""The recommendation for every archetype, complete with what it stands on. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from heatsoak.economics import reasons
from heatsoak.economics.archetypes import choose
from heatsoak.economics.checklist import checklist
from heatsoak.economics.flip import counting_energy, flips
from heatsoak.economics.words import CRITERION_WORDS, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heatsoak.economics.archetypes import Candidate, Choice, Step
    from heatsoak.economics.checklist import ChecklistRow
    from heatsoak.economics.flip import Flip
    from heatsoak.economics.offers import CardSet, Needs, Offer
    from heatsoak.profiles.archetypes import Archetype, Correction


@dataclass(frozen=True, slots=True)
class Other:
    """A set of cards that meets every requirement by its profile and was not measured here."""

    cards: CardSet
    price: tuple[float, float] | None
    """What all its cards cost, from and to; None: not known."""
    price_words: str
    """Whose price that is: `yours`, `street price of 2026-06-25`, `launch price`."""
    rate_needed: tuple[float, float] | None
    """Units a second it would have to sustain at that price to be shown better; None where price
    does not decide or is not known. Not what it would sustain: nobody knows before a soak."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What one archetype should buy, why, and on what that depends."""

    archetype: Archetype
    choice: Choice
    card: str
    """What is recommended in a word: `4 x RTX PRO 5000 72GB Blackwell`, or `none`."""
    glance: str
    """Why, for one line."""
    rule: str
    """The rule in one sentence."""
    fired: str
    """Which part of it decided."""
    why: str
    """Why it fits, or why nothing does."""
    article: str
    """How this stands to the article."""
    constraints: tuple[str, ...]
    """What to plan for."""
    corrections: tuple[Correction, ...]
    """Claims of the article to be read with care here."""
    flips: tuple[Flip, ...]
    flip_texts: tuple[str, ...]
    """One sentence for each flip."""
    checklist: tuple[ChecklistRow, ...]
    others: tuple[Other, ...]
    """What else would qualify, not measured here."""
    currency: str | None
    """Of its amounts; None without any."""


def advise(
    archetypes: Sequence[Archetype], offers: Sequence[Offer], needs: Needs
) -> tuple[Advice, ...]:
    """Ask every archetype's rule.

    Args:
        archetypes: the kinds of buyers.
        offers: all cards that come into question, measured or not; prices of one currency.
        needs: what this buyer insists on.
    """
    return tuple(_advice(archetype, offers, needs) for archetype in archetypes)


def currency_of(offers: Sequence[Offer]) -> str | None:
    """The currency of the prices; None without any."""
    return next((offer.price.currency for offer in offers if offer.price is not None), None)


def _advice(archetype: Archetype, offers: Sequence[Offer], needs: Needs) -> Advice:
    choice = choose(archetype, offers, needs)
    currency = currency_of(offers)
    changes = flips(archetype, offers, needs, choice)
    constraints = [*reasons.cautions(archetype, choice, needs), *_planned(archetype, choice)]
    energy = _with_energy(archetype, offers, needs, choice)
    if energy is not None:
        constraints.insert(0, energy)
    return Advice(
        archetype=archetype,
        choice=choice,
        card=reasons.recommended_label(choice),
        glance=reasons.glance(choice, currency),
        rule=reasons.rule_text(archetype, needs),
        fired=reasons.fired(choice),
        why=reasons.why(archetype, choice, currency),
        article=reasons.article_text(archetype, choice),
        constraints=tuple(constraints),
        corrections=_corrections(archetype, choice),
        flips=changes,
        flip_texts=tuple(reasons.flip_text(flip, offers, currency) for flip in changes),
        checklist=checklist(archetype, choice.recommended[0] if choice.recommended else None),
        others=_others(choice, currency),
        currency=currency,
    )


def _others(choice: Choice, currency: str | None) -> tuple[Other, ...]:
    """The cheapest first; what has no price comes last."""
    found = [_other(cards, choice, currency) for cards in choice.also]
    return tuple(sorted(found, key=lambda one: one.price[0] if one.price else float("inf")))


def _other(cards: CardSet, choice: Choice, currency: str | None) -> Other:
    price, words = _reference_price(cards, currency)
    step = choice.steps[0] if choice.steps else None
    best = step.values[0][1] if step is not None else None
    if price is None or step is None or step.criterion != "units_per_price" or best is None:
        return Other(cards, price, words, None)
    return Other(cards, price, words, (best.high * price[0], best.high * price[1]))


def _reference_price(
    cards: CardSet, currency: str | None
) -> tuple[tuple[float, float] | None, str]:
    """The buyer's price, else the street's, else that of the launch; the last two in USD only."""
    if cards.price is not None:
        return (cards.price, cards.price), "yours"
    profile = cards.offer.profile
    if profile is None or currency not in (None, "USD"):
        return None, ""
    if profile.street_price_usd is not None:
        low, high = profile.street_price_usd
        day = f" of {profile.street_as_of}" if profile.street_as_of else ""
        return (cards.n * low, cards.n * high), f"street price{day}"
    if profile.launch_price_usd is not None:
        price = cards.n * profile.launch_price_usd
        return (price, price), "launch price"
    return None, ""


def _with_energy(
    archetype: Archetype, offers: Sequence[Offer], needs: Needs, choice: Choice
) -> str | None:
    """What the answer would be with the energy counted, where that differs."""
    counting = counting_energy(archetype)
    if needs.energy is None or counting is None or choice.basis != "measured":
        return None
    other = choose(counting, offers, needs)
    if other.key == choice.key or not other.recommended:
        return None
    label = listed([cards.label for cards in other.recommended], "or")
    return f"With the energy counted over its life the answer would be {label}."


def _planned(archetype: Archetype, choice: Choice) -> Iterator[str]:
    """What the archetype has to plan for, as far as it is about the recommended cards."""
    cards = {cards.offer.card for cards in choice.recommended}
    tiers = {cards.offer.profile.tier for cards in choice.recommended if cards.offer.profile}
    for one in archetype.constraints:
        if (not one.cards or cards & set(one.cards)) and (not one.tiers or tiers & set(one.tiers)):
            yield one.text


def _corrections(archetype: Archetype, choice: Choice) -> tuple[Correction, ...]:
    """Those about all cards, and those about cards that were measured, recommended or named."""
    cards = {c.cards.offer.card for c in choice.candidates if c.cards.offer.measured is not None}
    cards |= {cards.offer.card for cards in choice.recommended} | set(archetype.article_cards)
    return tuple(c for c in archetype.corrections if not c.cards or cards & set(c.cards))


def document(advice: Advice) -> dict[str, Any]:
    """One entry of `archetypes[]` in `heatsoak-advice/1`."""
    archetype, choice = advice.archetype, advice.choice
    shown = {cards.offer.card for cards in choice.recommended}
    return {
        "id": archetype.id,
        "name": archetype.name,
        "who": archetype.who,
        "priority": archetype.priority,
        "recommended": [_set(cards) for cards in choice.recommended],
        "provenance": choice.provenance,
        "because": advice.why if choice.basis == "none" else None,
        "why": advice.why,
        "rule": {"id": archetype.id, "text": advice.rule, "fired": advice.fired,
                 "provenance": archetype.provenance},
        "candidates": [
            _candidate(c)
            for c in choice.candidates
            if c.cards.offer.measured is not None or c.cards.offer.card in shown
        ],
        "ranking": [_step(step) for step in choice.steps],
        "also": [_set(one.cards) | {"price": one.price, "price_words": one.price_words,
                                    "rate_needed_per_s": one.rate_needed}
                 for one in advice.others],
        "flips": [
            _flip(flip, text) for flip, text in zip(advice.flips, advice.flip_texts, strict=True)
        ],
        "constraints": list(advice.constraints),
        "corrections": [
            {"id": c.id, "says": c.says, "holds": c.holds, "evidence": c.evidence}
            for c in advice.corrections
        ],
        "article": {"cards": list(archetype.article_cards), "text": advice.article},
        "checklist": [asdict(row) for row in advice.checklist],
    }  # fmt: skip


def _set(cards: CardSet) -> dict[str, Any]:
    measured = cards.offer.measured
    return {
        "card": cards.offer.card,
        "name": cards.offer.name,
        "n": cards.n,
        "label": cards.label,
        "provenance": measured.provenance if measured is not None else "reference",
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return _set(candidate.cards) | {
        "meets_all": candidate.is_fit,
        "spoiled": candidate.cards.offer.measured.spoiled
        if candidate.cards.offer.measured is not None
        else None,
        "clauses": [asdict(clause) for clause in candidate.clauses],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "criterion": step.criterion,
        "words": CRITERION_WORDS[step.criterion],
        "outcome": step.outcome,
        "values": [
            {"label": cards.label, "card": cards.offer.card, "n": cards.n,
             "mean": estimate.mean if estimate else None,
             "u95": estimate.u95 if estimate else None}
            for cards, estimate in step.values
        ],
    }  # fmt: skip


def _flip(flip: Flip, text: str) -> dict[str, Any]:
    return {
        "input": flip.input,
        "side": flip.side,
        "now": flip.now,
        "value": flip.value,
        "equal_at": flip.equal_at,
        "counts_energy": flip.counts_energy,
        "then": [_set(cards) for cards in flip.then],
        "text": text,
    }
