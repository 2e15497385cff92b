"""The numbers of a window: means with honest intervals, energy, boost, fixed-soak readings."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Literal

import numpy as np

from heatsoak.steady_state.bins import last, nan_sum, swing
from heatsoak.steady_state.cycles import calm_view, cycle_weights
from heatsoak.steady_state.drift import long_run_variance
from heatsoak.steady_state.protocols import (
    BIN_S,
    BOOST_S,
    CYCLE_EDGE_BINS,
    GOOD_COVER,
    HALF_WIDTH_FACTOR,
    JACKKNIFE_BATCHES,
    JACKKNIFE_LEAST,
    READING_WINDOW_S,
    U95_FACTOR,
)
from heatsoak.steady_state.verdict import Boost, Figure, Sustained

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array
    from heatsoak.steady_state.readings import Readings
    from heatsoak.steady_state.throughput import Throughput


def own_lrv(values: Array) -> float:
    """Long-run variance per bin of a series around its mean, in percent of the mean squared."""
    finite = values[np.isfinite(values)]
    if finite.size < 2:
        return float("nan")
    mean = float(finite.mean())
    if mean == 0.0:
        return float("nan")
    residual = (100.0 * (finite / mean - 1.0))[None, :]
    return float(long_run_variance(residual, np.ones_like(residual), parameters=1)[0])


def half_width_pct(
    values: Array, pooled_lrv: float, calm: Array | None = None
) -> tuple[float, float]:
    """95 % half-width of the mean of bins in percent, and how many independent bins stand behind.

    Args:
        values: the bins; NaN is missing.
        pooled_lrv: long-run variance of a longer stretch (percent squared), or NaN.
        calm: the same bins free of a cycle, which adds nothing to the error of whole cycles.
    """
    finite = values[np.isfinite(values)]
    lrv = float(np.nanmax([own_lrv(values if calm is None else calm), pooled_lrv, -1.0]))
    if finite.size < 2 or lrv < 0.0:
        return float("nan"), float("nan")
    mean = float(finite.mean())
    variance = float(np.var(100.0 * finite / mean, ddof=1)) if mean else float("nan")
    n_eff = finite.size * min(1.0, variance / lrv) if lrv > 0 else float(finite.size)
    half = HALF_WIDTH_FACTOR * float(np.sqrt(lrv / finite.size))
    if calm is not None and mean:
        edge = CYCLE_EDGE_BINS * 100.0 * swing(finite) / abs(mean) / finite.size
        half = float(np.hypot(half, edge))
    return half, max(1.0, n_eff)


def _figure(
    mean: float,
    values: Array,
    unit: str,
    pooled_lrv: float = float("nan"),
    extra_pct: float = 0.0,
    calm: Array | None = None,
) -> Figure | None:
    """A figure from its mean and the bins behind it; None without a mean."""
    if not np.isfinite(mean):
        return None
    half, n_eff = half_width_pct(values, pooled_lrv, calm)
    if not np.isfinite(half):
        return Figure(mean, None, None, unit)
    pct = float(np.hypot(U95_FACTOR * half, extra_pct))
    return Figure(mean, abs(mean) * pct / 100.0, n_eff, unit)


def weighted_mean(values: Array, weights: Array) -> float:
    """Mean of the finite values by their weights, NaN without any."""
    finite = np.isfinite(values)
    total = float(weights[finite].sum())
    return float((values * weights)[finite].sum()) / total if total > 0 else nan


def _mean_figure(values: Array, unit: str, weights: Array) -> Figure | None:
    return _figure(weighted_mean(values, weights), values, unit)


def _joules_per_unit(energy_w: Array, all_in: Array, extra_pct: float) -> Figure | None:
    """Ratio of mean power to mean all-in rate, its spread by a jackknife over paired batches."""
    both = np.isfinite(energy_w) & np.isfinite(all_in)
    power, rate = energy_w[both], all_in[both]
    if power.size == 0 or rate.sum() <= 0:
        return None
    ratio = float(power.sum() / rate.sum())
    batches = min(JACKKNIFE_BATCHES, power.size)
    if batches < JACKKNIFE_LEAST:
        return Figure(ratio, None, None, "J/unit")
    edges = np.arange(batches) * power.size // batches
    p, r = np.add.reduceat(power, edges), np.add.reduceat(rate, edges)
    if not np.all(r.sum() - r > 0):
        return Figure(ratio, None, None, "J/unit")
    left_out = (p.sum() - p) / (r.sum() - r)
    variance = (batches - 1) / batches * float(((left_out - left_out.mean()) ** 2).sum())
    half_pct = 100.0 * HALF_WIDTH_FACTOR * float(np.sqrt(variance)) / ratio if ratio else 0.0
    pct = float(np.hypot(U95_FACTOR * half_pct, extra_pct))
    return Figure(ratio, ratio * pct / 100.0, float(batches), "J/unit")


def summarize(
    job: Throughput | None,
    device: Readings,
    start: int,
    end: int,
    *,
    origin_s: float,
    pooled: tuple[float, float] = (float("nan"), float("nan")),
    heat_pct: float = 0.0,
    period_bins: float = 0.0,
) -> Sustained:
    """The numbers of bins `start` to `end` (exclusive) of one device and its job.

    Args:
        job: the counter, None for a log without one.
        device: the readings.
        start: first bin.
        end: one past the last bin.
        origin_s: session time at which bin 0 begins.
        pooled: pooled long-run variance of rate and of power, percent squared, NaN unknown.
        heat_pct: what the degrees still to come may cost; widens the printed intervals.
        period_bins: period of the cycle the channels go through, 0 without one.
    """
    extra = heat_pct

    def get(column: str) -> Array:
        return last(device.bins.get(column, start, end), end - start)

    weights = cycle_weights(end - start, period_bins)
    throughput = all_in = None
    all_in_rate = np.full(end - start, np.nan)
    if job is not None:
        units = last(job.bins.get("units", start, end), end - start)
        active = last(job.bins.get("active", start, end), end - start)
        if nan_sum(active) > 0:
            mean = nan_sum(weights * units) / nan_sum(weights * active)
            rate = job.bins.get("rate", start, end)
            calm = calm_view(job.bins, "rate", start, end, period_bins)
            throughput = _figure(mean, rate, "units/s", pooled[0], extra, calm)
        all_in_rate = units / BIN_S
        mean = weighted_mean(all_in_rate, weights)
        all_in = _figure(mean, all_in_rate, "units/s", pooled[0], extra)
    power = get("power")
    power_figure = None
    if np.isfinite(power).any():
        calm = calm_view(device.bins, "power", start, end, period_bins)
        power_figure = _figure(weighted_mean(power, weights), power, "W", pooled[1], extra, calm)
    window_s = (end - start) * BIN_S
    counter_w, counter_j = _watts(get("counter_j"), get("counter_s"))
    integral_w, integral_j = _watts(get("integral_j"), get("integral_s"))
    method: Literal["counter", "integral"] | None = None
    energy_w = np.full(end - start, np.nan)
    if counter_j is not None:
        method, energy_w = "counter", counter_w
    elif integral_j is not None:
        method, energy_w = "integral", integral_w
    joules = None
    if method is not None:
        joules = _joules_per_unit(weights * energy_w, weights * all_in_rate, extra)
    return Sustained(
        window_start_s=origin_s + start * BIN_S,
        window_s=window_s,
        throughput=throughput,
        all_in_throughput=all_in,
        power_w=power_figure,
        temperature_c=_mean_figure(get("temperature"), "°C", weights),
        sm_clock_mhz=_mean_figure(get("clock"), "MHz", weights),
        mem_clock_mhz=_mean_figure(get("mem_clock"), "MHz", weights),
        utilization_pct=_mean_figure(get("utilization"), "%", weights),
        memory_used_bytes=_mean_figure(get("memory"), "B", weights),
        joules_per_unit=joules,
        energy_method=method,
        counter_j=None if counter_j is None else counter_j * window_s,
        integrated_j=None if integral_j is None else integral_j * window_s,
        throttle_frac=throttle_shares(device, start, end),
    )


def _watts(joules: Array, seconds: Array) -> tuple[Array, float | None]:
    """Mean power per bin, and of the window; None where too little of it is covered."""
    with np.errstate(invalid="ignore", divide="ignore"):
        watts = np.where(seconds > 0, joules / seconds, np.nan)
    covered = float(np.nansum(seconds))
    if covered < GOOD_COVER * BIN_S * len(seconds) or covered == 0.0:
        return watts, None
    return watts, float(np.nansum(joules)) / covered


def throttle_shares(device: Readings, start: int, end: int) -> dict[str, float]:
    """Share of the window per throttle reason, over the bins in which reasons were reported."""
    told = int(np.isfinite(device.bins.get("thermal", start, end)).sum())
    shares: dict[str, float] = {}
    for k in range(start, end):
        for reason, duty in device.reasons.get(k, {}).items():
            shares[reason] = shares.get(reason, 0.0) + duty
    return {reason: total / told for reason, total in sorted(shares.items())} if told else {}


def best_before(
    job: Throughput, first: int, end: int, origin_s: float
) -> tuple[float, float] | None:
    """The best `BOOST_S` of rate in bins `first` to `end`: `(units_per_s, start_s)`, or None."""
    width = int(BOOST_S // BIN_S)
    first = max(first, job.bins.first)
    rate = job.bins.get("rate", first, end)
    if len(rate) < width:
        return None
    means = np.convolve(rate, np.full(width, 1.0 / width), "valid")
    if not np.isfinite(means).any():
        return None
    best = int(np.nanargmax(means))
    return float(means[best]), origin_s + (first + best) * BIN_S


def boost(best: tuple[float, float] | None, sustained: Sustained | None) -> Boost | None:
    """The boost with its drop to the sustained rate."""
    if best is None:
        return None
    rate = sustained.throughput.mean if sustained and sustained.throughput else None
    drop = 1.0 - rate / best[0] if rate is not None and best[0] > 0 else None
    return Boost(throughput=best[0], window_s=BOOST_S, start_s=best[1], drop_frac=drop)


def reading_at(job: Throughput, first: int, at_s: float) -> float | None:
    """Mean rate of the two minutes before `at_s` of load, as a fixed soak would have read it."""
    end = first + int(at_s // BIN_S)
    start = end - int(READING_WINDOW_S // BIN_S)
    if job.bins.end < end or start < job.bins.first:
        return None
    active = float(np.nansum(job.bins.get("active", start, end)))
    units = float(np.nansum(job.bins.get("units", start, end)))
    return units / active if active > 0 else None
