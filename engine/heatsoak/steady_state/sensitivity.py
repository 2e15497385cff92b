"""What a degree costs: how rate and power follow the temperature on this very card.

Under a power cap the clock falls as leakage rises with the die's temperature; without one, power
rises. Both are functions of the temperature now, whichever thermal mass moves it: what the first
minutes taught holds for the slow degrees that are still to come.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import last
from heatsoak.steady_state.protocols import (
    SENSITIVITY_LATE_FACTOR,
    SENSITIVITY_LEAST_BINS,
    SENSITIVITY_LEAST_C,
    SENSITIVITY_RATE_SE,
    SENSITIVITY_SKIP_BINS,
)

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array
    from heatsoak.steady_state.readings import Readings
    from heatsoak.steady_state.throughput import Throughput


def slope_pct_per_c(values: Array, temperature: Array) -> tuple[float, float]:
    """Slope of a channel on temperature in percent per °C, and its standard error; NaN unknown."""
    y, x = values, temperature
    keep = np.isfinite(values + temperature)
    n = int(np.add.reduce(keep))
    if n < SENSITIVITY_LEAST_BINS:
        return nan, nan
    if n < keep.size:
        y, x = values[keep], temperature[keep]
    mean = float(np.add.reduce(y)) / n
    if x.max() - x.min() < SENSITIVITY_LEAST_C or not mean > 0:
        return nan, nan
    y = (100.0 / mean) * y - 100.0
    x = x - np.add.reduce(x) / n
    sxx = float(x @ x)
    slope = float(x @ y) / sxx
    residual = y - slope * x
    return slope, float(np.sqrt(residual @ residual / (n - 2) / sxx))


def per_degree_pct(
    job: Throughput | None, readings: Readings, epoch_bin: int, end: int
) -> float | None:
    """Percent that rate or power will change per °C, the larger; None where it cannot be told."""
    start = epoch_bin + SENSITIVITY_SKIP_BINS
    n = end - start
    if n < SENSITIVITY_LEAST_BINS:
        return None
    bins = readings.bins
    temperature = last(bins.get("temperature_flow", start, end), n)
    rate = nan
    if job is not None:
        rate, error = slope_pct_per_c(last(job.bins.get("flow", start, end), n), temperature)
        if not error <= SENSITIVITY_RATE_SE:
            rate = nan
    if not np.isfinite(rate):
        # The rate is too noisy to tell: it follows the clock at most in proportion.
        rate, _ = slope_pct_per_c(last(bins.get("clock_flow", start, end), n), temperature)
    power, _ = slope_pct_per_c(last(bins.get("power_flow", start, end), n), temperature)
    known = [abs(slope) for slope in (rate, power) if np.isfinite(slope)]
    return SENSITIVITY_LATE_FACTOR * max(known) if known else None
