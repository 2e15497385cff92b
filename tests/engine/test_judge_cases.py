"""Whole soaks: what the field shows, and what the judge must say of it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from heatsoak.profiles.cards import card_profiles
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak.telemetry.vendors.synthetic import SyntheticCard

STANDARD = PROTOCOLS["standard"]


def card(device_id="0", **fields):
    return DeviceInfo(device_id, f"GPU-{device_id}", "Test card", "nvidia", "measured", **fields)


class Bench:
    """A judge with devices whose readings are functions of time."""

    def __init__(self, judge, samples_at, units_per_s=None, seed=1):
        self.judge, self.samples_at, self.units_per_s = judge, samples_at, units_per_s
        self.rng = np.random.default_rng(seed)
        self.units, self.t_s = 0.0, 0

    def run(self, seconds, until=None):
        verdicts = ()
        for _ in range(seconds):
            self.t_s += 1
            for sample in self.samples_at(float(self.t_s), self.rng):
                self.judge.add_sample(sample)
            if self.units_per_s is not None:
                self.units += self.units_per_s(self.t_s) * (1 + 0.003 * self.rng.normal())
                self.judge.add_steps(float(self.t_s), self.units)
            verdicts = self.judge.evaluate(float(self.t_s))
            if until is not None and until(verdicts):
                break
        return verdicts


def settled(device_id="0", case_c=0.0, tau_s=1500.0):
    def sample(t, rng):
        warm = 1 - math.exp(-t / 60)
        return DeviceSample(
            t,
            device_id,
            power_w=round(300 - 9 * math.exp(-t / 60) + rng.normal(), 2),
            temperature_c=float(
                round(30 + 30 * warm + case_c * (1 - math.exp(-t / tau_s)) + 0.2 * rng.normal())
            ),
            sm_clock_mhz=float(15 * round((1800 + 5 * rng.normal()) / 15)),
        )

    return sample


def is_steady(verdicts):
    return all(verdict.state == "steady" for verdict in verdicts)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_synthetic_5090_with_a_slow_case_freezes_within_one_percent(seed):
    device = SyntheticCard(card_profiles()["rtx-5090"], 0, seed)
    device.start_load(0.0)
    truth = device.asymptote()
    judge = Judge(STANDARD, [device.info])
    for t in range(1, 5000):
        judge.add_sample(device.read(float(t)))
        judge.add_steps(float(t), device.units_done(float(t)))
        if is_steady(judge.evaluate(float(t))):
            break
    (result,) = judge.results()
    assert result.verdict.state == "steady"
    assert result.verdict.frozen_at_s > 900, "the case alone takes 15 minutes"
    assert result.numbers.throughput.mean == pytest.approx(truth.rate_per_s, rel=0.01)
    assert result.numbers.power_w.mean == pytest.approx(truth.power_w, rel=0.01)
    assert result.boost.drop_frac > 0.02
    assert result.at_10_min > result.numbers.throughput.mean


def test_two_cards_of_a_job_freeze_together_with_the_slower():
    fast, slow = settled("0"), settled("1", case_c=6.0, tau_s=500.0)
    alone = Bench(Judge(STANDARD, [card("0")]), lambda t, rng: [fast(t, rng)], lambda t: 1000.0)
    (single,) = alone.run(1500, is_steady)
    both = Bench(
        Judge(STANDARD, [card("0"), card("1")]),
        lambda t, rng: [fast(t, rng), slow(t, rng)],
        lambda t: 1000.0,
    )
    said = set()
    verdicts = both.run(4000, lambda v: bool(said.add(v[0].reason.split(";")[0])) or is_steady(v))
    assert is_steady(verdicts)
    assert verdicts[0].frozen_at_s == verdicts[1].frozen_at_s > single.frozen_at_s
    assert (verdicts[0].window_start_s, verdicts[0].window_s) == (
        verdicts[1].window_start_s,
        verdicts[1].window_s,
    )
    assert any(reason.startswith("waiting for 1: ") for reason in said)


def test_a_lost_card_leaves_the_others_judged():
    fast, other = settled("0"), settled("1")
    bench = Bench(
        Judge(STANDARD, [card("0"), card("1")]),
        lambda t, rng: [fast(t, rng), other(t, rng)] if t < 400 else [fast(t, rng)],
        lambda t: 1000.0,
    )
    bench.run(400)
    verdicts = bench.judge.close(400.0, "lost", "GPU 1 is lost", "1")
    assert [v.state for v in verdicts][1] == "lost"
    assert not bench.judge.is_over
    verdicts = bench.run(800, lambda v: v[0].state == "steady")
    assert [v.state for v in verdicts] == ["steady", "lost"]


def test_a_bare_cpu_is_judged_on_throughput_alone_and_smoke_freezes_in_time():
    cpu = DeviceInfo("cpu", "cpu-host", "Host CPU", "cpu", "measured")
    judge = Judge(PROTOCOLS["smoke"], [cpu])
    rng = np.random.default_rng(4)
    judge.add_phase(0.0, "start")
    judge.add_phase(12.0, "train")
    t_step, units, verdict = 12.0, 0.0, None
    for t in range(1, 240):
        while t_step <= t:
            judge.add_steps(t_step, units)
            # A step of 0.7 s on a shared machine: 8 % from step to step.
            t_step += 0.7 * math.exp(0.08 * rng.normal())
            units += 512.0
        judge.add_sample(DeviceSample(float(t), "cpu", utilization_pct=97.0))
        (verdict,) = judge.evaluate(float(t))
        if verdict.state == "steady":
            break
    assert verdict.state == "steady"
    assert verdict.frozen_at_s < 180
    assert verdict.channels == ("rate",)
    assert set(verdict.flags) == {"headroom-unknown", "smoke"}
    assert (
        "judged on throughput alone: this device reports no power, temperature or clock"
        in verdict.reason
    )
    assert judge.is_over, "smoke watches nothing after the freeze"
    numbers = judge.results()[0].numbers
    assert numbers.throughput.mean == pytest.approx(512 / 0.7, rel=0.05)
    assert numbers.power_w is numbers.temperature_c is numbers.energy_method is None


def test_drop_outs_neither_veto_nor_raise():
    base = settled()

    def sample(t, rng):
        full = base(t, rng)
        gaps = {
            name: None
            for name in ("power_w", "temperature_c", "sm_clock_mhz")
            if rng.random() < 0.4
        }
        return [dataclasses.replace(full, **gaps)]

    bench = Bench(Judge(STANDARD, [card()]), sample, lambda t: 1000.0)
    assert is_steady(bench.run(1500, is_steady))


@pytest.mark.parametrize("missing", ["power_w", "temperature_c", "sm_clock_mhz"])
def test_a_missing_sensor_never_vetoes(missing):
    base = settled()
    bench = Bench(
        Judge(STANDARD, [card()]),
        lambda t, rng: [dataclasses.replace(base(t, rng), **{missing: None})],
        lambda t: 1000.0,
    )
    assert is_steady(bench.run(2400, is_steady))


def test_without_an_energy_counter_the_integral_serves_and_says_so():
    base = settled()
    bench = Bench(Judge(STANDARD, [card()]), lambda t, rng: [base(t, rng)], lambda t: 1000.0)
    bench.run(1500, is_steady)
    numbers = bench.judge.results()[0].numbers
    assert numbers.energy_method == "integral"
    assert numbers.counter_j is None
    assert numbers.integrated_j == pytest.approx(300.0 * numbers.window_s, rel=0.01)
    assert numbers.joules_per_unit.mean == pytest.approx(0.3, rel=0.01)


def test_an_energy_counter_that_restarts_is_re_based():
    base = settled()

    def sample(t, rng):
        joules = 300.0 * t + (5e9 if t < 350 else 0.0)
        return [dataclasses.replace(base(t, rng), energy_j=joules)]

    bench = Bench(Judge(STANDARD, [card(power_limit_w=350.0)]), sample, lambda t: 1000.0)
    bench.run(380)
    numbers = bench.judge.results()[0].numbers
    assert numbers.energy_method == "counter"
    assert numbers.counter_j == pytest.approx(300.0 * numbers.window_s, rel=0.02)


def test_numbers_that_move_after_the_freeze_are_superseded():
    base = settled()
    speed = {"share": 1.0}

    def sample(t, rng):
        full = base(t, rng)
        return [dataclasses.replace(full, power_w=full.power_w * speed["share"])]

    bench = Bench(Judge(STANDARD, [card()]), sample, lambda t: 1000.0 * speed["share"])
    (frozen,) = bench.run(1500, is_steady)
    before = bench.judge.results()[0].numbers
    speed["share"] = 0.95
    (verdict,) = bench.run(700, lambda _: bench.judge.is_over)
    assert "superseded" in verdict.flags
    assert "the rate moved by -" in verdict.reason
    assert verdict.state == "steady"
    assert verdict.frozen_at_s == frozen.frozen_at_s
    assert bench.judge.is_over
    assert bench.judge.results()[0].numbers == before, "frozen numbers do not move"


def test_the_watch_ends_quietly_when_nothing_moves():
    base = settled()
    bench = Bench(Judge(STANDARD, [card()]), lambda t, rng: [base(t, rng)], lambda t: 1000.0)
    (frozen,) = bench.run(1500, is_steady)
    assert not bench.judge.is_over
    (verdict,) = bench.run(700, lambda _: bench.judge.is_over)
    assert bench.judge.is_over
    assert verdict == frozen


def test_a_fan_about_to_run_out_of_headroom_blocks():
    base = settled()

    def sample(t, rng):
        return [dataclasses.replace(base(t, rng), fan_pct=float(round(60 + 25 * t / 1200)))]

    bench = Bench(Judge(STANDARD, [card(fan_max_pct=88.0)]), sample, lambda t: 1000.0)
    (verdict,) = bench.run(1100)
    assert verdict.state == "settling"
    assert verdict.blocked_by == "fan"


def test_a_temperature_at_its_limit_blocks_until_the_slowdown_came():
    base = settled()

    def sample(t, rng):
        full = base(t, rng)
        return [dataclasses.replace(full, temperature_c=full.temperature_c + t / 600)]

    limited = Bench(Judge(STANDARD, [card(temperature_limit_c=63.0)]), sample, lambda t: 1000.0)
    (verdict,) = limited.run(900)
    assert verdict.state == "settling"
    assert "temperature about to reach its limit" in verdict.reason


def test_a_sawtooth_throttle_is_steady_in_the_mean():
    def is_low(t):
        return (t % 47) < 20

    def sample(t, rng):
        low = is_low(t)
        return [
            DeviceSample(
                t,
                "0",
                power_w=round((200 if low else 280) + rng.normal(), 2),
                temperature_c=float(63 if low else 67) if t > 60 else float(round(t)),
                sm_clock_mhz=1485.0 if low else 1935.0,
                throttle_reasons=("sw_thermal_slowdown",) if low else (),
            )
        ]

    bench = Bench(Judge(STANDARD, [card()]), sample, lambda t: 770.0 if is_low(t) else 1000.0)
    (verdict,) = bench.run(3000, is_steady)
    assert verdict.state == "steady"
    assert {"cycling", "throttled"} <= set(verdict.flags)
    assert "cycling every" in verdict.reason
    numbers = bench.judge.results()[0].numbers
    assert numbers.throughput.mean == pytest.approx((20 * 770 + 27 * 1000) / 47, rel=0.01)
    assert numbers.power_w.mean == pytest.approx((20 * 200 + 27 * 280) / 47, rel=0.01)
    assert numbers.throttle_frac["sw_thermal_slowdown"] == pytest.approx(20 / 47, abs=0.05)


def test_boost_is_before_the_window_and_fixed_readings_are_what_they_say():
    base = settled()
    bench = Bench(
        Judge(STANDARD, [card()]),
        lambda t, rng: [base(t, rng)],
        lambda t: 1000.0 * (1 + 0.08 * math.exp(-t / 80)),
    )
    bench.run(1500, is_steady)
    bench.run(700, lambda _: bench.judge.is_over)
    (result,) = bench.judge.results()
    assert result.boost.window_s == 30.0
    assert result.boost.start_s < result.numbers.window_start_s
    assert 0.03 < result.boost.drop_frac < 0.08
    assert result.at_10_min == pytest.approx(1000.0, rel=0.005)


@pytest.mark.parametrize("name", ["rtx-5090", "h100-sxm"])
def test_a_smoke_soak_of_a_card_ends_frozen_and_flagged(name):
    device = SyntheticCard(card_profiles()[name], 0, 1)
    device.start_load(0.0)
    truth = device.asymptote()
    judge = Judge(PROTOCOLS["smoke"], [device.info])
    for t in range(1, 245):
        judge.add_sample(device.read(float(t)))
        judge.add_steps(float(t), device.units_done(float(t)))
        judge.evaluate(float(t))
    (result,) = judge.results()
    assert result.verdict.state == "steady"
    assert "smoke" in result.verdict.flags
    rate = result.numbers.throughput
    assert abs(rate.mean - truth.rate_per_s) <= rate.u95 <= 0.04 * rate.mean


def test_a_time_out_for_noise_says_so():
    base = settled()
    rng = np.random.default_rng(6)
    protocol = dataclasses.replace(STANDARD, timeout_s=1200.0)
    bench = Bench(
        Judge(protocol, [card()]),
        lambda t, _: [base(t, rng)],
        lambda t: 1000.0 * max(0.1, 1 + 0.12 * rng.normal()),
    )
    (verdict,) = bench.run(1300)
    assert verdict.state == "not-steady"
    assert "rate unsettled: up to" in verdict.reason
    figure = bench.judge.results()[0].numbers.throughput
    assert abs(figure.mean - 1000.0) <= figure.u95


def test_an_evaluation_is_a_pause_and_all_in_counts_it():
    base = settled()
    judge = Judge(STANDARD, [card()])
    units, rng = 0.0, np.random.default_rng(8)
    for t in range(1, 2000):
        is_eval = t % 100 >= 90
        if t % 100 == 90:
            judge.add_phase(t - 1.0, "eval")
        if t % 100 == 0 or t == 1:
            judge.add_phase(t - 1.0, "train")
        sample = base(float(t), rng)
        judge.add_sample(
            dataclasses.replace(sample, power_w=120.0 + rng.normal()) if is_eval else sample
        )
        units += 0.0 if is_eval else 1000.0 + rng.normal()
        judge.add_steps(float(t), units)
        if is_steady(judge.evaluate(float(t))):
            break
    (result,) = judge.results()
    assert result.verdict.state == "steady"
    assert result.numbers.throughput.mean == pytest.approx(1000.0, rel=0.002)
    assert result.numbers.all_in_throughput.mean == pytest.approx(900.0, rel=0.03)
    assert result.numbers.power_w.mean == pytest.approx(300.0, rel=0.005)
    joules = (0.9 * 300 + 0.1 * 120) / 900
    assert result.numbers.joules_per_unit.mean == pytest.approx(joules, rel=0.01)
