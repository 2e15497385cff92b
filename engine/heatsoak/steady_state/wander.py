"""Does the workload's own speed wander? Then it has no sustained rate, however flat a minute is.

Long batches of independent noise, or of noise with a short memory, average out; those of a random
walk do not. The rate of the whole epoch is freed of what the clock explains, so that a card that
warms up does not look like a wandering workload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import nan_median
from heatsoak.steady_state.protocols import (
    HALF_WIDTH_FACTOR,
    WANDER_BATCHES,
    WANDER_LEAST_BINS,
    WANDER_RUN_UP_FRAC,
    WANDER_SKIP_BINS,
)

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array


def batch_variance(residual: Array, batches: int, parameters: int) -> float:
    """Variance of batch means times their length, of a series around 0."""
    n = residual.size
    edges = np.arange(batches) * n // batches
    lengths = np.diff(np.append(edges, n))
    sums = np.add.reduceat(residual, edges)
    return float((sums**2 / lengths).sum()) / max(batches - parameters, 1)


def run_up(rate: Array) -> int:
    """How many of the first bins belong to a run-up: to be passed over, a walk does not begin so.

    The last one in the first half of the epoch that is far off the level of the second, and a
    minute more.
    """
    half = rate.size // 2
    level = nan_median(rate[half:])
    is_off = np.abs(rate[:half] - level) > WANDER_RUN_UP_FRAC * level
    off = np.flatnonzero(is_off)
    return int(off[-1]) + 1 + WANDER_SKIP_BINS if off.size else 0


def wander_pct(rate: Array, clock: Array | None) -> float:
    """How far the mean rate may yet wander, in percent: half-width of long batches times growth.

    Args:
        rate: bins of the epoch; NaN is missing.
        clock: bins of the clock beside it, or None.

    Returns:
        0 where there are too few bins to say.
    """
    keep = np.isfinite(rate) & (rate > 0)
    if clock is not None:
        with_clock = keep & np.isfinite(clock) & (clock > 0)
        if with_clock.sum() >= 0.5 * keep.sum():
            keep = with_clock
        else:
            clock = None
    y = rate[keep]
    n = y.size
    if n < WANDER_LEAST_BINS:
        return 0.0
    y = 100.0 * np.log(y)
    y -= y.mean()
    parameters = 1
    if clock is not None:
        x = 100.0 * np.log(clock[keep])
        x -= x.mean()
        spread = float(x @ x)
        if spread > 0:
            y = y - x * (float(x @ y) / spread)
            parameters = 2
    long, short = (batch_variance(y, batches, parameters) for batches in WANDER_BATCHES)
    growth = long / short if short > 0 else 1.0
    return HALF_WIDTH_FACTOR * float(np.sqrt(long / n)) * max(1.0, growth)
