"""The sampler with real threads: hangs, faults, lateness, and what it costs."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from heatsoak.clock import SessionClock
from heatsoak.telemetry.device import DeviceInfo, DeviceLostError, DeviceReadError
from heatsoak.telemetry.discovery import open_devices
from heatsoak.telemetry.sample import DeviceSample
from heatsoak.telemetry.sampler import DeviceFault, Sampler

PATIENCE_S = 20.0


class Scripted:
    """A device that does what `script` does at each reading."""

    def __init__(self, device_id, script=None):
        self.info = DeviceInfo(device_id, f"TEST-{device_id}", device_id, "synthetic", "synthetic")
        self.script = script
        self.answer = {"power_w": 1.0}
        self.readings = 0

    def read(self, t_s):
        self.readings += 1
        if self.script is not None:
            self.script(self.readings)
        return DeviceSample(t_s, self.info.device_id, **self.answer)

    def close(self):
        pass


def take(sampler, is_enough):
    """Everything read until `is_enough(everything)`."""
    items = []
    end = time.monotonic() + PATIENCE_S
    while not is_enough(items):
        try:
            items.append(sampler.readings.get(timeout=max(0.0, end - time.monotonic())))
        except queue.Empty:
            pytest.fail(f"not enough after {PATIENCE_S} s: {items}")
    return items


def stop_and_drain(sampler, items):
    """All that was ever read, with the counts of late ticks final."""
    sampler.stop()
    while not sampler.readings.empty():
        items.append(sampler.readings.get())
    return items


def of(items, device_id):
    return [item for item in items if item.device_id == device_id]


@pytest.fixture
def run():
    """Start a sampler over devices; it is stopped at the end of the test."""
    samplers = []

    def start(*devices, speed=100.0, period_s=1.0):
        sampler = Sampler(devices, SessionClock(speed), period_s)
        samplers.append(sampler)
        sampler.start()
        return sampler

    yield start
    for sampler in samplers:
        sampler.stop()


def test_readings_keep_to_their_deadlines_without_drift(run):
    sampler = run(Scripted("a"), Scripted("b"), speed=20.0)
    items = take(sampler, lambda items: len(of(items, "a")) >= 20 and len(of(items, "b")) >= 20)
    stop_and_drain(sampler, items)
    for device_id in ("a", "b"):
        ticks = [item.t_s for item in of(items, device_id)]
        assert ticks == sorted(ticks)
        late = sampler.late_ticks()[device_id]
        # The k-th deadline is k, not the sum of k waits: what is behind is counted.
        assert ticks[-1] == pytest.approx(len(ticks) - 1 + late, abs=2.0)


def test_a_device_that_hangs_delays_no_other_and_stop_returns(run):
    release = threading.Event()
    sampler = run(Scripted("hung", lambda _: release.wait()), Scripted("well"))
    items = take(sampler, lambda items: len(of(items, "well")) >= 30)
    assert of(items, "hung") == []
    now_s = items[-1].t_s
    silent = sampler.silent_s(now_s)
    assert silent["hung"] > 20
    assert silent["well"] < 10
    began = time.monotonic()
    sampler.stop()
    assert time.monotonic() - began < 1.5
    release.set()


def test_devices_that_answer_share_one_thread(run):
    names = [f"shared-{n}" for n in range(8)]
    sampler = run(*map(Scripted, names))
    take(sampler, lambda items: all(len(of(items, name)) >= 5 for name in names))
    readers = [t for t in threading.enumerate() if "shared-0" in t.name]
    assert [thread.name for thread in readers] == [f"read {', '.join(names)}"]


def test_devices_that_hang_one_after_another_leave_the_rest_and_come_back(run):
    first, second = threading.Event(), threading.Event()

    def hang_at(reading, release):
        return lambda n: release.wait() if n == reading else None

    names = ["a", "b", "c", "d"]
    sampler = run(
        Scripted("a"), Scripted("b", hang_at(3, first)), Scripted("c", hang_at(6, second)),
        Scripted("d"),
    )  # fmt: skip
    items = take(sampler, lambda items: len(of(items, "a")) >= 40 and len(of(items, "d")) >= 40)
    assert (len(of(items, "b")), len(of(items, "c"))) == (2, 5)
    silent = sampler.silent_s(items[-1].t_s)
    assert [name for name in names if silent[name] > 20] == ["b", "c"]
    first.set()
    second.set()
    take(sampler, lambda items: all(len(of(items, name)) >= 5 for name in names))


def test_a_defect_in_one_device_leaves_the_others_readable(run, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))

    def burst(reading):
        if reading == 3:
            raise ZeroDivisionError

    sampler = run(Scripted("a"), Scripted("odd", burst), Scripted("b"))
    items = take(sampler, lambda items: all(len(of(items, name)) >= 20 for name in "ab"))
    assert [type(item) for item in of(items, "odd")] == [DeviceSample, DeviceSample, DeviceFault]
    assert of(items, "odd")[-1].kind == "lost"
    assert seen == [ZeroDivisionError]


def test_an_answer_after_stop_is_not_told(run):
    release, began = threading.Event(), threading.Event()

    def hang(_):
        began.set()
        release.wait()

    device = Scripted("hung", hang)
    sampler = run(device)
    assert began.wait(PATIENCE_S)
    sampler.stop()
    release.set()
    for thread in threading.enumerate():
        if thread.name == "read hung":
            thread.join(PATIENCE_S)
    assert sampler.readings.empty()


def test_a_lost_device_is_told_once_and_read_no_more(run):
    def lose(reading):
        if reading == 3:
            raise DeviceLostError("fell off the bus")

    gone = Scripted("gone", lose)
    sampler = run(gone, Scripted("well"))
    items = take(sampler, lambda items: len(of(items, "well")) >= 20)
    told = of(items, "gone")
    assert [type(item) for item in told] == [DeviceSample, DeviceSample, DeviceFault]
    fault = told[-1]
    assert (fault.kind, fault.text, fault.device_id) == ("lost", "fell off the bus", "gone")
    assert fault.t_s >= told[0].t_s
    assert gone.readings == 3


def test_a_failing_reading_is_told_once_until_something_changes(run):
    def fail(reading):
        if 2 <= reading <= 5:
            raise DeviceReadError("busy")
        if reading in (6, 9):
            raise DeviceReadError("odd" if reading == 6 else "busy")

    sampler = run(Scripted("a", fail))
    items = take(sampler, lambda items: sum(isinstance(i, DeviceSample) for i in items) >= 4)
    told = [item.text if isinstance(item, DeviceFault) else "ok" for item in items]
    assert told == ["ok", "busy", "odd", "ok", "ok", "busy", "ok"]
    assert all(item.kind == "error" for item in items if isinstance(item, DeviceFault))


def test_a_device_that_answers_with_errors_is_not_silent(run):
    def fail(_):
        raise DeviceReadError("busy")

    failing = Scripted("a", fail)
    sampler = run(failing, Scripted("b"))
    items = take(sampler, lambda items: len(of(items, "b")) >= 30)
    assert failing.readings > 10
    assert sampler.silent_s(items[-1].t_s)["a"] < 10


def test_a_sensor_that_cannot_be_right_is_told_once_and_still_read(run):
    odd = Scripted("odd")
    odd.answer = {"power_w": 900.0, "power_limit_w": 400.0}
    sampler = run(odd)
    items = take(sampler, lambda items: len(items) >= 40)
    faults = [item for item in items if isinstance(item, DeviceFault)]
    assert [(fault.kind, fault.device_id) for fault in faults] == [("suspect", "odd")]
    assert "900 W" in faults[0].text
    assert items[-1].power_w == 900.0


def test_late_ticks_are_counted_and_skipped(run):
    started = threading.Event()
    release = threading.Event()

    def slow(reading):
        if reading == 2:
            started.set()
            release.wait()

    clock = SessionClock(100.0)
    sampler = Sampler([Scripted("slow", slow), Scripted("well")], clock)
    sampler.start()
    try:
        assert started.wait(PATIENCE_S)
        take(sampler, lambda items: len(of(items, "well")) >= 20)
        release.set()
        items = take(sampler, lambda items: len(of(items, "slow")) >= 4)
        stop_and_drain(sampler, items)
        late = sampler.late_ticks()["slow"]
        assert late >= 10
        ticks = [item.t_s for item in of(items, "slow")]
        assert ticks == sorted(ticks)
        # It goes on at the next deadline and does not catch up on what it missed.
        assert len(ticks) + 1 + late <= ticks[-1] + 3
    finally:
        sampler.stop()


def test_a_defect_of_ours_is_not_silent(run, monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_type))

    def burst(_):
        raise ZeroDivisionError

    sampler = run(Scripted("a", burst))
    (fault,) = take(sampler, lambda items: len(items) == 1)
    assert fault.kind == "lost"
    assert "unexpected" in fault.text
    sampler.stop()
    assert seen == [ZeroDivisionError]


def test_a_sampler_that_was_never_started_stops():
    Sampler([Scripted("a")], SessionClock()).stop()


def test_synthetic_cards_keep_up_at_high_speed(run):
    devices = open_devices("synthetic:rtx-5090x2")
    sampler = run(*devices, speed=300.0)
    items = take(sampler, lambda items: items and items[-1].t_s >= 300)
    stop_and_drain(sampler, items)
    for device in devices:
        ticks = [item.t_s for item in of(items, device.info.device_id)]
        late = sampler.late_ticks()[device.info.device_id]
        assert len(ticks) > 60
        assert len(ticks) - 1 + late == pytest.approx(ticks[-1], abs=2)
