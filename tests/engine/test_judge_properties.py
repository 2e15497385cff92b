"""What must not change a verdict: units, time's origin, the order of cards, how a feed is cut."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

QUICK = PROTOCOLS["quick"]


def card(device_id):
    return DeviceInfo(device_id, f"GPU-{device_id}", "Test card", "nvidia", "measured")


def record(seconds=900, cards=2, seed=3, disturbed=False):
    """A soak as lists: per second the samples of all cards, and the counter."""
    rng = np.random.default_rng(seed)
    out, units = [], 0.0
    for t in range(1, seconds + 1):
        share = 0.8 if disturbed and t > 500 else 1.0
        samples = [
            DeviceSample(
                float(t),
                str(i),
                power_w=round(share * (300 + 20 * i + 2 * rng.normal()), 2),
                energy_j=300.0 * t,
                temperature_c=float(round(60 + 3 * i - 30 * np.exp(-t / 50) + 0.2 * rng.normal())),
                sm_clock_mhz=float(15 * round((1800 + 5 * rng.normal()) / 15)),
                throttle_reasons=("sw_power_cap",) if rng.random() < 0.5 else (),
            )
            for i in range(cards)
        ]
        units += share * (5000 + 20 * rng.normal())
        out.append((samples, units))
    return out


def judge_of(cards=2):
    return Judge(QUICK, [card(str(i)) for i in range(cards)])


def replay(log, judge, *, offset=0.0, unit=1.0, watt=1.0, mhz=1.0, every=1, order=None, upto=None):
    for i, (samples, units) in enumerate(log[:upto]):
        t = i + 1.0 + offset
        for sample in samples if order is None else [samples[k] for k in order]:
            judge.add_sample(
                dataclasses.replace(
                    sample,
                    t_s=t,
                    power_w=sample.power_w * watt,
                    energy_j=sample.energy_j * watt,
                    sm_clock_mhz=sample.sm_clock_mhz * mhz,
                )
            )
        judge.add_steps(t, units * unit)
        if (i + 1) % every == 0:
            judge.evaluate(t)
    judge.evaluate(len(log[:upto]) + offset)
    return judge.results()


@pytest.fixture(scope="module")
def log():
    return record()


@pytest.fixture(scope="module")
def plain(log):
    results = replay(log, judge_of())
    assert [r.verdict.state for r in results] == ["steady", "steady"]
    return results


def test_how_the_feed_is_cut_changes_nothing(log, plain):
    for every in (7, 60, 10_000):
        assert replay(log, judge_of(), every=every) == plain


def test_the_origin_of_time_changes_nothing_but_times(log, plain):
    for offset in (12.5, 86_400.0):
        moved = replay(log, judge_of(), offset=offset)
        for a, b in zip(plain, moved, strict=True):
            assert b.verdict.frozen_at_s == pytest.approx(a.verdict.frozen_at_s + offset)
            assert b.numbers.throughput.mean == pytest.approx(a.numbers.throughput.mean)
            assert b.numbers.power_w.u95 == pytest.approx(a.numbers.power_w.u95)


def test_units_and_scale_change_nothing_but_the_figures(log, plain):
    scaled = replay(log, judge_of(), unit=1e-4, watt=3.0, mhz=0.5)
    for a, b in zip(plain, scaled, strict=True):
        assert b.verdict.frozen_at_s == a.verdict.frozen_at_s
        assert b.numbers.throughput.mean == pytest.approx(1e-4 * a.numbers.throughput.mean)
        assert b.numbers.throughput.u95 == pytest.approx(1e-4 * a.numbers.throughput.u95)
        assert b.numbers.power_w.mean == pytest.approx(3.0 * a.numbers.power_w.mean)
        assert b.numbers.joules_per_unit.mean == pytest.approx(3e4 * a.numbers.joules_per_unit.mean)


def test_the_order_of_the_cards_changes_nothing(log, plain):
    turned = Judge(QUICK, [card("1"), card("0")])
    results = replay(log, turned, order=[1, 0])
    assert {r.device_id: r.verdict.frozen_at_s for r in results} == {
        r.device_id: r.verdict.frozen_at_s for r in plain
    }
    by_id = {r.device_id: r for r in results}
    for a in plain:
        b = by_id[a.device_id]
        assert b.numbers.power_w.mean == pytest.approx(a.numbers.power_w.mean)
        assert b.numbers.throughput.u95 == pytest.approx(a.numbers.throughput.u95)


def test_a_disturbance_begins_a_new_epoch():
    log = record(seconds=560, disturbed=True)
    judge = judge_of()
    # Not frozen before: hold the judge back by a longer soak.
    judge = Judge(dataclasses.replace(QUICK, soak_s=520.0), [card("0"), card("1")])
    results = replay(log, judge)
    for result in results:
        assert result.verdict.state == "warming"
        assert "disturbed" in result.verdict.flags
        assert "disturbance (-20 %)" in result.verdict.reason


def test_broken_readings_never_raise():
    rng = random.Random(5)
    nan, inf = float("nan"), float("inf")
    judge = judge_of()
    values = (None, nan, inf, -inf, -5.0, 0.0, 300.0, 1e300)
    t = 0.0
    for _ in range(3000):
        t += rng.choice((0.0, 0.5, 1.0, 1.0, 2.0, -3.0, 40.0))
        at = rng.choice((t, t, t, nan, inf, -inf, t - 50))
        judge.add_sample(
            DeviceSample(
                at,
                rng.choice(("0", "1", "elsewhere")),
                power_w=rng.choice(values),
                energy_j=rng.choice(values),
                temperature_c=rng.choice(values),
                sm_clock_mhz=rng.choice(values),
                fan_pct=rng.choice(values),
                utilization_pct=rng.choice(values),
                power_limit_w=rng.choice(values),
                throttle_reasons=rng.choice((None, (), ("sw_power_cap", "0x40000"))),
            )
        )
        judge.add_steps(at, rng.choice((t, t * 1000, 0.0, nan, inf, -1.0)))
        judge.add_phase(at, rng.choice(("train", "train", "eval", "nonsense")))
        judge.evaluate(at)
        if rng.random() < 0.02:
            judge.results()
    judge.finish(t + 10)
    assert len(judge.results()) == 2


def test_a_suspended_machine_starts_afresh():
    judge = judge_of()
    log = record(seconds=200)
    replay(log, judge)
    judge.add_steps(1e6, 2e6)
    (verdict, _) = judge.evaluate(1e6 + 5)
    assert verdict.state == "not-steady"


def test_memory_stays_bounded_over_ten_hours():
    # Warming nearly to the end: the tables fill as always, and the test is quick.
    protocol = dataclasses.replace(
        PROTOCOLS["standard"], timeout_s=1e9, soak_s=80_000.0, hold_s=1e9
    )
    judge = Judge(protocol, [card("0")])
    rng = np.random.default_rng(2)
    noise = rng.normal(size=36_000 // 5)
    for i, x in enumerate(noise):
        t = 5.0 * (i + 1)
        judge.add_sample(DeviceSample(t, "0", power_w=300 + x, temperature_c=60.0 + (i % 2)))
        judge.add_steps(t, 1000.0 * t + x)
        if i % 200 == 0:
            judge.evaluate(t)
    judge.evaluate(36_000.0)
    bins = judge._trial.subjects[0].readings.bins
    assert bins.end == 3599
    assert bins.end - bins.first <= bins._data.shape[1] <= 2 * 1440
    assert len(judge._trial.job._records) < 100
    assert judge.results()[0].numbers.throughput.mean == pytest.approx(1000.0, rel=1e-3)
