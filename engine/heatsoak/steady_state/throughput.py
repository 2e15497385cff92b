"""The job's counter as a rate: units over un-paused seconds, second by second, then in bins."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import Table, nan_median
from heatsoak.steady_state.protocols import (
    BIN_S,
    GUARD_S,
    HISTORY_BINS,
    LATE_S,
    MIN_ACTIVE_S,
    SECONDS_KEPT,
    SECONDS_PER_BIN,
    STALL_DROP_FRAC,
    STALL_MADS,
    STALL_MEDIAN_S,
    STALL_RATE_S,
    STALL_STEPS,
)
from heatsoak.steady_state.times import Times

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array

_EDGES = np.arange(SECONDS_PER_BIN + GUARD_S + 2, dtype=np.float64)
_ALL_QUIET = (np.ones(SECONDS_PER_BIN, dtype=bool), np.ones(SECONDS_PER_BIN, dtype=bool))
_PAUSED = 1 - 1e-6
"""Paused time runs this much slower than none, so that time without pauses still increases."""


def _step(rate: Array, middle: float) -> float:
    """The least difference between the rates of a minute: tiny, unless they count whole steps."""
    gaps = np.diff(np.sort(rate[rate > 0.5 * middle]))
    gaps = gaps[gaps > 1e-9 * middle]
    return float(gaps.min()) if gaps.size else 0.0


class Throughput:
    """Progress of one job on a grid of seconds and bins that begins at `origin_s`.

    A record counts units up to its instant; between two records units grow evenly over un-paused
    time, so that long steps and rare records do not look like noise.
    """

    def __init__(self, origin_s: float) -> None:
        """Begin the grid at `origin_s` (session time)."""
        self._origin_s = origin_s
        self._pending: deque[tuple[float, float | str]] = deque()
        self._records: deque[tuple[float, float]] = deque()
        self._pauses: list[tuple[float, float]] = [(origin_s, 0.0)]
        self._is_paused = False
        self.phase: str | None = None
        """The phase the job is in, or None before it said."""
        self.heard_phase: str | None = None
        """The newest phase it spoke of, not counted yet."""
        self.has_advanced = False
        """Whether the newest counter heard of, not counted yet, is beyond the first."""
        self._heard_units: float | None = None
        self._step_times, self._phase_times = Times(origin_s), Times(origin_s)
        self._resolved = 0
        self.last_progress_s: float | None = None
        """Instant of the last record that advanced the counter."""
        self.first_progress_s: float | None = None
        """Instant from which units were counted: the record before the first that advanced."""
        self.units_done: float | None = None
        """The newest counter."""
        self._last_t_s = -np.inf
        self._seconds = Table(("units", "active", "stalled", "paused"), SECONDS_KEPT)
        self.bins = Table(
            ("units", "active", "units_flow", "active_flow", "rate", "flow", "outlier"),
            HISTORY_BINS,
        )
        """Per bin: units and un-paused seconds; the same without stalled seconds; their rates."""

    def add_steps(self, t_s: float, units_done: float) -> None:
        """Queue one record of the cumulative counter."""
        if self._step_times.accept(t_s):
            self._pending.append((t_s, units_done))
            least = self._heard_units if self._heard_units is not None else 0.0
            self.has_advanced = self.has_advanced or units_done > least
            self._heard_units = units_done

    def add_phase(self, t_s: float, phase: str) -> None:
        """Queue a change of phase."""
        if self._phase_times.accept(t_s):
            self._pending.append((t_s, phase))
            self.heard_phase = phase

    def _take(self, until_s: float) -> None:
        """Take in what was queued and happened before `until_s`."""
        pending = self._pending
        while pending and pending[0][0] < until_s:
            t_s, what = pending.popleft()
            if isinstance(what, str):
                self._enter(t_s, what)
            else:
                self._count(t_s, what)

    def _count(self, t_s: float, units_done: float) -> None:
        """One record; going back in time it is ignored, going back in count it re-bases."""
        if t_s <= self._last_t_s:
            return
        if self.units_done is not None and units_done < self.units_done:
            self._records.clear()
            self._resolved = max(self._resolved, int(np.ceil(t_s - self._origin_s)))
        elif self.units_done is None and units_done > 0 and not self._records:
            # The counter stood at 0 when the job began; what came before this record is unknown
            # in time, so the rate starts here.
            self.first_progress_s = t_s
            self.last_progress_s = t_s
        elif self.units_done is not None and units_done > self.units_done:
            if self.first_progress_s is None:
                self.first_progress_s = self._last_t_s
            self.last_progress_s = t_s
        self._records.append((t_s, units_done))
        self._last_t_s = t_s
        self.units_done = units_done

    def _enter(self, t_s: float, phase: str) -> None:
        """The job entered a phase; everything but `train` is paused time."""
        self.phase = phase
        is_paused = phase != "train"
        if is_paused == self._is_paused:
            return
        last_t, total = self._pauses[-1]
        t_s = max(t_s, last_t)
        self._pauses.append((t_s, total + (t_s - last_t if self._is_paused else 0.0)))
        self._is_paused = is_paused

    def skip_to(self, t_s: float) -> None:
        """Time jumped to `t_s` (a suspended machine): count afresh from there."""
        self._take(t_s)
        self._records.clear()
        if self.last_progress_s is not None:
            self.last_progress_s = t_s

    def paused_s(self, t: Array) -> Array:
        """Paused seconds since the origin at each instant."""
        last_t, total = self._pauses[-1]
        if t.size and t[0] > last_t:
            late: Array = total + (t - last_t) * self._is_paused
            return late
        knots = np.array(self._pauses)
        before = np.interp(t, knots[:, 0], knots[:, 1])
        return np.where(t > last_t, total + (t - last_t) * self._is_paused, before)

    def still_s(self, t_s: float) -> float:
        """Un-paused seconds without progress until `t_s`."""
        since = self.last_progress_s if self.last_progress_s is not None else self._origin_s
        if since > self._pauses[-1][0] and not self._is_paused:
            return max(0.0, t_s - since)
        paused = self.paused_s(np.array([since, t_s]))
        return max(0.0, (t_s - since) - float(paused[1] - paused[0]))

    def close_bin(self, k: int) -> None:
        """Count everything known by now into the bins up to `k`."""
        end = (k + 1) * SECONDS_PER_BIN
        self._take(self._origin_s + end + LATE_S)
        self.bins.grow(k + 1)
        self._seconds.grow(end + SECONDS_PER_BIN)
        self._resolved = max(self._resolved, self._seconds.first)
        start = self._resolved
        self._pause_seconds(k)
        if len(self._records) > 1:
            self._resolve(end + GUARD_S + 1)
        # A bin stands on its own seconds and on the guard behind it: those before are complete.
        first = (start - SECONDS_PER_BIN - GUARD_S) // SECONDS_PER_BIN + 1
        for b in range(max(min(k, first), self.bins.first, 0), k + 1):
            self._fill(b)
        while len(self._pauses) > 8 and self._pauses[4][0] < self._origin_s + end - SECONDS_KEPT:
            del self._pauses[0]

    def _pause_seconds(self, k: int) -> None:
        """Mark how much of each second of bin `k` and the guard after it was paused."""
        first = k * SECONDS_PER_BIN
        edges = self._origin_s + first + _EDGES
        self._seconds.put("paused", first, np.diff(self.paused_s(edges)))

    def _resolve(self, limit: int) -> None:
        """Spread the records' units over the seconds that lie between records."""
        t = np.array([r[0] for r in self._records])
        units = np.array([r[1] for r in self._records])
        first = max(self._resolved, int(np.ceil(t[0] - self._origin_s)))
        last = min(int(np.floor(t[-1] - self._origin_s)), limit)
        if last <= first:
            return
        edges = self._origin_s + np.arange(first, last + 1, dtype=np.float64)
        paused = self.paused_s(edges)
        at = edges - _PAUSED * paused
        done = np.interp(at, t - _PAUSED * self.paused_s(t), units)
        seconds = self._seconds
        seconds.put("units", first, np.diff(done))
        seconds.put("active", first, np.clip(1.0 - np.diff(paused), 0.0, 1.0))
        self._resolved = last
        self._mark_stalls(first, last)
        edge = self._origin_s + last
        while len(self._records) > 2 and self._records[1][0] <= edge:
            self._records.popleft()

    def _mark_stalls(self, first: int, last: int) -> None:
        """Mark the seconds far below the median of the last minute."""
        start = min(first, last - STALL_MEDIAN_S)
        active = self._seconds.get("active", start, last)
        units = self._seconds.get("units", start, last)
        rate = np.where(active >= STALL_RATE_S, units / np.maximum(active, STALL_RATE_S), np.nan)
        middle = float(nan_median(rate))
        spread = float(nan_median(np.abs(rate - middle)))
        allowed = max(
            STALL_MADS * spread, STALL_DROP_FRAC * middle, STALL_STEPS * _step(rate, middle)
        )
        floor = middle - allowed
        new = rate[len(rate) - (last - first) :]
        self._seconds.put("stalled", first, (new < floor).astype(np.float64))

    def quiet(self, k: int) -> tuple[Array, Array]:
        """Per second of bin `k`, guards included: is it un-paused, and is it un-stalled too."""
        first = k * SECONDS_PER_BIN
        start, end = first - GUARD_S, first + SECONDS_PER_BIN + GUARD_S
        seconds = self._seconds
        skip = max(0, max(start, seconds.first) - start)
        is_paused = seconds.get("paused", start, end) > 0.0
        is_stalled = seconds.get("stalled", start, end) > 0.0
        if not is_paused.any() and not is_stalled.any():
            return _ALL_QUIET
        out = np.zeros((2, SECONDS_PER_BIN + 2 * GUARD_S), dtype=bool)
        out[0, skip:], out[1, skip:] = is_paused, is_stalled
        near = out.copy()
        for shift in range(1, GUARD_S + 1):
            near[:, shift:] |= out[:, :-shift]
            near[:, :-shift] |= out[:, shift:]
        near = near[:, GUARD_S:-GUARD_S]
        return ~near[0], ~(near[0] | near[1])

    def _fill(self, k: int) -> None:
        """Sum the seconds of bin `k`."""
        first = k * SECONDS_PER_BIN
        if first < self._seconds.first:
            return
        last = first + SECONDS_PER_BIN
        units = self._seconds.get("units", first, last)
        active = self._seconds.get("active", first, last)
        quiet = self.quiet(k)[1]
        total = flow_units = float(units.sum())
        seconds = flow_s = float(active.sum())
        if quiet is not _ALL_QUIET[1] or total != total:
            known = np.isfinite(units)
            active = np.where(known, active, 0.0)
            units = np.where(known, units, 0.0)
            flow = quiet & known
            total, seconds = float(units.sum()), float(active.sum())
            flow_units, flow_s = float(units[flow].sum()), float(active[flow].sum())
            if not known.any():
                total = seconds = np.nan
        rate = total / seconds if seconds >= MIN_ACTIVE_S else np.nan
        flow_rate = flow_units / flow_s if flow_s >= MIN_ACTIVE_S else np.nan
        self.bins.set_row(k, (total, seconds, flow_units, flow_s, rate, flow_rate))

    @property
    def covered_s(self) -> float:
        """Session time up to which units are known."""
        return self._origin_s + self._resolved

    def first_bin(self) -> int | None:
        """The bin of the first progress, or None before it."""
        if self.first_progress_s is None:
            return None
        return max(0, int((self.first_progress_s - self._origin_s) // BIN_S))
