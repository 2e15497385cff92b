"""Lines drawn with braille dots, two columns and four rows a cell. Pure numbers in, dots out."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Point = tuple[float, float, float]
"""t_s, minimum, maximum."""
BRAILLE = 0x2800
_LARGEST = sys.float_info.max
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of each dot, by column and row of the cell."""
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS_S = (
    5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
)  # fmt: skip


def columns(
    points: Iterable[Point], t0_s: float, t1_s: float, count: int
) -> dict[int, list[float]]:
    """Minimum and maximum of each of `count` columns between two instants; absent: no reading."""
    found: dict[int, list[float]] = {}
    if t1_s <= t0_s or count <= 0:
        return found
    scale, last = count / (t1_s - t0_s), count - 1
    for t_s, low, high in points:
        # Comparisons are false for NaN, so that one is no reading either.
        if not (t0_s <= t_s <= t1_s and -_LARGEST <= low <= high <= _LARGEST):
            continue
        column = int((t_s - t0_s) * scale)
        if column > last:
            column = last
        extremes = found.get(column)
        if extremes is None:
            found[column] = [low, high]
            continue
        if low < extremes[0]:
            extremes[0] = low
        if high > extremes[1]:
            extremes[1] = high
    return found


def plot(
    extremes: dict[int, list[float]], low: float, high: float, width: int, height: int, gap: float
) -> list[list[int]]:
    """Dots of each cell: a bar from minimum to maximum per column, joined across short gaps.

    Args:
        extremes: Of `columns`, for `2 * width` columns.
        low: Value of the lowest dot.
        high: Value of the highest dot; values outside are drawn at the edge.
        width: Cells.
        height: Cells.
        gap: Columns further apart than this are not joined.
    """
    grid = [[0] * width for _ in range(height)]
    if width <= 0 or height <= 0:
        return grid
    before: tuple[int, int, int] | None = None
    for column in sorted(extremes):
        bottom, top = (dot_row(value, low, high, height) for value in extremes[column])
        if before is not None and column - before[0] <= max(1.0, gap):
            _join(grid, before, (column, bottom, top))
        for row in range(top, bottom + 1):
            _light(grid, column, row)
        before = (column, bottom, top)
    return grid


def dot_row(value: float, low: float, high: float, height: int) -> int:
    """The row of dots of a value, 0 at the top, kept inside the chart."""
    rows = height * 4
    frac = (value - low) / (high - low) if high > low else 0.5
    return min(rows - 1, max(0, rows - 1 - round(frac * (rows - 1))))


def _join(grid: list[list[int]], a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    (x0, bottom0, top0), (x1, bottom1, top1) = a, b
    if x1 == x0 + 1:
        # Neighbours need only touch: fill from this one's bar to the other's nearest dot.
        if top1 > bottom0:
            rows = range(bottom0 + 1, top1)
        elif bottom1 < top0:
            rows = range(bottom1 + 1, top0)
        else:
            return
        for row in rows:
            _light(grid, x1, row)
        return
    y0, y1 = (top0 + bottom0) / 2, (top1 + bottom1) / 2
    last = round(y0)
    for column in range(x0 + 1, x1):
        row = round(y0 + (y1 - y0) * (column - x0) / (x1 - x0))
        for between in range(min(last, row), max(last, row) + 1):
            if between != last or row == last:
                _light(grid, column, between)
        last = row


def _light(grid: list[list[int]], column: int, row: int) -> None:
    grid[row // 4][column // 2] |= _DOTS[column % 2][row % 4]


def value_range(
    extremes: dict[int, list[float]], also: Sequence[float], least: float, *, is_whole: bool
) -> tuple[float, float]:
    """Lowest and highest value of a chart, at round numbers so that it seldom re-scales.

    Args:
        extremes: Of `columns`.
        also: Values that must be inside, such as the boost.
        least: The chart spans at least this much, so that noise is not made to look big.
        is_whole: Whether the whole run-up must be inside; else the lowest twentieth may lie below.
    """
    lows = sorted(pair[0] for pair in extremes.values())
    highs = [pair[1] for pair in extremes.values()]
    values = [*also]
    if lows:
        values += [lows[0 if is_whole else len(lows) // 20], max(highs)]
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    step = nice_step((high - low) / 4)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def nice_step(about: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `about`."""
    if about <= 0 or not math.isfinite(about):
        return 1.0
    power = 10.0 ** math.floor(math.log10(about))
    return next((s * power for s in _STEPS if s * power >= about * (1 - 1e-9)), 10 * power)


def axis_end_s(now_s: float) -> float:
    """End of an axis that begins at 0: steps of a third or a half, so the picture seldom moves."""
    end_s = 60.0
    while end_s < now_s:
        # 1, 1.5, 2, 3, 4, 6, ... minutes.
        end_s *= 1.5 if math.log2(end_s / 60.0).is_integer() else 4 / 3
    return end_s


def zoomed_s(now_s: float, zoom_s: float | None) -> tuple[float, float]:
    """Start and end of the axis: the whole run, or the last `zoom_s`, moving in quarters of it."""
    if zoom_s is None or now_s <= zoom_s:
        return 0.0, axis_end_s(now_s)
    step_s = zoom_s / 4
    end_s = math.ceil(now_s / step_s) * step_s
    return end_s - zoom_s, end_s


def tick_step_s(length_s: float, width: int, cells_a_tick: int = 8) -> float:
    """Seconds between two labels on an axis of `width` cells."""
    least = length_s * cells_a_tick / max(1, width)
    return float(next((s for s in _TICKS_S if s >= least), _TICKS_S[-1] * math.ceil(least / 86400)))
