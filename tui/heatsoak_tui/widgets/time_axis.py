"""The time axis that all charts of a screen share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak_tui.widgets import raster

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.run_canvas import Shown

MARKS = {
    "mark": ("▲", "accent"),
    "disturbed": ("!", "warn"),
    "silent": ("!", "warn"),
    "error": ("!", "bad"),
    "lost": ("×", "bad"),  # noqa: RUF001
}
"""What stands on the axis for each kind of event."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """From `t0_s` to `t1_s` on `width` cells, the first of them in column `left`."""

    left: int
    width: int
    t0_s: float
    t1_s: float
    window_s: tuple[float, float] | None = None
    """Start and end of the judged window."""
    is_frozen: bool = False
    marks: tuple[tuple[float, str, str], ...] = ()
    """(t_s, glyph, role)"""

    @staticmethod
    def of(shown: Shown, left: int, width: int) -> TimeAxis:
        """The axis of what is shown, with the marks of the picked device."""
        view = shown.view
        t0_s, t1_s = raster.zoomed_s(view.now_s, shown.zoom_s)
        window, is_frozen = None, False
        marks: list[tuple[float, str, str]] = []
        if shown.device_id is not None:
            verdict = view.verdict(shown.device_id)
            # While it warms up there is a window, but nothing is judged yet.
            if (
                verdict is not None
                and verdict.state != "warming"
                and verdict.window_start_s is not None
                and verdict.window_s
            ):
                window = (verdict.window_start_s, verdict.window_start_s + verdict.window_s)
                is_frozen = verdict.frozen_at_s is not None
            throttled = view.throttle_series(shown.device_id).points(t0_s)
            marks += [(t_s, "▼", "bad") for t_s, _, high in throttled if high > 0]
            marks += [
                (event.t_s, *MARKS[event.kind])
                for event in view.events
                if event.kind in MARKS and event.device_id in (None, shown.device_id)
            ]
        return TimeAxis(left, max(1, width), t0_s, t1_s, window, is_frozen, tuple(marks))

    def column_of(self, t_s: float) -> int | None:
        """The cell of an instant, 0 the first; None outside."""
        if not self.t0_s <= t_s <= self.t1_s:
            return None
        return min(self.width - 1, int((t_s - self.t0_s) / (self.t1_s - self.t0_s) * self.width))

    @property
    def window_columns(self) -> tuple[int, int] | None:
        """First cell of the judged window and the one after its last; None when out of sight."""
        if self.window_s is None:
            return None
        start_s, end_s = self.window_s
        if end_s < self.t0_s or start_s > self.t1_s:
            return None
        start = self.column_of(max(start_s, self.t0_s))
        end = self.column_of(min(end_s, self.t1_s))
        return (start or 0), (end or 0) + 1

    def lines(self, count: int, total_width: int) -> list[Line]:
        """The axis in one or two lines: marks and the judged window; then the labels."""
        labels: Line = [(" " * self.left + self._labels(total_width - self.left), "muted")]
        return [labels] if count == 1 else [self._mark_line(), labels]

    def _labels(self, room: int) -> str:
        step_s = raster.tick_step_s(self.t1_s - self.t0_s, self.width)
        unit, unit_s = ("s", 1) if step_s < 60 else ("min", 60) if step_s < 3600 else ("h", 3600)
        row = [" "] * room
        tick = -(-self.t0_s // step_s) * step_s
        last_end = 0
        while tick <= self.t1_s:
            column = round((tick - self.t0_s) / (self.t1_s - self.t0_s) * (self.width - 1))
            text = f"{tick / unit_s:g}"
            if tick + step_s > self.t1_s:
                text += f" {unit}"
            start = column
            if start >= last_end and start + len(text) <= room:
                row[start : start + len(text)] = text
                last_end = start + len(text) + 1
            tick += step_s
        return "".join(row).rstrip()

    def _mark_line(self) -> Line:
        cells = [("─", "rule")] * self.width
        marked: dict[int, tuple[str, str]] = {}
        for t_s, glyph, role in self.marks:
            column = self.column_of(t_s)
            if column is not None:
                marked[column] = (glyph, role)
        window = self.window_columns
        if window is not None:
            cells[slice(*window)] = [("▒", "muted")] * (window[1] - window[0])
            word = " frozen " if self.is_frozen else " judged "
            start = self._place_for(word, window, marked)
            if start is not None:
                role = "good" if self.is_frozen else "accent"
                cells[start : start + len(word)] = [(char, role) for char in word]
        for column, mark in marked.items():
            cells[column] = mark
        return [(" " * self.left, "text"), *cells]

    def _place_for(
        self, word: str, window: tuple[int, int], marked: dict[int, tuple[str, str]]
    ) -> int | None:
        """Where the word hides no mark: in the middle of the window, else elsewhere, else after."""
        last = window[1] - len(word) - 1
        middle = (window[0] + window[1] - len(word)) // 2
        inside = sorted(range(window[0] + 1, last + 1), key=lambda x: abs(x - middle))
        for start in (*inside, window[1]):
            cells = range(start, start + len(word))
            if cells[-1] < self.width and marked.keys().isdisjoint(cells):
                return start
        return None
