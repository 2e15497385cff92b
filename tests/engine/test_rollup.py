"""Rollups against what is recomputed from the readings themselves."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from heatsoak.session.rollup import NUMERIC_READINGS, SPANS_S, Rollups
from heatsoak.session.rows import PhaseRow, StepsRow
from heatsoak.telemetry.sample import DeviceSample


def expected(samples, span_s):
    values = defaultdict(list)
    for sample in samples:
        start_s = float(sample.t_s // span_s * span_s)
        for reading in NUMERIC_READINGS:
            value = getattr(sample, reading)
            if value is not None:
                values[start_s, sample.device_id, reading].append(value)
    return {key: (min(v), max(v), sum(v) / len(v)) for key, v in values.items()}


def by_key(rows, span_s):
    picked = [row for row in rows if row[0] == span_s]
    found = {(start_s, owner, reading): tuple(rest) for _, start_s, owner, reading, *rest in picked}
    assert len(found) == len(picked)  # One row a span.
    return found


@pytest.mark.parametrize("span_s", SPANS_S)
def test_rollups_equal_recomputed_values(span_s):
    dice = random.Random(3)
    samples = [
        DeviceSample(
            t + dice.uniform(0.0, 0.9), device_id,
            power_w=dice.gauss(400.0, 20.0) if dice.random() > 0.2 else None,
            temperature_c=0.0 if device_id == "a" else dice.gauss(60.0, 1.0),
            memory_used_bytes=dice.randrange(10**10), fan_pct=None,
        )
        for t in range(1234) if not 300 <= t < 700  # A gap longer than a span.
        for device_id in ("a", "b")
    ]  # fmt: skip
    rollups, rows = Rollups(), []
    for sample in samples:
        rollups.add_sample(sample)
        rows += rollups.take()
    rows += rollups.finish()
    found, wanted = by_key(rows, span_s), expected(samples, span_s)
    assert found.keys() == wanted.keys()
    for key, values in found.items():
        assert values == pytest.approx(wanted[key])
    assert rollups.finish() == []


def test_a_span_is_given_once_it_has_passed():
    rollups = Rollups()
    for t in range(10):
        rollups.add_sample(DeviceSample(float(t), "0", power_w=1.0 * t))
    assert rollups.take() == []
    rollups.add_sample(DeviceSample(10.0, "0", power_w=5.0))
    assert rollups.take() == [(10, 0.0, "0", "power_w", 0.0, 9.0, 4.5)]
    assert rollups.take() == []


def test_a_reading_that_comes_too_late_changes_no_row_that_was_given():
    rollups = Rollups()
    for t_s, power_w in ((1.0, 100.0), (11.0, 200.0), (2.0, 900.0), (12.0, 300.0)):
        rollups.add_sample(DeviceSample(t_s, "0", power_w=power_w))
    found = by_key(rollups.finish(), 10)
    assert found == {
        (0.0, "0", "power_w"): (100.0, 100.0, 100.0),
        (10.0, "0", "power_w"): (200.0, 300.0, 250.0),
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_leaves_no_trace(value):
    rollups = Rollups()
    rollups.add_sample(DeviceSample(0.0, "0", power_w=value, temperature_c=50.0))
    rollups.add_sample(DeviceSample(1.0, "0", power_w=10.0))
    rollups.add_steps(StepsRow(0.0, "job", 0.0, 0, None))
    rollups.add_steps(StepsRow(6.0, "job", value, 0, None))
    found = by_key(rollups.finish(), 10)
    assert found[0.0, "0", "power_w"] == (10.0, 10.0, 10.0)
    assert (0.0, "job", "rate") not in found


def test_the_rate_is_the_counters_difference_and_none_across_a_phase():
    rollups = Rollups()
    units = 0.0
    for t in range(100):
        if t == 50:
            rollups.add_phase(PhaseRow(50.0, "job", "eval"))
            units += 1e9  # Whatever was counted meanwhile is no rate.
        units += 1000.0 if t < 50 else 500.0
        rollups.add_steps(StepsRow(float(t), "job", units, t, None))
    found = by_key(rollups.finish(), 10)
    rates = {start_s: values for (start_s, _, reading), values in found.items()}
    assert all(values == pytest.approx((1000.0,) * 3) for s, values in rates.items() if s < 50.0)
    assert all(values == pytest.approx((500.0,) * 3) for s, values in rates.items() if s >= 50.0)
    assert set(rates) == {10.0 * n for n in range(10)}


def test_slow_steps_have_a_rate_too():
    rollups = Rollups()
    for n in range(10):
        rollups.add_steps(StepsRow(n * 30.0, "job", n * 3000.0, n, None))
    rates = [row[4:] for row in rollups.finish() if row[0] == 10]
    assert rates == [(100.0, 100.0, 100.0)] * 9
