"""What stands behind a result: how it was measured, every formula, every input."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak_tui.panels.header import Header
from heatsoak_tui.panels.result_inputs import ResultInputs
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from heatsoak_tui.widgets.findings import Findings
    from heatsoak_tui.widgets.run_canvas import Shown


class InputsScreen(HeatsoakScreen):
    """Stands over the Result screen."""

    CSS = "#inputs { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", show=False, id="up", tooltip="A line up"),
        Binding("down,j", "scroll(1)", "scroll", key_display="↑↓", id="down",
                tooltip="A line down"),
        Binding("pageup", "page(-1)", show=False, id="page.up", tooltip="A page up"),
        Binding("pagedown,space", "page(1)", "page", key_display="space", id="page.down",
                tooltip="A page down"),
        Binding("tab", "section(1)", "next figure", id="section.next", tooltip="The next figure"),
        Binding("shift+tab", "section(-1)", show=False, id="section.previous",
                tooltip="The figure before"),
        Binding("escape,i,q,ctrl+c", "back", "back", id="back", tooltip="Back to the result"),
    ]  # fmt: skip

    def __init__(self, shown: Shown, found: Findings) -> None:
        super().__init__()
        self.shown = shown
        self._found = found

    @override
    def compose(self) -> ComposeResult:
        """Header, sections, keys."""
        yield TooSmall(id="too-small")
        yield Header(self.shown, id="header")
        yield ResultInputs(self.shown, self._found, id="inputs")
        yield KeyLine(id="keys")

    def action_scroll(self, step: int) -> None:
        """Some lines."""
        self.query_one(ResultInputs).scroll_lines(step)

    def action_page(self, step: int) -> None:
        """A page."""
        panel = self.query_one(ResultInputs)
        panel.scroll_lines(step * max(1, panel.size.height - 2))

    def action_section(self, step: int) -> None:
        """The next or previous section."""
        self.query_one(ResultInputs).next_section(step)

    def action_back(self) -> None:
        """Back."""
        self.dismiss()
