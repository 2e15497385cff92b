"""The judge of one job and its devices: readings and counters in, verdicts and results out."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state import flags, reasons, sustained
from heatsoak.steady_state.aftermath import Watch
from heatsoak.steady_state.channels import (
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
    GAP_BINS,
    LATE_S,
    READING_AT_S,
    SECONDS_PER_BIN,
    Protocol,
)
from heatsoak.steady_state.subject import Subject
from heatsoak.steady_state.throughput import Throughput
from heatsoak.steady_state.verdict import Flag, Result, State, Sustained, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.steady_state.cycles import Cycle
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

_MOST_UNITS = 1e18
"""A counter beyond is no counter."""
_STILL_AT_TIME_OUT_S = 60.0
"""A counter that has stood still for so long when the time is up did not merely hiccup."""


class Judge:
    """Judges one job and its devices.

    Feed it in the order things happened; `evaluate` may be called at any time and as often as one
    likes: real work is done once per closed bin, with exactly what was known by then, so verdicts
    depend neither on how the feed was cut nor on when `evaluate` was called.
    """

    def __init__(
        self, protocol: Protocol, devices: Sequence[DeviceInfo], *, has_counter: bool = True
    ) -> None:
        """Judge `devices` that run one job together.

        Args:
            protocol: how long and how strictly.
            devices: in the order verdicts are given in.
            has_counter: false for a log without `units_done`.
        """
        self._protocol = protocol
        self._subjects = [Subject(info) for info in devices]
        self._by_id = {s.info.device_id: s for s in self._subjects}
        self._has_counter = has_counter
        self._origin_s: float | None = None
        self._job: Throughput | None = None
        self._next_bin = 0
        self._extra_s = 0.0
        self._load_bin: int | None = None
        self._epochs = Epochs(0)
        self._reset: Reset | None = None
        self._hold = Hold()
        self._gate = Gate(protocol)
        self._window: tuple[int, int] | None = None
        self._cycle: Cycle | None = None
        self._watch: Watch | None = None
        self._is_closed = False
        self._is_noise_limited = False
        self._read_at: dict[float, float] = {}
        self._left_s: tuple[float, float] | None = None
        self._verdicts: tuple[Verdict, ...] = ()
        self._say("warming", 0.0, reasons.before_progress(None))

    # -- what goes in --------------------------------------------------------------------------

    def add_sample(self, sample: DeviceSample) -> None:
        """One reading; of a device that is not judged, or without a finite time, it is ignored."""
        subject = self._by_id.get(sample.device_id)
        if subject is not None and self._is_time(sample.t_s):
            subject.readings.add(sample)

    def add_steps(self, t_s: float, units_done: float) -> None:
        """The job's cumulative counter at an instant."""
        if self._is_time(t_s) and self._job is not None and 0 <= units_done <= _MOST_UNITS:
            self._job.add_steps(t_s, units_done)

    def add_phase(self, t_s: float, phase: str) -> None:
        """The job entered a phase (`heatsoak.progress.PHASES`)."""
        if self._is_time(t_s) and self._job is not None:
            self._job.add_phase(t_s, phase)

    def extend(self, seconds: float) -> None:
        """Give the run more time before it ends `not-steady`."""
        self._extra_s += seconds

    def _is_time(self, t_s: float) -> bool:
        """Whether `t_s` is an instant of the run; the first one heard of begins it."""
        if not isfinite(t_s):
            return False
        if self._origin_s is None:
            self._origin_s = t_s
            if self._has_counter:
                self._job = Throughput(t_s)
        return t_s >= self._origin_s

    # -- what comes out ------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Every device has a final state, and the watch after the freeze is done."""
        if self._live():
            return False
        return self._watch is None or self._watch.is_done or self._is_closed

    def results(self) -> tuple[Result, ...]:
        """All that is known per device: frozen once steady, else of the last window."""
        boost = self._boost()
        out = []
        for subject, verdict in zip(self._subjects, self._verdicts, strict=True):
            numbers = subject.frozen
            if numbers is None and self._window is not None:
                numbers = self._summarize(subject, self._window)
            out.append(
                Result(
                    device_id=subject.info.device_id,
                    verdict=verdict,
                    numbers=numbers,
                    boost=sustained.boost(boost, numbers),
                    at_10_min=self._read_at.get(READING_AT_S[0]),
                    at_20_min=self._read_at.get(READING_AT_S[1]),
                )
            )
        return tuple(out)

    def evaluate(self, t_s: float) -> tuple[Verdict, ...]:
        """The verdicts at `t_s`, one per device; the same objects until the next bin closes."""
        if not self._is_time(t_s) or self._origin_s is None:
            return self._verdicts
        newest = int((t_s - LATE_S - self._origin_s) // BIN_S) - 1
        if newest < self._next_bin or self.is_over:
            return self._verdicts
        if newest - self._next_bin > GAP_BINS:
            self._skip_to(newest - SPAN_BINS)
        while self._next_bin <= newest and not self.is_over:
            k = self._next_bin
            self._next_bin += 1
            self._close_bin(k)
        return self._verdicts

    def close(
        self, t_s: float, state: State, reason: str, device_id: str | None = None
    ) -> tuple[Verdict, ...]:
        """End the judgement from outside: lost, failed, interrupted.

        A device that already has a final state keeps it.

        Args:
            t_s: when.
            state: the final state.
            reason: one sentence.
            device_id: the device, or None for all that are not final.
        """
        for subject, verdict in zip(self._subjects, self._verdicts, strict=True):
            if subject.final is None and device_id in (None, subject.info.device_id):
                subject.final = replace(
                    verdict, t_s=t_s, state=state, reason=reason, time_left_s=None
                )
        if device_id is None:
            self._is_closed = True
        self._publish()
        return self._verdicts

    def finish(self, t_s: float) -> tuple[Verdict, ...]:
        """The readings end at `t_s` (a log's end): judge what is there as at a time-out."""
        self.evaluate(t_s + LATE_S)
        if self._live():
            self._time_out(t_s, "the readings ended")
        self._is_closed = True
        return self._verdicts

    # -- one bin -------------------------------------------------------------------------------

    def _live(self) -> list[Subject]:
        return [subject for subject in self._subjects if subject.final is None]

    def _at_s(self, k: int) -> float:
        """Session time at which bin `k` begins."""
        return (self._origin_s or 0.0) + k * BIN_S

    def _skip_to(self, k: int) -> None:
        """After a long gap: what came before is over."""
        self._begin_epoch()
        self._next_bin = max(self._next_bin, k)
        if self._job is not None:
            self._job.skip_to(self._at_s(k))
        self._epochs.start_bin = self._next_bin

    def _begin_epoch(self) -> None:
        if self._window is not None and self._hold.start_bin is not None:
            self._gate.end_epoch(self._job, self._live(), self._window)
        self._hold = Hold()
        self._window = None

    def _close_bin(self, k: int) -> None:
        t_s = self._at_s(k + 1)
        job = self._job
        everything = np.ones(SECONDS_PER_BIN, dtype=bool)
        quiet = (everything, everything)
        if job is not None:
            job.close_bin(k)
            quiet = job.quiet(k)
        load_s = None if self._load_bin is None else self._at_s(self._load_bin)
        for subject in self._subjects:
            subject.readings.close_bin(k, self._at_s(0), quiet)
            subject.readings.exclude_stuck(k, self._at_s(0), load_s)
        is_up = t_s - self._at_s(0) >= self._protocol.timeout_s + self._extra_s
        if self._load_bin is None:
            self._find_load(k)
        if self._load_bin is None:
            self._await_progress(t_s, is_up=is_up)
            return
        self._take_readings_at()
        mark_outliers(job, self._live(), k)
        if self._watch is not None:
            self._watch.step(job, self._subjects, k)
            self._publish()
            return
        live = self._live()
        if (k - self._load_bin) % CYCLE_EVERY_BINS == 0:
            self._cycle = search_cycle(job, live, self._load_bin, k + 1)
            self._gate.period_bins = self._cycle.period_bins if self._cycle is not None else 0.0
        newest = newest_series(job, live, k, self._gate.period_bins)
        reset = self._epochs.update(k, newest, newest_thermal(live, k))
        if reset is not None:
            self._reset = reset
            self._begin_epoch()
        if self._is_dead(t_s):
            return
        self._judge(k, t_s)
        if is_up and self._live():
            self._time_out(t_s, None)

    def _find_load(self, k: int) -> None:
        """Find where the load begins: the first progress, or the first reading of a bare log."""
        if self._job is not None:
            self._load_bin = self._job.first_bin()
        elif any(s.readings.bins.get("count", k, k + 1).sum() > 0 for s in self._subjects):
            self._load_bin = k
        if self._load_bin is not None:
            self._epochs = Epochs(self._load_bin)

    def _await_progress(self, t_s: float, *, is_up: bool) -> None:
        job = self._job
        phase = job.phase if job is not None else None
        self._say("warming", t_s, reasons.before_progress(phase))
        still_s = job.still_s(t_s) if job is not None else 0.0
        if is_up or (phase == "train" and still_s >= self._protocol.still_s):
            waited_s = t_s - self._at_s(0) if is_up else still_s
            self._end_still(
                t_s, f"no unit of work was finished in {reasons.duration(waited_s)}", "failed"
            )

    def _take_readings_at(self) -> None:
        if self._job is None or self._load_bin is None:
            return
        for at_s in READING_AT_S:
            if at_s not in self._read_at:
                reading = sustained.reading_at(self._job, self._load_bin, at_s)
                if reading is not None:
                    self._read_at[at_s] = reading

    def _is_dead(self, t_s: float) -> bool:
        """End the run where nothing moves any more."""
        if self._job is not None:
            still_s = self._job.still_s(t_s)
            if still_s < self._protocol.still_s:
                return False
            what = f"the counter has not advanced for {reasons.duration(still_s)}"
            self._end_still(t_s, what, "stuck")
            return True
        frozen = [s.readings.liveness.frozen_since_s(t_s) for s in self._live()]
        since = [since_s for since_s in frozen if since_s is not None]
        if not since or len(since) < len(frozen):
            return False
        length = reasons.duration(t_s - max(since))
        for subject in self._live():
            self._end(subject, "stuck", t_s, f"every reading has been identical for {length}")
        self._publish()
        return True

    # -- judging -------------------------------------------------------------------------------

    def _judge(self, k: int, t_s: float) -> None:
        p = self._protocol
        run_s = (k + 1 - (self._load_bin or 0)) * BIN_S
        age_s = (k + 1 - self._epochs.start_bin) * BIN_S
        self._window = judged_window(p, k, age_s, self._gate.period_bins * BIN_S)
        self._left_s = None
        waiting = still_warming(p, self._reset, run_s, age_s)
        if waiting:
            self._say("warming", t_s, waiting)
            return
        live = self._live()
        is_late = run_s >= p.late_s
        is_holding = self._hold.start_bin is not None
        run_tests(
            p,
            self._job,
            live,
            self._window,
            self._epochs.start_bin,
            period_bins=self._gate.period_bins,
            is_holding=is_holding,
            is_late=is_late,
        )
        is_pass = all(subject.tests and subject.blocking is None for subject in live)
        self._hold.step(k, is_pass=is_pass)
        noise = ""
        if is_pass and self._hold.start_bin and not self._hold.left_s(k, age_s, p.hold_s):
            report, noise = self._gate.report_window(
                self._job,
                live,
                self._window,
                self._hold.start_bin,
                self._epochs.start_bin,
                is_late=is_late,
            )
            if report is not None:
                self._freeze(k, t_s, report)
                return
        worst = max((s.worst.severity for s in live if s.worst), default=None)
        if worst is not None:
            end_s = self._at_s(0) + p.timeout_s + self._extra_s
            is_held = self._hold.start_bin is not None
            hold_left_s = self._hold.left_s(k, age_s, p.hold_s) if is_held else None
            self._left_s = time_left(worst, age_s, hold_left_s, end_s - t_s)
        state: State = "settling" if self._hold.start_bin is None else "holding"
        blocked = {s.info.device_id: reasons.blocked(s.blocking) for s in live if s.blocking}
        self._verdicts = tuple(
            s.final or self._verdict(s, state, t_s, reasons.while_judging(s, blocked, noise))
            for s in self._subjects
        )

    def _freeze(self, k: int, t_s: float, report: tuple[int, int]) -> None:
        live = self._live()
        self._watch = Watch(k, self._protocol.watch_s)
        self._window = report
        widest, _ = self._gate.widest(self._job, live, report)
        self._is_noise_limited = widest > self._protocol.gate_pct
        length = reasons.duration((report[1] - report[0]) * BIN_S)
        for subject in live:
            subject.frozen = self._summarize(subject, report)
            self._end(subject, "steady", t_s, f"steady: the numbers of the last {length} are frozen")
        self._publish()

    # -- ends ----------------------------------------------------------------------------------

    def _time_out(self, t_s: float, ended: str | None) -> None:
        """The time is up, or the readings ended: say what blocked."""
        live = self._live()
        if self._window is not None:
            self._gate.pool(self._job, live, self._window)
        when = ended or f"not steady after {reasons.duration(t_s - self._at_s(0))}"
        is_still = self._job is None or self._job.still_s(t_s) >= _STILL_AT_TIME_OUT_S
        for subject in live:
            if is_still and flags.is_idle(subject.readings, self._next_bin):
                self._end(subject, "idle", t_s, f"{when}: the device is idle")
            elif is_still and self._job is not None and self._load_bin is not None:
                self._end(subject, "stuck", t_s, f"{when}: the counter stands still")
            else:
                self._end(subject, "not-steady", t_s, f"{when}: {reasons.at_time_out(subject)}")
        self._publish()

    def _end_still(self, t_s: float, what: str, state: State) -> None:
        for subject in self._live():
            is_idle = flags.is_idle(subject.readings, self._next_bin)
            self._end(subject, "idle" if is_idle else state, t_s, what)
        self._publish()

    def _end(self, subject: Subject, state: State, t_s: float, reason: str) -> None:
        self._left_s = None
        subject.final = self._verdict(subject, state, t_s, reason)

    def _publish(self) -> None:
        self._verdicts = tuple(
            subject.final or verdict
            for subject, verdict in zip(self._subjects, self._verdicts, strict=True)
        )

    # -- verdicts and numbers ------------------------------------------------------------------

    def _say(self, state: State, t_s: float, reason: str) -> None:
        for subject in self._live():
            subject.tests = []
        self._verdicts = tuple(
            subject.final or self._verdict(subject, state, t_s, reason)
            for subject in self._subjects
        )

    def _verdict(self, subject: Subject, state: State, t_s: float, reason: str) -> Verdict:
        window = self._window
        if state != "warming":
            reason += reasons.span(self._left_s)
            bare = flags.is_bare(subject.readings, self._next_bin)
            stuck = subject.readings.stuck
            note = reasons.notes(subject.channels, stuck, self._cycle, is_bare=bare)
            reason += f" ({note})" if note else ""
        blocking = subject.blocking
        return Verdict(
            t_s=t_s,
            device_id=subject.info.device_id,
            state=state,
            flags=self._flags(subject, state),
            reason=reason,
            channels=subject.channels,
            bounds=tuple(test.bound for test in subject.tests),
            blocked_by=blocking.bound.channel if blocking is not None else None,
            window_start_s=None if window is None else self._at_s(window[0]),
            window_s=None if window is None else (window[1] - window[0]) * BIN_S,
            frozen_at_s=t_s if state == "steady" else None,
            time_left_s=self._left_s,
        )

    def _flags(self, subject: Subject, state: State) -> tuple[Flag, ...]:
        start = self._window[0] if self._window is not None else self._next_bin - SPAN_BINS
        out = flags.all_flags(
            subject,
            state,
            (start, self._next_bin),
            is_disturbed=self._reset is not None,
            is_cycling=self._cycle is not None,
            is_noise_limited=self._is_noise_limited,
        )
        if not self._has_counter:
            out.append("no-throughput")
        if self._protocol.name == "smoke":
            out.append("smoke")
        return tuple(out)

    def _summarize(self, subject: Subject, window: tuple[int, int]) -> Sustained:
        return sustained.summarize(
            self._job,
            subject.readings,
            *window,
            origin_s=self._at_s(0),
            pooled=(self._gate.pooled(RATE), self._gate.pooled(subject.info.device_id)),
            heat_pct=subject.heat_pct,
            period_bins=self._gate.period_bins,
        )

    def _boost(self) -> tuple[float, float] | None:
        """Best 30 s before the window."""
        if self._job is None or self._load_bin is None:
            return None
        end = self._window[0] if self._window is not None else self._next_bin
        return sustained.best_before(self._job, self._load_bin, end, self._at_s(0))
