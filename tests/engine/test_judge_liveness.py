"""Dead sensors, dead counters, dead logs: never steady, always named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.liveness import Liveness
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

STANDARD = PROTOCOLS["standard"]


def card(**fields):
    return DeviceInfo("0", "GPU-0", "Test card", "nvidia", "measured", **fields)


def feed(judge, seconds, sample_at, units_at=None, start=1):
    verdicts = ()
    for t in range(start, start + seconds):
        sample = sample_at(float(t))
        if sample is not None:
            judge.add_sample(sample)
        if units_at is not None:
            judge.add_steps(float(t), units_at(float(t)))
        verdicts = judge.evaluate(float(t))
    return verdicts


def noisy(seed=1):
    rng = np.random.default_rng(seed)

    def sample(t):
        return DeviceSample(
            t,
            "0",
            power_w=round(400 + rng.normal(), 2),
            temperature_c=float(round(65 - 30 * np.exp(-t / 60) + 0.3 * rng.normal())),
            sm_clock_mhz=1800.0,
        )

    return sample


def test_power_stuck_at_46_watts_while_32_to_63_degrees_is_named_and_left_out():
    judge = Judge(STANDARD, [card()], has_counter=False)

    def sample(t):
        return DeviceSample(t, "0", power_w=46.19, temperature_c=float(round(32 + 31 * t / 700)))

    (verdict,) = feed(judge, 700, sample)
    assert verdict.state == "settling"
    assert "power" not in verdict.channels
    assert "power is stuck" in verdict.reason
    assert "no-throughput" in verdict.flags
    (verdict,) = judge.finish(700.0)
    assert verdict.state == "not-steady"
    assert judge.results()[0].numbers.power_w is None


def test_stuck_power_beside_a_live_job_leaves_the_other_channels():
    judge = Judge(STANDARD, [card()])
    alive = noisy()
    (verdict,) = feed(
        judge,
        1100,
        lambda t: dataclasses.replace(alive(t), power_w=400.0),
        lambda t: 1000.0 * t + 3 * np.sin(t),
    )
    assert verdict.state == "steady"
    assert set(verdict.channels) == {"rate", "clock", "temperature"}
    assert "power is stuck and left out" in verdict.reason
    numbers = judge.results()[0].numbers
    assert numbers.power_w is None
    assert numbers.joules_per_unit is None


def test_a_frozen_log_is_stuck():
    judge = Judge(STANDARD, [card()], has_counter=False)
    (verdict,) = feed(
        judge,
        800,
        lambda t: DeviceSample(t, "0", power_w=301.7, temperature_c=66.0, sm_clock_mhz=1800.0),
    )
    assert verdict.state == "stuck"
    assert "identical" in verdict.reason
    assert judge.is_over


def test_zero_units_fail_or_are_idle_and_never_freeze():
    protocol = dataclasses.replace(STANDARD, timeout_s=900.0)
    busy = Judge(protocol, [card()])
    busy.add_phase(0.0, "train")
    (verdict,) = feed(busy, 950, noisy(), lambda t: 0.0)
    assert verdict.state == "failed"
    assert "no unit of work" in verdict.reason
    assert busy.results()[0].numbers is None
    idle = Judge(protocol, [card(power_limit_w=400.0)])
    (verdict,) = feed(
        idle,
        950,
        lambda t: DeviceSample(t, "0", power_w=30 + t % 7, utilization_pct=0.0),
        lambda t: 0.0,
    )
    assert verdict.state == "idle"


def test_a_counter_that_stops_is_stuck_when_the_device_works_and_idle_when_not():
    def units(t):
        return 1000.0 * min(t, 400.0)

    judge = Judge(STANDARD, [card(power_limit_w=450.0)])
    (verdict,) = feed(judge, 1100, noisy(), units)
    assert verdict.state == "stuck"
    assert "has not advanced for 10 min" in verdict.reason
    judge = Judge(STANDARD, [card(power_limit_w=450.0)])
    alive = noisy()
    (verdict,) = feed(
        judge,
        1100,
        lambda t: alive(t) if t < 400 else dataclasses.replace(alive(t), power_w=40 + t % 3),
        units,
    )
    assert verdict.state == "idle"


def test_a_temperature_that_never_moved_since_before_the_load_is_stuck():
    judge = Judge(STANDARD, [card()])
    alive = noisy()
    (verdict,) = feed(
        judge,
        1300,
        lambda t: dataclasses.replace(alive(t), temperature_c=41.0),
        lambda t: 1000.0 * t + 3 * np.sin(t),
    )
    assert "temperature" not in verdict.channels
    assert judge.results()[0].numbers.temperature_c is None


def test_a_locked_clock_and_a_still_fan_are_alive():
    judge = Judge(STANDARD, [card()])
    alive = noisy()
    (verdict,) = feed(
        judge,
        1100,
        lambda t: dataclasses.replace(alive(t), fan_pct=70.0),
        lambda t: 1000.0 * t + 3 * np.sin(t),
    )
    assert verdict.state == "steady"
    assert {"clock", "fan"} <= set(verdict.channels)


def test_readings_out_of_range_are_no_readings():
    judge = Judge(STANDARD, [card()])
    alive = noisy()
    feed(
        judge,
        400,
        lambda t: dataclasses.replace(alive(t), temperature_c=255.0, power_w=-1.0),
        lambda t: 1000.0 * t,
    )
    numbers = judge.results()[0].numbers
    assert numbers.temperature_c is None
    assert numbers.power_w is None


@pytest.mark.parametrize(("limit", "stuck"), [(None, True), (575.0, False)])
def test_whole_watts_at_the_limit_may_repeat_for_longer(limit, stuck):
    liveness = Liveness(limit)
    liveness.add("power", [(float(t), 575.0) for t in range(120)])
    assert (liveness.power_stuck_since_s() is not None) is stuck


def test_external_cap_and_unsaturated_are_flagged():
    def soak(**fields):
        judge = Judge(STANDARD, [card(power_limit_w=400.0)])
        alive = noisy()
        return feed(
            judge,
            400,
            lambda t: dataclasses.replace(
                alive(t), **{k: v(t) if callable(v) else v for k, v in fields.items()}
            ),
            lambda t: 1000.0 * t,
        )[0].flags

    assert "external-cap" in soak(
        power_w=lambda t: 240.0 + t % 5, throttle_reasons=("sw_power_cap",)
    )
    assert "power-capped" in soak(
        power_w=lambda t: 398.0 + t % 5, throttle_reasons=("sw_power_cap",)
    )
    assert "unsaturated" in soak(power_w=lambda t: 60.0 + t % 5, throttle_reasons=())
    assert "throttled" in soak(throttle_reasons=("sw_thermal_slowdown",))
