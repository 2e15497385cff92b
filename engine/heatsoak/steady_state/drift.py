"""What is still to come: exponential approaches fitted to a window, many channels at once.

For each time constant tau the model is y = a + c exp(-u / tau) with u from the window's start; what
is still to come at its end is r = -c exp(-L / tau), signed (positive: the channel will rise).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.protocols import (
    BIN_S,
    BOUND_SES,
    LRV_BATCHES,
    LRV_FLOOR,
    PLAUSIBLE_LR,
    TAU_FRACS,
)

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array


@dataclass(frozen=True, slots=True)
class Drift:
    """Estimates per channel (rows) and time constant (columns; the last is the slow one)."""

    r: Array
    """Still to come, signed, in the unit of the channel."""
    se: Array
    """Standard error of `r`."""
    is_plausible: Array
    """1.0 where the time constant explains the window about as well as the best, else 0.0."""
    lrv: Array
    """Long-run variance per bin of the best fit's residual."""

    def bound(self, channel: int, with_slow: bool) -> tuple[float, float]:
        """Upper bound of |r| over the plausible time constants, and the |r| it came from."""
        end = self.r.shape[1] if with_slow else self.r.shape[1] - 1
        plausible = self.is_plausible[channel, :end] > 0
        if not plausible.any():
            plausible[-1] = True
        r = np.abs(self.r[channel, :end])
        bounds = np.where(plausible, r + BOUND_SES * self.se[channel, :end], -1.0)
        worst = int(np.argmax(bounds))
        return float(bounds[worst]), float(r[worst])


def time_constants(window_s: float, slow_s: float) -> Array:
    """The time constants to try on a window, the slow one last, in seconds."""
    return np.array([f * window_s for f in TAU_FRACS] + [max(window_s, slow_s)])


def long_run_variance(residual: Array, weight: Array, parameters: int = 2) -> Array:
    """Long-run variance per bin of each row, by batch means; NaN rows are the caller's.

    Args:
        residual: rows of residuals, 0 where missing.
        weight: 1.0 where present, else 0.0.
        parameters: how many the fit took, which the batch means lack in freedom.
    """
    n = residual.shape[1]
    count = weight.sum(axis=1)
    variance = (residual**2).sum(axis=1) / np.maximum(count - parameters, 1.0)
    largest: Array = LRV_FLOOR * variance
    for batches in LRV_BATCHES:
        b = min(batches, n)
        if b <= parameters:
            continue
        edges = np.arange(b) * n // b
        sums = np.add.reduceat(residual, edges, axis=1)
        counts = np.add.reduceat(weight, edges, axis=1)
        used = (counts > 0).sum(axis=1)
        means_sq = sums**2 / np.maximum(counts, 1.0)
        value = means_sq.sum(axis=1) / np.maximum(used - parameters, 1.0)
        largest = np.maximum(largest, value)
    return largest


def fit(y: Array, taus: Array, floor: Array) -> Drift:
    """Fit every time constant to every row of `y`.

    Args:
        y: (channels, bins); NaN is missing.
        taus: time constants in seconds.
        floor: least standard error per channel, in its unit.
    """
    n = y.shape[1]
    u = (np.arange(n) + 0.5) * BIN_S
    x = np.exp(-u / taus[:, None])
    at_end = np.exp(-n * BIN_S / taus)
    present = np.isfinite(y)
    w = present.astype(np.float64)
    count = np.maximum(w.sum(axis=1), 1.0)[:, None]
    z = np.where(present, y, 0.0)
    z = (z - z.sum(axis=1, keepdims=True) / count) * w
    sx = w @ x.T
    sxx = np.maximum(w @ (x * x).T - sx**2 / count, 1e-9)
    sxy = z @ x.T
    c = sxy / sxx
    sse = np.maximum((z * z).sum(axis=1, keepdims=True) - c * sxy, 0.0)
    best = np.argmin(sse, axis=1)
    rows = np.arange(y.shape[0])
    c_best = c[rows, best][:, None]
    mean_x = (sx / count)[rows, best][:, None]
    residual = (z - c_best * (x[best] - mean_x)) * w
    lrv = np.maximum(long_run_variance(residual, w), 1e-12)
    se = np.maximum(at_end * np.sqrt(lrv[:, None] / sxx), floor[:, None])
    worse = (sse - sse[rows, best][:, None]) / lrv[:, None]
    return Drift(
        r=-c * at_end,
        se=se,
        is_plausible=(worse <= PLAUSIBLE_LR).astype(np.float64),
        lrv=lrv,
    )
