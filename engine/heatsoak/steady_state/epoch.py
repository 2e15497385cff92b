"""Epochs: after an abrupt change what came before says nothing about what comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import nan_median
from heatsoak.steady_state.protocols import (
    BIN_S,
    EPOCH_AFTER_BINS,
    EPOCH_BEFORE_BINS,
    EPOCH_CYCLE_FRAC,
    EPOCH_CYCLE_RESETS,
    EPOCH_CYCLE_S,
    EPOCH_JUMP_FRAC,
    EPOCH_JUMP_MADS,
    EPOCH_LEAST_BINS,
    EPOCH_MAX_RESETS,
    EPOCH_MAX_RESETS_S,
    THERMAL_DUTY,
    THERMAL_DUTY_BEFORE,
)

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array

SPAN_BINS = EPOCH_BEFORE_BINS + EPOCH_AFTER_BINS


@dataclass(frozen=True, slots=True)
class Reset:
    """One new epoch."""

    bin: int
    """Its first bin."""
    seen_bin: int
    """The bin at which it was seen."""
    change_frac: float
    """Signed relative change of the level; 0 for a thermal slowdown."""
    row: int
    """Which series changed: row of the matrix given to `update`; -1 for a thermal slowdown."""
    level_before: float
    level_after: float


class Epochs:
    """The epochs of one job."""

    def __init__(self, start_bin: int) -> None:
        """Begin the first epoch."""
        self.start_bin = start_bin
        self.resets: list[Reset] = []
        self._had_thermal = False
        self._is_before_thermal = False

    def update(self, k: int, series: Array, thermal: Array) -> Reset | None:
        """Look at the newest bins.

        Args:
            k: number of the newest bin.
            series: (rows, `SPAN_BINS`) newest bins of rate, power and clock.
            thermal: (devices, `SPAN_BINS`) duty of thermal slowdown.

        Returns:
            The reset, or None.
        """
        reset = self._thermal(k, thermal)
        if reset is None:
            reset = self._jump(k, series)
        if reset is not None:
            self.resets.append(reset)
            del self.resets[:-32]
            self.start_bin = reset.bin
        return reset

    def _jump(self, k: int, series: Array) -> Reset | None:
        age = k + 1 - self.start_bin
        usable = min(EPOCH_BEFORE_BINS, age - EPOCH_AFTER_BINS)
        if usable < EPOCH_LEAST_BINS or series.size == 0:
            return None
        before = series[:, EPOCH_BEFORE_BINS - usable : EPOCH_BEFORE_BINS]
        after = series[:, EPOCH_BEFORE_BINS:]
        level = nan_median(before)
        spread = nan_median(np.abs(before - level[:, None]))
        off = after - level[:, None]
        new = nan_median(after)
        with np.errstate(invalid="ignore"):
            limit = np.maximum(EPOCH_JUMP_FRAC * np.abs(level), EPOCH_JUMP_MADS * spread)
            jumped = (
                (np.isfinite(before).sum(axis=1) >= EPOCH_LEAST_BINS)
                & (np.all(off > 0, axis=1) | np.all(off < 0, axis=1))
                & (np.abs(new - level) > limit)
            )
        rows = np.flatnonzero(jumped)
        if rows.size == 0:
            return None
        change = np.abs(new[rows] - level[rows]) / np.maximum(np.abs(level[rows]), 1e-12)
        row = int(rows[np.argmax(change)])
        # The first of the new bins may still be of the old level.
        is_new = np.abs(off[row]) > 0.5 * abs(float(new[row] - level[row]))
        reset = Reset(
            bin=k + 1 - EPOCH_AFTER_BINS + int(np.argmax(is_new)),
            seen_bin=k,
            change_frac=float((new[row] - level[row]) / max(abs(level[row]), 1e-12)),
            row=row,
            level_before=float(level[row]),
            level_after=float(new[row]),
        )
        return None if self._is_too_often(k, reset) else reset

    def _is_too_often(self, k: int, new: Reset) -> bool:
        recent = [r for r in self.resets if (k - r.seen_bin) * BIN_S <= EPOCH_MAX_RESETS_S]
        if len(recent) >= EPOCH_MAX_RESETS:
            return True
        hour = [r for r in self.resets if (k - r.seen_bin) * BIN_S <= EPOCH_CYCLE_S]
        if len(hour) < EPOCH_CYCLE_RESETS:
            return False
        levels = [r.level_before for r in hour if r.row == new.row]
        return any(abs(new.level_after - x) <= EPOCH_CYCLE_FRAC * abs(x) for x in levels)

    def _thermal(self, k: int, thermal: Array) -> Reset | None:
        """The first arrival of a thermal slowdown, in a run that was without it."""
        if self._had_thermal or thermal.size == 0:
            return None
        known = np.isfinite(thermal)
        duty = np.where(known, thermal, 0.0)
        now = duty[:, EPOCH_BEFORE_BINS:].mean(axis=1)
        before = duty[:, :EPOCH_BEFORE_BINS].sum(axis=1) / np.maximum(
            known[:, :EPOCH_BEFORE_BINS].sum(axis=1), 1
        )
        hot = now > THERMAL_DUTY
        if not hot.any():
            return None
        self._had_thermal = True
        if not (hot & (before < THERMAL_DUTY_BEFORE)).any() or k - self.start_bin < SPAN_BINS:
            return None
        return Reset(k + 1 - EPOCH_AFTER_BINS, k, 0.0, -1, 0.0, 0.0)
