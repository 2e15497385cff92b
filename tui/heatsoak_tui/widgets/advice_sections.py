"""What is said of one archetype, in the order the eye should find it. Pure: text and roles."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.economics.reasons import other_text, unit_of
from heatsoak_tui.format import DASH, THIN, decimals_of, number, short_name, uncertainty, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.economics.advice import Advice
    from heatsoak.economics.archetypes import Candidate
    from heatsoak.economics.estimate import Estimate
    from heatsoak.economics.rules import Clause

CHECK_MARKS = {"seen": "[x]", "known": "[x]", "attention": "[!]", "ask": "[ ]"}
CHECK_ROLES = {"seen": "good", "known": "good", "attention": "warn", "ask": "muted"}
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class Item:
    """One sentence with its mark."""

    mark: str
    """`+`, `-`, `?` of a clause, `[x]`, `[!]`, `[ ]` of the checklist, `·` of a list, or empty."""
    text: str
    role: str = "text"
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Section:
    """Items under one title."""

    title: str
    items: tuple[Item, ...]


def spaced(text: str) -> str:
    """The text with the thin spaces of the screens between thousands."""
    return _THOUSANDS.sub(THIN, text)


def wrapped(text: str, width: int) -> list[str]:
    """The whole text in lines; an address that is longer than a line is broken, not cut."""
    if width < 1:
        return []
    pieces = [
        word[start : start + width]
        for word in text.split(" ")
        for start in range(0, max(1, len(word)), width)
    ]
    # Thin spaces come last: a line may not be broken within a number.
    return [spaced(line) for line in wrap(" ".join(pieces), width, len(pieces))]


def card_name(name: str) -> str:
    """A card's name without the words that are the same for all of its line."""
    for word in ("Blackwell", "Workstation Edition", "Generation"):
        name = name.replace(word, "")
    return short_name(name)


def measured_word(provenance: str) -> str:
    """What stands over the column of the measured cards."""
    return "measured here" if provenance == "measured" else provenance.upper()


def figure_text(estimate: Estimate | None) -> str:
    """`3.24 ± 0.01`, a dash where it is not known."""
    if estimate is None:
        return DASH
    text = number(estimate.mean, decimals_of(estimate.mean, estimate.u95))
    return f"{text} {uncertainty(estimate.mean, estimate.u95)}".rstrip()


def sections(advice: Advice) -> tuple[Section, ...]:
    """Why, what flips it, the rule, the evidence, the plan, the corrections, the checklist."""
    made = (
        Section("why", tuple(_why(advice))),
        Section("flips", tuple(_flips(advice))),
        Section("rule", (Item("", advice.rule), Item("", f"Fired: {advice.fired}."))),
        Section("evidence", tuple(_evidence(advice))),
        Section("others", tuple(_others(advice))),
        Section("plan for", tuple(Item("·", text) for text in advice.constraints)),
        Section("article", tuple(_article(advice))),
        Section("checklist", tuple(_checklist(advice))),
    )  # fmt: skip
    return tuple(section for section in made if section.items)


def _flips(advice: Advice) -> Iterator[Item]:
    for text in advice.flip_texts:
        yield Item("·", text)
    if not advice.flips:
        lacking = advice.choice.lacking is not None
        yield Item("", "what is not entered yet" if lacking else "no single input within reach")


def _why(advice: Advice) -> Iterator[Item]:
    yield Item("", advice.why, "warn" if advice.choice.basis == "none" else "text")


def _evidence(advice: Advice) -> Iterator[Item]:
    shown = {cards.offer.card for cards in advice.choice.recommended}
    for candidate in advice.choice.candidates:
        if candidate.cards.offer.measured is None and candidate.cards.offer.card not in shown:
            continue
        yield Item("", f"{candidate.cards.label}: {_standing(candidate)}", "strong")
        for clause in candidate.clauses:
            yield Item(*_clause(clause), depth=1)


def _others(advice: Advice) -> Iterator[Item]:
    """Cards that would qualify by their profiles: never ranked, never scaled."""
    if not advice.others:
        return
    yield Item("", "Reference, not measured here; these meet every requirement:", "muted")
    unit, currency = unit_of(advice.choice), advice.currency
    for one in advice.others:
        text = other_text(
            one.cards.label, one.price, one.price_words, one.rate_needed, unit, currency
        )
        yield Item("·", text, "muted", depth=1)


def _standing(candidate: Candidate) -> str:
    measured = candidate.cards.offer.measured
    if measured is not None and measured.spoiled is not None:
        return f"not ranked, {measured.spoiled}"
    words = {True: "meets every requirement", False: "does not qualify", None: "not decided"}
    return words[candidate.is_fit]


def _clause(clause: Clause) -> tuple[str, str, str]:
    mark, role = {True: ("+", "good"), False: ("-", "bad"), None: ("?", "warn")}[clause.is_met]
    yours = " (yours)" if clause.is_yours else ""
    where = ", ".join(dict.fromkeys(evidence.provenance for evidence in clause.evidence))
    return mark, f"{clause.wanted}{yours}: {clause.text}" + (f" [{where}]" if where else ""), role


def _article(advice: Advice) -> Iterator[Item]:
    if advice.article:
        yield Item("", advice.article)
    for correction in advice.corrections:
        yield Item("!", f"It says: {correction.says}", "warn")
        yield Item("", f"What holds: {correction.holds} [{correction.evidence}]", depth=1)


def _checklist(advice: Advice) -> Iterator[Item]:
    for row in advice.checklist:
        where = f" [{row.provenance}]" if row.provenance else ""
        yield Item(CHECK_MARKS[row.mark], f"{row.item}: {row.text}{where}", CHECK_ROLES[row.mark])
        if row.mark != "ask":
            yield Item("", f"Ask: {row.ask}", "muted", depth=2)
