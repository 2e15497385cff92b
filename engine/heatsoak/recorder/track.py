"""One job of a run: its process, its devices and its judge, and what of them goes into the file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heatsoak.clock import monotonic_s
from heatsoak.progress import Failed, Hello, Integrity, Phase, Steps
from heatsoak.recorder.evidence import Evidence
from heatsoak.session.result import result_entry
from heatsoak.session.rows import LogRow, PhaseRow, ResultRow, StepsRow
from heatsoak.session.warnings import name_of
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.verdict import FINAL_STATES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from heatsoak.launch.job import Job, TimedRecord
    from heatsoak.recorder.pending import Pending
    from heatsoak.session.rows import JobRow
    from heatsoak.steady_state.protocols import Protocol
    from heatsoak.steady_state.verdict import Result, State, Verdict
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample
    from heatsoak.telemetry.sampler import DeviceFault

VERDICT_EVERY_S = 10.0
"""Session seconds between two verdict rows of a device whose verdict does not change."""
LATE_MOST_S = 30.0
"""A job's records are waited for by as much as they have come late so far, but no longer."""
LOST_WITHIN_S = 3.0
"""A lost card takes its workload with it; so long (real seconds) the loss may take to be seen
before the workload's end is called a failure of its own."""

TOLD_FLAGS = {
    "disturbed": "disturbed; what was learned before no longer counts",
    "throttled": "throttled by heat",
    "external-cap": "held well below its power limit by something else",
    "unsaturated": "the workload does not load it fully",
    "superseded": "the frozen numbers are no longer true",
}
"""Flags that are news when they come; the others describe the device or the protocol."""


class Track:
    """A job from its start to its end."""

    def __init__(
        self,
        row: JobRow,
        job: Job,
        devices: Sequence[DeviceInfo],
        protocol: Protocol,
        siblings: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """A job on its devices.

        Args:
            row: the job.
            job: what runs.
            devices: its devices, in the order of their ranks.
            protocol: how it is judged.
            siblings: by device that is a MIG slice, the other slices of its card in this run.
        """
        self.row = row
        self.job = job
        self.judge = Judge(protocol, devices)
        self.devices = {device.device_id: device for device in devices}
        self.verdicts: dict[str, Verdict] = {}
        """The last verdict of each device."""
        self.end_words: dict[str, str] = {}
        """Why a device's judgement ended other than by the judge, by device."""
        self.units_done: float | None = None
        self._second = -1
        """The last session second that has its row of progress."""
        self._loss: float | None = None
        """The newest loss that has no row yet."""
        self._late_s = 0.0
        """How late its records come."""
        self._written: dict[str, Verdict] = {}
        self._results: dict[str, ResultRow] = {}
        self._evidence = {device.device_id: Evidence(device) for device in devices}
        for device_id, others in (siblings or {}).items():
            if device_id in self._evidence:
                self._evidence[device_id].soaked_with = tuple(others)
        self._told: set[tuple[str, str]] = set()
        self._failed_at_s: float | None = None
        self._is_failure_told = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be learned from this job."""
        return self.judge.is_over

    def start(self, t_s: float, pending: Pending) -> None:
        """Start the job."""
        self.judge.start(t_s)
        self.job.start(t_s)
        where = ", ".join(self.devices)
        text = f"{self.row.workload} {self.row.recipe.size} starts on {where}"
        pending.event(t_s, "start", text, job_id=self.row.job_id)

    def add_sample(self, sample: DeviceSample, pending: Pending) -> None:
        """A reading of one of its devices."""
        self.judge.add_sample(sample)
        evidence = self._evidence[sample.device_id]
        if evidence.add(sample) and evidence.mute:
            names = ", ".join(map(name_of, evidence.mute))
            text = f"{sample.device_id}: no value of {names} so far, though the driver knows of it"
            pending.event(sample.t_s, "warning", text, device_id=sample.device_id,
                          missing=list(evidence.mute))  # fmt: skip

    def see_busy(self, t_s: float, device_id: str, uuids: Sequence[str], pending: Pending) -> None:
        """Slices of the same card as `device_id`, not of this run, are in use."""
        fresh = self._evidence[device_id].see_busy(t_s, uuids)
        if fresh:
            text = f"{device_id}: {', '.join(fresh)} on the same card is busy: no perf/W meanwhile"
            pending.event(t_s, "warning", text, device_id=device_id, busy=fresh)

    def add_fault(self, fault: DeviceFault, pending: Pending) -> None:
        """One of its devices could not be read, or says what cannot be."""
        device_id = fault.device_id
        if fault.kind == "suspect":
            self._evidence[device_id].suspect.append(fault.text)
            text = f"{device_id}: {fault.text}"
            pending.event(fault.t_s, "warning", text, device_id=device_id)
            return
        if fault.kind == "error":
            pending.event(fault.t_s, "error", f"{device_id}: {fault.text}", device_id=device_id)
            return
        text = f"{device_id} is lost: {fault.text}"
        pending.event(fault.t_s, "lost", text, device_id=device_id)
        self.close(fault.t_s, "lost", text, pending, device_id=device_id)

    def poll(self, t_s: float, pending: Pending) -> None:
        """Take in what the job reported, printed and complained about."""
        for timed in self.job.poll(t_s):
            self._late_s = max(self._late_s, min(t_s - timed.t_s, LATE_MOST_S))
            self._take(timed, pending)
        job_id = self.row.job_id
        for line in self.job.take_log():
            pending.logs.append(LogRow(line.t_s, job_id, line.stream, line.text))
        for text in self.job.take_warnings():
            pending.event(t_s, "warning", text, job_id=job_id)
        if self.job.failure is not None and not self._is_failure_told:
            self._tell_failure(t_s, self.job.failure, pending)

    def evaluate(self, t_s: float, pending: Pending) -> None:
        """Judge."""
        if self.is_over:
            return
        verdicts = self.judge.evaluate(t_s - self._late_s)
        for device_id, channels in self.judge.stuck().items():
            self._tell_stuck(t_s, device_id, channels, pending)
        self._take_verdicts(verdicts, pending)

    def close(
        self,
        t_s: float,
        state: State,
        reason: str,
        pending: Pending,
        *,
        device_id: str | None = None,
        words: str | None = None,
    ) -> None:
        """End the judgement of one or all devices from outside; what is final stays as it is.

        Args:
            t_s: when.
            state: the final state.
            reason: one sentence, for the verdict.
            pending: takes the rows.
            device_id: the device, or None for all of the job.
            words: more than the reason, for the end of the session.
        """
        for one in self.devices if device_id is None else (device_id,):
            if one not in self.verdicts or self.verdicts[one].state not in FINAL_STATES:
                self.end_words[one] = words or reason
        self._take_verdicts(self.judge.close(t_s, state, reason, device_id), pending)
        if self.is_over:
            self.job.stop()

    def finish(
        self,
        t_s: float,
        pending: Pending,
        health: Callable[[str], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        """The run ends: the last verdict and result of every device.

        Args:
            t_s: when.
            pending: takes the rows.
            health: what a device counted of its own defects over the run.
        """
        for result in self.judge.results():
            verdict = result.verdict
            self.verdicts[verdict.device_id] = verdict
            if self._written.get(verdict.device_id) != verdict:
                self._write(verdict, pending)
            entry = self._entry(result) | {"health": health(verdict.device_id)}
            row = ResultRow(t_s, verdict.device_id, self.row.job_id, entry)
            before = self._results.get(verdict.device_id)
            if before is None or before.data != entry:
                pending.results.append(row)

    def _take(self, timed: TimedRecord, pending: Pending) -> None:
        t_s, record = timed
        job_id = self.row.job_id
        if isinstance(record, Steps):
            self.units_done = record.units_done
            # The first of each second goes into the file, and the judge sees what the file holds:
            # judged again, a session says what was said live.
            self._loss = record.loss if record.loss is not None else self._loss
            if int(t_s) > self._second:
                self.judge.add_steps(t_s, record.units_done)
                row = StepsRow(t_s, job_id, record.units_done, record.steps_done, self._loss)
                pending.step(row)
                self._second, self._loss = int(t_s), None
        elif isinstance(record, Phase):
            self.judge.add_phase(t_s, record.phase)
            pending.phases.append(PhaseRow(t_s, job_id, record.phase))
        elif isinstance(record, Hello):
            facts = {**record.facts, "device_name": record.device_name}
            self.row = replace(self.row, unit=record.unit, facts=facts)
            pending.jobs[job_id] = self.row
        elif isinstance(record, Integrity):
            checked = {"checks": record.checks, "failures": record.failures}
            facts = {**self.row.facts, "integrity": checked}
            self.row = replace(self.row, facts=facts)
            pending.jobs[job_id] = self.row
            if record.failures:
                pending.event(t_s, "warning", record.text, job_id=job_id,
                              checks=record.checks, failures=record.failures)  # fmt: skip
        elif isinstance(record, Failed):
            pending.event(t_s, "error", record.text, job_id=job_id)
        # Done needs no row: its counters were in the last steps record, its end is the job's.

    def _tell_failure(self, t_s: float, failure: str, pending: Pending) -> None:
        if self.is_over and not any(self.verdicts[d].state == "steady" for d in self.devices):
            self._is_failure_told = True  # Its device was lost, or it was given up, before.
            return
        now_s = monotonic_s()
        if self._failed_at_s is None:
            self._failed_at_s = now_s
        may_be_lost = any(device.kind == "nvidia" for device in self.devices.values())
        if may_be_lost and now_s - self._failed_at_s < LOST_WITHIN_S:
            return
        self._is_failure_told = True
        tail = list(self.job.stderr_tail)
        text = f"{failure}; its last words: {' | '.join(tail[-3:])}" if tail else failure
        pending.event(t_s, "error", text, job_id=self.row.job_id, stderr=tail)
        self.close(t_s, "failed", failure, pending, words=text)

    def _take_verdicts(self, verdicts: Sequence[Verdict], pending: Pending) -> None:
        for verdict in verdicts:
            device_id = verdict.device_id
            before = self.verdicts.get(device_id)
            self.verdicts[device_id] = verdict
            last = self._written.get(device_id)
            if (
                last is None
                or _gist(last) != _gist(verdict)
                or verdict.t_s - last.t_s >= VERDICT_EVERY_S
            ):
                self._write(verdict, pending)
            self._tell_change(before, verdict, pending)
            if verdict.state == "steady" and device_id not in self._results:
                self._freeze(verdict, pending)

    def _write(self, verdict: Verdict, pending: Pending) -> None:
        self._written[verdict.device_id] = verdict
        pending.verdicts.append(verdict)

    def _tell_change(self, before: Verdict | None, verdict: Verdict, pending: Pending) -> None:
        device_id, flags = verdict.device_id, list(verdict.flags)
        if before is None or before.state != verdict.state:
            said = verdict.reason.removeprefix(f"{verdict.state}: ")
            text = f"{device_id} {verdict.state}: {said}"
            pending.event(verdict.t_s, "state", text, device_id=device_id,
                          state=verdict.state, flags=flags)  # fmt: skip
        for flag in flags:
            is_new = before is None or flag not in before.flags
            if (
                is_new
                and flag in TOLD_FLAGS
                and (flag == "disturbed" or (device_id, flag) not in self._told)
            ):
                self._told.add((device_id, flag))
                kind = "disturbed" if flag == "disturbed" else "warning"
                text = f"{device_id}: {TOLD_FLAGS[flag]}"
                pending.event(verdict.t_s, kind, text, device_id=device_id, flag=flag)

    def _tell_stuck(
        self, t_s: float, device_id: str, channels: frozenset[str], pending: Pending
    ) -> None:
        evidence = self._evidence[device_id]
        for channel in sorted(channels - evidence.stuck):
            text = f"{device_id}: its {channel} sensor is stuck; what it says is left out"
            pending.event(t_s, "warning", text, device_id=device_id, stuck=channel)
        for channel in sorted(evidence.stuck - channels):
            text = f"{device_id}: its {channel} sensor moves again"
            pending.event(t_s, "warning", text, device_id=device_id)
        evidence.stuck = channels

    def _entry(self, result: Result) -> dict[str, Any]:
        """The entry of a device as it stands; of a frozen one with what stood behind the freeze."""
        evidence, verdict = self._evidence[result.device_id], result.verdict
        frozen = self._results.get(result.device_id)
        if frozen is not None:
            known = {key: frozen.data[key] for key in evidence.KEYS}
        else:
            known = evidence.entry(verdict.window_start_s, verdict.window_s)
        return result_entry(result, self.devices[result.device_id], self.row.unit, known)

    def _freeze(self, verdict: Verdict, pending: Pending) -> None:
        for result in self.judge.results():
            if result.device_id == verdict.device_id:
                entry = self._entry(result)
                row = ResultRow(verdict.t_s, result.device_id, self.row.job_id, entry)
                self._results[result.device_id] = row
                pending.results.append(row)


def _gist(verdict: Verdict) -> tuple[object, ...]:
    """What makes a verdict another one."""
    return verdict.state, verdict.flags, verdict.blocked_by, verdict.reason
