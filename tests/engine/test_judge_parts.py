"""The parts of the judge, each on numbers whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from heatsoak.steady_state.bins import Table, last, nan_median
from heatsoak.steady_state.bounds import Test as ChannelTest
from heatsoak.steady_state.cycles import (
    cycle_weights,
    find_cycle,
    find_period,
    smooth,
    whole_cycles,
)
from heatsoak.steady_state.drift import fit, time_constants
from heatsoak.steady_state.epoch import SPAN_BINS, Epochs
from heatsoak.steady_state.hold import Hold
from heatsoak.steady_state.reasons import blocked, duration, span
from heatsoak.steady_state.sensitivity import slope_pct_per_c
from heatsoak.steady_state.sustained import half_width_pct, weighted_mean
from heatsoak.steady_state.throughput import Throughput
from heatsoak.steady_state.verdict import Bound
from heatsoak.steady_state.wander import wander_pct

FLOOR = np.array([0.01])


def test_table_keeps_the_newest_rows_by_their_numbers():
    table = Table(("a", "b"), 100)
    for k in range(1000):
        table.grow(k + 1)
        table.set("a", k, float(k))
    assert table.end == 1000
    assert 100 <= table.end - table.first <= 256
    assert table.get("a", 990, 1000).tolist() == [float(k) for k in range(990, 1000)]
    assert np.isnan(table.get("b", 990, 1000)).all()
    assert table.get("a", 0, 10).size == 0
    table.grow(5000)
    assert np.isnan(table.get("a", 4990, 5000)).all()
    table.put("a", 4998, np.array([1.0, 2.0, 3.0]))
    assert table.get("a", 4998, 5000).tolist() == [1.0, 2.0]


def test_nan_median_agrees_with_numpy():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20, 13))
    values[rng.random(values.shape) < 0.3] = np.nan
    assert nan_median(values) == pytest.approx(np.nanmedian(values, axis=1))
    assert np.isnan(nan_median(np.full((1, 3), np.nan)))[0]
    assert last(np.array([1.0]), 3).tolist()[2] == 1.0


@pytest.mark.parametrize("tau_s", [100.0, 300.0, 900.0])
def test_fit_finds_what_is_still_to_come(tau_s):
    n = 60
    rng = np.random.default_rng(2)
    u = (np.arange(n) + 0.5) * 10
    y = 65 - 10 * np.exp(-u / tau_s) + 0.02 * rng.normal(size=n)
    truth = 10 * np.exp(-n * 10 / tau_s)
    drift = fit(y[None, :], time_constants(n * 10.0, 900.0), FLOOR)
    bound, estimate = drift.bound(0, with_slow=True)
    assert truth <= bound + 0.02
    assert bound <= 1.6 * truth + 0.2
    assert estimate <= bound


def test_fit_of_noise_is_small_and_its_bound_covers():
    rng = np.random.default_rng(3)
    y = 100 + 0.3 * rng.normal(size=(200, 60))
    drift = fit(y, time_constants(600.0, 900.0), np.full(200, 0.01))
    slow = np.abs(drift.r[:, -1]) / drift.se[:, -1]
    assert np.mean(slow > 2) < 0.12


def test_missing_bins_do_not_move_the_fit():
    rng = np.random.default_rng(4)
    n = 90
    u = (np.arange(n) + 0.5) * 10
    y = 65 - 10 * np.exp(-u / 300) + 0.02 * rng.normal(size=n)
    full = fit(y[None, :], time_constants(900.0, 900.0), FLOOR)
    y[rng.random(n) < 0.4] = np.nan
    holes = fit(y[None, :], time_constants(900.0, 900.0), FLOOR)
    assert holes.r[0, 1] == pytest.approx(full.r[0, 1], abs=0.1)


def test_long_steps_and_rare_records_do_not_look_like_noise():
    job = Throughput(0.0)
    for i in range(200):
        job.add_steps(3.7 * i, 37.0 * i)
    for k in range(70):
        job.close_bin(k)
    rate = job.bins.get("rate", 1, 69)
    assert rate == pytest.approx(np.full(68, 10.0))


def test_paused_seconds_do_not_count_and_a_record_after_a_hang_fills_in():
    job = Throughput(0.0)
    job.add_phase(0.0, "train")
    units = 0.0
    for t in range(101):
        if t == 40:
            job.add_phase(40.0, "eval")
        if t == 65:
            job.add_phase(65.0, "train")
        units += 10.0 if t > 0 and not 40 < t <= 65 else 0.0
        if not 80 < t < 98:
            job.add_steps(float(t), units)
        if t >= 13 and (t - 3) % 10 == 0:
            job.close_bin((t - 3) // 10 - 1)
    job.close_bin(9)
    rate = job.bins.get("rate", 0, 10)
    active = job.bins.get("active", 0, 10)
    assert rate[[0, 1, 2, 3, 6, 7, 8, 9]] == pytest.approx(np.full(8, 10.0))
    assert np.isnan(rate[[4, 5]]).all()
    assert active[[3, 4, 5, 6]] == pytest.approx([10.0, 0.0, 0.0, 5.0])
    assert job.still_s(100.0) == 0.0
    assert job.still_s(130.0) == pytest.approx(30.0)


def test_stalled_seconds_leave_the_flow_but_not_the_rate():
    job = Throughput(0.0)
    units = 0.0
    for t in range(131):
        units += 10.0 if t not in (113, 114) else 0.0
        job.add_steps(float(t), units)
    for k in range(12):
        job.close_bin(k)
    assert job.bins.get("rate", 11, 12)[0] == pytest.approx(8.0)
    assert job.bins.get("flow", 11, 12)[0] == pytest.approx(10.0)


def test_a_counter_read_in_whole_steps_does_not_stall():
    job = Throughput(0.0)
    for t in range(200):
        job.add_steps(float(t), 2048.0 * int(5.8 * t))
    for k in range(18):
        job.close_bin(k)
    assert np.isfinite(job.bins.get("flow", 1, 18)).all()
    assert job.bins.get("flow", 1, 18).mean() == pytest.approx(5.8 * 2048, rel=0.005)


def test_a_restarted_counter_re_bases():
    job = Throughput(0.0)
    for t in range(61):
        job.add_steps(float(t), 1000.0 + 10.0 * t if t < 30 else 10.0 * (t - 30))
    for k in range(5):
        job.close_bin(k)
    assert np.nanmax(np.abs(job.bins.get("rate", 0, 5) - 10.0)) < 1e-3


def epoch_after(levels, thermal=None):
    epochs = Epochs(0)
    resets = []
    for k in range(len(levels)):
        series = last(np.array(levels[: k + 1]), SPAN_BINS)[None, :]
        duty = np.empty((0, SPAN_BINS))
        if thermal is not None:
            duty = last(np.array(thermal[: k + 1]), SPAN_BINS)[None, :]
        reset = epochs.update(k, series, duty)
        if reset is not None:
            resets.append(reset)
    return epochs, resets


def test_an_abrupt_change_begins_an_epoch_and_a_slow_one_does_not():
    rng = np.random.default_rng(5)
    noise = 0.2 * rng.normal(size=60)
    epochs, resets = epoch_after(100 + noise - 8.0 * (np.arange(60) >= 40))
    assert [r.bin for r in resets] == [40]
    assert resets[0].change_frac == pytest.approx(-0.08, abs=0.01)
    assert epochs.start_bin == 40
    assert epoch_after(100 + noise - 0.1 * np.arange(60))[1] == []
    single = np.where(np.arange(60) == 40, 80.0, 100.0) + noise
    assert epoch_after(single)[1] == []


def test_resets_are_limited_and_a_known_level_is_a_cycle():
    rng = np.random.default_rng(6)
    levels = 100 + 10 * (np.arange(300) // 20 % 2) + 0.1 * rng.normal(size=300)
    _, resets = epoch_after(levels)
    assert len(resets) == 4


def test_the_first_thermal_slowdown_begins_an_epoch():
    duty = np.where(np.arange(60) >= 40, 1.0, 0.0)
    _, resets = epoch_after(np.full(60, 100.0), thermal=duty)
    assert [r.row for r in resets] == [-1]
    assert resets[0].bin in (38, 39, 40)


@pytest.mark.parametrize("period", [4.8, 9.0, 23.3])
def test_a_cycle_is_found_and_a_mean_over_it_removes_it(period):
    rng = np.random.default_rng(7)
    x = np.arange(120)
    saw = 30 * ((x / period) % 1.0 < 0.4)
    values = 100 + saw + 0.5 * rng.normal(size=120)
    cycle = find_cycle({"power": 100 * values / values.mean()})
    assert cycle is not None
    assert cycle.period_bins == pytest.approx(period, rel=0.03)
    left = smooth(values, cycle.period_bins)
    assert np.nanstd(left) < 0.12 * values.std()


def test_noise_and_heating_are_no_cycle():
    rng = np.random.default_rng(8)
    found = 0
    for _ in range(100):
        memory = np.convolve(rng.normal(size=140), np.exp(-np.arange(20) / 6), "valid")
        found += find_period(memory[:120]) is not None
    assert found <= 5
    x = np.arange(120)
    assert find_period(65 - 30 * np.exp(-x / 30) + 0.1 * rng.normal(size=120)) is None
    quiet = {"power": 100 + 0.3 * np.sin(x), "temperature": 60 + 0.5 * np.sin(x)}
    assert find_cycle(quiet) is None


@pytest.mark.parametrize("period", [3.0, 6.9, 13.7])
def test_weights_take_a_cycle_out_of_a_mean_however_it_begins(period):
    rng = np.random.default_rng(11)
    seconds = np.arange(60_000) / 10
    weights, off, plain = cycle_weights(50, period), [], []
    for phase in rng.random(40):
        stalled = ((seconds / 10 / period + phase) % 1.0) < 0.06
        bins = np.where(stalled, 0.0, 100.0).reshape(-1, 100).mean(axis=1)[:50]
        off.append(abs(weighted_mean(bins, weights) - 94.0))
        plain.append(abs(bins.mean() - 94.0))
    assert max(off) < 0.25
    assert max(off) < 0.5 * max(plain) or max(plain) < 0.25
    assert cycle_weights(4, 0.0).tolist() == [1.0] * 4
    assert cycle_weights(4, 9.0).tolist() == [1.0] * 4


def test_whole_cycles_round_up_while_there_is_room():
    assert whole_cycles(12, 0.0, 50) == 12
    assert whole_cycles(12, 5.0, 50) == 15
    assert whole_cycles(49, 5.0, 50) == 50
    assert whole_cycles(12, 20.0, 15) == 12


def test_a_random_walk_wanders_and_noise_does_not():
    rng = np.random.default_rng(9)
    walk = 1000 * (1 + np.cumsum(0.004 * rng.normal(size=60)))
    noise = 1000 * (1 + 0.004 * rng.normal(size=60))
    assert wander_pct(walk, None) > 1.2 > 0.5 > wander_pct(noise, None)
    # What the clock explains is the card's, not the workload's.
    clock = 1800 * (1 - 0.05 * np.exp(-np.arange(60) / 20))
    rate = 1000 * (clock / 1800) ** 0.8 * (1 + 0.001 * rng.normal(size=60))
    assert wander_pct(rate, clock) < 0.3 < wander_pct(rate, None)


def test_sensitivity_is_the_slope_on_temperature():
    temperature = 40 + 25 * (1 - np.exp(-np.arange(40) / 8))
    slope, error = slope_pct_per_c(1000 * (1 - 0.003 * (temperature - 55)), temperature)
    assert slope == pytest.approx(-0.3, abs=0.03)
    assert error < 0.01
    assert np.isnan(slope_pct_per_c(np.full(40, 1.0), np.full(40, 60.0))[0])


def test_half_width_covers_the_mean_of_correlated_noise():
    rng = np.random.default_rng(10)
    covered = 0
    for _ in range(300):
        noise = rng.normal(size=150)
        for i in range(1, 150):
            noise[i] += 0.5 * noise[i - 1]
        values = 100 + noise[30:]
        half, n_eff = half_width_pct(values, float("nan"))
        covered += abs(values.mean() - 100) <= half
        assert 1 <= n_eff <= 120
    assert covered >= 0.92 * 300


def test_hold_begins_after_three_passes_and_ends_after_three_fails():
    hold = Hold()
    for k, is_pass in enumerate([True, True, False, True, True]):
        hold.step(k, is_pass=is_pass)
    assert hold.start_bin is None
    hold.step(5, is_pass=True)
    assert hold.start_bin == 3
    assert hold.left_s(5, 300.0, 90.0) == 60.0
    assert hold.left_s(5, 3000.0, 90.0) == 270.0
    for k in (6, 7):
        hold.step(k, is_pass=False)
    assert hold.start_bin == 3
    hold.step(8, is_pass=False)
    assert hold.start_bin is None


def test_durations_in_words():
    assert [duration(s) for s in (0.2, 40, 360, 9000)] == ["1 s", "40 s", "6 min", "2.5 h"]
    assert span((360.0, 1500.0)) == "; 6 to 25 min"
    assert span((40.0, 1500.0)) == "; 40 s to 25 min"
    assert span((30.0, 30.0)) == "; about 30 s"
    assert span(None) == ""


@pytest.mark.parametrize(
    ("channel", "value", "margin", "unit", "to_come", "why", "words"),
    [
        ("temperature", 4.0, 3.0, "°C", 2.1, "bound", "case still heating, about 2.1 °C to come"),
        ("temperature", 4.0, 3.0, "°C", -2.1, "bound", "case still cooling, about 2.1 °C to come"),
        (
            "temperature",
            4.0,
            3.0,
            "°C",
            0.4,
            "bound",
            "temperature not sure yet: up to 4.0 °C to come, 3.0 °C allowed",
        ),
        ("temperature", 1.0, 3.0, "°C", 1.0, "limit", "temperature about to reach its limit"),
        ("rate", 1.9, 1.5, "%", 1.5, "bound", "rate still drifting, 1.9 % to come, 1.5 % allowed"),
        (
            "rate",
            9.0,
            1.5,
            "%",
            1.0,
            "bound",
            "rate unsettled: up to 9.0 % may be to come, 1.5 % allowed",
        ),
        ("power", 0.3, 0.5, "%", -0.8, "slow", "power still drifting slowly, about 0.8 % to come"),
        ("fan", 5.0, 16.0, "points", 9.0, "headroom", "fan about to run out of headroom"),
        (
            "fan",
            20.0,
            16.0,
            "points",
            9.0,
            "bound",
            "fan still moving, 20 points to come, 16 allowed",
        ),
    ],
)
def test_what_blocks_is_said_in_plain_words(channel, value, margin, unit, to_come, why, words):
    test = ChannelTest(Bound(channel, value, margin, unit, is_ok=False), to_come, 0.1, why)
    assert blocked(test) == words
