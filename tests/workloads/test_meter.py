"""The meter's counting of finished work, with a device made of arithmetic."""

from __future__ import annotations

import pytest
import torch

from heatsoak_workloads._meter import FinishedSteps


class FakeDevice:
    """Work in order on its own clock; reaching an event costs nobody a wait unless asked."""

    def __init__(self):
        self.now_s = 100.0
        self.busy_until_s = 0.0
        self.waits = 0

    def give(self, work_s):
        self.busy_until_s = max(self.busy_until_s, self.now_s) + work_s

    def make_event(self):
        return FakeEvent(self)

    def clock(self):
        return self.now_s


class FakeEvent:
    def __init__(self, device):
        self.device = device
        self.at_s = None

    def record(self):
        self.at_s = max(self.device.busy_until_s, self.device.now_s)

    def query(self):
        return self.device.now_s >= self.at_s

    def synchronize(self):
        self.device.waits += 1
        self.device.now_s = max(self.device.now_s, self.at_s)

    def elapsed_time(self, end_event):
        assert self.query()
        assert end_event.query()
        return 1000.0 * (end_event.at_s - self.at_s)


@pytest.fixture
def device():
    return FakeDevice()


@pytest.fixture
def steps(device):
    finished = FinishedSteps(device.make_event, device.clock)
    finished.anchor()
    return finished


def give_steps(device, steps, count, *, loss_at=()):
    for step in range(1, count + 1):
        device.give(0.5)
        loss = torch.tensor(float(step)) if step in loss_at else None
        steps.add(10.0 * step, step, loss)


def test_work_counts_when_the_device_has_done_it_and_never_earlier(device, steps):
    give_steps(device, steps, 4)
    assert steps.collect() is None
    device.now_s = 101.2
    done = steps.collect()
    assert (done.units_done, done.steps_done) == (20.0, 2)
    assert steps.collect() is None
    device.now_s = 110.0
    assert steps.collect().steps_done == 4


def test_collecting_never_waits_for_the_device(device, steps):
    waits = device.waits
    give_steps(device, steps, 3)
    for _ in range(5):
        steps.collect()
    assert device.waits == waits


def test_the_time_is_the_device_s_own_and_not_that_of_the_question(device, steps):
    give_steps(device, steps, 4)
    device.now_s = 101.9
    assert steps.collect().monotonic_s == pytest.approx(101.5)


def test_a_device_clock_that_runs_ahead_never_yields_a_time_to_come(device, steps):
    give_steps(device, steps, 1)
    device.now_s = 100.6
    anchor = steps._anchor[1]
    anchor.at_s -= 5.0
    assert steps.collect().monotonic_s == 100.6


def test_the_newest_loss_survives_steps_that_read_none(device, steps):
    give_steps(device, steps, 4, loss_at=(1, 2))
    device.now_s = 103.0
    assert steps.collect().loss == 2.0
    device.give(0.5)
    steps.add(50.0, 5, None)
    device.now_s = 104.0
    assert steps.collect().loss is None


def test_the_end_waits_once_and_counts_everything(device, steps):
    give_steps(device, steps, 4)
    waits = device.waits
    assert steps.drain().units_done == 40.0
    assert device.waits == waits + 1
    assert steps.drain() is None


def test_without_events_work_counts_when_it_returns():
    finished = FinishedSteps(None, lambda: 7.0)
    finished.anchor()
    finished.add(10.0, 1, torch.tensor(2.5))
    finished.add(20.0, 2, None)
    done = finished.collect()
    assert (done.monotonic_s, done.units_done, done.steps_done, done.loss) == (7.0, 20.0, 2, 2.5)
    assert finished.collect() is None
