"""What every screen shares: the sentence of a terminal too small, the key line, help, redraw."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen
from typing_extensions import override

from heatsoak_tui.format import wrap
from heatsoak_tui.frugal import make_frugal
from heatsoak_tui.screens.help import Help
from heatsoak_tui.widgets.canvas import WIDE, Canvas, Line

if TYPE_CHECKING:
    from textual import events

LEAST_WIDTH, LEAST_HEIGHT = 56, 14
"""Cells below which a screen is one sentence."""


class TooSmall(Canvas):
    """The sentence."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """As much of it as fits."""
        text = f"too small: {LEAST_WIDTH} x {LEAST_HEIGHT} needed; a run goes on. q leaves"
        return [[(line, "warn")] for line in wrap(text, width, height)]


class HeatsoakScreen(Screen[None]):
    """Base of Setup, Live and Result."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "help", id="help", tooltip="All keys of this screen"),
        Binding("ctrl+l", "redraw", "redraw", show=False, id="redraw",
                tooltip="Draw the whole screen anew"),
        Binding("ctrl+z", "app.suspend_process", "suspend", show=False, id="suspend",
                tooltip="To the shell; fg comes back"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        make_frugal(self)

    def on_resize(self, event: events.Resize) -> None:
        """One sentence instead of a broken picture."""
        is_small = event.size.width < LEAST_WIDTH or event.size.height < LEAST_HEIGHT
        self.set_class(is_small, "-too-small")
        self.set_class(event.size.width >= WIDE, "-wide")
        # The sentence of the second line needs two on a narrow screen.
        self.set_class(event.size.width < WIDE and event.size.height >= 20, "-tall-header")
        self.arrange_panels(event.size.width, event.size.height)

    def arrange_panels(self, width: int, height: int) -> None:
        """Give the panels their sizes; a subclass knows them."""

    def repaint_panels(self) -> None:
        """Draw every visible panel anew; each refreshes only what changed."""
        for canvas in self.query(Canvas):
            if canvas.display:
                canvas.repaint()

    def action_help(self) -> None:
        """Show all keys."""
        self.app.push_screen(Help(self))

    def action_redraw(self) -> None:
        """Draw everything anew."""
        self.refresh(layout=True)


class Blank(HeatsoakScreen):
    """Under all others."""

    BINDINGS: ClassVar[list[BindingType]] = []
