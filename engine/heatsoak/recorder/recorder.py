"""The one loop that owns a run: readings, jobs, judges, requests and the session file."""

from __future__ import annotations

import os
import queue
import select
import selectors
import signal
import sys
from typing import TYPE_CHECKING, Any

from heatsoak.clock import SessionClock, monotonic_s
from heatsoak.errors import UsageError
from heatsoak.launch.processes import become_subreaper
from heatsoak.recorder.control import Control
from heatsoak.recorder.health import HealthWatch
from heatsoak.recorder.jobs import make_job, siblings_of
from heatsoak.recorder.pending import Pending
from heatsoak.recorder.preflight import preflight
from heatsoak.recorder.silence import Silence
from heatsoak.recorder.status import status
from heatsoak.recorder.track import Track
from heatsoak.session.store import SessionFullError, SessionWriter
from heatsoak.telemetry.sampler import DeviceFault, Sampler

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from heatsoak.recorder.prepare import Prepared
    from heatsoak.session.rows import SessionState

COMMIT_EVERY_S = 1.0
"""Real seconds between two commits."""
LOOK_AT_LEAST_EVERY_S = 0.005
"""Under a high `--speed` the loop looks this often, in real seconds, and no oftener."""
WORST_FIRST: tuple[SessionState, ...] = (
    "interrupted", "failed", "lost", "stuck", "idle", "not-steady", "steady",
)  # fmt: skip
"""The state of a session is the worst of its devices'."""
GONE_WITHIN_S = 30.0
"""Real seconds after which a process that will not die (one inside a driver's call) is left to
its guard."""
LOOK_FOR_END_S = 0.05
EXTEND_MAX_S = 7 * 86400.0
MARK_CHARS = 1000


class Recorder:
    """Owns one run from its first reading to the closed file."""

    def __init__(self, prepared: Prepared, writer: SessionWriter, socket_path: Path) -> None:
        """Make ready; nothing is loaded or read before `run`.

        Args:
            prepared: the run.
            writer: its session file, created.
            socket_path: where to listen for requests.
        """
        become_subreaper()
        self._prepared = prepared
        self._writer = writer
        self._pending = Pending()
        self._clock = SessionClock(prepared.plan.speed)
        self._selector = selectors.DefaultSelector()
        self._control = Control(socket_path, self._selector, self._answer)
        self._sampler = Sampler(prepared.devices, self._clock)
        self._health = HealthWatch(prepared.devices)
        infos = {device.info.device_id: device.info for device in prepared.devices}
        self._tracks = [
            Track(
                row,
                make_job(row, prepared, self._clock),
                [infos[i] for i in row.device_ids],
                prepared.protocol,
                siblings_of(infos.values()),
            )
            for row in prepared.jobs
        ]
        self._track_of = {i: track for track in self._tracks for i in track.devices}
        self._last_sample_s: dict[str, float] = {}
        self._silence = Silence(prepared.plan.speed)
        self._lost: set[str] = set()
        self._evaluated_s = 0.0
        self._end_reason: str | None = None
        """Set once the run is ending."""
        self._is_over = False
        """Whether the run ended because there was nothing more to learn."""
        self._is_killed = False
        self._gone_by_s = float("inf")
        self._signals = 0

    def run(self) -> None:
        """Record until the run is over; returns when its file is closed."""
        self._watch_signals()
        try:
            self._start()
            self._loop()
        finally:
            error = sys.exception()
            if error is not None:  # A defect of ours: the file must say so before we go.
                words = f"the recorder failed: {type(error).__name__}: {error}"
                self._end_reason = " ".join(words.split())
                self._is_killed = True
            self._finish()

    # -- the loop ------------------------------------------------------------------------------

    def _start(self) -> None:
        t_s = self._clock.now_s()
        self._sampler.start()
        self._health.start()
        for device_ids, words in preflight(device.info for device in self._prepared.devices):
            text = f"{', '.join(device_ids)}: {words}"
            device_id = device_ids[0] if len(device_ids) == 1 else None
            self._pending.event(t_s, "warning", text, device_id=device_id, devices=device_ids)
        for track in self._tracks:
            track.start(t_s, self._pending)
            for fd in track.job.filenos():
                self._selector.register(fd, selectors.EVENT_READ, None)

    def _loop(self) -> None:
        look_every_s = max(LOOK_AT_LEAST_EVERY_S, min(1.0, 1.0 / self._clock.speed))
        look_at_s = monotonic_s()
        commit_at_s = look_at_s + COMMIT_EVERY_S
        while not self._is_finished():
            now_s = monotonic_s()
            is_woken = False
            for key, _ in self._selector.select(max(0.0, look_at_s - now_s)):
                if key.data is None:
                    is_woken = True
                else:
                    key.data()
            now_s = monotonic_s()
            is_due = now_s >= look_at_s
            if is_due or is_woken:
                self._look()
            if is_due:
                look_at_s = max(look_at_s + look_every_s, now_s)
            if now_s >= commit_at_s:
                self._commit()
                self._control.expire()
                commit_at_s = max(commit_at_s + COMMIT_EVERY_S, now_s)

    def _look(self) -> None:
        """Take in everything there is, then judge."""
        t_s = self._clock.now_s()
        self._take_readings()
        self._tell_silence(t_s)
        for track in self._tracks:
            fds = set(track.job.filenos())
            track.poll(t_s, self._pending)
            for fd in fds - set(track.job.filenos()):
                self._selector.unregister(fd)
        if self._end_reason is not None:
            return
        self._evaluated_s = max(self._evaluated_s, self._known_until_s(t_s))
        self._take_health(t_s)
        for track in self._tracks:
            # Nobody knows what a device does that does not answer: nothing of it may freeze now.
            if self._silence.devices.isdisjoint(track.devices):
                track.evaluate(self._evaluated_s, self._pending)
        if all(track.is_over for track in self._tracks):
            self._is_over = True
            self._end("; ".join(self._endings()))

    def _take_readings(self) -> None:
        while True:
            try:
                reading = self._sampler.readings.get_nowait()
            except queue.Empty:
                return
            track = self._track_of[reading.device_id]
            if isinstance(reading, DeviceFault):
                self._take_fault(reading)
            else:
                self._last_sample_s[reading.device_id] = reading.t_s
                self._silence.answered(reading.device_id)
                self._pending.samples.append(reading)
                track.add_sample(reading, self._pending)

    def _take_health(self, t_s: float) -> None:
        for device_id, words in self._health.news():
            self._pending.event(t_s, "health", f"{device_id}: {words}", device_id=device_id)
        ours = {device.info.uuid for device in self._prepared.devices}
        for device_id, uuids in self._health.busy_siblings():
            others = [uuid for uuid in uuids if uuid not in ours]
            self._track_of[device_id].see_busy(t_s, device_id, others, self._pending)

    def _take_fault(self, fault: DeviceFault) -> None:
        if fault.kind == "lost":
            self._lost.add(fault.device_id)
        elif fault.kind == "error":
            self._silence.erred(fault.t_s, fault.device_id, fault.text)
        self._track_of[fault.device_id].add_fault(fault, self._pending)

    def _known_until_s(self, t_s: float) -> float:
        """Up to when the readings are complete: under `--speed` a moment late is minutes."""
        unheard = self._silence.unheard | self._lost
        live = [
            last_s + 1.0
            for device_id, last_s in self._last_sample_s.items()
            if device_id not in unheard
        ]
        return min([t_s, *live])

    def _tell_silence(self, t_s: float) -> None:
        for change in self._silence.look(t_s, self._sampler.silent_s(t_s), self._lost):
            if change.kind == "given-up":
                self._take_fault(DeviceFault(t_s, change.device_id, "lost", change.text))
            else:
                kind = "silent" if change.kind == "silent" else "warning"
                self._pending.event(t_s, kind, change.text, device_id=change.device_id)

    def _commit(self) -> None:
        if self._pending.is_empty:
            # Every device may hang while a workload compiles: the file still says that we are here.
            self._pending.meta["now_s"] = f"{self._clock.now_s():.0f}"
        try:
            self._writer.write(self._pending.take())
        except SessionFullError as error:
            self._interrupt(str(error))
            for track in self._tracks:
                track.job.kill()

    # -- the end -------------------------------------------------------------------------------

    def _is_finished(self) -> bool:
        if self._end_reason is None:
            return False
        is_gone = all(track.job.is_gone for track in self._tracks)
        return is_gone or self._is_killed or monotonic_s() > self._gone_by_s

    def _end(self, reason: str) -> None:
        """The run ends; its jobs are asked to."""
        self._end_reason = self._end_reason or reason
        self._gone_by_s = min(self._gone_by_s, monotonic_s() + GONE_WITHIN_S)
        for track in self._tracks:
            track.job.stop()

    def _interrupt(self, reason: str) -> None:
        """End the run before it is over."""
        if self._end_reason is not None:
            return
        t_s = self._clock.now_s()
        for track in self._tracks:
            track.close(t_s, "interrupted", reason, self._pending)
        self._end(reason)

    def _kill(self, reason: str) -> None:
        self._interrupt(reason)
        self._is_killed = True
        self._gone_by_s = monotonic_s() + GONE_WITHIN_S
        for track in self._tracks:
            track.job.kill()

    def _finish(self) -> None:
        """Close everything, in the order in which it depends on each other."""
        t_s = self._clock.now_s()
        self._sampler.stop()
        for track in self._tracks:
            track.job.kill()
        self._wait_gone()
        self._take_readings()
        self._health.stop()
        self._take_health(t_s)
        is_cut_short = self._is_killed and not self._is_over
        reason = self._end_reason or "the run ended"
        for track in self._tracks:
            track.poll(t_s, self._pending)
            if is_cut_short:
                track.close(t_s, "interrupted", reason, self._pending)
            track.finish(t_s, self._pending, self._health.entry)
        state: SessionState = "interrupted" if is_cut_short else self._state()
        for device_id, count in self._sampler.late_ticks().items():
            if count:
                text = f"{count} readings of {device_id} came late and were left out"
                self._pending.event(t_s, "warning", text, device_id=device_id, late_ticks=count)
        # How each device ended was told when it did; a run cut short says why once more.
        text = reason if state == "interrupted" else f"the run ended: {state}"
        self._pending.event(t_s, "end", text, state=state)
        self._pending.meta |= {"state": state, "end_reason": reason}
        try:
            self._writer.write(self._pending.take())
        except SessionFullError:
            # Readings and all do not fit any more; that it ended, and why, still may.
            self._write_end_only(t_s, state, reason)
        self._writer.close(state)
        self._control.close()
        for device in self._prepared.devices:
            device.close()

    def _write_end_only(self, t_s: float, state: SessionState, reason: str) -> None:
        self._pending.event(t_s, "end", reason, state=state)
        self._pending.meta |= {"state": state, "end_reason": reason}
        try:
            self._writer.write(self._pending.take())
        except SessionFullError:
            print(reason, file=sys.stderr)  # noqa: T201 - goes to the registry's log

    def _wait_gone(self) -> None:
        """Until no job has a process left; one that hangs in a driver is its guard's to end."""
        until_s = min(self._gone_by_s, monotonic_s() + GONE_WITHIN_S)
        while monotonic_s() < until_s:
            for track in self._tracks:
                track.poll(self._clock.now_s(), self._pending)
            if all(track.job.is_gone for track in self._tracks):
                return
            fds = [fd for track in self._tracks for fd in track.job.filenos()]
            select.select(fds, [], [], LOOK_FOR_END_S)
        left = [track.row.job_id for track in self._tracks if not track.job.is_gone]
        if left:
            text = f"processes of {', '.join(left)} have not ended; their guards wait for them"
            self._pending.event(self._clock.now_s(), "warning", text)

    def _state(self) -> SessionState:
        states = {verdict.state for track in self._tracks for verdict in track.verdicts.values()}
        return next((state for state in WORST_FIRST if state in states), "interrupted")

    def _endings(self) -> Iterable[str]:
        """Why each device ended, in words."""
        for track in self._tracks:
            for device_id, verdict in track.verdicts.items():
                words = track.end_words.get(device_id, verdict.reason)
                yield words if words.startswith(device_id) else f"{device_id}: {words}"

    # -- requests and signals ------------------------------------------------------------------

    def _watch_signals(self) -> None:
        """SIGTERM and SIGINT end the run as a stop does, the second of them at once."""
        read_fd, write_fd = os.pipe()
        os.set_blocking(read_fd, False)
        os.set_blocking(write_fd, False)
        # Whoever started us may have blocked signals; that is inherited, down to the workload.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.set_wakeup_fd(write_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        self._selector.register(read_fd, selectors.EVENT_READ, lambda: self._on_signal(read_fd))

    def _on_signal(self, read_fd: int) -> None:
        for number in os.read(read_fd, 64):
            if number not in (signal.SIGTERM, signal.SIGINT):
                continue
            self._signals += 1
            if self._signals == 1:
                self._interrupt(f"stopped by {signal.Signals(number).name}")
            else:
                self._kill(f"killed by a second {signal.Signals(number).name}")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request of the control socket."""
        t_s = self._clock.now_s()
        match request.get("command"):
            case "status":
                return status(
                    self._prepared,
                    self._tracks,
                    t_s=t_s,
                    is_ending=self._end_reason is not None,
                    silent=self._silence.devices,
                )
            case "stop":
                self._interrupt("stopped by the user")
            case "kill":
                self._kill("ended at once by the user")
            case "mark":
                text = request.get("text")
                if not isinstance(text, str) or not text.strip():
                    raise UsageError("a mark needs a text")
                self._pending.event(t_s, "mark", text.strip()[:MARK_CHARS])
            case "extend":
                self._extend(t_s, request.get("seconds"))
            case other:
                raise UsageError(
                    f"unknown command {other!r}; there is status, stop, kill, mark, extend"
                )
        return {}

    def _extend(self, t_s: float, seconds: object) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise UsageError("extend needs a number of seconds")
        if not 0 < seconds <= EXTEND_MAX_S:
            raise UsageError(f"extend takes more than 0 and at most {EXTEND_MAX_S:.0f} s")
        for track in self._tracks:
            track.judge.extend(float(seconds), t_s)
        self._pending.event(t_s, "extend", f"{seconds:g} s more before the time-out",
                            seconds=seconds)  # fmt: skip
