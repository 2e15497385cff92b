"""What came out: how fast, how sure, at what cost in energy."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak.errors import HeatsoakError
from heatsoak.session.result import load_result
from heatsoak_tui.messages import NewSoak
from heatsoak_tui.panels.header import Header
from heatsoak_tui.panels.result_table import ResultTable
from heatsoak_tui.panels.session_line import SessionLine
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from heatsoak_tui.widgets.run_canvas import Shown


class ResultScreen(HeatsoakScreen):
    """Stands over the Live screen of the same run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "card(-1)", show=False, id="card.previous", tooltip="Previous card"),
        Binding("up,k", "scroll(-1)", show=False, id="up", tooltip="Up, where not all fits"),
        Binding("down,j", "scroll(1)", show=False, id="down", tooltip="Down"),
        Binding("right", "card(1)", "card", key_display="←→", id="card.next",
                tooltip="Next card"),
        Binding("t,escape", "charts", "charts", id="charts", tooltip="The charts of this run"),
        Binding("n", "new", "new soak", id="new", tooltip="Set up another run; this one goes on"),
        Binding("d", "detach", show=False, id="detach", tooltip="Leave; a run goes on"),
        Binding("q,ctrl+c", "leave", "leave", id="leave", tooltip="Leave the screen"),
    ]  # fmt: skip

    def __init__(self, shown: Shown, path: Path) -> None:
        super().__init__()
        self.shown = shown
        self._path = path
        self._known: tuple[str, ...] = ()

    @override
    def compose(self) -> ComposeResult:
        """Header, numbers, file, keys."""
        yield TooSmall(id="too-small")
        yield Header(self.shown, id="header")
        yield ResultTable(self.shown, id="result")
        yield SessionLine(self.shown, self._path, id="session")
        yield KeyLine(id="keys")

    @override
    def repaint_panels(self) -> None:
        """Draw anew; the document is read again when a result has come."""
        view = self.shown.view
        known = (view.session_state, *(str(view.result(d)) for d in view.device_ids))
        if known != self._known:
            self._known = known
            self.run_worker(self._read, thread=True, name="document", exclusive=True)
        super().repaint_panels()

    def on_mount(self) -> None:
        """Read the document."""
        self.repaint_panels()

    def _read(self) -> None:
        try:
            document = load_result(self._path)
        except (HeatsoakError, sqlite3.Error, OSError):
            # What the feed has brought is shown all the same.
            return
        self.app.call_from_thread(self._take, document)

    def _take(self, document: dict[str, Any]) -> None:
        self.query_one(ResultTable).document = document
        super().repaint_panels()

    def action_card(self, step: int) -> None:
        """Pick the next or previous card."""
        ids = self.shown.view.device_ids
        at = ids.index(self.shown.device_id) if self.shown.device_id in ids else 0
        self.shown.device_id = ids[(at + step) % len(ids)]
        self.repaint_panels()

    def action_scroll(self, step: int) -> None:
        """Show what does not fit."""
        self.query_one(ResultTable).scroll_lines(step)

    def action_charts(self) -> None:
        """Back to the Live screen."""
        self.dismiss()

    def action_new(self) -> None:
        """Another run."""
        self.app.post_message(NewSoak())

    def action_detach(self) -> None:
        """Leave; the run goes on if it has not ended."""
        self.app.exit()

    async def action_leave(self) -> None:
        """As the Live screen leaves: it asks while the run goes on."""
        if self.shown.view.has_ended:
            self.app.exit()
        else:
            live = self.app.screen_stack[-2]
            self.dismiss()
            live.call_later(live.run_action, "leave")
