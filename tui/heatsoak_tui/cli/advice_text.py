"""What `heatsoak advise` and `heatsoak archetypes` print for people, at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.economics.cost import per_joule, per_price
from heatsoak_tui.cli.text import printable, table
from heatsoak_tui.format import DASH, fit, number, recipe_words, wrap
from heatsoak_tui.widgets.advice_sections import (
    Item,
    card_name,
    figure_text,
    measured_word,
    sections,
    wrapped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.economics.advice import Advice
    from heatsoak.economics.offers import Offer
    from heatsoak.profiles.archetypes import Archetypes
    from heatsoak.session.advice import AdviceReport

WIDTH = 80
LABEL = 13


def advice_text(report: AdviceReport) -> str:
    """The measured cards, then each archetype: the answer first, what it stands on below."""
    marks = " ".join(report.measurements.marks)
    lines = [*_head(report, marks), ""]
    for index, advice in enumerate(report.advice, start=1):
        lines += [*_block(index, advice, marks), ""]
    return printable("\n".join(lines).rstrip())


def archetypes_text(kinds: Archetypes) -> str:
    """Each archetype with what it needs and what decides."""
    from heatsoak.economics.offers import Needs
    from heatsoak.economics.reasons import rule_text

    lines = [*wrap(f'Kinds of buyers, after "{kinds.article}"', WIDTH, 3), ""]
    for index, kind in enumerate(kinds.archetypes, start=1):
        own = "  (your file)" if kind.provenance == "user" else ""
        lines.append(f"{index}  {kind.name}{own}")
        for label, text in (
            ("id", kind.id), ("who", kind.who), ("priority", kind.priority),
            ("rule", rule_text(kind, Needs())), ("article", kind.article_says),
        ):  # fmt: skip
            lines += _labelled(label, text)
        lines.append("")
    return printable("\n".join(lines).rstrip())


def _head(report: AdviceReport, marks: str) -> Iterator[str]:
    measurements = report.measurements
    workload = measurements.workload
    count = len(measurements.sessions)
    what = " ".join([workload.name, *recipe_words(workload.recipe)])
    sessions = "1 session" if count == 1 else f"{count} sessions"
    yield "  ".join(filter(None, [marks, f"{sessions} of {what}"]))
    yield from wrap(f'Kinds of buyers after "{report.article}"', WIDTH, 3)
    yield ""
    rows = _measured_rows(report)
    rest = sum(2 + max(map(len, column)) for column in list(zip(*rows, strict=True))[1:])
    cut = [(fit(card_name(name), WIDTH - rest), *cells) for name, *cells in rows]
    yield table(cut, frozenset({1, 2, 3, 4, 5}))
    for text in report.missing:
        yield from _hanging("! ", f"not entered: {text}", WIDTH)


def _measured_rows(report: AdviceReport) -> list[tuple[str, ...]]:
    unit = report.measurements.workload.unit
    coin = report.currency or "price"
    rows: list[tuple[str, ...]] = [
        (measured_word(report.measurements.provenance), f"{unit}/s", "W", f"{unit}/J", coin,
         f"{unit}/s per {coin}")
    ]  # fmt: skip
    return [*rows, *map(_measured_row, report.measured)]


def _measured_row(offer: Offer) -> tuple[str, ...]:
    measured, price = offer.measured, offer.price
    if measured is None:
        return (offer.name, *[DASH] * 5)
    joules = measured.joules_per_unit
    amount = None if price is None else price.amount * measured.n
    return (
        f"{measured.n} x {offer.name}" if measured.n > 1 else offer.name,
        figure_text(measured.rate_per_s),
        figure_text(measured.power_w),
        figure_text(per_joule(joules) if joules is not None and joules.mean else None),
        number(amount, 0),
        figure_text(None if amount is None else per_price(measured.rate_per_s, amount)),
    )


def _block(index: int, advice: Advice, marks: str) -> Iterator[str]:
    head = f"{index}  {advice.archetype.name}: {advice.card}"
    yield f"{head:<{WIDTH - len(marks) - 1}} {marks}".rstrip()
    for section in sections(advice):
        label = section.title
        for item in section.items:
            yield from _item(label, item)
            label = ""


def _item(label: str, item: Item) -> Iterator[str]:
    indent = "  " * item.depth
    lead = f"{indent}{item.mark} " if item.mark else indent
    room = WIDTH - LABEL - len(lead)
    for line in wrapped(item.text, room):
        yield f"   {label:<{LABEL - 3}}{lead}{line}".rstrip()
        label, lead = "", " " * len(lead)


def _labelled(label: str, text: str) -> Iterator[str]:
    yield from _item(label, Item("", text))


def _hanging(lead: str, text: str, width: int) -> Iterator[str]:
    for line in wrapped(text, width - len(lead)):
        yield lead + line
        lead = " " * len(lead)
