"""Everything that doctor found on this machine, and measuring what only measuring tells."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak.doctor.measure import measure
from heatsoak_tui.panels.doctor_header import DoctorHeader
from heatsoak_tui.panels.doctor_list import DoctorList
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from heatsoak.doctor import Machine
    from heatsoak_tui.widgets.draft import Draft


class DoctorScreen(HeatsoakScreen):
    """Stands over Setup and shows what its draft knows of the machine."""

    CSS = """
    #doctor-list { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_by(1)", "scroll", key_display="\u2191\u2193", id="down",
                tooltip="Down a line"),
        Binding("up,k", "scroll_by(-1)", show=False, id="up", tooltip="Up a line"),
        Binding("pagedown,space", "scroll_page(1)", show=False, id="doctor.page.next",
                tooltip="Down a page"),
        Binding("pageup", "scroll_page(-1)", show=False, id="doctor.page.previous",
                tooltip="Up a page"),
        Binding("m", "measure", "measure", id="doctor.measure",
                tooltip="Measure: a kernel, copies on the chosen cards, a file"),
        Binding("escape,d,q,ctrl+c", "close", "back", id="doctor.close",
                tooltip="Back; what is being measured is ended"),
    ]  # fmt: skip

    def __init__(self, draft: Draft, host: str) -> None:
        """Show what the draft knows.

        Args:
            draft: The run that is set up; its machine gets what is measured here.
            host: Name of this machine.
        """
        super().__init__()
        self.draft = draft
        self._host = host
        self._stop = threading.Event()

    @override
    def compose(self) -> ComposeResult:
        """Summary, findings, keys."""
        yield TooSmall(id="too-small")
        yield DoctorHeader(self.draft, self._host, id="header")
        yield DoctorList(self.draft, id="doctor-list")
        yield KeyLine(id="keys")

    def action_scroll_by(self, lines: int) -> None:
        """Scroll by some lines."""
        listed = self.query_one(DoctorList)
        listed.first = max(0, listed.first + lines)
        listed.repaint()

    def action_scroll_page(self, pages: int) -> None:
        """Scroll by some pages."""
        self.action_scroll_by(pages * max(1, self.query_one(DoctorList).size.height - 1))

    def action_measure(self) -> None:
        """Measure in a thread; the programs take up to a minute a card."""
        draft = self.draft
        if draft.machine is None or draft.doctor_is_busy:
            return
        draft.doctor_is_busy = "starting"
        machine = draft.machine.asking(draft.chosen_devices)
        self.run_worker(lambda: self._measure(machine), thread=True, name="measure")
        self.repaint_panels()

    def _measure(self, machine: Machine) -> None:
        measured = measure(machine, self._say, self._stop)
        if not self._stop.is_set():
            self.app.call_from_thread(self._measured, measured)

    def _say(self, text: str) -> None:
        if not self._stop.is_set():
            self.app.call_from_thread(self._show_busy, text)

    def _show_busy(self, text: str) -> None:
        if self.draft.doctor_is_busy:
            self.draft.doctor_is_busy = text
            self.repaint_panels()

    def _measured(self, machine: Machine) -> None:
        self.draft.machine, self.draft.doctor_is_busy = machine, ""
        self.repaint_panels()

    def on_unmount(self) -> None:
        """End what is being measured, however the screen is left."""
        self._stop.set()
        self.draft.doctor_is_busy = ""

    def action_close(self) -> None:
        """Back to Setup."""
        self.app.pop_screen()
