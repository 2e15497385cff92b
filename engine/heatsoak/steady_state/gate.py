"""The precision gate: which window to report, and whether its interval is narrow enough."""

from __future__ import annotations

from math import inf, isfinite, nan, sqrt
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import last
from heatsoak.steady_state.channels import relative
from heatsoak.steady_state.cycles import calm_view, view, whole_cycles
from heatsoak.steady_state.drift import fit, time_constants
from heatsoak.steady_state.protocols import (
    BIN_S,
    POOL_EPOCHS,
    POOL_FACTOR,
    PRINTED_GATE_FACTOR,
    REPORT_MIN_S,
    U95_FACTOR,
    WANDER_GATE_FACTOR,
    WANDER_SKIP_BINS,
)
from heatsoak.steady_state.sustained import half_width_pct
from heatsoak.steady_state.wander import run_up, wander_pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.steady_state.bins import Array
    from heatsoak.steady_state.protocols import Protocol
    from heatsoak.steady_state.subject import Subject
    from heatsoak.steady_state.throughput import Throughput

RATE = ""
"""Key of the job's rate among the long-run variances; a device's power has its device_id."""


class Gate:
    """Long-run variances of the plain view, pooled over the window and earlier epochs."""

    def __init__(self, protocol: Protocol) -> None:
        """Begin without history."""
        self._protocol = protocol
        self.period_bins = 0.0
        """Period of the cycle the channels go through, 0 without one."""
        self._pooled: dict[str, float] = {}
        self._earlier: dict[str, list[tuple[float, int]]] = {}

    def pooled(self, key: str) -> float:
        """Pooled long-run variance of `RATE` or a device's power, percent squared, or NaN."""
        return self._pooled.get(key, nan)

    def pool(
        self, job: Throughput | None, subjects: Sequence[Subject], window: tuple[int, int]
    ) -> None:
        """Take the long-run variance of this window, pooled with that of earlier epochs."""
        n = window[1] - window[0]
        for key, value in self._measure(job, subjects, window).items():
            total, weight = value * n, n
            for before, bins in self._earlier.get(key, []):
                total += min(before, POOL_FACTOR * value) * bins
                weight += bins
            self._pooled[key] = max(value, total / weight)

    def end_epoch(
        self, job: Throughput | None, subjects: Sequence[Subject], window: tuple[int, int]
    ) -> None:
        """Remember an epoch that ended, by its last window."""
        for key, value in self._measure(job, subjects, window).items():
            earlier = self._earlier.setdefault(key, [])
            earlier.append((value, window[1] - window[0]))
            del earlier[:-POOL_EPOCHS]

    def _measure(
        self, job: Throughput | None, subjects: Sequence[Subject], window: tuple[int, int]
    ) -> dict[str, float]:
        start, end = window
        n = end - start
        rows: dict[str, Array | None] = {}
        if job is not None:
            rows[RATE] = relative(view(job.bins, "rate", start, end, self.period_bins))
        for subject in subjects:
            power = view(subject.readings.bins, "power", start, end, self.period_bins)
            rows[subject.info.device_id] = relative(power)
        kept = {key: row for key, row in rows.items() if row is not None}
        if not kept:
            return {}
        y = np.array(list(kept.values()))
        drift = fit(y, time_constants(n * BIN_S, self._protocol.slow_s), np.zeros(len(kept)))
        return dict(zip(kept, drift.lrv.tolist(), strict=True))

    def report_window(
        self,
        job: Throughput | None,
        subjects: Sequence[Subject],
        window: tuple[int, int],
        hold_bin: int,
        epoch_bin: int,
        *,
        is_late: bool,
    ) -> tuple[tuple[int, int] | None, str]:
        """The window to report: from the hold, extended back as far as its interval needs.

        Args:
            job: the counter, or None.
            subjects: the devices.
            window: the judged window, which the report must not leave.
            hold_bin: first bin of the hold.
            epoch_bin: first bin of the epoch.
            is_late: whether the wider gate applies.

        Returns:
            The bins `(start, end)` and "", or None and in words why the interval does not close.
        """
        gate = self._protocol.late_gate_pct if is_late else self._protocol.gate_pct
        start, end = window
        self.pool(job, subjects, window)
        wander = self._wander_pct(job, subjects, epoch_bin + WANDER_SKIP_BINS, end)
        allowed = WANDER_GATE_FACTOR * self._protocol.gate_pct
        if wander > allowed:
            return None, f"the rate wanders: by {wander:.1f} %, {allowed:.1f} % allowed"
        heat = max((subject.heat_pct for subject in subjects), default=0.0)
        most = PRINTED_GATE_FACTOR * gate
        if heat >= most:
            return None, f"what is still to come may cost {heat:.1f} %, {most:.1f} % allowed"
        room = sqrt(most**2 - heat**2)
        n_max = end - start
        n = max(int(REPORT_MIN_S // BIN_S), end - hold_bin)
        n = whole_cycles(n, self.period_bins, n_max)
        while True:
            worst, name = self.widest(job, subjects, (end - n, end))
            if worst <= gate and U95_FACTOR * worst <= room:
                return (end - n, end), ""
            wanted = min(gate, room / U95_FACTOR)
            if n >= n_max:
                return None, f"{name} too noisy: ±{worst:.1f} %, needs ±{wanted:.1f} %"
            need = int(n * (worst / wanted) ** 2) if isfinite(worst) else n_max
            more = whole_cycles(max(n + 1, need), self.period_bins, n_max)
            n = more if more > n else n_max

    def _wander_pct(
        self, job: Throughput | None, subjects: Sequence[Subject], start: int, end: int
    ) -> float:
        if job is None or end <= start:
            return 0.0
        rate = last(job.bins.get("flow", start, end), end - start)
        clocks = [
            last(subject.readings.bins.get("clock_flow", start, end), end - start)
            for subject in subjects
            if "clock" in subject.channels
        ]
        skip = run_up(rate)
        clock = np.mean(clocks, axis=0)[skip:] if clocks else None
        return wander_pct(rate[skip:], clock)

    def widest(
        self, job: Throughput | None, subjects: Sequence[Subject], window: tuple[int, int]
    ) -> tuple[float, str]:
        """The widest half-width of rate and power over a window, in percent, and whose it is."""
        worst, name = -1.0, ""
        if job is not None:
            half, _ = half_width_pct(
                job.bins.get("rate", *window),
                self.pooled(RATE),
                calm_view(job.bins, "rate", *window, self.period_bins),
            )
            worst, name = (half if isfinite(half) else inf), "rate"
        for subject in subjects:
            if "power" not in subject.channels:
                continue
            bins = subject.readings.bins
            half, _ = half_width_pct(
                bins.get("power", *window),
                self.pooled(subject.info.device_id),
                calm_view(bins, "power", *window, self.period_bins),
            )
            if isfinite(half) and half > worst:
                worst, name = half, "power"
        return worst, name
