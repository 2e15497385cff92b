"""The first lines of advice: on what it stands, and what is not known yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.economics.cost import per_joule, per_price
from heatsoak.economics.rules import MUST_WORDS
from heatsoak.economics.words import listed
from heatsoak_tui.format import DASH, fit, number, recipe_words, wrap
from heatsoak_tui.widgets.advice_canvas import AdviceCanvas
from heatsoak_tui.widgets.advice_sections import card_name, figure_text, measured_word
from heatsoak_tui.widgets.canvas import Line, left_right, rule, width_of

if TYPE_CHECKING:
    from heatsoak.economics.offers import Offer
    from heatsoak.session.advice import AdviceReport

NAME = 24
COLUMN = 16


class AdviceHeader(AdviceCanvas):
    """Title, one line for each measured card, what to enter, a rule."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The measured cards give way to what is missing only where there is no room."""
        report = self.view.report
        if report is None:
            text = self.view.problem or "reading the sessions"
            role = "warn" if self.view.problem else "muted"
            lines: list[Line] = [[(f" {line}", role)] for line in wrap(text, width - 2, height - 2)]
            return [
                [(" heatsoak ", "accent"), (" which card for whom", "text")],
                *lines,
                rule(width),
            ]
        lines = [self._title(report, width), self._columns(report, width)]
        lines += [_card(offer, width) for offer in report.measured]
        for index, text in enumerate(_missing(report, width)):
            lines.append([(f" {'!' if index == 0 else ' '} {text}", "warn")])
        return [*lines[: height - 1], rule(width)]

    def wanted_height(self, width: int) -> int:
        """How many lines it would like."""
        report = self.view.report
        if report is None:
            return 1 + len(wrap(self.view.problem or "-", width - 2, 6)) + 1
        return 3 + len(report.measured) + len(_missing(report, width))

    def _title(self, report: AdviceReport, width: int) -> Line:
        workload = report.measurements.workload
        left: Line = [(" heatsoak ", "accent")]
        for mark in report.measurements.marks:
            left += [(" ", "text"), (mark, "warn/strong")]
        what = " · ".join([workload.name, *recipe_words(workload.recipe)])
        left.append(("  which card for whom", "strong"))
        musts = ", ".join(MUST_WORDS[must] for must in MUST_WORDS if must in self.view.musts)
        right: Line = [(f"must: {musts} ", "accent")] if musts else []
        work: Line = [(f"  {what}", "muted")]
        if width_of(left) + width_of(work) + width_of(right) < width:
            left += work  # What was trained gives way to what the buyer insists on.
        return left_right(left, right, width)

    def _columns(self, report: AdviceReport, width: int) -> Line:
        unit, coin = report.measurements.workload.unit, report.currency
        per = f"{unit}/s per {coin}" if coin else "per price"
        heads = [f"{unit}/s", "W", f"{unit}/J", coin or "price", per]
        where = measured_word(report.measurements.provenance)
        return [
            (f" {where:<{NAME}}", "muted"),
            *((f"{head:>{_room(width)}}", "muted") for head in _seen(heads, width)),
        ]


def _seen(cells: list[str], width: int) -> list[str]:
    """The columns there is room for: watts and joules give way first."""
    if width >= NAME + 5 * COLUMN:
        return cells
    return [cells[0], cells[3], cells[4]]


def _room(width: int) -> int:
    columns = 5 if width >= NAME + 5 * COLUMN else 3
    return max(0, min(COLUMN + 2, (width - NAME - 2) // columns))


def _card(offer: Offer, width: int) -> Line:
    measured, price = offer.measured, offer.price
    if measured is None:
        return []
    joules = measured.joules_per_unit
    amount = None if price is None else price.amount * measured.n
    cells = [
        (figure_text(measured.rate_per_s), "rate"),
        (figure_text(measured.power_w), "power"),
        (figure_text(per_joule(joules) if joules is not None and joules.mean else None), "power"),
        (number(amount, 0), "text" if amount is not None else "muted"),
        (figure_text(None if amount is None else per_price(measured.rate_per_s, amount)), "strong"),
    ]
    kept = _seen([text for text, _ in cells], width)
    roles = dict(reversed(cells)) | {DASH: "muted"}
    name = card_name(f"{measured.n} x {offer.name}" if measured.n > 1 else offer.name)
    return [
        (f" {fit(name, NAME):<{NAME}}", "text"),
        *((f"{text:>{_room(width)}}", roles[text]) for text in kept),
    ]


def _missing(report: AdviceReport, width: int) -> list[str]:
    """What to enter, in two lines at most."""
    unpriced = [card_name(offer.name) for offer in report.measured if offer.price is None]
    if unpriced:
        text = f"no price of {listed(unpriced)}: heatsoak prices set CARD --invoice AMOUNT"
    else:
        text = "; ".join(f"not entered: {missing}" for missing in report.missing)
    return wrap(text, width - 4, 2)
