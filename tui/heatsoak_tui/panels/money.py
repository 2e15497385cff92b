"""What the picked card's work costs, with the prices it was computed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import THIN, fit, wrap
from heatsoak_tui.widgets.canvas import WIDE, width_of
from heatsoak_tui.widgets.money_words import (
    assumed_words,
    has_prices,
    job_money,
    money_rows,
    price_words,
    reference_words,
    scaling_rows,
)
from heatsoak_tui.widgets.run_canvas import RunCanvas

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.findings import Findings
    from heatsoak_tui.widgets.money_words import Row
    from heatsoak_tui.widgets.run_canvas import Shown

LABEL = 24
VALUE = 13
DOUBT = 19


class MoneyPanel(RunCanvas):
    """Title with the prices, figures in one column or two, what was assumed."""

    def __init__(self, shown: Shown, found: Findings, *, id: str | None = None) -> None:
        super().__init__(shown, id=id)
        self.found = found

    def wanted_height(self, width: int) -> int:
        """Lines that everything there is to say takes."""
        return len(self._lines(width))

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The title and the figures, and the last line says what was assumed."""
        lines = self._lines(width)
        if len(lines) > height > 1:
            return [*lines[: height - 1], lines[-1]]
        return lines

    def _lines(self, width: int) -> list[Line]:
        document = self.found.document
        entry = job_money(document, self.shown.device_id)
        if document is None or entry is None:
            return [[("  MONEY", "muted")]]
        problem = document["economics"]["problem"]
        lines = [_title(document, entry, width)]
        if problem is not None:
            lines.append([(fit(f"  {problem}", width), "bad")])
        if entry["reason"] is not None:
            return [*lines, [(fit(f"  {entry['reason']}", width), "muted")]]
        rows = money_rows(entry)
        reference = reference_words(entry)
        if width >= WIDE:
            # That error correction pays needs its words.
            rows = [row for row in rows if not row.label.startswith("ECC")]
            lines += _in_two_columns(rows + scaling_rows(document, entry), width)
        else:
            # What a unit costs in parts stands with the inputs.
            few = rows[:3] + scaling_rows(document, entry)[-1:]
            lines += [_row_line(row, width) for row in few]
        if entry["units_per_s_per_price"] is None and reference:
            lines += _told("reference", reference, width, 1)
        if entry["inputs"]:
            lines += _told("assumed", assumed_words(entry), width, 2)
        return lines


def _title(document: dict[str, Any], entry: dict[str, Any], width: int) -> Line:
    """`MONEY  yours: USD 2 899 (2026-10-12), 0.187 USD/kWh (2026-12-01)`."""
    line: Line = [("  MONEY  ", "accent")]
    for label in document["economics"]["labels"]:
        line.append((f"{label} ", "warn/strong"))
    room = width - width_of(line)
    text = price_words(entry, has_days=True)
    if len(text) >= room:
        text = price_words(entry, has_days=False)
    if not has_prices(entry):
        text += "; $ enters them"
    line.append((fit(text, room), "text"))
    return line


def _row_line(row: Row, width: int) -> Line:
    line: Line = [(f"  {fit(row.label, LABEL - 3):<{LABEL - 2}}", "text")]
    if not row.is_known:
        room = width - LABEL - len(row.value) - 5
        return [*line, (f"{row.value:>4}", "text"), ("  " + fit(row.note, room), "muted")]
    line.append((f"{row.value:>{VALUE}}", "strong"))
    line.append((f" {row.doubt:<{DOUBT}}", "muted"))
    line.append((fit(row.note, width - LABEL - VALUE - DOUBT - 2), "muted"))
    return line


def _in_two_columns(rows: Sequence[Row], width: int) -> list[Line]:
    """Two figures a line without their notes; one that lacks something has a line for itself."""
    half = width // 2
    lines: list[Line] = []
    known = [row for row in rows if row.is_known]
    for left, right in zip(known[::2], [*known[1::2], None], strict=False):
        line = _half(left, half)
        lines.append(line if right is None else line + _half(right, half))
    lines += [_row_line(row, width) for row in rows if not row.is_known]
    return lines


def _half(row: Row, width: int) -> Line:
    text = f"{row.value:>{VALUE}} "
    label = f"  {fit(row.label, LABEL - 3):<{LABEL - 2}}"
    return [
        (label, "text"),
        (text, "strong"),
        (f"{fit(row.doubt, width - LABEL - len(text)):<{width - LABEL - len(text)}}", "muted"),
    ]


def _told(label: str, text: str, width: int, most: int) -> list[Line]:
    indent = 12
    # A thin space would be broken at.
    texts = wrap(text.replace(THIN, "\0"), width - indent - 1, most)
    labels = [label, *[""] * len(texts)]
    return [
        [(f"  {name:<{indent - 2}}", "muted"), (part.replace("\0", THIN), "muted")]
        for name, part in zip(labels, texts, strict=False)
    ]
