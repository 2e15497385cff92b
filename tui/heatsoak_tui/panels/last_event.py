"""The newest event in one line, where there is no room for a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import duration, fit
from heatsoak_tui.widgets.run_canvas import RunCanvas

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line


class LastEvent(RunCanvas):
    """One line; empty before there is an event."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """When and what."""
        events = [event for event in self.shown.view.events if event.kind != "start"]
        if not events:
            return []
        event = events[-1]
        at = duration(event.t_s)
        return [[(f"  {at}  ", "muted"), (fit(event.text, width - len(at) - 4), "text")]]
