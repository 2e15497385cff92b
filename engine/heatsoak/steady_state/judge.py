"""The judge of one job and its devices: readings and counters in, verdicts and results out."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isfinite
from typing import TYPE_CHECKING

from heatsoak.steady_state import flags, reasons, sustained
from heatsoak.steady_state.aftermath import Watch
from heatsoak.steady_state.epoch import SPAN_BINS
from heatsoak.steady_state.protocols import (
    BIN_S,
    GAP_BINS,
    LATE_S,
    MOST_UNITS,
    READING_AT_S,
    STILL_AT_TIME_OUT_S,
    Protocol,
)
from heatsoak.steady_state.trial import Bins, Trial
from heatsoak.steady_state.verdict import Result, State, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample


class Judge:
    """Judges one job and its devices.

    Feed it in the order things happened; `evaluate(t_s)` says that everything before `t_s` was fed,
    and may be called as often as one likes: real work is done once per closed bin, with exactly
    what had happened by then, so verdicts depend neither on how the feed was cut nor on when
    `evaluate` was called.
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
        self._devices = tuple(devices)
        self._has_counter = has_counter
        self._trial = Trial(protocol, devices, 0.0, counts=has_counter)
        """Of an origin at 0 s until the first instant is heard of."""
        self._origin_s: float | None = None
        self._by_id = {s.info.device_id: s for s in self._trial.subjects}
        self._next_s = -inf
        """Before this instant there is no bin to close."""
        self._extensions: list[tuple[float, float]] = []
        """(when they were asked for, seconds)"""
        self._watch: Watch | None = None
        self._is_closed = False
        self._noise = ""
        self._verdicts: tuple[Verdict, ...] = ()
        self._say("warming", 0.0, self._trial.early_words())

    # -- what goes in --------------------------------------------------------------------------

    def start(self, t_s: float) -> None:
        """The run begins at `t_s`; without this, at the first instant heard of."""
        self._is_time(t_s)

    def add_sample(self, sample: DeviceSample) -> None:
        """One reading; of a device that is not judged, or without a finite time, it is ignored."""
        if self._is_time(sample.t_s):
            subject = self._by_id.get(sample.device_id)
            if subject is not None:
                subject.readings.add(sample)

    def add_steps(self, t_s: float, units_done: float) -> None:
        """The job's cumulative counter at an instant."""
        if self._is_time(t_s) and 0 <= units_done <= MOST_UNITS and self._trial.job is not None:
            self._trial.job.add_steps(t_s, units_done)

    def add_phase(self, t_s: float, phase: str) -> None:
        """The job entered a phase (`heatsoak.progress.PHASES`)."""
        if self._is_time(t_s) and self._trial.job is not None:
            self._trial.job.add_phase(t_s, phase)

    def extend(self, seconds: float, t_s: float = 0.0) -> None:
        """Give the run more time before it ends `not-steady`, asked for at `t_s`."""
        self._extensions.append((t_s, seconds))

    def _is_time(self, t_s: float) -> bool:
        """Whether `t_s` is an instant of the run; the first one heard of begins it."""
        if not isfinite(t_s) or self._is_closed:
            return False
        if self._origin_s is None:
            self._origin_s = t_s
            finals = [subject.final for subject in self._trial.subjects]
            self._trial = Trial(self._protocol, self._devices, t_s, counts=self._has_counter)
            self._by_id = {s.info.device_id: s for s in self._trial.subjects}
            for subject, final in zip(self._trial.subjects, finals, strict=True):
                subject.final = final
        return t_s >= self._origin_s

    # -- what comes out ------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Every device has a final state, and the watch after the freeze is done."""
        return self._is_closed

    def stuck(self) -> dict[str, frozenset[str]]:
        """Channels of each device that do not move as their kind must, as of the newest bin."""
        return {s.info.device_id: frozenset(s.readings.stuck) for s in self._trial.subjects}

    def results(self) -> tuple[Result, ...]:
        """All that is known per device: frozen once steady, else of the last window."""
        trial = self._trial
        best = trial.best_early()
        out = []
        for subject, verdict in zip(trial.subjects, self._verdicts, strict=True):
            numbers = trial.numbers(subject)
            out.append(
                Result(
                    device_id=subject.info.device_id,
                    verdict=verdict,
                    numbers=numbers,
                    boost=sustained.boost(best, numbers),
                    at_10_min=trial.read_at.get(READING_AT_S[0]),
                    at_20_min=trial.read_at.get(READING_AT_S[1]),
                )
            )
        return tuple(out)

    def evaluate(self, t_s: float) -> tuple[Verdict, ...]:
        """The verdicts at `t_s`, one per device; the same objects until the next bin closes."""
        if t_s < self._next_s or not self._is_time(t_s) or self._origin_s is None:
            return self._verdicts
        before = self._trial.end
        end = int((t_s - LATE_S - self._origin_s) // BIN_S)
        if end - self._trial.end > GAP_BINS:
            self._trial.skip_to(end - SPAN_BINS)
        while self._trial.end < end and not self._is_closed:
            self._trial.close_bin()
            self._judge()
            self._note_end()
        if self._trial.load_bin is None and self._trial.end == before and self._trial.live():
            self._say_early(t_s)
        if self._trial.load_bin is not None:
            self._next_s = self._trial.at_s(self._trial.end + 1) + LATE_S - 1e-6
        return self._verdicts

    def _say_early(self, t_s: float) -> None:
        """Before any bin tells of progress, say what was heard."""
        words = self._trial.early_words()
        if any(v.state == "warming" and v.reason != words for v in self._verdicts):
            self._say("warming", t_s, words)

    def close(
        self, t_s: float, state: State, reason: str, device_id: str | None = None
    ) -> tuple[Verdict, ...]:
        """End the judgement from outside: lost, failed, interrupted.

        What happened before `t_s` is judged first; a device that has a final state keeps it.

        Args:
            t_s: when.
            state: the final state.
            reason: one sentence.
            device_id: the device, or None for all that are not final.
        """
        # Where the whole job ends nothing more comes: its last bins wait for no late readings.
        self.evaluate(t_s if device_id is not None else t_s + LATE_S)
        for subject, verdict in zip(self._trial.subjects, self._verdicts, strict=True):
            if subject.final is None and device_id in (None, subject.info.device_id):
                subject.final = replace(
                    verdict, t_s=t_s, state=state, reason=reason, time_left_s=None
                )
        self._publish()
        self._note_end()
        self._is_closed = self._is_closed or device_id is None
        return self._verdicts

    def finish(self, t_s: float) -> tuple[Verdict, ...]:
        """The readings end at `t_s` (a log's end): judge what is there as at a time-out."""
        self.evaluate(t_s + LATE_S)
        if self._trial.live():
            self._time_out(t_s, "the readings ended")
        self._is_closed = True
        return self._verdicts

    def _note_end(self) -> None:
        """Close where every device is final and nothing is watched any more."""
        if not self._trial.live() and (self._watch is None or self._watch.is_done):
            self._is_closed = True

    # -- judging one bin -----------------------------------------------------------------------

    def _judge(self) -> None:
        trial = self._trial
        t_s = trial.at_s(trial.end)
        extra_s = sum(seconds for at_s, seconds in self._extensions if at_s < t_s + LATE_S)
        left_s = trial.at_s(0) + self._protocol.timeout_s + extra_s - t_s
        if trial.load_bin is None:
            self._await_progress(t_s, left_s)
            return
        if self._watch is not None:
            self._watch.step(trial.job, trial.subjects, trial.end - 1)
            self._publish()
            return
        trial.look_for_changes()
        if self._is_dead(t_s):
            return
        waiting = trial.warming()
        if waiting:
            self._say("warming", t_s, waiting)
        elif trial.job is None and self._is_idle():
            self._say("settling", t_s, "the device is idle: there is nothing to judge")
        else:
            report, self._noise = trial.test(left_s)
            if report is not None:
                self._freeze(t_s, report)
                return
            self._explain(t_s)
        if left_s <= 0:
            self._time_out(t_s, None)

    def _await_progress(self, t_s: float, left_s: float) -> None:
        job = self._trial.job
        phase = job.phase if job is not None else None
        self._say("warming", t_s, self._trial.early_words())
        still_s = job.still_s(t_s) if job is not None else 0.0
        if left_s <= 0:
            still_s = t_s - self._trial.at_s(0)
        if left_s <= 0 or (phase == "train" and still_s >= self._protocol.still_s):
            what = f"no unit of work was finished in {reasons.duration(still_s)}"
            self._end_still(t_s, what, "failed")

    def _is_dead(self, t_s: float) -> bool:
        """End the run where nothing moves any more."""
        job, live = self._trial.job, self._trial.live()
        if job is not None:
            still_s = job.still_s(t_s)
            if still_s < self._protocol.still_s:
                return False
            what = f"the counter has not advanced for {reasons.duration(still_s)}"
            self._end_still(t_s, what, "stuck")
            return True
        frozen = [subject.readings.liveness.frozen_since_s(t_s) for subject in live]
        since = [since_s for since_s in frozen if since_s is not None]
        if not since or len(since) < len(frozen):
            return False
        length = reasons.duration(t_s - max(since))
        for subject in live:
            what = f"every reading has been identical for {length}"
            subject.final = self._trial.verdict(subject, "stuck", t_s, what)
        self._publish()
        return True

    def _is_idle(self) -> bool:
        """Whether a device of a log without a counter does nothing."""
        end = self._trial.end
        return any(flags.is_idle(subject.readings, end) for subject in self._trial.live())

    def _explain(self, t_s: float) -> None:
        trial = self._trial
        state: State = "holding" if trial.is_holding else "settling"
        blocked = {
            s.info.device_id: reasons.blocked(s.blocking) for s in trial.live() if s.blocking
        }
        self._verdicts = tuple(
            s.final or trial.verdict(s, state, t_s, reasons.while_judging(s, blocked, self._noise))
            for s in trial.subjects
        )

    # -- ends ----------------------------------------------------------------------------------

    def _freeze(self, t_s: float, report: Bins) -> None:
        trial = self._trial
        trial.freeze(report)
        self._watch = Watch(trial.end - 1, self._protocol.watch_s, trial.period_bins)
        length = reasons.duration((report[1] - report[0]) * BIN_S)
        what = f"steady: the numbers of the last {length} are frozen"
        for subject in trial.live():
            subject.final = trial.verdict(subject, "steady", t_s, what)
        self._publish()

    def _time_out(self, t_s: float, ended: str | None) -> None:
        """The time is up, or the readings ended: say what blocked."""
        trial = self._trial
        job = trial.job
        trial.left_s = None
        when = ended or f"not steady after {reasons.duration(t_s - trial.at_s(0))}"
        is_still = job is None or job.still_s(t_s) >= STILL_AT_TIME_OUT_S
        for subject in trial.live():
            state: State = "not-steady"
            what = reasons.at_time_out(subject, self._noise)
            if is_still and flags.is_idle(subject.readings, trial.end):
                state, what = "idle", "the device is idle"
            elif is_still and job is not None and trial.load_bin is not None:
                state, what = "stuck", "the counter stands still"
            subject.final = trial.verdict(subject, state, t_s, f"{when}: {what}")
        self._publish()

    def _end_still(self, t_s: float, what: str, state: State) -> None:
        trial = self._trial
        trial.left_s = None
        for subject in trial.live():
            is_idle = flags.is_idle(subject.readings, trial.end)
            subject.final = trial.verdict(subject, "idle" if is_idle else state, t_s, what)
        self._publish()

    def _publish(self) -> None:
        self._verdicts = tuple(
            subject.final or verdict
            for subject, verdict in zip(self._trial.subjects, self._verdicts, strict=True)
        )

    def _say(self, state: State, t_s: float, reason: str) -> None:
        for subject in self._trial.live():
            subject.tests = []
        self._verdicts = tuple(
            subject.final or self._trial.verdict(subject, state, t_s, reason)
            for subject in self._trial.subjects
        )
