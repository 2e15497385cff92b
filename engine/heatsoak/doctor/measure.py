"""What only a child program can find out: imports torch, runs a kernel, copies memory and files."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from heatsoak.doctor.machine import CardMeasures, DiskMeasure
from heatsoak.doctor.stack import told_stack
from heatsoak.errors import DeviceUnavailableError
from heatsoak.launch.probe import ProbeError, run_probe
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.discovery import open_devices

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from heatsoak.doctor.machine import Card, Machine
    from heatsoak.doctor.stack import Stack
    from heatsoak.telemetry.device import Device

STACK_WITHIN_S = 60.0
"""Real seconds to import torch: from a cold disk it takes most of a minute."""
CARD_WITHIN_S = 60.0
DISK_WITHIN_S = 20.0


def measure(
    machine: Machine,
    say: Callable[[str], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> Machine:
    """The machine with what was measured on it.

    Args:
        machine: as it was looked at.
        say: told before each program that takes longer than a moment.
        stop: ends what runs, and begins nothing more, when it is set.
    """
    stop = stop or threading.Event()
    stack = _ask_stack(machine, say, stop)
    machine = replace(machine, stack=stack)
    can_compute = stack.problem is None and stack.torch_cuda is not None
    cards = [
        _measure_card(card, machine, say, stop)
        if can_compute and _is_to_be_measured(card, machine) and not stop.is_set()
        else card
        for card in machine.cards
    ]
    disk = machine.disk if stop.is_set() else _measure_disk(machine, say, stop)
    return replace(machine, cards=tuple(cards), disk=disk)


def _ask_stack(machine: Machine, say: Callable[[str], None], stop: threading.Event) -> Stack:
    if machine.stack.torch is None:
        return machine.stack
    say(f"importing torch {machine.stack.torch} in a child, to see what it was built for")
    environ = {**machine.environ, "CUDA_VISIBLE_DEVICES": ""}  # It need not wake any card.
    try:
        told = run_probe("stack", environ=environ, within_s=STACK_WITHIN_S, stop=stop)
    except ProbeError as error:
        if stop.is_set():
            return machine.stack
        told = {"problem": f"torch could not be imported: {error}"}
    return told_stack(machine.stack, told)


def _is_to_be_measured(card: Card, machine: Machine) -> bool:
    """Whether a kernel may run on it: it was asked for, can be loaded, and nobody soaks it."""
    return (
        card.is_asked
        and card.problem is None
        and not card.soaked_by
        and card.info.device_id not in machine.refused
    )


def _measure_card(
    card: Card, machine: Machine, say: Callable[[str], None], stop: threading.Event
) -> Card:
    info = card.info
    is_used = any(user.kind == "compute" for user in card.users or ())
    copies = "no copies, for others use it" if is_used else "copies to it and within it"
    say(f"card {info.device_id}: a first kernel, {copies}")
    environ = {
        **machine.environ,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": info.uuid,
    }
    with _Link(info.device_id) as link:
        try:
            told = run_probe(
                "card",
                *(["kernel"] if is_used else []),
                environ=environ,
                within_s=CARD_WITHIN_S,
                meanwhile=link.look,
                stop=stop,
            )
        except ProbeError as error:
            if stop.is_set():
                return card
            return replace(card, measures=CardMeasures(problem=str(error)))
    measures = CardMeasures(
        problem=told.get("problem"),
        to_card_bytes_per_s=told.get("to_card_bytes_per_s"),
        to_host_bytes_per_s=told.get("to_host_bytes_per_s"),
        within_bytes_per_s=told.get("within_bytes_per_s"),
        pcie_gen=link.gen,
        pcie_width=link.width,
    )
    return replace(card, measures=measures)


class _Link:
    """The fastest PCIe link that was seen while a program ran."""

    def __init__(self, device_id: str) -> None:
        self.gen: int | None = None
        self.width: int | None = None
        self._device_id = device_id
        self._device: Device | None = None

    def __enter__(self) -> _Link:
        with suppress(DeviceUnavailableError):
            (self._device,) = open_devices(self._device_id, is_only_read=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._device is not None:
            self._device.close()

    def look(self) -> None:
        """Read the link once."""
        if self._device is None:
            return
        try:
            reading = self._device.read(0.0)
        except (DeviceReadError, DeviceLostError):
            return
        if reading.pcie_gen is None or reading.pcie_width is None:
            return
        if (reading.pcie_gen, reading.pcie_width) > (self.gen or 0, self.width or 0):
            self.gen, self.width = reading.pcie_gen, reading.pcie_width


def _measure_disk(
    machine: Machine, say: Callable[[str], None], stop: threading.Event
) -> DiskMeasure | None:
    storage = machine.storage
    if not storage.is_writable:
        return None
    say(f"writing and reading 256 MB at {storage.folder}")
    try:
        told = run_probe(
            "disk",
            str(storage.folder),
            environ=machine.environ,
            within_s=DISK_WITHIN_S,
            stop=stop,
        )
    except ProbeError as error:
        return DiskMeasure(None, str(error))
    return DiskMeasure(told.get("read_bytes_per_s"), told.get("problem"))
