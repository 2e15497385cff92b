"""Reads every device on time, each in its own thread, into one queue."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from heatsoak.clock import monotonic_s
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.plausibility import Plausibility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.clock import Clock
    from heatsoak.telemetry.device import Device
    from heatsoak.telemetry.sample import DeviceSample

JITTER_FRAC = 0.05
"""Each reading comes up to this share of a period late, so that polls do not lock to the steps."""
JOIN_S = 0.5
"""Real seconds that `stop` waits for all threads together; a hanging one is left behind."""


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """A device that could not be read, or that says what cannot be."""

    t_s: float
    """Session time at which it was noticed."""
    device_id: str
    kind: Literal["lost", "error", "suspect"]
    """`lost`: gone for good, no reading follows. `error`: the next reading may succeed; told once
    until the device answers again or says something else. `suspect`: a sensor's readings are not to
    be believed; told once."""
    text: str


class Sampler:
    """Readings of several devices at absolute deadlines.

    One daemon thread a device, since a reading may hang for ever and must never delay another.
    A deadline missed by a period or more is skipped and counted as late.
    """

    def __init__(self, devices: Sequence[Device], clock: Clock, period_s: float = 1.0) -> None:
        """Make ready; nothing is read before `start`.

        Args:
            devices: what to read; stays the caller's to close.
            clock: session time, which stamps the readings.
            period_s: session seconds between two readings of one device.
        """
        self.readings: queue.SimpleQueue[DeviceSample | DeviceFault] = queue.SimpleQueue()
        """Everything read, in the order in which it came."""
        self._clock = clock
        self._stop = threading.Event()
        self._readers = [
            _Reader(device, clock, period_s, self.readings, self._stop) for device in devices
        ]

    def start(self) -> None:
        """Begin to read; the first reading comes at once."""
        start_s = self._clock.now_s()
        for reader in self._readers:
            reader.begin(start_s)

    def stop(self) -> None:
        """End all readings; returns within half a second even when a device hangs."""
        self._stop.set()
        deadline_s = monotonic_s() + JOIN_S
        for reader in self._readers:
            reader.join(max(0.0, deadline_s - monotonic_s()))

    def late_ticks(self) -> dict[str, int]:
        """Deadlines that passed without a reading, per device."""
        return {reader.device_id: reader.late_ticks for reader in self._readers}

    def silent_s(self, now_s: float) -> dict[str, float]:
        """Session seconds since the last call of each device came back, or since the start."""
        return {reader.device_id: max(0.0, now_s - reader.answered_s) for reader in self._readers}


class _Reader:
    """The thread of one device."""

    def __init__(
        self,
        device: Device,
        clock: Clock,
        period_s: float,
        readings: queue.SimpleQueue[DeviceSample | DeviceFault],
        stop: threading.Event,
    ) -> None:
        self.device_id = device.info.device_id
        self.late_ticks = 0
        self.answered_s = 0.0
        self._device = device
        self._clock = clock
        self._period_s = period_s
        self._readings = readings
        self._stop = stop
        self._start_s = 0.0
        self._told: str | None = None
        self._plausibility = Plausibility(device.info)
        self._jitter = random.Random(device.info.uuid)
        self._thread = threading.Thread(
            target=self._run, name=f"read {self.device_id}", daemon=True
        )

    def begin(self, start_s: float) -> None:
        self._start_s = self.answered_s = start_s
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        with contextlib.suppress(RuntimeError):  # never started
            self._thread.join(timeout_s)

    def _run(self) -> None:
        is_expected = False
        try:
            self._read_until_stopped()
            is_expected = True
        finally:
            # A defect of ours ends this thread with its traceback; the run must still hear of it.
            if not is_expected:
                self._tell("lost", "its reader ended by an unexpected error")

    def _read_until_stopped(self) -> None:
        clock = self._clock
        tick = 0
        while True:
            late_s = JITTER_FRAC * self._period_s * self._jitter.random()
            due_s = self._start_s + tick * self._period_s
            if clock.wait_until(due_s + late_s, self._stop):
                return
            try:
                sample = self._device.read(clock.now_s())
            except DeviceLostError as error:
                self._tell("lost", str(error))
                return
            except DeviceReadError as error:
                self.answered_s = clock.now_s()
                if str(error) != self._told:
                    self._told = str(error)
                    self._tell("error", self._told)
            else:
                self._told = None
                self.answered_s = clock.now_s()
                if self._stop.is_set():
                    return
                self._readings.put(sample)
                for text in self._plausibility.look(sample):
                    self._tell("suspect", text)
            tick += 1
            missed = int((clock.now_s() - self._start_s) / self._period_s) - tick
            if missed > 0:
                self.late_ticks += missed
                tick += missed

    def _tell(self, kind: Literal["lost", "error", "suspect"], text: str) -> None:
        self._readings.put(DeviceFault(self._clock.now_s(), self.device_id, kind, text))
