from __future__ import annotations

import math
import sys

import pytest

from heatsoak.recipe import Recipe
from heatsoak.session.rows import Batch, JobRow, PhaseRow, RollupRow, StepsRow
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak_tui.run_view import BUCKETS, RECENT, RunView, Series

INFO = DeviceInfo("0", "GPU-1", "NVIDIA GeForce RTX 5090", "nvidia", "measured")
RECIPE = Recipe("w", "1B", 4096, 1, 1, "bf16", "auto", False, False, "adamw")
JOB = JobRow("job-0", "w", 1, RECIPE, "replica", "tokens", ("0",))


def opened(**kwargs) -> RunView:
    view = RunView()
    view.apply(Batch({"state": "recording"}, devices=(INFO,), jobs=(JOB,), **kwargs))
    return view


def test_a_series_keeps_the_extremes_and_a_fixed_size():
    series = Series()
    for t_s in range(100_000):
        series.add(t_s, 1000.0 if t_s == 77_777 else float(t_s % 7))
    assert len(series) <= BUCKETS
    assert series.span_s == 128.0
    points = list(series.points())
    assert max(high for _, _, high in points) == 1000.0
    assert {low for _, low, _ in points} == {0.0}
    spike = next(t for t, _, high in points if high == 1000.0)
    assert abs(spike - 77_777) <= series.span_s


def test_the_memory_of_a_series_does_not_grow_with_the_run():
    short, long = Series(), Series()
    for t_s in range(3000):
        short.add(t_s, 1.0)
    for t_s in range(60_000):
        long.add(t_s, 1.0)
    assert sys.getsizeof(long._low) <= sys.getsizeof(short._low) * 2
    assert len(long._recent_t) == len(long._recent_v) == RECENT
    assert [t for t, _, _ in long.points(59_000)] == list(range(59_000, 60_000))


def test_none_and_nan_are_gaps_and_never_zero():
    series = Series()
    for t_s in range(10):
        series.add(t_s, None if t_s % 2 else 5.0)
    series.add(10, math.nan)
    assert [low for _, low, _ in series.points()] == [5.0] * 5


def test_a_gap_is_longer_than_the_usual_period():
    series = Series()
    for t_s in [*range(100), *range(400, 500)]:
        series.add(t_s, 1.0)
    assert 3 <= series.gap_s < 30


def test_the_zoomed_view_is_given_single_points():
    series = Series()
    for t_s in range(5000):
        series.add(t_s, float(t_s))
    assert series.span_s == 8.0
    recent = list(series.points(since_s=4900))
    assert len(recent) == 100
    assert recent[0] == (4900, 4900.0, 4900.0)
    assert len(list(series.points(since_s=1000))) == 500


def test_the_rate_is_the_counter_difference_over_at_least_five_seconds():
    steps = tuple(StepsRow(t, "job-0", 100.0 * t, t, None) for t in range(1, 20))
    view = opened(steps=steps)
    assert view.rate("0") == pytest.approx(100.0)
    assert view.unit("0") == "tokens"


def test_paused_seconds_are_no_throughput():
    rows = [StepsRow(t, "job-0", 100.0 * t, t, None) for t in range(1, 20)]
    rows += [StepsRow(t, "job-0", 1900.0 + 100 * (t - 60), t, None) for t in range(61, 80)]
    phases = (PhaseRow(0, "job-0", "train"), PhaseRow(19.5, "job-0", "eval"))
    view = opened(steps=tuple(rows[:19]), phases=phases)
    assert view.rate("0") is None
    view.apply(Batch({}, steps=tuple(rows[19:]), phases=(PhaseRow(60, "job-0", "train"),)))
    assert view.rate("0") == pytest.approx(100.0)
    assert min(low for _, low, _ in view.series("0", "rate").points()) == pytest.approx(100.0)


def test_a_counter_that_starts_again_gives_no_negative_rate():
    rows = [StepsRow(t, "job-0", 100.0 * t, t, None) for t in range(1, 20)]
    rows += [StepsRow(t, "job-0", 100.0 * (t - 19), t, None) for t in range(20, 40)]
    view = opened(steps=tuple(rows))
    assert min(low for _, low, _ in view.series("0", "rate").points()) == pytest.approx(100.0)


def test_a_counter_that_stands_still_has_no_current_rate():
    view = opened(steps=tuple(StepsRow(t, "job-0", 100.0 * t, t, None) for t in range(1, 20)))
    view.apply(Batch({}, samples=(DeviceSample(100.0, "0", power_w=50.0),)))
    assert view.rate("0") is None


def test_boost_is_the_best_half_minute():
    rows, units = [], 0.0
    for t in range(1, 300):
        units += 120.0 if 40 <= t < 80 else 100.0
        rows.append(StepsRow(t, "job-0", units, t, None))
    view = opened(steps=tuple(rows))
    boost = view.boost("0")
    assert boost is not None
    assert boost.throughput == pytest.approx(120.0)
    assert 39 <= boost.start_s <= 50


def test_throttle_share_counts_only_readings_that_report_it():
    reasons = [None, (), ("sw_power_cap",), ("sw_power_cap", "hw_thermal_slowdown")]
    samples = tuple(DeviceSample(t, "0", throttle_reasons=r) for t, r in enumerate(reasons))
    view = opened(samples=samples)
    assert view.throttle_frac("0") == {
        "sw_power_cap": pytest.approx(2 / 3),
        "hw_thermal_slowdown": pytest.approx(1 / 3),
    }
    assert opened().throttle_frac("0") is None


def test_the_past_of_a_long_session_comes_as_rollups():
    rollups = tuple(
        RollupRow(300.0 * i, 300.0, owner, reading, 1.0, 3.0, 2.0)
        for i in range(200)
        for owner, reading in (("0", "power_w"), ("job-0", "rate"))
    )
    view = opened(rollups=rollups)
    assert view.now_s == 60_000
    for reading in ("power_w", "rate"):
        points = list(view.series("0", reading).points())
        assert 100 <= len(points) <= BUCKETS
        assert {(low, high) for _, low, high in points} == {(1.0, 3.0)}


def test_what_must_be_said_in_words():
    card = DeviceInfo("s", "S", "SYNTHETIC RTX 5090", "synthetic", "synthetic")
    view = RunView()
    view.apply(Batch({"protocol": "smoke"}, devices=(card,)))
    assert view.warnings == ["SYNTHETIC", "SMOKE"]
    assert view.state("s") == "warming"
    assert opened().warnings == []


def test_a_device_is_silent_after_five_real_seconds():
    view = opened(samples=(DeviceSample(10.0, "0"),))
    assert view.silent_s("0") is None
    view.apply(Batch({}, steps=(StepsRow(15.5, "job-0", 1.0, 1, None),)))
    assert view.silent_s("0") == 5.5
    view.apply(Batch({"speed": "60"}))
    assert view.silent_s("0") is None
    view.apply(Batch({"state": "lost"}, steps=(StepsRow(600.0, "job-0", 2.0, 2, None),)))
    assert view.silent_s("0") is None
