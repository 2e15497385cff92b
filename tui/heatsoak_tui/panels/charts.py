"""The picked card's rate, power, temperature and clock over one time axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.widgets.chart import DRAWN_ORDER, LEFT, QUANTITIES, chart_lines
from heatsoak_tui.widgets.run_canvas import RunCanvas
from heatsoak_tui.widgets.time_axis import TimeAxis

if TYPE_CHECKING:
    from heatsoak_tui.run_view import RunView
    from heatsoak_tui.widgets.canvas import Line


class Charts(RunCanvas):
    """Charts of the picked card, as many as fit."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """All charts, the axis below them."""
        shown = self.shown
        device_id = shown.device_id
        if device_id is None or width < 40 or height < 4:
            return []
        view = shown.view
        right = 14 if width >= 70 else 9
        axis = TimeAxis.of(shown, LEFT, width - LEFT - right)
        below = axis.lines(2 if height >= 8 else 1, width)
        heights = chart_heights(view, device_id, height - len(below))
        lines: list[Line] = []
        for reading in DRAWN_ORDER:
            if reading in heights:
                quantity = next(q for q in QUANTITIES if q.reading == reading)
                lines += chart_lines(view, device_id, quantity, axis, heights[reading], right)
        if not lines:
            lines = [[("  waiting for the first reading", "muted")]]
        return lines + below


def chart_heights(view: RunView, device_id: str, room: int) -> dict[str, int]:
    """Lines of each chart: those with readings, at least two each, the rate gets what is over."""
    known = [q.reading for q in QUANTITIES if len(view.series(device_id, q.reading))]
    known = known[: max(1, room // 2)]
    if not known:
        return {}
    each, over = divmod(room, len(known))
    heights = {reading: min(12, each) for reading in known}
    heights[known[0]] = min(16, heights[known[0]] + over)
    return heights
