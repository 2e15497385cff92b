"""Settling and holding: a few passes in a row begin the hold, a few fails in a row end it."""

from __future__ import annotations

from heatsoak.steady_state.protocols import (
    BIN_S,
    FAILS_TO_SETTLE,
    HOLD_AGE_FRAC,
    HOLD_MAX_S,
    PASSES_TO_HOLD,
)


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
