"""Settling and holding: a few passes in a row begin the hold, a few fails in a row end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.steady_state.protocols import (
    BIN_S,
    CYCLE_LONG_S,
    CYCLE_WINDOW_MAX_S,
    FAILS_TO_SETTLE,
    HOLD_AGE_FRAC,
    HOLD_MAX_S,
    PASSES_TO_HOLD,
    RESET_COST_FRAC,
    TIME_LEFT,
    TIME_LEFT_HOLDING,
    WINDOW_AGE_FRAC,
)
from heatsoak.steady_state.reasons import after_reset, duration

if TYPE_CHECKING:
    from heatsoak.steady_state.epoch import Reset
    from heatsoak.steady_state.protocols import Protocol


class Hold:
    """Counts passes and fails of one epoch."""

    def __init__(self) -> None:
        """Begin settling."""
        self._passes = 0
        self._fails = 0
        self.start_bin: int | None = None
        """First bin of the hold; None while settling."""

    def step(self, k: int, *, is_pass: bool) -> None:
        """One evaluation, at the end of bin `k`."""
        if is_pass:
            self._passes += 1
            self._fails = 0
            if self.start_bin is None and self._passes >= PASSES_TO_HOLD:
                self.start_bin = k + 1 - PASSES_TO_HOLD
        else:
            self._passes = 0
            self._fails += 1
            if self._fails >= FAILS_TO_SETTLE:
                self.start_bin = None

    def left_s(self, k: int, age_s: float, least_s: float) -> float:
        """How much longer it must hold, at the end of bin `k`; 0 when long enough."""
        if self.start_bin is None:
            return least_s
        need_s = max(least_s, min(HOLD_AGE_FRAC * age_s, HOLD_MAX_S))
        return max(0.0, need_s - (k + 1 - self.start_bin) * BIN_S)


def judged_window(protocol: Protocol, k: int, age_s: float, period_s: float) -> tuple[int, int]:
    """The bins `(start, end)` judged at the end of bin `k` of an epoch aged `age_s`.

    Args:
        protocol: its least and longest window.
        k: the newest bin.
        age_s: age of the epoch.
        period_s: period of a cycle, 0 without one; long cycles need a long window.
    """
    longest = protocol.window_max_s if period_s < CYCLE_LONG_S else CYCLE_WINDOW_MAX_S
    length_s = min(max(WINDOW_AGE_FRAC * age_s, protocol.window_min_s), longest, age_s)
    return k + 1 - max(1, int(length_s // BIN_S)), k + 1


def still_warming(protocol: Protocol, reset: Reset | None, run_s: float, age_s: float) -> str:
    """What is waited for before anything is judged, in words; empty when nothing is."""
    if run_s < protocol.soak_s:
        return f"waiting for the first {duration(protocol.soak_s)} of soak"
    is_costly = reset is not None and abs(reset.change_frac) > RESET_COST_FRAC
    if age_s < (max(protocol.reset_s, protocol.epoch_s) if is_costly else protocol.epoch_s):
        return after_reset(reset)
    return ""


def time_left(
    severity: float, age_s: float, hold_left_s: float | None, most_s: float
) -> tuple[float, float]:
    """Range of the time to steady state, seconds.

    Args:
        severity: the worst bound over its margin.
        age_s: age of the epoch.
        hold_left_s: what is left of the hold, None while settling.
        most_s: time left until the time-out.
    """
    if hold_left_s is not None:
        low, high = max(hold_left_s, BIN_S), TIME_LEFT_HOLDING * age_s
    else:
        low, high = next(
            (low * age_s, high * age_s) for up_to, low, high in TIME_LEFT if severity <= up_to
        )
    return min(low, most_s), min(max(low, high), most_s)
