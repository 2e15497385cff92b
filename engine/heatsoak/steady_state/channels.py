"""The usable channels of a window as rows of one fit, and the newest bins of a job's series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import last, nan_mean, nan_median, nan_sum
from heatsoak.steady_state.bounds import Row, Rules, Test
from heatsoak.steady_state.cycles import Cycle, find_cycle, view
from heatsoak.steady_state.drift import fit, time_constants
from heatsoak.steady_state.epoch import SPAN_BINS
from heatsoak.steady_state.protocols import (
    BIN_S,
    CYCLE_SWING,
    CYCLE_WINDOWS,
    FLOOR_C,
    FLOOR_PCT,
    FLOOR_POINTS,
    HALF_WINDOW_BINS,
    HAMPEL_HALF_BINS,
    HAMPEL_MADS,
    HAMPEL_MAX_SHARE,
    HAMPEL_MIN_FRAC,
    SENSITIVITY_SKIP_BINS,
    STALL_MAX_SHARE,
    THERMAL_DUTY,
    THROTTLED_DUTY,
    VALID_SHARE,
)
from heatsoak.steady_state.sensitivity import per_degree_pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.steady_state.bins import Array, Table
    from heatsoak.steady_state.protocols import Protocol
    from heatsoak.steady_state.subject import Subject
    from heatsoak.steady_state.throughput import Throughput
    from heatsoak.steady_state.verdict import Channel

HARDWARE: tuple[Channel, ...] = ("power", "clock", "temperature", "fan")
_FLOORS: dict[Channel, float] = {
    "rate": FLOOR_PCT,
    "power": FLOOR_PCT,
    "clock": FLOOR_PCT,
    "temperature": FLOOR_C,
    "fan": FLOOR_POINTS,
}
_NEIGHBOURS = np.arange(HAMPEL_HALF_BINS, 2 * HAMPEL_HALF_BINS + 1)[:, None] + np.arange(
    2 * HAMPEL_HALF_BINS + 1
)
"""Of the newest bins that may still be outliers: each with those around it."""
_CURVED = ("temperature", "power", "clock")
"""Channels whose second half of the window is also judged alone."""


@dataclass(frozen=True, slots=True)
class Series:
    """One usable channel over a window."""

    subject: Subject | None
    """Whose it is; None for the job's rate."""
    channel: Channel
    values: Array
    """Percent of the mean; °C and points of fan as they are; NaN is missing."""
    now: float
    """Mean of the last three bins, for °C and points."""


def relative(values: Array, outlier: Array | None = None) -> Array | None:
    """Values in percent of their mean, without outliers; None where too few are valid."""
    finite = np.isfinite(values)
    count = int(np.add.reduce(finite))
    if not values.size or count < VALID_SHARE * values.size:
        return None
    if outlier is not None:
        is_out = finite & (outlier > 0)
        if 0 < np.add.reduce(is_out) <= HAMPEL_MAX_SHARE * count:
            values = np.where(is_out, np.nan, values)
    mean = nan_mean(values)
    if not mean > 0:
        return None
    scaled: Array = 100.0 * values / mean
    return scaled


def window_series(
    job: Throughput | None,
    subjects: Sequence[Subject],
    start: int,
    end: int,
    period_bins: float,
) -> list[Series]:
    """The usable channels of bins `start` to `end` (exclusive), free of a cycle if there is one."""
    out: list[Series] = []
    n = end - start
    # What repeats is no stall and no outlier: with a cycle, or with a throttle that looks like one,
    # everything counts.
    is_plain = period_bins > 0 or (job is not None and _stalls_too_much(job, start, end))
    if job is not None:
        rate = view(job.bins, "rate" if is_plain else "flow", start, end, period_bins)
        outlier = None if is_plain else last(job.bins.get("outlier", start, end), n)
        values = relative(rate, outlier)
        if values is not None:
            out.append(Series(None, "rate", values, 0.0))
    for subject in subjects:
        bins = subject.readings.bins
        for channel in HARDWARE:
            column = channel if is_plain else f"{channel}_flow"
            raw = view(bins, column, start, end, period_bins)
            if channel in ("power", "clock"):
                outlier = None if is_plain else last(bins.get(f"{channel}_outlier", start, end), n)
                scaled = relative(raw, outlier)
                if scaled is not None:
                    out.append(Series(subject, channel, scaled, 0.0))
            elif np.isfinite(raw).mean() >= VALID_SHARE:
                out.append(Series(subject, channel, raw, nan_mean(raw[-3:])))
    return out


def _stalls_too_much(job: Throughput, start: int, end: int) -> bool:
    """Whether what looks like stalls is so much of the window that it is the signal."""
    active = nan_sum(job.bins.get("active", start, end))
    flow = nan_sum(job.bins.get("active_flow", start, end))
    return active > 0 and flow < (1.0 - STALL_MAX_SHARE) * active


def run_tests(
    protocol: Protocol,
    job: Throughput | None,
    subjects: Sequence[Subject],
    window: tuple[int, int],
    epoch_bin: int,
    *,
    period_bins: float,
    is_holding: bool,
    is_late: bool,
) -> None:
    """Test every usable channel of the window; leaves the tests with their subjects."""
    start, end = window
    rows = window_series(job, subjects, start, end, period_bins)
    for subject in subjects:
        subject.tests = []
        duty = nan_mean(subject.readings.bins.get("thermal", start, end))
        subject.is_throttled = bool(duty > THERMAL_DUTY)
        subject.per_degree_pct = per_degree_pct(job, subject.readings, epoch_bin, end)
    if not rows:
        return
    y = np.array([row.values for row in rows])
    floor = np.array([_FLOORS[row.channel] for row in rows])
    n = end - start
    full = fit(y, time_constants(n * BIN_S, protocol.slow_s), floor)
    m = n // 2
    half = None
    if m >= HALF_WINDOW_BINS:
        half = fit(y[:, n - m :], time_constants(m * BIN_S, protocol.slow_s), floor)
    rules = Rules(protocol, full, half, is_holding=is_holding, is_late=is_late)
    has_temperature = {id(row.subject) for row in rows if row.channel == "temperature"}
    has_hardware = any(row.subject is not None for row in rows)
    rate: Test | None = None
    for i, series in enumerate(rows):
        owner = series.subject
        row = Row(series.channel, i, series.channel in _CURVED, series.now)
        if owner is None:
            rate = rules.test(row, leads=not has_hardware)
            continue
        # Without a temperature, or with one that a limit holds still, only power and clock tell
        # of the case: the slow mode is held against them.
        is_blind = id(owner) not in has_temperature or owner.is_throttled
        leads = series.channel == "temperature" or (is_blind and series.channel != "fan")
        owner.tests.append(
            rules.test(
                row,
                leads=leads,
                limit_c=None if owner.is_throttled else owner.readings.temperature_limit_c,
                fan_max_pct=owner.info.fan_max_pct,
                per_degree_pct=owner.per_degree_pct if series.channel == "temperature" else None,
            )
        )
    if rate is not None:
        for subject in subjects:
            subject.tests.insert(0, rate)


def newest_series(
    job: Throughput | None, subjects: Sequence[Subject], k: int, period_bins: float
) -> Array:
    """The newest `SPAN_BINS` of rate, power and clock, one row each, free of stalls and cycles."""
    first, end = k + 1 - SPAN_BINS, k + 1
    is_plain = period_bins > 0 or (job is not None and _stalls_too_much(job, first, end))
    rows = []
    if job is not None:
        rows.append(view(job.bins, "rate" if is_plain else "flow", first, end, period_bins))
    for subject in subjects:
        for channel in ("power", "clock"):
            column = channel if is_plain else f"{channel}_flow"
            rows.append(view(subject.readings.bins, column, first, end, period_bins))
    return np.array(rows) if rows else np.empty((0, SPAN_BINS))


def search_cycle(
    job: Throughput | None, subjects: Sequence[Subject], load_bin: int, end: int
) -> Cycle | None:
    """The cycle that shows most in any device, or in the job's rate."""
    start = max(load_bin + SENSITIVITY_SKIP_BINS, end - CYCLE_WINDOWS[-1])
    found: list[Cycle | None] = []
    for subject in subjects:
        bins = subject.readings.bins
        series: dict[Channel, Array] = {"temperature": bins.get("temperature", start, end)}
        for name, values in (
            ("clock", bins.get("clock", start, end)),
            ("power", bins.get("power", start, end)),
        ):
            scaled = relative(values)
            if scaled is not None:
                series[name] = scaled  # type: ignore[index]
        found.append(find_cycle(series))
    if job is not None:
        scaled = relative(job.bins.get("rate", start, end))
        if scaled is not None:
            found.append(find_cycle({"rate": scaled}))
    return max(
        (cycle for cycle in found if cycle is not None),
        key=lambda cycle: cycle.swing / CYCLE_SWING[cycle.channel],
        default=None,
    )


def fast_throttle(subjects: Sequence[Subject], start: int, end: int) -> Cycle | None:
    """The cycle of a throttle that comes and goes faster than bins can show, or None.

    Told by single readings of the clock, and only where a thermal slowdown was named for a part
    of bins `start` to `end`: what else moves within seconds are steps of the training.
    """
    found: list[Cycle] = []
    for subject in subjects:
        duty = nan_mean(subject.readings.bins.get("thermal", start, end))
        clocks = subject.readings.clocks
        if not THROTTLED_DUTY < duty < 1.0 - THROTTLED_DUTY or len(clocks) < 2:
            continue
        scaled = relative(np.array([mhz for _, mhz in clocks]))
        cycle = find_cycle({"clock": scaled}) if scaled is not None else None
        if cycle is not None:
            reading_s = (clocks[-1][0] - clocks[0][0]) / (len(clocks) - 1)
            bins = cycle.period_bins * reading_s / BIN_S
            found.append(replace(cycle, period_bins=bins))
    return max(found, key=lambda cycle: cycle.swing, default=None)


def newest_thermal(subjects: Sequence[Subject], k: int) -> Array:
    """The newest `SPAN_BINS` of thermal slowdown, one row per device that reports reasons."""
    rows = [
        last(subject.readings.bins.get("thermal", k + 1 - SPAN_BINS, k + 1), SPAN_BINS)
        for subject in subjects
        if subject.readings.has_reasons
    ]
    return np.array(rows) if rows else np.empty((0, SPAN_BINS))


def mark_outliers(job: Throughput | None, subjects: Sequence[Subject], k: int) -> None:
    """Hampel over the newest bins, whose neighbours on both sides may have come since."""
    half = HAMPEL_HALF_BINS
    tables: list[tuple[Table, str, str]] = []
    if job is not None:
        tables.append((job.bins, "flow", "outlier"))
    for subject in subjects:
        bins = subject.readings.bins
        tables += [(bins, f"{name}_flow", f"{name}_outlier") for name in ("power", "clock")]
    if not tables:
        return
    first, span = k - 3 * half, 3 * half + 1
    tail = np.array([last(table.get(name, first, k + 1), span) for table, name, _ in tables])
    padded = np.concatenate([tail, np.full((len(tables), half), np.nan)], axis=1)
    around = padded[:, _NEIGHBOURS]
    values = tail[:, 2 * half :]
    middle = nan_median(around)
    spread = nan_median(np.abs(around - middle[..., None]))
    limit = np.maximum(HAMPEL_MADS * spread, HAMPEL_MIN_FRAC * np.abs(middle))
    flags = (np.abs(values - middle) > limit).astype(np.float64)
    for row, (table, _, column) in zip(flags, tables, strict=True):
        table.put(column, k + 1 - len(row), row)
