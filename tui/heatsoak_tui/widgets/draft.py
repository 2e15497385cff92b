"""The run that is being set up: what was chosen so far, and whether it can start. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.doctor import examine
from heatsoak.doctor.finding import problems, told
from heatsoak.errors import HeatsoakError
from heatsoak.launch import catalog
from heatsoak.recorder.plan import Plan
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from heatsoak.doctor import Finding, Machine
    from heatsoak.doctor.finding import Told
    from heatsoak.doctor.machine import Card
    from heatsoak.launch.catalog import WorkloadInfo
    from heatsoak.recipe import Recipe
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

Pane = Literal["cards", "workloads", "plan"]
PANES: tuple[Pane, ...] = ("cards", "workloads", "plan")
_RECIPE_LABELS = {
    "size": "size", "context": "context", "micro_batch": "micro-batch",
    "accumulate": "accumulate", "precision": "precision", "attention": "attention",
    "compile": "compile", "checkpointing": "checkpointing", "optimizer": "optimizer",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanField:
    """One thing of the plan that can be changed."""

    key: str
    label: str
    value: Any
    choices: tuple[Any, ...] | None
    """What it may be; None: a number, or text, to be typed."""
    is_number: bool = False


@dataclass(slots=True)
class Draft:
    """What Setup shows and edits."""

    devices: list[DeviceInfo] = field(default_factory=list)
    """Real devices first, then the synthetic ones that were asked for."""
    samples: dict[str, DeviceSample] = field(default_factory=dict)
    """One reading of each device from when it was found."""
    specs: dict[str, str] = field(default_factory=dict)
    """Specification of each synthetic device id."""
    chosen: set[str] = field(default_factory=set)
    """Ids of the devices to soak."""
    is_found: bool = False
    """Whether the machine has been searched."""
    problem: str = ""
    """Why no NVIDIA card is listed; empty when one is."""
    workload: str | None = None
    """What was chosen; None: the default of the chosen devices."""
    options: dict[str, Any] = field(default_factory=dict)
    """Recipe options that were set, by field."""
    protocol: str = "standard"
    name: str = ""
    pane: Pane = "cards"
    cursor: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PANES, 0))
    trouble: str = ""
    """Why the last start was refused."""
    is_starting: bool = False
    machine: Machine | None = None
    """What doctor has seen; None before it has."""
    doctor_is_busy: str = ""
    """What doctor does now; empty when nothing."""

    def findings(self) -> tuple[Finding, ...]:
        """What doctor says of the machine when the chosen devices are the ones to load."""
        if self.machine is None:
            return ()
        return examine(self.machine.asking(self.chosen_devices))

    def relevant_findings(self) -> tuple[Finding, ...]:
        """Those about the machine and the chosen devices."""
        chosen = {info.device_id for info in self.chosen_devices}
        return tuple(f for f in self.findings() if f.device_id in (None, *chosen))

    def problems(self) -> list[Told]:
        """Errors and warnings about the machine and the chosen devices."""
        return told(problems(self.relevant_findings()))

    def card(self, device_id: str) -> Card | None:
        """What doctor saw of a card."""
        cards = self.machine.cards if self.machine is not None else ()
        return next((card for card in cards if card.info.device_id == device_id), None)

    @property
    def chosen_devices(self) -> list[DeviceInfo]:
        """The devices to soak, in the order of the list."""
        return [info for info in self.devices if info.device_id in self.chosen]

    @property
    def workloads(self) -> list[WorkloadInfo]:
        """All workloads, those that run on every chosen device first."""
        every = list(catalog.workloads().values())
        return sorted(every, key=lambda info: not self.runs_here(info))

    def toggle(self, device_id: str) -> None:
        """Choose a device, or no longer; the synthetic cards of one specification together."""
        spec = self.specs.get(device_id)
        group = {device_id} if spec is None else {d for d, s in self.specs.items() if s == spec}
        self.chosen = self.chosen - group if device_id in self.chosen else self.chosen | group

    def runs_here(self, info: WorkloadInfo) -> bool:
        """Whether it runs on every chosen device."""
        return all(device.kind in info.kinds for device in self.chosen_devices)

    @property
    def workload_name(self) -> str | None:
        """The workload that will run; None when there is none for these devices."""
        if self.workload is not None:
            return self.workload
        devices = self.chosen_devices
        try:
            return catalog.default_workload(devices) if devices else None
        except HeatsoakError:
            return None

    def recipe(self) -> Recipe | None:
        """The complete recipe on the first chosen device; None while it cannot be made."""
        name = self.workload_name
        if name is None or not self.chosen_devices:
            return None
        try:
            return catalog.make_recipe(name, self.chosen_devices[0], self.options)
        except HeatsoakError:
            return None

    def _shown_recipe(self) -> Recipe | None:
        """As `recipe`, without the options that are refused: the rest can still be edited."""
        taken = dict(self.options)
        while True:
            name = self.workload_name
            if name is None or not self.chosen_devices:
                return None
            try:
                return catalog.make_recipe(name, self.chosen_devices[0], taken)
            except HeatsoakError:
                if not taken:
                    return None
                taken.popitem()

    def blocker(self) -> str:
        """Why it cannot start, in a sentence; empty when it can."""
        if not self.is_found:
            return "looking for cards"
        if not self.chosen_devices:
            return "choose a card: space selects"
        name = self.workload_name
        if name is None:
            return "synthetic and real cards have no workload in common; choose one kind"
        info = catalog.workloads().get(name)
        if info is not None and info.needs_training and (missing := catalog.training_problem()):
            return missing
        try:
            for device in self.chosen_devices:
                catalog.make_recipe(name, device, self.options)
        except HeatsoakError as error:
            return str(error)
        return ""

    def fields(self) -> list[PlanField]:
        """What can be changed: the protocol, the recipe, the name."""
        fields = [PlanField("protocol", "protocol", self.protocol, tuple(PROTOCOLS))]
        recipe, name = self._shown_recipe(), self.workload_name
        info = catalog.workloads().get(name) if name else None
        if recipe is not None and info is not None:
            kinds = {device.kind for device in self.chosen_devices}
            sizes = tuple(s for s, d in info.sizes.items() if kinds <= set(d.get("kinds", kinds)))
            if len(sizes) > 1:
                fields.append(PlanField("size", "size", recipe.size, sizes))
            for key, allowed in info.options.items():
                label = _RECIPE_LABELS.get(key, key.replace("_", " "))
                value = getattr(recipe, key, recipe.settings.get(key))
                if key in self.options and not self.recipe():
                    value = self.options[key]
                choices = tuple(allowed) if isinstance(allowed, list) else None
                if choices is None or len(choices) > 1:
                    fields.append(PlanField(key, label, value, choices, allowed == "int"))
        fields.append(PlanField("name", "name", self.name, None))
        return fields

    def set_field(self, key: str, value: Any) -> None:  # noqa: ANN401 - a field's value
        """Change one field; what the workload does not take is said by `blocker`."""
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if key == "protocol":
            self.protocol = value
        elif key == "name":
            self.name = value
        else:
            self.options[key] = value
            if key == "size":
                # A size brings its own context and batch; those set for another may not fit.
                self.options = {"size": value}

    def step_field(self, index: int, step: int) -> None:
        """The next or previous value of a field; a number doubles or halves."""
        one = self.fields()[index]
        if one.choices:
            at = one.choices.index(one.value) if one.value in one.choices else 0
            self.set_field(one.key, one.choices[(at + step) % len(one.choices)])
        elif one.is_number and isinstance(one.value, int):
            self.set_field(one.key, max(1, one.value * 2 if step > 0 else one.value // 2))

    def memory_needed_gib(self) -> float | None:
        """What the recipe needs by the memory planner; None where nobody can say."""
        recipe = self.recipe()
        info = catalog.workloads().get(recipe.workload) if recipe else None
        needed = catalog.memory_needed_bytes(info, recipe) if recipe and info else None
        return None if needed is None else needed / BYTES_PER_GIB

    def plan(self) -> Plan:
        """What the recorder is asked for."""
        words: list[str] = []
        for info in self.chosen_devices:
            word = self.specs.get(info.device_id, info.device_id)
            if word not in words:
                words.append(word)
        return Plan(
            devices=",".join(words),
            workload=self.workload,
            recipe=dict(self.options),
            protocol=self.protocol,
            name=self.name or None,
        )
