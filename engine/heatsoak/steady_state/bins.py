"""Bounded tables of bins: columns by name, rows by the number of the bin since the run began."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Table:
    """Columns of floats over numbered rows; forgets the oldest rows beyond its capacity."""

    def __init__(self, columns: tuple[str, ...], capacity: int) -> None:
        """Make an empty table that keeps at least `capacity` rows."""
        self._index = {name: i for i, name in enumerate(columns)}
        self._capacity = capacity
        self._data = np.full((len(columns), 256), np.nan)
        self.first = 0
        """Number of the oldest row kept."""
        self.end = 0
        """One past the number of the newest row."""

    def grow(self, end: int) -> None:
        """Make rows up to `end` (exclusive) exist, filled with NaN."""
        if end <= self.end:
            return
        size = self._data.shape[1]
        if end - self.first > size:
            size = min(2 * self._capacity, max(2 * size, end - self.first))
            data = np.full((self._data.shape[0], size), np.nan)
            first = max(self.first, self.end - self._capacity, end - size)
            if first < self.end:
                data[:, : self.end - first] = self.block(first, self.end)
            self._data = data
            self.first = first
        self.end = end

    def get(self, column: str, start: int, end: int) -> Array:
        """Rows `start` to `end` (exclusive) of a column, a view; rows not kept are left out."""
        first = self.first
        row: Array = self._data[self._index[column]]
        return row[max(0, start - first) : max(0, min(end, self.end) - first)]

    def block(self, start: int, end: int) -> Array:
        """All columns of rows `start` to `end`, a view, in the order of the columns."""
        first = self.first
        block: Array = self._data[:, max(0, start - first) : max(0, min(end, self.end) - first)]
        return block

    def set(self, column: str, row: int, value: float) -> None:
        """Set one cell; a row not kept is ignored."""
        if self.first <= row < self.end:
            self._data[self._index[column], row - self.first] = value

    def set_row(self, row: int, values: tuple[float, ...]) -> None:
        """Set all columns of a row that is kept, in the order of the columns."""
        if self.first <= row < self.end:
            self._data[: len(values), row - self.first] = values

    def put(self, column: str, start: int, values: Array) -> None:
        """Set consecutive cells from row `start`; rows not kept are ignored."""
        skip = max(0, self.first - start)
        end = min(start + len(values), self.end)
        if start + skip < end:
            self.get(column, start + skip, end)[:] = values[skip : end - start]


def nan_median(values: Array) -> Array:
    """Median over the last axis without NaN; NaN where none is left; faster than numpy's."""
    width = values.shape[-1]
    if width == 0:
        return np.full(values.shape[:-1], np.nan)
    ordered = np.sort(values, axis=-1)
    if not np.isnan(ordered[..., -1]).any():  # NaN sorts last: there is none.
        whole: Array = 0.5 * (ordered[..., (width - 1) // 2] + ordered[..., width // 2])
        return whole
    ordered = ordered.reshape(-1, width)
    count = np.isfinite(ordered).sum(axis=-1)
    rows = np.arange(len(ordered))
    low = ordered[rows, np.maximum(count - 1, 0) // 2]
    high = ordered[rows, np.minimum(count // 2, width - 1)]
    middle: Array = np.where(count > 0, 0.5 * (low + high), np.nan).reshape(values.shape[:-1])
    return middle


def nan_mean(values: Array) -> float:
    """Mean of the finite values, NaN without any."""
    total = float(np.add.reduce(values))
    if total - total == 0.0 and values.size:  # Finite, so is every value.
        return total / values.size
    finite = values[np.isfinite(values)]
    return float(np.add.reduce(finite)) / finite.size if finite.size else float("nan")


def nan_sum(values: Array) -> float:
    """Sum of the finite values, 0 without any."""
    total = float(np.add.reduce(values))
    return total if total - total == 0.0 else float(np.add.reduce(values[np.isfinite(values)]))


def last(values: Array, n: int) -> Array:
    """The last `n` values, filled up with NaN in front where there are fewer."""
    if len(values) >= n:
        return values[len(values) - n :]
    return np.concatenate([np.full(n - len(values), np.nan), values])


def swing(finite: Array) -> float:
    """From the 5th to the 95th percentile of finite values, 0 without any."""
    n = finite.size
    if n == 0:
        return 0.0
    ordered = np.sort(finite)
    return float(ordered[min(n - 1, round(0.95 * (n - 1)))] - ordered[round(0.05 * (n - 1))])
