"""Cycles: a fan's hysteresis, a throttle's sawtooth, evaluation. Steady in the mean is steady.

A period is found by the autocorrelation of bins; a mean over exactly one period removes the cycle,
whatever its shape and however its phase drifts, and leaves what is slower. Cycles shorter than two
bins show in them as a slower beat, which is removed just as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import last, swing
from heatsoak.steady_state.protocols import (
    BIN_S,
    CYCLE_LEAST_ACF,
    CYCLE_LEAST_SES,
    CYCLE_MAX_SHARE,
    CYCLE_MIN_BINS,
    CYCLE_SECOND_SHARE,
    CYCLE_SWING,
    CYCLE_WINDOWS,
)
from heatsoak.steady_state.verdict import Cycling

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heatsoak.steady_state.bins import Array, Table
    from heatsoak.steady_state.verdict import Channel


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle that was found."""

    period_bins: float
    channel: Channel
    """The channel it shows in most."""
    swing: float
    """From low to high, in percent of the mean, or °C."""

    @property
    def told(self) -> Cycling:
        """The cycle as a verdict tells it."""
        unit = "°C" if self.channel == "temperature" else "%"
        return Cycling(self.period_bins * BIN_S, self.channel, self.swing, unit)


def autocorrelation(values: Array) -> Array:
    """Autocorrelation of a series freed of its straight line, lags 0 to n - 1; NaN counts as 0."""
    n = values.size
    finite = np.isfinite(values)
    x = np.arange(n, dtype=np.float64)
    count = int(np.add.reduce(finite))
    at = np.where(finite, x - np.add.reduce(x, where=finite) / count, 0.0)
    rest = np.where(finite, values, 0.0)
    rest = np.where(finite, values - np.add.reduce(rest) / count, 0.0)
    rest -= at * (float(at @ rest) / max(float(at @ at), 1e-300))
    power = np.abs(np.fft.rfft(rest, 2 * n)) ** 2
    sums = np.fft.irfft(power)[:n]
    acf: Array = sums / max(float(sums[0]), 1e-300) * n / (n - x)
    return acf


def find_period(values: Array) -> float | None:
    """The period of a series in bins, or None where there is none."""
    n = values.size
    if np.isfinite(values).sum() < max(CYCLE_MIN_BINS, n // 2):
        return None
    acf = autocorrelation(values)
    most = int(n * CYCLE_MAX_SHARE)
    below = np.flatnonzero(acf[1:most] < 0)
    if below.size == 0:
        return None
    first = int(below[0]) + 1
    if first >= most:
        return None
    peak = first + int(np.argmax(acf[first:most]))
    least = max(CYCLE_LEAST_ACF, CYCLE_LEAST_SES / np.sqrt(n))
    if peak < 2 or peak + 1 >= most or acf[peak] < least:
        return None
    # The highest of several equal peaks may be a later one: take the first that is nearly as high.
    for lag in range(max(2, first), peak):
        is_peak = acf[lag] >= acf[lag - 1] and acf[lag] >= acf[lag + 1]
        if is_peak and acf[lag] >= max(least, CYCLE_SECOND_SHARE * acf[peak]):
            peak = lag
            break
    twice = acf[2 * peak - 1 : 2 * peak + 2]
    if twice.size == 0 or twice.max() < CYCLE_SECOND_SHARE * acf[peak]:
        return None
    before, at, after = acf[peak - 1 : peak + 2]
    bend = before - 2 * at + after
    shift = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return float(peak + np.clip(shift, -0.5, 0.5))


def find_cycle(series: Mapping[Channel, Array]) -> Cycle | None:
    """The cycle that shows most among channels, each in percent of its mean or in °C."""
    best: Cycle | None = None
    share = 1.0
    for channel, all_values in series.items():
        for bins in CYCLE_WINDOWS:
            values = all_values[-bins:]
            finite = values[np.isfinite(values)]
            if finite.size < CYCLE_MIN_BINS:
                continue
            width = swing(finite)
            if width / CYCLE_SWING[channel] <= share:
                continue
            period = find_period(values)
            if period is not None:
                best = Cycle(period, channel, width)
                share = width / CYCLE_SWING[channel]
                break
    return best


def smooth(values: Array, period_bins: float) -> Array:
    """Trailing mean over one period, of the finite values; NaN where under half of it is there."""
    whole = int(period_bins)
    part = period_bins - whole
    n = values.size
    finite = np.isfinite(values)
    total = np.concatenate([[0.0], np.cumsum(np.where(finite, values, 0.0))])
    count = np.concatenate([[0.0], np.cumsum(finite.astype(np.float64))])
    end = np.arange(1, n + 1)
    start = end - whole
    ok = start >= 1
    start = np.maximum(start, 1)
    # The oldest bin counts by the part of it that lies within the period.
    edge = start - 1
    sums = total[end] - total[start] + part * (total[start] - total[edge])
    counts = count[end] - count[start] + part * (count[start] - count[edge])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / counts
    out: Array = np.where(ok & (counts >= 0.5 * period_bins), mean, np.nan)
    return out


def cycle_weights(bins: int, period_bins: float) -> Array:
    """Weights of a window's bins that take a cycle out of its mean, however it begins and ends.

    A mean over exactly one period knows no phase; the mean of all such means within the window
    weighs its bins by a trapezoid. With plain edges a stall of seconds more or less in minutes
    shows. Without a cycle all weigh 1.
    """
    if period_bins <= 0 or bins <= period_bins:
        return np.ones(bins)
    x = np.arange(bins) + 0.5
    weights: Array = np.minimum(x, bins - x)
    return np.minimum(weights, max(min(period_bins, bins - period_bins), 0.5))


def whole_cycles(bins: int, period_bins: float, most: int) -> int:
    """`bins` rounded up to whole cycles, down where that exceeds `most`."""
    if period_bins <= 0:
        return min(bins, most)
    cycles = int(np.ceil(bins / period_bins))
    if round(cycles * period_bins) > most:
        cycles = int(most / period_bins)
    return round(cycles * period_bins) if cycles >= 1 else min(bins, most)


def view(table: Table, column: str, start: int, end: int, period_bins: float) -> Array:
    """Bins `start` to `end` of a column, free of a cycle (`period_bins` 0: as they are)."""
    if period_bins <= 0:
        return last(table.get(column, start, end), end - start)
    before = max(0, start - int(period_bins) - 1)
    values = last(table.get(column, before, end), end - before)
    return smooth(values, period_bins)[start - before :]


def calm_view(table: Table, column: str, start: int, end: int, period_bins: float) -> Array | None:
    """The same, or None where there is no cycle."""
    return view(table, column, start, end, period_bins) if period_bins > 0 else None
