"""What the devices counted of their own defects, before, during and after a run.

Load brings out memory errors that a card at rest does not show, and a monitor that looks once, or
starts anew, never tells. Each device is asked from a thread of its own: the question may hang as a
reading may.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from heatsoak.clock import monotonic_s
from heatsoak.telemetry.device import DeviceLostError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heatsoak.telemetry.device import Device
    from heatsoak.telemetry.health import DeviceHealth

EVERY_S = 10.0
"""Real seconds between two questions: these are counters, nothing is lost in between."""
LAST_WITHIN_S = 2.0
"""Real seconds that the end waits for the last answers, all devices together."""


@runtime_checkable
class Part(Protocol):
    """A device that may be a part of another, as a MIG slice is."""

    def busy_siblings(self) -> tuple[str, ...]:
        """UUIDs of other parts of the same card that somebody uses now."""
        ...


class HealthWatch:
    """The first and the newest answer of every device that counts defects, and of its siblings."""

    def __init__(self, devices: Sequence[Device], every_s: float = EVERY_S) -> None:
        """Make ready; nothing is asked before `start`."""
        self._every_s = every_s
        self._stop = threading.Event()
        self._answers: queue.SimpleQueue[tuple[str, DeviceHealth]] = queue.SimpleQueue()
        self._busy: queue.SimpleQueue[tuple[str, tuple[str, ...]]] = queue.SimpleQueue()
        self._first: dict[str, DeviceHealth] = {}
        self._newest: dict[str, DeviceHealth] = {}
        self._threads = [
            threading.Thread(
                target=self._ask,
                args=(device,),
                name=f"health {device.info.device_id}",
                daemon=True,
            )
            for device in devices
            if device.info.kind == "nvidia"
        ]

    def start(self) -> None:
        """Ask for the first time, and then every ten seconds."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ask for the last time; a device that does not answer in time is left with its newest."""
        self._stop.set()
        until_s = monotonic_s() + LAST_WITHIN_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until_s - monotonic_s()))

    def news(self) -> Iterator[tuple[str, str]]:
        """What got worse since the last call: a device and a sentence."""
        while not self._answers.empty():
            device_id, now = self._answers.get()
            before = self._newest.get(device_id)
            self._newest[device_id] = now
            if before is None:
                self._first[device_id] = now
                continue
            for words in now.worse_than(before):
                yield device_id, words

    def busy_siblings(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Devices beside which other parts of their card are in use, with the UUIDs of those."""
        while not self._busy.empty():
            yield self._busy.get()

    def entry(self, device_id: str) -> dict[str, Any] | None:
        """The key `health` of a device's entry; None for one that counts no defects."""
        first, newest = self._first.get(device_id), self._newest.get(device_id)
        if first is None or newest is None:
            return None
        return {
            "before": asdict(first),
            "after": asdict(newest),
            "worse": list(newest.worse_than(first)),
        }

    def _ask(self, device: Device) -> None:
        device_id, is_last = device.info.device_id, False
        while True:
            try:
                answer = device.health()
                if answer is None:
                    return
                self._answers.put((device_id, answer))
                if isinstance(device, Part) and (busy := device.busy_siblings()):
                    self._busy.put((device_id, busy))
            except DeviceLostError:
                return
            if is_last:
                return
            is_last = self._stop.wait(self._every_s)
