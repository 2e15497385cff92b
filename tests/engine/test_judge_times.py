"""Wrong stamps, first words, and more time: what the judge makes of instants."""

from __future__ import annotations

import dataclasses

import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.steady_state.times import Times, in_time
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

STANDARD = PROTOCOLS["standard"]


def judge_of(protocol=STANDARD):
    return Judge(protocol, [DeviceInfo("0", "GPU-0", "Test card", "nvidia", "measured")])


def believed(instants):
    times = Times(0.0)
    return [t for t in instants if times.accept(t)]


def kept(instants):
    return list(in_time(instants, lambda t: t))


def test_a_lone_jump_is_ignored_and_one_that_lasts_is_followed():
    assert believed([1, 2, 1e9, 3, 4]) == [1, 2, 3, 4]
    assert believed([1, 2, 9000, 9001, 9002]) == [1, 2, 9001, 9002]
    assert believed([1, 2, 1e9, 5e9, 3]) == [1, 2, 3]
    assert believed([5, 3, 5, 6]) == [5, 5, 6]


def test_a_log_is_read_one_row_ahead():
    assert kept([1, 2, 1e9, 3, 4]) == [1, 2, 3, 4]
    assert kept([1, 2, 9000, 9001, 9002]) == [1, 2, 9000, 9001, 9002]
    assert kept([1e9, 1, 2, 3]) == [1, 2, 3], "a clock that was set after the first row"
    assert kept([0, 1.7e9, 1.7e9 + 1]) == [1.7e9, 1.7e9 + 1]
    assert kept([1, 2, 1e9]) == [1, 2]
    assert kept([3, 4, 3.5, 5]) == [3, 4, 5]
    assert kept([7]) == [7]
    assert kept([]) == []


def test_one_far_future_stamp_does_not_shut_out_what_follows():
    plain, hit = judge_of(), judge_of()
    for t in range(1, 701):
        for judge in (plain, hit):
            if judge is hit and t == 350:
                judge.add_sample(DeviceSample(1e9, "0", power_w=1.0))
                judge.add_steps(1e9, 1e9)
                judge.add_phase(1e9, "eval")
            judge.add_sample(DeviceSample(float(t), "0", power_w=300.0 + t % 7, temperature_c=60.0))
            judge.add_steps(float(t), 1000.0 * t)
            judge.evaluate(float(t))
    assert hit.results() == plain.results()
    assert hit.results()[0].numbers.power_w.mean == pytest.approx(303.0, rel=0.01)


def test_progress_is_said_as_soon_as_it_is_heard_of():
    judge = judge_of()
    judge.start(0.0)
    assert "waiting for the workload to start" in judge.evaluate(0.5)[0].reason
    judge.add_phase(0.6, "compile")
    assert judge.evaluate(1.0)[0].reason == "compiling"
    judge.add_phase(2.0, "train")
    judge.add_steps(2.0, 0.0)
    assert judge.evaluate(2.5)[0].reason == "no progress yet"
    judge.add_steps(3.0, 10.0)
    (verdict,) = judge.evaluate(3.5)
    assert verdict.reason == "waiting for the first 5 min of soak"
    assert judge.evaluate(4.0)[0] is verdict
    for t in range(4, 30):
        judge.add_steps(float(t), 10.0 * t)
        assert judge.evaluate(float(t))[0].reason == "waiting for the first 5 min of soak"


def test_more_time_counts_from_when_it_was_asked_for():
    def ends_at(asked_s):
        judge = judge_of(dataclasses.replace(STANDARD, timeout_s=120.0))
        judge.start(0.0)
        judge.extend(60.0, asked_s)
        for t in range(1, 300):
            judge.add_steps(float(t), 1000.0 * t)
            (verdict,) = judge.evaluate(float(t))
            if verdict.state == "not-steady":
                break
        return verdict.t_s

    assert ends_at(50.0) == 180.0
    assert ends_at(122.0) == 180.0, "nobody had said yet that the time is up"
    assert ends_at(124.0) == 120.0


def test_the_end_of_a_job_judges_what_is_there():
    judge = judge_of()
    judge.start(0.0)
    for t in range(1, 331):
        judge.add_sample(DeviceSample(float(t), "0", power_w=300.0 + t % 7, temperature_c=60.0))
        judge.add_steps(float(t), 1000.0 * t)
    (verdict,) = judge.close(330.0, "interrupted", "stopped by the user")
    assert verdict.state == "interrupted"
    assert verdict.window_start_s + verdict.window_s == 330.0
