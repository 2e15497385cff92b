"""Reads every device on time into one queue; one that hangs delays no other."""

from __future__ import annotations

import queue
import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from heatsoak.clock import monotonic_s
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.plausibility import Plausibility

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heatsoak.clock import Clock
    from heatsoak.telemetry.device import Device
    from heatsoak.telemetry.sample import DeviceSample

JITTER_FRAC = 0.05
"""Each round comes up to this share of a period late, so that polls do not lock to the steps."""
PATIENCE_FRAC, PATIENCE_REAL_S = 0.25, 0.05
"""A device that has not answered for this share of a period, and at least so many real seconds, is
left behind with the thread that waits for it."""
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

    One thread reads all devices in turn, since waking a thread costs more than reading a card. A
    reading may hang for ever: a second thread looks, and when one does, starts another thread that
    goes on with the rest; the device keeps the thread that waits for it, also when it comes back.
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
        self._period_s = period_s
        self._patience_s = max(PATIENCE_FRAC * period_s, PATIENCE_REAL_S * clock.speed)
        self._stop = threading.Event()
        self._readers = [
            _Reader(device, clock, period_s, self.readings, self._stop) for device in devices
        ]
        self._crew = self._make_crew(self._readers)
        """Whose thread reads all that nobody was left behind with."""
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to read; the first reading comes at once."""
        start_s = self._clock.now_s()
        for reader in self._readers:
            reader.start_s = reader.answered_s = start_s
        self._begin(self._crew)
        if len(self._readers) > 1:
            thread = threading.Thread(target=self._watch, name="watch readers", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """End all readings; returns within half a second even when a device hangs."""
        self._stop.set()
        deadline_s = monotonic_s() + JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - monotonic_s()))

    def late_ticks(self) -> dict[str, int]:
        """Deadlines that passed without a reading, per device."""
        return {reader.device_id: reader.late_ticks for reader in self._readers}

    def silent_s(self, now_s: float) -> dict[str, float]:
        """Session seconds since the last call of each device came back, or since the start."""
        return {reader.device_id: max(0.0, now_s - reader.answered_s) for reader in self._readers}

    def _make_crew(self, readers: Sequence[_Reader]) -> _Crew:
        return _Crew(readers, self._clock, self._period_s, self._stop, self._relieve)

    def _begin(self, crew: _Crew) -> None:
        name = f"read {', '.join(crew.device_ids)}"
        thread = threading.Thread(target=crew.run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _relieve(self, crew: _Crew, rest: list[_Reader]) -> None:
        """Have another thread read the rest of a crew."""
        if rest:
            other = self._make_crew(rest)
            if self._crew is crew:
                self._crew = other
            self._begin(other)

    def _watch(self) -> None:
        """Look for a device that hangs, in each round and as long as one is read."""
        clock, start_s = self._clock, self._readers[0].start_s
        look_s = start_s + self._patience_s
        while len(self._crew.device_ids) > 1 and not clock.wait_until(look_s, self._stop):
            crew = self._crew
            self._relieve(crew, crew.leave_behind(self._patience_s))
            now_s = clock.now_s()
            rounds = int((now_s - start_s) / self._period_s) + 1
            look_s = self._patience_s + (
                now_s if self._crew.is_reading else start_s + rounds * self._period_s
            )


class _Reader:
    """One device and how far it has been read."""

    def __init__(
        self,
        device: Device,
        clock: Clock,
        period_s: float,
        readings: queue.SimpleQueue[DeviceSample | DeviceFault],
        stop: threading.Event,
    ) -> None:
        self.device_id = device.info.device_id
        self.start_s = 0.0
        self.tick = 0
        """Number of the next reading, which is due so many periods after the start."""
        self.late_ticks = 0
        self.answered_s = 0.0
        self._device = device
        self._clock = clock
        self._period_s = period_s
        self._readings = readings
        self._stop = stop
        self._told: str | None = None
        self._plausibility = Plausibility(device.info)

    def read(self) -> bool:
        """Read once; false when nothing more will come."""
        clock = self._clock
        try:
            sample = self._device.read(clock.now_s())
        except DeviceLostError as error:
            self.tell("lost", str(error))
            return False
        except DeviceReadError as error:
            self.answered_s = clock.now_s()
            if str(error) != self._told:
                self._told = str(error)
                self.tell("error", self._told)
        else:
            self._told = None
            self.answered_s = clock.now_s()
            if self._stop.is_set():
                return False
            self._readings.put(sample)
            for text in self._plausibility.look(sample):
                self.tell("suspect", text)
        self.tick += 1
        missed = int((self.answered_s - self.start_s) / self._period_s) - self.tick
        if missed > 0:
            self.late_ticks += missed
            self.tick += missed
        return True

    def tell(self, kind: Literal["lost", "error", "suspect"], text: str) -> None:
        """Say what is wrong with the device."""
        self._readings.put(DeviceFault(self._clock.now_s(), self.device_id, kind, text))


class _Crew:
    """Devices that one thread reads in turn."""

    def __init__(
        self,
        readers: Sequence[_Reader],
        clock: Clock,
        period_s: float,
        stop: threading.Event,
        relieve: Callable[[_Crew, list[_Reader]], None],
    ) -> None:
        self._relieve = relieve
        self._members = list(readers)
        self._clock = clock
        self._period_s = period_s
        self._stop = stop
        self._jitter = random.Random(" ".join(self.device_ids))
        self._lock = threading.Lock()
        self._at: _Reader | None = None
        """Whose reading is under way, since when."""
        self._since_s = 0.0

    @property
    def device_ids(self) -> list[str]:
        """Who is read."""
        return [reader.device_id for reader in self._members]

    @property
    def is_reading(self) -> bool:
        """Whether a reading is under way."""
        return self._at is not None

    def leave_behind(self, patience_s: float) -> list[_Reader]:
        """Those that wait behind a device that has not answered for so long: no longer ours."""
        with self._lock:
            at = self._at
            if at is None or self._clock.now_s() - self._since_s < patience_s:
                return []
            rest = [reader for reader in self._members if reader is not at]
            self._members = [at]
            return rest

    def run(self) -> None:
        """Read until stopped, or until nothing is left to read."""
        is_expected = False
        try:
            self._read_until_stopped()
            is_expected = True
        finally:
            # A defect of ours ends this thread with its traceback; the run must still hear of it,
            # and the other devices be read on.
            if not is_expected and self._at is not None:
                self._at.tell("lost", "its reader ended by an unexpected error")
                self._relieve(self, self.leave_behind(0.0))

    def _read_until_stopped(self) -> None:
        clock, period_s = self._clock, self._period_s
        while members := tuple(self._members):
            tick = min(reader.tick for reader in members)
            late_s = JITTER_FRAC * period_s * self._jitter.random()
            if clock.wait_until(members[0].start_s + tick * period_s + late_s, self._stop):
                return
            for reader in members:
                if reader.tick == tick and self._take_up(reader):
                    self._put_down(reader, is_over=not reader.read())

    def _take_up(self, reader: _Reader) -> bool:
        """Note whose reading begins; false for one that another thread reads by now."""
        with self._lock:
            is_ours = reader in self._members
            if is_ours:
                self._at, self._since_s = reader, self._clock.now_s()
            return is_ours

    def _put_down(self, reader: _Reader, *, is_over: bool) -> None:
        with self._lock:
            self._at = None
            if is_over:
                self._members.remove(reader)
