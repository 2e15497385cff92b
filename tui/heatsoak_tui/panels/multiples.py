"""One quantity of all cards, one small chart each, on one time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import card_mark
from heatsoak_tui.widgets.chart import LEFT, QUANTITIES, chart_lines, value_limits
from heatsoak_tui.widgets.run_canvas import RunCanvas, Shown
from heatsoak_tui.widgets.time_axis import TimeAxis

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line


class Multiples(RunCanvas):
    """As many cards as fit, the picked one always among them."""

    def __init__(self, shown: Shown, *, id: str | None = None) -> None:
        super().__init__(shown, id=id)
        self.reading = "rate"
        """Which quantity is shown."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """All cards, the axis below them."""
        shown = self.shown
        view = shown.view
        ids = view.device_ids
        if not ids or width < 40 or height < 4:
            return []
        quantity = next(q for q in QUANTITIES if q.reading == self.reading)
        right = 14 if width >= 70 else 9
        axis = TimeAxis.of(shown, LEFT, width - LEFT - right)
        below = axis.lines(2 if height >= 8 else 1, width)
        unit = quantity.label or f"{view.unit(ids[0])}/s"
        head: Line = [(f"  {unit} of all cards", "muted")]
        room = height - len(below) - 1
        count = max(1, min(len(ids), room // 2))
        each = min(8, room // count)
        picked = ids.index(shown.device_id) if shown.device_id in ids else 0
        first = min(max(0, picked - count // 2), len(ids) - count)
        # One scale for all, or the eye compares the wrong thing.
        limits = value_limits(view, ids, quantity, axis)
        lines = [head]
        for device_id in ids[first : first + count]:
            mark = "▸ " if device_id == shown.device_id else "  "
            label = f"{mark}{card_mark(device_id)}"
            lines += chart_lines(view, device_id, quantity, axis, each, right, label, limits)
        return lines + below
