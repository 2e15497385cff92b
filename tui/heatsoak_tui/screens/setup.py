"""Choosing what to run: which cards, which workload, how strictly."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from typing_extensions import override

from heatsoak.doctor import look
from heatsoak.errors import HeatsoakError
from heatsoak.recorder import client
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.discovery import discover, nvidia_problem, open_devices, usable
from heatsoak_tui.messages import RunStarted
from heatsoak_tui.panels.setup_cards import SetupCards
from heatsoak_tui.panels.setup_doctor import SetupDoctor
from heatsoak_tui.panels.setup_facts import SetupFacts
from heatsoak_tui.panels.setup_header import SetupHeader
from heatsoak_tui.panels.setup_plan import SetupPlan
from heatsoak_tui.panels.setup_workloads import SetupWorkloads
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.screens.doctor import DoctorScreen
from heatsoak_tui.screens.prompts import Ask
from heatsoak_tui.widgets.draft import PANES, Draft
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from heatsoak.doctor import Machine
    from heatsoak.recorder.plan import Plan
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

ROOMY = 30
"""Lines from which doctor may have more than two."""


class SetupScreen(HeatsoakScreen):
    """Cards, workloads, plan; enter starts a recorder."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "start", "start", id="start", tooltip="Start the run"),
        Binding("space", "select", "select", id="select",
                tooltip="Choose a card or workload; next value"),
        Binding("tab", "pane(1)", "pane", id="pane.next", tooltip="Next pane"),
        Binding("shift+tab", "pane(-1)", show=False, id="pane.previous", tooltip="Previous pane"),
        Binding("up,k", "move(-1)", show=False, id="up", tooltip="Up; in the plan the next value"),
        Binding("down,j", "move(1)", show=False, id="down",
                tooltip="Down; in the plan the value before"),
        Binding("left,h", "field(-1)", show=False, id="field.previous",
                tooltip="Previous field of the plan"),
        Binding("right,l", "field(1)", show=False, id="field.next",
                tooltip="Next field of the plan"),
        Binding("e", "edit", "edit plan", id="edit", tooltip="Edit the plan; type a field's value"),
        Binding("f", "fit", "fit", id="fit", tooltip="Which model fits which card"),
        Binding("d", "doctor", "doctor", id="doctor",
                tooltip="All that would spoil the measurement, and how to mend it"),
        Binding("y", "synthetic", "synthetic", id="synthetic", tooltip="Add a synthetic card"),
        Binding("f5", "find", "look again", show=False, id="find", tooltip="Look for cards again"),
        Binding("q,ctrl+c", "quit", "quit", id="quit", tooltip="Leave; nothing is running"),
    ]  # fmt: skip

    def __init__(self, draft: Draft | None = None, host: str | None = None) -> None:
        """Set up a run.

        Args:
            draft: What is chosen so far; None: nothing, and the machine is searched.
            host: Name of this machine; None: as it calls itself.
        """
        super().__init__()
        self.draft = draft if draft is not None else Draft()
        self._host = host if host is not None else socket.gethostname()

    @override
    def compose(self) -> ComposeResult:
        """Header, cards beside workloads, plan, facts, keys."""
        yield TooSmall(id="too-small")
        yield SetupHeader(self.draft, self._host, id="header")
        with Horizontal(id="lists"):
            yield SetupCards(self.draft, id="setup-cards")
            yield SetupWorkloads(self.draft, id="setup-workloads")
        yield SetupPlan(self.draft, id="plan")
        yield SetupDoctor(self.draft, id="setup-doctor")
        yield SetupFacts(self.draft, id="setup-facts")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Look for cards, which may take a moment."""
        if not self.draft.is_found:
            self.action_find()

    def action_find(self) -> None:
        """Look for cards in a thread: a driver may take its time."""
        self.run_worker(self._find, thread=True, name="find", exclusive=True)

    def _find(self) -> None:
        devices = discover()
        problem = nvidia_problem() or ""
        try:
            devices = usable(devices)
        except HeatsoakError as error:
            problem = str(error)
        samples = {info.device_id: read_once(info.device_id) for info in devices}
        known = {key: sample for key, sample in samples.items() if sample is not None}
        self.app.call_from_thread(self._found, devices, known, problem)
        self.app.call_from_thread(self._examined, look())

    def _examined(self, machine: Machine) -> None:
        self.draft.machine = machine
        self._devices_changed()

    def _found(
        self, devices: list[DeviceInfo], samples: dict[str, DeviceSample], problem: str
    ) -> None:
        draft = self.draft
        synthetic = [info for info in draft.devices if info.device_id in draft.specs]
        draft.devices = devices + synthetic
        draft.samples = samples
        draft.problem, draft.is_found = problem, True
        draft.chosen &= {info.device_id for info in draft.devices}
        if not draft.chosen and devices:
            # What `heatsoak run` takes when nothing is said.
            draft.chosen = {devices[0].device_id}
        self._devices_changed()

    @override
    def arrange_panels(self, width: int, height: int) -> None:
        """The lists get a line for each card and workload while the plan and facts have theirs."""
        cards = len(self.draft.devices) + 1 + 2 * bool(self.draft.problem)
        rows = 1 + max(cards, len(self.draft.workloads), 3)
        warnings = max(1, len(self.draft.problems())) if self.draft.machine else 0
        doctor = 1 + min(warnings, 2 if height < ROOMY else 5)
        self.query_one("#setup-doctor").styles.height = doctor
        room = height - 4 - 1 - 6 - 1 - 3 - doctor
        self.query_one("#lists").styles.height = max(3, min(rows, room))

    def _devices_changed(self) -> None:
        self.arrange_panels(*self.size)
        self.call_after_refresh(self.repaint_panels)
        self.repaint_panels()

    # -- keys --------------------------------------------------------------------------------

    def action_pane(self, step: int) -> None:
        """The keys go to the next pane."""
        draft = self.draft
        draft.pane = PANES[(PANES.index(draft.pane) + step) % len(PANES)]
        self.repaint_panels()

    def action_move(self, step: int) -> None:
        """Up or down in a list; another value in the plan."""
        draft = self.draft
        if draft.pane == "plan":
            self._step(-step)
            return
        rows = len(draft.devices) + 1 if draft.pane == "cards" else len(draft.workloads)
        draft.cursor[draft.pane] = min(max(0, draft.cursor[draft.pane] + step), max(0, rows - 1))
        self.repaint_panels()

    def action_field(self, step: int) -> None:
        """The next field of the plan."""
        draft = self.draft
        if draft.pane == "plan":
            draft.cursor["plan"] = (draft.cursor["plan"] + step) % len(draft.fields())
            self.repaint_panels()

    def _step(self, step: int) -> None:
        draft = self.draft
        draft.trouble = ""
        draft.step_field(min(draft.cursor["plan"], len(draft.fields()) - 1), step)
        self.repaint_panels()

    def action_select(self) -> None:
        """Choose what is under the cursor."""
        draft = self.draft
        draft.trouble = ""
        cursor = draft.cursor[draft.pane]
        if draft.pane == "plan":
            self._step(1)
        elif draft.pane == "workloads":
            found = draft.workloads
            if cursor < len(found):
                self._choose_workload(found[cursor].name)
        elif cursor < len(draft.devices):
            draft.toggle(draft.devices[cursor].device_id)
            self._drop_misfit()
        else:
            self.action_synthetic()
        self.repaint_panels()

    def _choose_workload(self, name: str) -> None:
        draft = self.draft
        if name != draft.workload_name:
            draft.options = {}
        draft.workload = name
        draft.cursor["workloads"] = [info.name for info in draft.workloads].index(name)

    def _drop_misfit(self) -> None:
        """A workload that none of the chosen cards can run is no longer the choice."""
        draft = self.draft
        infos = {info.name: info for info in draft.workloads}
        if draft.workload in infos and not draft.runs_here(infos[draft.workload]):
            draft.workload, draft.options = None, {}

    def action_edit(self) -> None:
        """Go to the plan, or type a value there."""
        draft = self.draft
        if draft.pane != "plan":
            draft.pane = "plan"
            self.repaint_panels()
            return
        fields = draft.fields()
        one = fields[min(draft.cursor["plan"], len(fields) - 1)]

        def take(text: str | None) -> None:
            if text is None:
                return
            draft.trouble = ""
            if one.key == "protocol" and text not in (one.choices or ()):
                draft.trouble = f"no protocol {text!r}; there is {', '.join(one.choices or ())}"
            else:
                draft.set_field(one.key, text)
            self.repaint_panels()

        hint = ", ".join(str(choice) for choice in one.choices or ())
        value = "" if one.value is None else str(one.value)
        self.app.push_screen(Ask(f"{one.label}", value, hint), take)

    def action_doctor(self) -> None:
        """Show everything that doctor found."""
        self.app.push_screen(DoctorScreen(self.draft, self._host))

    def on_screen_resume(self) -> None:
        """Back from another screen, which may have measured something."""
        self._devices_changed()

    def action_fit(self) -> None:
        """Show which model fits which card, beginning with the first chosen one."""
        from heatsoak_tui.screens.fit import FitScreen  # Only when it is asked for.

        cards = [info.card for info in self.draft.chosen_devices if info.card is not None]
        self.app.push_screen(FitScreen(card_id=cards[0]) if cards else FitScreen())

    def action_synthetic(self) -> None:
        """Ask which card to imitate."""

        def add(text: str | None) -> None:
            if text:
                self._add_synthetic(text)
                self._devices_changed()

        question = "Synthetic cards: CARD or CARDxN, such as rtx-5090x2"
        self.app.push_screen(Ask(question, "rtx-5090", is_appended=True), add)

    def _add_synthetic(self, text: str) -> None:
        draft = self.draft
        spec = text if text.startswith("synthetic:") else f"synthetic:{text}"
        specs = [*dict.fromkeys(draft.specs.values()), spec]
        try:
            opened = open_devices(",".join(specs))
            infos = [device.info for device in opened]
            counts = [len(open_devices(one)) for one in specs]
        except HeatsoakError as error:
            draft.trouble = str(error)
            return
        draft.trouble = ""
        owners = [one for one, count in zip(specs, counts, strict=True) for _ in range(count)]
        real = [info for info in draft.devices if info.device_id not in draft.specs]
        draft.devices = real + infos
        draft.specs = {i.device_id: owner for i, owner in zip(infos, owners, strict=True)}
        # Synthetic and real cards take no common workload.
        draft.chosen = set(draft.specs)
        self._drop_misfit()

    def action_start(self) -> None:
        """Start the recorder; the screen follows it, or says why it was refused."""
        draft = self.draft
        if draft.is_starting:
            return
        draft.trouble = ""
        if not draft.blocker():
            draft.is_starting = True
            plan = draft.plan()
            self.run_worker(lambda: self._start(plan), thread=True, name="start")
        self.repaint_panels()

    def _start(self, plan: Plan) -> None:
        try:
            running = client.start(plan)
        except (HeatsoakError, OSError) as error:
            self.app.call_from_thread(self._refused, str(error))
        else:
            self.app.post_message(RunStarted(running.path, running.notices))

    def _refused(self, text: str) -> None:
        self.draft.is_starting = False
        self.draft.trouble = text
        self.repaint_panels()

    def action_quit(self) -> None:
        """Leave."""
        self.app.exit()


def read_once(device_id: str) -> DeviceSample | None:
    """One reading of a device, for the list; None when it does not answer."""
    try:
        devices = open_devices(device_id, is_only_read=True)
    except HeatsoakError:
        return None
    try:
        return devices[0].read(0.0)
    except (DeviceReadError, DeviceLostError):
        return None
    finally:
        for device in devices:
            device.close()
