"""What the field shows of steady state, case by case, and what the judge must say of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

STANDARD = PROTOCOLS["standard"]


def card(device_id="0", **fields):
    return DeviceInfo(device_id, f"GPU-{device_id}", "Test card", "nvidia", "measured", **fields)


def soak(judge, seconds, sample_at, rate_at=None, seed=1):
    """Feed a card (or several) second by second until all is said; the last verdicts."""
    rng, units = np.random.default_rng(seed), 0.0
    verdicts = ()
    for t in range(1, seconds + 1):
        samples = sample_at(float(t), rng)
        for sample in samples if isinstance(samples, list) else [samples]:
            judge.add_sample(sample)
        if rate_at is not None:
            units += rate_at(float(t)) * (1 + 0.003 * rng.normal())
            judge.add_steps(float(t), units)
        verdicts = judge.evaluate(float(t))
        if judge.is_over:
            break
    return verdicts


def reading(t, rng, *, device_id="0", watts=300.0, celsius=65.0, mhz=1800.0, **fields):
    return DeviceSample(
        t,
        device_id,
        power_w=round(watts + rng.normal(), 2),
        temperature_c=float(round(celsius + 0.2 * rng.normal())),
        sm_clock_mhz=float(15 * round((mhz + 5 * rng.normal()) / 15)),
        **fields,
    )


def warm(t, cold, hot, tau_s):
    return hot + (cold - hot) * math.exp(-t / tau_s)


def test_e1_a_clock_at_a_fifth_of_boost_is_throttled_not_merely_hot():
    """A limit set but not in force, a card that heat-soaks to some 500 MHz."""
    judge = Judge(STANDARD, [card(power_limit_w=400.0, sm_clock_max_mhz=2400.0)])

    def clock(t):
        return 2300.0 if t < 120 else warm(t - 120, 2300.0, 500.0, 40.0)

    def sample(t, rng):
        return reading(
            t, rng, watts=0.1 * clock(t) + 60, celsius=warm(t, 35.0, 92.0, 50.0), mhz=clock(t),
            power_limit_w=400.0,
            throttle_reasons=("hw_slowdown", "hw_thermal_slowdown") if t > 120 else (),
        )  # fmt: skip

    (verdict,) = soak(judge, 4000, sample, lambda t: clock(t))
    (result,) = judge.results()
    assert verdict.state == "steady"
    assert "throttled" in verdict.flags
    assert result.numbers.sm_clock_mhz.mean == pytest.approx(500.0, rel=0.02)
    assert result.numbers.throttle_frac["hw_thermal_slowdown"] == pytest.approx(1.0)
    assert result.boost.drop_frac > 0.7


def test_e1_the_limit_that_is_in_force_is_the_one_read_back():
    """A limit lowered on the card counts from when the card says so, whatever was asked for."""

    def flags(limit_w):
        judge = Judge(STANDARD, [card(power_limit_w=400.0)])
        (verdict,) = soak(
            judge, 400,
            lambda t, rng: reading(t, rng, watts=240.0, power_limit_w=limit_w,
                                   throttle_reasons=("sw_power_cap",)),
            lambda t: 1000.0,
        )  # fmt: skip
        return set(verdict.flags)

    assert "external-cap" in flags(400.0)
    assert "power-capped" in flags(240.0)


def test_e2_two_cards_settle_with_the_hot_inner_one_and_cold_stands_beside_sustained():
    """Minus 5 % in 3.5 min; the inner card at 91 degrees, its clock down by a fifth."""
    judge = Judge(STANDARD, [card("0"), card("1", temperature_limit_c=93.0)])

    def inner(t):
        return warm(t, 1.0, 0.8, 210.0)

    def sample(t, rng):
        return [
            reading(t, rng, celsius=warm(t, 35.0, 68.0, 60.0)),
            reading(t, rng, device_id="1", celsius=warm(t, 35.0, 91.0, 120.0),
                    watts=300 * inner(t), mhz=1800 * inner(t)),
        ]  # fmt: skip

    verdicts = soak(judge, 5000, sample, lambda t: 1000.0 * (0.75 + 0.25 * inner(t)))
    assert [v.state for v in verdicts] == ["steady", "steady"]
    assert verdicts[0].frozen_at_s == verdicts[1].frozen_at_s > 5 * 210
    outer, hot = judge.results()
    assert hot.numbers.sm_clock_mhz.mean == pytest.approx(0.8 * 1800, rel=0.01)
    assert outer.numbers.throughput.mean == pytest.approx(950.0, rel=0.005)
    assert outer.boost.throughput > outer.numbers.throughput.mean
    assert hot.boost.drop_frac == pytest.approx(0.05, abs=0.01)


def test_e4_what_never_settles_is_said_to_after_a_cap():
    """No count of warm-up runs is right for all; some workloads never settle."""
    judge = Judge(STANDARD, [card()])
    phase = {"rate": 1000.0}
    walk = np.random.default_rng(7)

    def rate(t):
        phase["rate"] *= 1 + 0.004 * walk.normal()
        return phase["rate"]

    (verdict,) = soak(judge, 6000, lambda t, rng: reading(t, rng), rate)
    assert verdict.state == "not-steady"
    assert verdict.reason.startswith("not steady after 1.5 h")
    assert verdict.t_s <= STANDARD.timeout_s + 10
    assert judge.results()[0].numbers.throughput.u95 is not None


def test_e4_the_warm_up_is_as_long_as_this_card_needs():
    def frozen_at(tau_s):
        judge = Judge(STANDARD, [card()])
        (verdict,) = soak(
            judge, 5400,
            lambda t, rng: reading(t, rng, celsius=warm(t, 40.0, 75.0, tau_s),
                                   mhz=warm(t, 1900.0, 1800.0, tau_s)),
            lambda t: warm(t, 1060.0, 1000.0, tau_s),
        )  # fmt: skip
        assert verdict.state == "steady", verdict.reason
        mean = judge.results()[0].numbers.throughput.mean
        assert mean == pytest.approx(1000.0, rel=0.01)
        return verdict.frozen_at_s

    assert frozen_at(60.0) < 0.6 * frozen_at(500.0)


@pytest.mark.parametrize("counts", [True, False])
def test_e7_run_up_and_run_down_stay_out_of_the_window(counts):
    """3668 -> 7091 -> 3564 W: both ramps of a whole node are in the same file."""

    def share(t):
        return min(1.0, max(0.0, min((t - 60) / 240, (3300 - t) / 120)))

    def sample(t, rng):
        return DeviceSample(t, "0", power_w=round(3668 + 3423 * share(t) + 8 * rng.normal(), 1))

    judge = Judge(STANDARD, [card()], has_counter=counts)
    soak(judge, 3600, sample, (lambda t: 900.0 * share(t)) if counts else None)
    judge.finish(3600.0)
    (result,) = judge.results()
    assert result.verdict.state == "steady"
    assert result.numbers.power_w.mean == pytest.approx(7091.0, rel=0.003)
    start_s = result.numbers.window_start_s
    assert start_s >= 300
    assert start_s + result.numbers.window_s <= 3180
    assert "superseded" not in result.verdict.flags


def test_a_slow_first_pass_over_the_data_is_not_the_rate():
    """I/O-bound at first, cached afterwards: the card waits, and says so by its utilization."""
    judge = Judge(STANDARD, [card(power_limit_w=400.0)])

    def is_cached(t):
        return t > 1500

    def sample(t, rng):
        return reading(
            t, rng, watts=330.0 if is_cached(t) else 240.0,
            celsius=warm(t, 40.0, 60.0, 60.0) + 8 * is_cached(t),
            utilization_pct=99.0 if is_cached(t) else round(62 + 5 * rng.normal()),
        )  # fmt: skip

    seen = set()
    rng, units = np.random.default_rng(2), 0.0
    for t in range(1, 5000):
        judge.add_sample(sample(float(t), rng))
        units += (1000.0 if is_cached(t) else 640.0) * (1 + 0.003 * rng.normal())
        judge.add_steps(float(t), units)
        (verdict,) = judge.evaluate(float(t))
        seen.add(verdict.reason.split(";")[0])
        if verdict.state == "steady":
            break
    assert any(reason.startswith("the device waits for data") for reason in seen)
    assert verdict.state == "steady"
    assert verdict.frozen_at_s > 1500
    assert judge.results()[0].numbers.throughput.mean == pytest.approx(1000.0, rel=0.005)


def test_a_workload_that_always_waits_for_data_freezes_late_and_is_flagged():
    judge = Judge(STANDARD, [card(power_limit_w=400.0)])
    (verdict,) = soak(
        judge, 2400,
        lambda t, rng: reading(t, rng, watts=280.0, celsius=warm(t, 40.0, 60.0, 60.0),
                               utilization_pct=70.0),
        lambda t: 640.0,
    )  # fmt: skip
    assert verdict.state == "steady"
    assert verdict.frozen_at_s >= STANDARD.late_s
    assert "unsaturated" in verdict.flags


def test_a_fan_that_can_do_no_more_and_no_temperature_need_patience():
    judge = Judge(STANDARD, [card(fan_max_pct=52.0)])

    def sample(t, rng):
        return replace(reading(t, rng), temperature_c=None, fan_pct=52.0)

    (verdict,) = soak(judge, 1500, sample, lambda t: 1000.0)
    assert verdict.state == "holding"
    assert "the fan can do no more" in verdict.reason
    (verdict,) = soak(Judge(STANDARD, [card(fan_max_pct=90.0)]), 1500, sample, lambda t: 1000.0)
    assert verdict.state == "steady"


def test_a_margin_tells_the_limit_where_no_limit_is_told():
    """Newer cards say only how many degrees are left."""
    judge = Judge(STANDARD, [card()])

    def sample(t, rng):
        celsius = float(round(warm(t, 40.0, 60.0, 60.0) + t / 600 + 0.2 * rng.normal()))
        return replace(reading(t, rng), temperature_c=celsius, temperature_margin_c=63.0 - celsius)

    (verdict,) = soak(judge, 900, sample, lambda t: 1000.0)
    assert verdict.state == "settling"
    assert "temperature about to reach its limit" in verdict.reason
