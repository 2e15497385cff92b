"""Writes only the cells of a screen that differ from what the terminal already shows.

The only file that uses Textual's private compositor (pinned to 8.2). Stock Textual repaints from
the edge of a widget to the changed cell and sets the colours of every segment anew; over SSH that
is ten times the bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from rich.cells import cell_len
from rich.color import ColorSystem
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.segment import Segment
    from rich.style import Style
    from textual.app import App
    from textual.geometry import Size
    from textual.screen import Screen

Look = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""SGR codes of a style: attributes, foreground, background."""
Shown = tuple[str, Look] | None
"""A cell: its character and look; None where nothing is known of it."""
JOIN = 4
"""Runs closer than this are written as one: moving the cursor costs as much."""
_PLAIN: Look = ((), (), ())
_ATTRIBUTES = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "21", "51", "52", "53")


class Shadow:
    """What one terminal shows, cell by cell."""

    def __init__(self) -> None:
        self.rows: list[list[Shown]] = []

    def forget(self, width: int, height: int) -> None:
        """Know nothing, of a terminal of this size."""
        self.rows = [[None] * width for _ in range(height)]

    def fits(self, width: int, height: int) -> bool:
        """Whether it is of this size."""
        return len(self.rows) == height and (not self.rows or len(self.rows[0]) == width)

    def difference(self, wanted: Iterable[tuple[int, int, list[Shown]]]) -> str:
        """Take cells that the terminal shall show; what to write so that it does.

        Args:
            wanted: (line, first column, cells); None leaves a cell as it is.
        """
        out: list[str] = []
        look = _PLAIN
        for y, x, cells in wanted:
            row = self.rows[y]
            cells = cells[: len(row) - x]
            for start, end in _runs(row, x, cells):
                for index in range(start, end):
                    if 0 <= index - x < len(cells) and cells[index - x] is not None:
                        row[index] = cells[index - x]
                out.append(f"\x1b[{y + 1};{start + 1}H")
                for cell in row[start:end]:
                    char, cell_look = cell or (" ", _PLAIN)
                    if cell_look != look:
                        out.append(_change(look, cell_look))
                        look = cell_look
                    out.append(char)
        if look != _PLAIN:
            out.append("\x1b[0m")
        return "".join(out)


def _runs(row: list[Shown], x: int, cells: list[Shown]) -> list[tuple[int, int]]:
    changed = [
        index for index, cell in enumerate(cells, x) if cell is not None and cell != row[index]
    ]
    if not changed:
        return []
    if any(cell and cell[0] == "" for line in (cells, row) for cell in line):
        # A wide character is shown by two cells that live and die together.
        return [(0, len(row))] if None not in row else [(x, x + len(cells))]
    runs = [[changed[0], changed[0] + 1]]
    for index in changed[1:]:
        if index - runs[-1][1] < JOIN and None not in row[runs[-1][1] : index]:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])
    return [(start, end) for start, end in runs]


def _change(old: Look, new: Look) -> str:
    """The shortest SGR sequence from one look to another."""
    codes: list[str] = []
    if set(old[0]) - set(new[0]):
        codes.append("0")
        old = _PLAIN
    codes += [code for code in new[0] if code not in old[0]]
    for before, after, default in ((old[1], new[1], "39"), (old[2], new[2], "49")):
        if before != after:
            codes += after or (default,)
    return f"\x1b[{';'.join(codes)}m"


@lru_cache(maxsize=1024)
def _look(style: Style | None, colors: ColorSystem) -> Look:
    if style is None:
        return _PLAIN
    lit = style._attributes & style._set_attributes  # noqa: SLF001 - as Textual's own renderer does
    attributes = tuple(code for bit, code in enumerate(_ATTRIBUTES) if lit & 1 << bit)
    front, back = style.color, style.bgcolor
    return (
        attributes,
        tuple(front.downgrade(colors).get_ansi_codes()) if front else (),
        tuple(back.downgrade(colors).get_ansi_codes(foreground=False)) if back else (),
    )


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    return cell_len(char)


def _cells(segments: Iterable[Segment], colors: ColorSystem) -> list[Shown]:
    cells: list[Shown] = []
    for text, style, control in segments:
        if control:
            continue
        look = _look(style, colors)
        if text.isascii():
            cells.extend((char, look) for char in text)
            continue
        for char in text:
            columns = _columns(char)
            if columns:
                cells.append((char, look))
                cells.extend([("", look)] * (columns - 1))
            elif cells and (last := cells[-1]) is not None:
                cells[-1] = (last[0] + char, last[1])
    return cells


class FrugalLayoutUpdate(LayoutUpdate):
    """The whole screen: the shadow is forgotten, everything is written."""

    shadow: Shadow

    @override
    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        colors = console._color_system or ColorSystem.TRUECOLOR  # noqa: SLF001
        self.shadow.forget(self.region.width, self.region.height)
        return self.shadow.difference(
            (y, self.region.x, _cells((s for strip in line for s in strip), colors))
            for y, line in enumerate(self.strips, self.region.y)
        )


class FrugalChopsUpdate(ChopsUpdate):
    """Some spans of the screen: only cells that differ from the shadow are written."""

    shadow: Shadow
    size: Size

    @override
    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        colors = console._color_system or ColorSystem.TRUECOLOR  # noqa: SLF001
        if not self.shadow.fits(*self.size):
            self.shadow.forget(*self.size)
        return self.shadow.difference(self._wanted(colors))

    def _wanted(self, colors: ColorSystem) -> Iterable[tuple[int, int, list[Shown]]]:
        for y, x1, x2 in self.spans:
            if y >= len(self.chops):
                continue
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= x2 or end <= x1:
                    continue
                cells = _cells(strip, colors)
                left, right = max(x1, x), min(x2, end)
                yield y, left, cells[left - x : right - x]


class FrugalCompositor(Compositor):
    """A stock compositor whose updates know what the terminal shows."""

    _shadows: ClassVar[WeakKeyDictionary[App[Any], Shadow]] = WeakKeyDictionary()

    @property
    def _shadow(self) -> Shadow:
        # All screens of an app draw on one terminal.
        assert self.root is not None
        return self._shadows.setdefault(self.root.app, Shadow())

    @override
    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """All of it, forgetting the shadow."""
        stock = super().render_full_update(simplify)
        update = FrugalLayoutUpdate(stock.strips, stock.region)
        update.shadow = self._shadow
        return update

    @override
    def render_partial_update(self) -> ChopsUpdate | None:
        """What changed."""
        stock = super().render_partial_update()
        if stock is None:
            return None
        update = FrugalChopsUpdate(stock.chops, stock.spans, stock.chop_ends)
        update.shadow = self._shadow
        update.size = self.size
        return update


def make_frugal(screen: Screen[Any]) -> None:
    """Give a screen that has just been made a frugal compositor."""
    screen._compositor = FrugalCompositor()  # noqa: SLF001 - there is no other way in
