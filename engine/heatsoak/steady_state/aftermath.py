"""The watch after the freeze: do the frozen numbers stay true?"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isfinite
from typing import TYPE_CHECKING

from heatsoak.steady_state.cycles import cycle_weights
from heatsoak.steady_state.protocols import (
    BIN_S,
    SUPERSEDED_FRAC,
    SUPERSEDED_HALF_WIDTHS,
    U95_FACTOR,
    WATCH_CYCLES,
    WATCH_MEAN_S,
)
from heatsoak.steady_state.sustained import weighted_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.steady_state.bins import Array
    from heatsoak.steady_state.subject import Subject
    from heatsoak.steady_state.throughput import Throughput
    from heatsoak.steady_state.verdict import Figure


class Watch:
    """The watch over frozen numbers."""

    def __init__(self, frozen_bin: int, watch_s: float, period_bins: float) -> None:
        """Watch from the end of bin `frozen_bin` for `watch_s` seconds.

        Args:
            frozen_bin: the last bin before the freeze.
            watch_s: how long.
            period_bins: period of the cycle the channels go through, 0 without one.
        """
        self._frozen_bin = frozen_bin
        self._period_bins = period_bins
        self._watch_s = watch_s
        self._is_superseded = False
        self.is_done = watch_s <= 0

    def step(self, job: Throughput | None, subjects: Sequence[Subject], k: int) -> None:
        """Look at bin `k`; marks the verdicts of a job whose numbers moved as superseded."""
        frozen = [s for s in subjects if s.frozen is not None]
        if not self._is_superseded:
            words = [
                moved(job, subject, self._frozen_bin, k, self._period_bins) for subject in frozen
            ]
            first = next((what for what in words if what), "")
            self._is_superseded = bool(first)
            for subject in frozen if first else ():
                if subject.final is not None:
                    subject.final = replace(
                        subject.final,
                        flags=(*subject.final.flags, "superseded"),
                        reason=f"{subject.final.reason}; since then {first}",
                    )
        if (k - self._frozen_bin) * BIN_S >= self._watch_s:
            self.is_done = True


def moved(
    job: Throughput | None, subject: Subject, frozen_bin: int, k: int, period_bins: float
) -> str:
    """In words, how the last five minutes contradict the frozen numbers; empty if they do not.

    Of a cycle it takes a few at least, freed of how they begin and end.
    """
    start = k + 1 - max(int(WATCH_MEAN_S // BIN_S), ceil(WATCH_CYCLES * period_bins))
    if subject.frozen is None or start <= frozen_bin:
        return ""
    if job is not None:
        rate = job.bins.get("rate", start, k + 1)
        words = _change("rate", subject.frozen.throughput, rate, period_bins)
        if words:
            return words
    power = subject.readings.bins.get("power", start, k + 1)
    return _change("power", subject.frozen.power_w, power, period_bins)


def _change(name: str, figure: Figure | None, values: Array, period_bins: float) -> str:
    if figure is None or figure.mean == 0:
        return ""
    mean = weighted_mean(values, cycle_weights(values.size, period_bins))
    change = mean / figure.mean - 1.0
    half_width = (figure.u95 or 0.0) / abs(figure.mean) / U95_FACTOR
    if isfinite(change) and abs(change) > max(SUPERSEDED_FRAC, SUPERSEDED_HALF_WIDTHS * half_width):
        return f"the {name} moved by {100 * change:+.1f} %"
    return ""
