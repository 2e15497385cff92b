"""One job under judgement, bin by bin: load, epochs, cycle, window, tests, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state import flags, reasons, sustained
from heatsoak.steady_state.channels import (
    fast_throttle,
    mark_outliers,
    newest_series,
    newest_thermal,
    run_tests,
    search_cycle,
)
from heatsoak.steady_state.epoch import SPAN_BINS, Epochs, Reset
from heatsoak.steady_state.gate import RATE, Gate
from heatsoak.steady_state.hold import Hold, judged_window, still_warming, time_left
from heatsoak.steady_state.protocols import (
    BIN_S,
    CYCLE_EVERY_BINS,
    CYCLE_MIN_BINS,
    READING_AT_S,
    SECONDS_PER_BIN,
    SILENT_S,
    UNHEARD_S,
    Protocol,
)
from heatsoak.steady_state.subject import Subject
from heatsoak.steady_state.throughput import Throughput
from heatsoak.steady_state.verdict import Flag, State, Sustained, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.steady_state.cycles import Cycle
    from heatsoak.steady_state.verdict import Cycling
    from heatsoak.telemetry.device import DeviceInfo

_EVERYTHING = np.ones(SECONDS_PER_BIN, dtype=bool)
Bins = tuple[int, int]
"""Bins from the first to one past the last."""


class Trial:
    """The evidence on one job and its devices, and what follows from it now."""

    def __init__(
        self, protocol: Protocol, devices: Sequence[DeviceInfo], origin_s: float, *, counts: bool
    ) -> None:
        """Begin at `origin_s`; `counts` says whether there is a counter to expect."""
        self._protocol = protocol
        self._origin_s = origin_s
        self._counts = counts
        self.subjects = [Subject(info, origin_s) for info in devices]
        self.job = Throughput(origin_s) if counts else None
        self.end = 0
        """One past the newest closed bin."""
        self.load_bin: int | None = None
        """Where the load begins; None before it."""
        self.window: Bins | None = None
        """The judged window, the reported one once frozen."""
        self.left_s: tuple[float, float] | None = None
        """Range of the time to steady state."""
        self.read_at: dict[float, float] = {}
        """What fixed soaks of these lengths read, units a second."""
        self.is_holding = False
        self._is_silent = False
        self._is_noise_limited = False
        self._epochs = Epochs(0)
        self._reset: Reset | None = None
        self._cycle: Cycle | None = None
        self._fast: Cycle | None = None
        self._hold = Hold()
        self._gate = Gate(protocol)

    def live(self) -> list[Subject]:
        """The devices without a final state."""
        return [subject for subject in self.subjects if subject.final is None]

    def at_s(self, k: int) -> float:
        """Session time at which bin `k` begins."""
        return self._origin_s + k * BIN_S

    def run_s(self) -> float:
        """Time since the load began."""
        return (self.end - (self.load_bin or 0)) * BIN_S

    # -- bin by bin ----------------------------------------------------------------------------

    def skip_to(self, k: int) -> None:
        """Time jumped to bin `k` (a suspended machine): what came before is over."""
        self._begin_epoch()
        self.end = k
        self._epochs.start_bin = k
        if self.job is not None:
            self.job.skip_to(self.at_s(k))

    def close_bin(self) -> None:
        """Take in what belongs to the next bin."""
        k = self.end
        self.end += 1
        quiet = (_EVERYTHING, _EVERYTHING)
        if self.job is not None:
            self.job.close_bin(k)
            quiet = self.job.quiet(k)
        load_s = None if self.load_bin is None else self.at_s(self.load_bin)
        for subject in self.subjects:
            subject.readings.close_bin(k, self._origin_s, quiet)
            subject.readings.exclude_stuck(k, self._origin_s, load_s)
        if self.load_bin is None:
            self._find_load(k)
        if self.load_bin is not None:
            mark_outliers(self.job, self.live(), k)
            self._read_fixed(self.load_bin)

    def _find_load(self, k: int) -> None:
        """The load begins with the first progress, or the first reading of a bare log."""
        if self.job is not None:
            self.load_bin = self.job.first_bin()
        elif any(s.readings.bins.get("count", k, k + 1).sum() > 0 for s in self.subjects):
            self.load_bin = k
        if self.load_bin is not None:
            self._epochs = Epochs(self.load_bin)

    def _read_fixed(self, load_bin: int) -> None:
        for at_s in READING_AT_S if self.job is not None else ():
            if at_s not in self.read_at and self.job is not None:
                reading = sustained.reading_at(self.job, load_bin, at_s)
                if reading is not None:
                    self.read_at[at_s] = reading

    def _begin_epoch(self) -> None:
        if self.window is not None and self._hold.start_bin is not None:
            self._gate.end_epoch(self.job, self.live(), self.window)
        self._hold = Hold()
        self.window = None

    def look_for_changes(self) -> None:
        """Search the newest bins for a cycle and for the start of a new epoch."""
        k, live, load_bin = self.end - 1, self.live(), self.load_bin or 0
        was_silent, self._is_silent = self._is_silent, self._any_silent(SILENT_S) is not None
        if was_silent and not self._is_silent:
            # What a device did while it did not answer nobody knows: it is judged anew.
            self._begin_epoch()
            self._epochs.start_bin = k
        if (k - load_bin) % CYCLE_EVERY_BINS == 0:
            self._cycle = search_cycle(self.job, live, load_bin, self.end)
            self._fast = fast_throttle(live, self.end - CYCLE_MIN_BINS, self.end)
            self._gate.period_bins = self._cycle.period_bins if self._cycle is not None else 0.0
        newest = newest_series(self.job, live, k, self._gate.period_bins)
        reset = self._epochs.update(k, newest, newest_thermal(live, k))
        if reset is not None:
            self._reset = reset
            self._begin_epoch()

    def warming(self) -> str:
        """Place the window; what is waited for before anything is judged, or empty."""
        age_s = self._age_s()
        period_s = self._gate.period_bins * BIN_S
        self.window = judged_window(self._protocol, self.end - 1, age_s, period_s)
        self.left_s = None
        self.is_holding = False
        return still_warming(self._protocol, self._reset, self.run_s(), age_s)

    @property
    def period_bins(self) -> float:
        """Period of the cycle the channels go through, 0 without one."""
        return self._gate.period_bins

    def _age_s(self) -> float:
        return (self.end - self._epochs.start_bin) * BIN_S

    def test(self, most_s: float) -> tuple[Bins | None, str]:
        """Test all channels of the window.

        Args:
            most_s: time left until the time-out.

        Returns:
            The bins to report if the numbers may be frozen, else None and, where only noise is in
            the way, why the interval does not close.
        """
        p, live, k = self._protocol, self.live(), self.end - 1
        if self.window is None or not live:
            return None, ""
        age_s, is_late = self._age_s(), self.run_s() >= p.late_s
        run_tests(
            p,
            self.job,
            live,
            self.window,
            self._epochs.start_bin,
            period_bins=self._gate.period_bins,
            is_holding=self._hold.start_bin is not None,
            is_late=is_late,
        )
        is_pass = not self._is_silent and all(s.tests and s.blocking is None for s in live)
        self._hold.step(k, is_pass=is_pass)
        hold_bin = self._hold.start_bin
        self.is_holding = hold_bin is not None
        hold_left_s = self._hold.left_s(k, age_s, p.hold_s) if self.is_holding else None
        report, noise = None, ""
        if is_pass and hold_bin is not None and hold_left_s == 0.0:
            report, noise = self._gate.report_window(
                self.job, live, self.window, hold_bin, self._epochs.start_bin, is_late=is_late
            )
            if report is not None and not is_late and (early := self._too_early()):
                report, noise = None, early
        if (unheard := self._any_silent(UNHEARD_S)) is not None:
            report, noise = None, f"{unheard.info.device_id} does not answer"
        worst = max((s.worst.severity for s in live if s.worst), default=None)
        if worst is not None and report is None:
            self.left_s = time_left(worst, age_s, hold_left_s, most_s)
        return report, noise

    def _any_silent(self, least_s: float) -> Subject | None:
        """A device that has not answered for so long, or None."""
        now_s = self.at_s(self.end)
        return next((s for s in self.live() if s.readings.is_silent(now_s, least_s)), None)

    def _too_early(self) -> str:
        """Why a steady window is not believed before `Protocol.late_s`, or empty."""
        start, end = self.window or (0, 0)
        for subject in self.live():
            if flags.is_starved(subject.readings, start, end):
                return reasons.starved(self._protocol.late_s)
            if flags.is_spent(subject, end):
                return reasons.spent(self._protocol.late_s)
        return ""

    def early_words(self) -> str:
        """What is waited for before the first bin with progress is closed, by the newest news."""
        job = self.job
        if job is not None and job.has_advanced:
            return still_warming(self._protocol, None, 0.0, 0.0)
        phase = job.heard_phase if job is not None else None
        return reasons.before_progress(phase, counts=job is not None)

    # -- what follows --------------------------------------------------------------------------

    def freeze(self, report: Bins) -> None:
        """Freeze the numbers of the live devices over the bins `report`."""
        self.window = report
        self.left_s = None
        widest, _ = self._gate.widest(self.job, self.live(), report)
        self._is_noise_limited = widest > self._protocol.gate_pct
        for subject in self.live():
            subject.frozen = self._summarize(subject, report)

    def numbers(self, subject: Subject) -> Sustained | None:
        """The frozen numbers, else those of the last window, None before there is one."""
        if subject.frozen is not None or self.window is None:
            return subject.frozen
        self._gate.pool(self.job, self.subjects, self.window)
        return self._summarize(subject, self.window)

    def _summarize(self, subject: Subject, window: Bins) -> Sustained:
        return sustained.summarize(
            self.job,
            subject.readings,
            *window,
            origin_s=self._origin_s,
            pooled=(self._gate.pooled(RATE), self._gate.pooled(subject.info.device_id)),
            heat_pct=subject.heat_pct,
            period_bins=self._gate.period_bins,
        )

    def best_early(self) -> tuple[float, float] | None:
        """The best 30 s of rate before the window and when it began, or None."""
        if self.job is None or self.load_bin is None:
            return None
        end = self.window[0] if self.window is not None else self.end
        return sustained.best_before(self.job, self.load_bin, end, self._origin_s)

    def verdict(self, subject: Subject, state: State, t_s: float, reason: str) -> Verdict:
        """A device's verdict, with what it stands on."""
        window, blocking = self.window, subject.blocking
        if state != "warming":
            reason += reasons.span(self.left_s)
            bare = flags.is_bare(subject.readings, self.end)
            stuck = subject.readings.stuck
            note = reasons.notes(subject.channels, stuck, self._cycling, is_bare=bare)
            reason += f" ({note})" if note else ""
        return Verdict(
            t_s=t_s,
            device_id=subject.info.device_id,
            state=state,
            flags=self._flags(subject, state),
            reason=reason,
            channels=subject.channels,
            bounds=tuple(test.bound for test in subject.tests),
            blocked_by=blocking.bound.channel if blocking is not None else None,
            window_start_s=None if window is None else self.at_s(window[0]),
            window_s=None if window is None else (window[1] - window[0]) * BIN_S,
            frozen_at_s=t_s if state == "steady" else None,
            time_left_s=self.left_s,
            cycle=None if state == "warming" else self._cycling,
        )

    @property
    def _cycling(self) -> Cycling | None:
        """What is said of the cycle: a fast throttle's own period rather than its beat in bins."""
        slow, fast = self._cycle, self._fast
        if fast is not None and (slow is None or fast.period_bins < slow.period_bins):
            return fast.told
        return slow.told if slow is not None else None

    def _flags(self, subject: Subject, state: State) -> tuple[Flag, ...]:
        start = self.window[0] if self.window is not None else self.end - SPAN_BINS
        out = flags.all_flags(
            subject,
            state,
            (start, self.end),
            is_disturbed=self._reset is not None,
            is_cycling=self._cycling is not None,
            is_noise_limited=self._is_noise_limited,
        )
        if not self._counts:
            out.append("no-throughput")
        if self._protocol.name == "smoke":
            out.append("smoke")
        return tuple(out)
