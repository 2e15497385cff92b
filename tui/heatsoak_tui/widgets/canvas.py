"""A widget that is drawn as lines of coloured text and repaints only the cells that changed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget
from typing_extensions import override

from heatsoak_tui.format import to_ascii

if TYPE_CHECKING:
    from rich.style import Style
    from textual import events

Span = tuple[str, str]
"""Text and its role: one of `ROLES`, or several joined by `/`, the later over the earlier."""
Line = list[Span]
Cell = tuple[str, str]
"""One character and its role; the second half of a wide character is the empty string."""

ROLES = (
    "text", "muted", "strong", "accent", "good", "warn", "bad",
    "rate", "power", "temperature", "clock", "fan", "window", "picked", "rule",
)  # fmt: skip
"""What a colour may mean. Each is a component class `canvas--ROLE`, coloured in `app.tcss`."""
HUES = {
    "rate": "rate",
    "power_w": "power",
    "temperature_c": "temperature",
    "sm_clock_mhz": "clock",
    "fan_pct": "fan",
}
"""The role of each measured quantity, the same on every screen."""


WIDE = 110
"""Width of a screen from which there is room beside the charts, and for words in the table."""


class Canvas(Widget):
    """Base of everything that shows a run. A subclass says what its lines are, in `draw`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"canvas--{role}" for role in ROLES}

    is_ascii = False
    """Whether every glyph is replaced by an ASCII character; set once by the app."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._cells: list[list[Cell]] = []
        self._styles: dict[str, Style] = {}

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines to show, at most `height`, each cut to `width` by the caller."""
        raise NotImplementedError

    def repaint(self) -> None:
        """Draw anew and refresh the cells that differ."""
        size = self.size
        if size.width <= 0 or size.height <= 0:
            return
        before, self._cells = self._cells, self._drawn(size)
        if [len(row) for row in before] != [len(row) for row in self._cells]:
            self.refresh()
            return
        regions = [
            Region(start, y, end - start, 1)
            for y, (old, new) in enumerate(zip(before, self._cells, strict=True))
            if old != new
            for start, end in changed_spans(old, new)
        ]
        if regions:
            self.refresh(*regions)

    def _drawn(self, size: Size) -> list[list[Cell]]:
        lines = self.draw(size.width, size.height)[: size.height]
        rows = [to_cells(line, size.width, is_ascii=self.is_ascii) for line in lines]
        rows.extend([(" ", "text")] * size.width for _ in range(size.height - len(rows)))
        return rows

    @override
    def render_line(self, y: int) -> Strip:
        """One line as Textual wants it."""
        if len(self._cells) != self.size.height or (
            self._cells and len(self._cells[0]) != self.size.width
        ):
            self._cells = self._drawn(self.size)
        if y >= len(self._cells):
            return Strip.blank(self.size.width, self.rich_style)
        segments: list[Segment] = []
        text, role = "", ""
        for char, cell_role in self._cells[y]:
            if cell_role != role and text:
                segments.append(Segment(text, self._style(role)))
                text = ""
            role = cell_role
            text += char
        segments.append(Segment(text, self._style(role)))
        return Strip(segments, self.size.width)

    def _style(self, role: str) -> Style:
        style = self._styles.get(role)
        if style is None:
            style = self.rich_style
            for part in role.split("/"):
                style += self.get_component_rich_style(f"canvas--{part}", partial=True)
            self._styles[role] = style
        return style

    @override
    def notify_style_update(self) -> None:
        """Forget the colours when the theme or a class changes."""
        super().notify_style_update()
        self._styles.clear()

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new size."""
        self.repaint()


def to_cells(line: Line, width: int, *, is_ascii: bool = False) -> list[Cell]:
    """The line as exactly `width` cells: cut or filled with blanks, control characters as `?`."""
    cells: list[Cell] = []
    for text, role in line:
        for char in to_ascii(text) if is_ascii else text:
            columns = _columns(char)
            if columns == 1:
                cells.append((char, role))
            elif columns == 2:
                cells += [(char, role), ("", role)]
        if len(cells) >= width:
            break
    if len(cells) > width:
        # Cutting a wide character in half would shift everything after it.
        is_halved = cells[width][0] == ""
        del cells[width:]
        if is_halved and cells:
            cells[-1] = (" ", cells[-1][1])
    cells.extend([(" ", "text")] * (width - len(cells)))
    return cells


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    return cell_len(char) if char.isprintable() or char == "\u2009" else 0


def changed_spans(old: list[Cell], new: list[Cell]) -> list[tuple[int, int]]:
    """Runs (start, end) of cells that differ, joined across gaps of up to three."""
    spans: list[tuple[int, int]] = []
    for x, (a, b) in enumerate(zip(old, new, strict=True)):
        if a == b:
            continue
        if spans and x - spans[-1][1] < 4:
            spans[-1] = (spans[-1][0], x + 1)
        else:
            spans.append((x, x + 1))
    return spans


def width_of(line: Line) -> int:
    """Cells of a line."""
    return sum(_columns(char) for text, _ in line for char in text)


def left_right(left: Line, right: Line, width: int) -> Line:
    """`left` and, as far as there is room, `right` at the right edge."""
    room = width - width_of(left) - width_of(right)
    return [*left, (" " * room, "text"), *right] if room >= 1 else left


def rule(width: int) -> Line:
    """A thin line over the whole width."""
    return [("─" * width, "rule")]
