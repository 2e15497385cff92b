"""What is still to come: exponential approaches fitted to a window, many channels at once.

For each time constant tau the model is y = a + c exp(-u / tau) with u from the window's start; what
is still to come at its end is r = -c exp(-L / tau), signed (positive: the channel will rise).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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
    import numpy.typing as npt

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
        sizes = np.abs(self.r[channel, :end]).tolist()
        errors = self.se[channel, :end].tolist()
        plausible = self.is_plausible[channel, :end].tolist()
        told = [
            (size + BOUND_SES * error, size)
            for size, error, share in zip(sizes, errors, plausible, strict=True)
            if share > 0
        ]
        if not told:
            return sizes[-1] + BOUND_SES * errors[-1], sizes[-1]
        return max(told, key=lambda pair: pair[0])


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
    count = np.add.reduce(weight, axis=1)
    squares = np.add.reduce(residual * residual, axis=1)
    largest: Array = LRV_FLOOR * squares / np.maximum(count - parameters, 1.0)
    is_whole = bool(np.add.reduce(count) == weight.size)
    for batches in LRV_BATCHES:
        b = min(batches, n)
        if b <= parameters:
            continue
        edges, lengths = _batches(n, b)
        sums = np.add.reduceat(residual, edges, axis=1)
        if is_whole:
            value = np.add.reduce(sums * sums / lengths, axis=1) / max(b - parameters, 1)
        else:
            counts = np.add.reduceat(weight, edges, axis=1)
            used = np.add.reduce(counts > 0, axis=1)
            means_sq = sums * sums / np.maximum(counts, 1.0)
            value = np.add.reduce(means_sq, axis=1) / np.maximum(used - parameters, 1.0)
        largest = np.maximum(largest, value)
    return largest


@lru_cache(maxsize=512)
def _batches(n: int, batches: int) -> tuple[npt.NDArray[np.intp], Array]:
    """Where batches of `n` bins begin, and how long each is."""
    ends = np.arange(batches + 1) * n // batches
    return ends[:-1], (ends[1:] - ends[:-1]).astype(np.float64)


@lru_cache(maxsize=256)
def _basis(n: int, taus: tuple[float, ...]) -> tuple[Array, Array, Array, Array]:
    """Per time constant: the approach over `n` bins, its square, both sums, and its end."""
    constants = np.array(taus)
    x = np.exp(-((np.arange(n) + 0.5) * BIN_S) / constants[:, None])
    sums = np.array([x.sum(axis=1), (x * x).sum(axis=1)])
    return x, x * x, sums, np.exp(-n * BIN_S / constants)


def fit(y: Array, taus: Array, floor: Array) -> Drift:
    """Fit every time constant to every row of `y`.

    Args:
        y: (channels, bins); NaN is missing.
        taus: time constants in seconds.
        floor: least standard error per channel, in its unit.
    """
    rows_n, n = y.shape
    x, x_sq, x_sums, at_end = _basis(n, tuple(taus.tolist()))
    present = np.isfinite(y)
    w = present.astype(np.float64)
    rows = np.arange(rows_n)
    if present.all():
        z = y - np.add.reduce(y, axis=1, keepdims=True) / n
        mean_x = x_sums[0] / n
        sxx = np.maximum(x_sums[1] - x_sums[0] * mean_x, 1e-9)
    else:
        count = np.maximum(np.add.reduce(w, axis=1), 1.0)[:, None]
        z = np.where(present, y, 0.0)
        z = (z - np.add.reduce(z, axis=1, keepdims=True) / count) * w
        sx = w @ x.T
        mean_x = sx / count
        sxx = np.maximum(w @ x_sq.T - sx * mean_x, 1e-9)
    sxy = z @ x.T
    c = sxy / sxx
    sse = np.maximum(np.add.reduce(z * z, axis=1, keepdims=True) - c * sxy, 0.0)
    best = np.argmin(sse, axis=1)
    c_best = c[rows, best][:, None]
    best_x = mean_x[best] if mean_x.ndim == 1 else mean_x[rows, best]
    residual = (z - c_best * (x[best] - best_x[:, None])) * w
    lrv = np.maximum(long_run_variance(residual, w), 1e-12)
    se = np.maximum(at_end * np.sqrt(lrv[:, None] / sxx), floor[:, None])
    worse = (sse - sse[rows, best][:, None]) / lrv[:, None]
    return Drift(
        r=-c * at_end,
        se=se,
        is_plausible=(worse <= PLAUSIBLE_LR).astype(np.float64),
        lrv=lrv,
    )
