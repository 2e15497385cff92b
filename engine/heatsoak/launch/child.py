"""A training child: started under guard, read without waiting, stopped with all it started."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from heatsoak import progress
from heatsoak.clock import monotonic_s
from heatsoak.launch import guard
from heatsoak.launch.identity import device_problem
from heatsoak.launch.job import LogLine, TimedRecord
from heatsoak.launch.output import Output
from heatsoak.launch.processes import sweep_orphans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heatsoak.clock import SessionClock
    from heatsoak.recipe import Recipe
    from heatsoak.telemetry.device import DeviceInfo

GRACE_S = 10.0
"""How long a child may take to finish its step and end after it was asked to."""
HELLO_WITHIN_S = 300.0
"""How long a child may be silent at first: importing, building and compiling a large model."""
PIPE_BYTES = 1024 * 1024
_F_SETPIPE_SZ = 1031

_guards: set[int] = set()
"""Pids of the guards at work in this process: what a sweep for orphans must leave alone."""


class Child:
    """One child process and everything below it."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        clock: SessionClock,
        *,
        device: DeviceInfo,
        grace_s: float = GRACE_S,
        hello_within_s: float = HELLO_WITHIN_S,
    ) -> None:
        """Prepare; `start` starts it.

        Args:
            command: program and arguments.
            environment: the whole environment, as `workload_environment` makes it.
            clock: session time of the records' instants.
            device: what the child must say it runs on, before anything it reports counts.
            grace_s: real seconds between SIGTERM and SIGKILL.
            hello_within_s: real seconds within which the child must say hello.
        """
        self.stderr_tail: Sequence[str] = ()
        self.failure: str | None = None
        self.is_gone = True
        """Whether no process of it is left, or there never was one."""
        self.pid: int | None = None
        """Pid of the child itself, as its guard reported it."""
        self._command = list(command)
        self._environment = dict(environment)
        self._clock = clock
        self._device = device
        self._grace_s = grace_s
        self._hello_within_s = hello_within_s
        self._warnings: list[str] = []
        self._log: list[LogLine] = []
        self._bad_lines = 0
        self._lines = progress.LineBuffer()
        self._report = progress.LineBuffer()
        self._has_hello = False
        self._is_elsewhere = False
        self._is_asked = False
        self._kill_at_s: float | None = None
        self._complaint: str | None = None
        self._ended: str | None = None
        self._is_swept = False
        self._life_fd: int | None = None

    def start(self, t_s: float) -> None:  # noqa: ARG002 - a child's instants come with its records
        """Start guard and child; call it from a thread that lives as long as the run."""
        life_read, self._life_fd = os.pipe()
        self._report_fd, report_write = os.pipe()
        self._progress_fd, progress_write = os.pipe()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        for fd in (self._progress_fd, out_read, err_read):
            _widen(fd)
        self._environment[progress.DESCRIPTOR_VARIABLE] = str(progress_write)
        theirs = (life_read, report_write, progress_write)
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(life_read), str(report_write),
                 *self._command],
                env=self._environment, stdin=subprocess.DEVNULL, stdout=out_write,
                stderr=err_write, pass_fds=theirs, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self.failure = f"the workload cannot be started: {error.strerror}"
            for fd in (self._life_fd, self._report_fd, self._progress_fd, out_read, err_read):
                os.close(fd)
            self._life_fd = None
            return
        finally:
            for fd in (*theirs, out_write, err_write):
                os.close(fd)
        self.is_gone = False
        for fd in (self._report_fd, self._progress_fd):
            os.set_blocking(fd, False)
        os.set_blocking(self._life_fd, False)
        self._out = Output(out_read, "stdout")
        self._err = Output(err_read, "stderr")
        _guards.add(self._guard.pid)
        self._hello_by_s = monotonic_s() + self._hello_within_s

    def poll(self, t_s: float) -> Sequence[TimedRecord]:
        """Records since the last poll, in order; also moves the end of the child on."""
        if self.is_gone:
            return ()
        # The report first: once it tells of the end, the records read after it are all there are.
        is_guard_gone = self._read_report()
        records = self._read_records(t_s)
        for output in (self._out, self._err):
            self._log += [LogLine(t_s, output.stream, line) for line in output.poll()]
        self.stderr_tail = tuple(self._err.tail)
        now_s = monotonic_s()
        is_waited_for = self._ended is None and not self._is_asked and not self._has_hello
        if is_waited_for and now_s > self._hello_by_s:
            self._complaint = (
                f"the workload reported nothing within {self._hello_within_s:.0f} s of its start: "
                "it hangs, or it is not instrumented"
            )
            self.kill()
        if self._kill_at_s is not None and now_s >= self._kill_at_s and self._ended is None:
            self._warnings.append(
                f"the workload did not end within {self._grace_s:g} s of being asked; killed"
            )
            self.kill()
        if is_guard_gone:
            self._finish(t_s)
        if self.failure is None and (self._ended is not None or self.is_gone):
            self.failure = self._why()
        return records

    def take_log(self) -> Sequence[LogLine]:
        """What the child printed since the last call."""
        lines, self._log = self._log, []
        return lines

    def take_warnings(self) -> Sequence[str]:
        """What went wrong without ending the child since the last call, a sentence each."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def stop(self) -> None:
        """SIGTERM to the child; after the grace period `kill`."""
        self._is_asked = True
        self._terminate()

    def kill(self) -> None:
        """SIGKILL to the child and everything below it; its end is seen by the next polls."""
        self._is_asked = True
        self._let_go()

    def filenos(self) -> Sequence[int]:
        """The guard's report of the child's end.

        Records and output are not among them: their pipes hold what comes between two polls.
        """
        return () if self.is_gone else (self._report_fd,)

    def _let_go(self) -> None:
        """Close the life line: the guard kills everything, and then ends."""
        if self._life_fd is not None:
            os.close(self._life_fd)
            self._life_fd = None
        self._kill_at_s = None

    def _terminate(self) -> None:
        if self._life_fd is None or self._kill_at_s is not None:
            return
        self._kill_at_s = monotonic_s() + self._grace_s
        try:
            os.write(self._life_fd, b"T")
        except (BrokenPipeError, BlockingIOError):
            return  # The guard is gone or hangs; the deadline sees to it.

    def _read_report(self) -> bool:
        """Read what the guard reports; true when it has ended."""
        data, is_over = _read_all(self._report_fd)
        for line in self._report.feed(data):
            word, _, value = line.decode().partition(" ")
            if word == "pid":
                self.pid = int(value)
            elif word == "exit":
                self._ended = f"the workload ended by itself with exit status {value}"
            elif word == "signal":
                self._ended = f"the workload was killed by {signal_name(int(value))}"
            elif word == "swept":
                self._is_swept = True
                if int(value) and not self._is_asked:
                    self._warnings.append(f"{value} processes the workload left behind were ended")
        return is_over

    def _read_records(self, t_s: float) -> list[TimedRecord]:
        data, _ = _read_all(self._progress_fd)
        records = []
        for line in self._lines.feed(data):
            try:
                record = progress.decode(line)
            except progress.RecordError as error:
                self._bad_lines += 1
                if self._bad_lines == 1:
                    self._warnings.append(f"the workload wrote a line that was ignored: {error}")
                continue
            if isinstance(record, progress.Hello):
                self._has_hello = True
                self._check_device(record)
            elif not self._has_hello and not isinstance(record, progress.Failed | progress.Done):
                # Work of which nobody knows where it was done is not measured.
                self._complain("the workload reported work before it said on which device it runs")
            if self._is_elsewhere:
                continue
            if isinstance(record, progress.Failed) and self._complaint is None:
                self._complaint = f"the workload failed: {record.text}"
                self._terminate()
            at_s = self._clock.at_s(record.monotonic_s)
            records.append(TimedRecord(min(max(at_s, 0.0), t_s), record))
        return records

    def _check_device(self, hello: progress.Hello) -> None:
        problem = device_problem(hello, self._device)
        if problem is not None:
            self._complain(problem)

    def _complain(self, text: str) -> None:
        """It is not where it should be: nothing it says counts any more."""
        if not self._is_elsewhere:
            self._is_elsewhere = True
            self._complaint = text
            self.kill()

    def _why(self) -> str | None:
        if self._complaint is not None:
            return self._complaint
        if self._is_asked:
            return None
        return self._ended or "the guard of the workload was killed, and the workload with it"

    def _finish(self, t_s: float) -> None:
        """The guard has ended: wait for it; what a killed one left has come back to us."""
        if self._guard.poll() is None:
            return
        _guards.discard(self._guard.pid)
        if not self._is_swept and sweep_orphans(keep=_guards):
            return  # Looked at again in the next poll, until they are gone.
        self._let_go()
        self._log += [
            LogLine(t_s, output.stream, line)
            for output in (self._out, self._err)
            for line in output.poll()
        ]
        for output in (self._out, self._err):
            output.close()
            if output.dropped:
                self._warnings.append(
                    f"{output.dropped} lines of the workload's {output.stream} were not kept"
                )
        self.stderr_tail = tuple(self._err.tail)
        if self._bad_lines > 1:
            self._warnings.append(f"{self._bad_lines} lines of the workload were no records")
        os.close(self._report_fd)
        os.close(self._progress_fd)
        self.is_gone = True


def workload_command(name: str) -> list[str]:
    """The command of a workload of ours."""
    return [sys.executable, "-P", "-m", "heatsoak_workloads", name]


def workload_environment(
    base: Mapping[str, str], *, session_id: str, recipe: Recipe, device: DeviceInfo, seed: int
) -> dict[str, str]:
    """The environment of a workload of ours on one device.

    Args:
        base: the environment to start from, as a rule `os.environ`.
        session_id: the mark that every process of the run carries.
        recipe: what to train.
        device: what to train on; the only device the child can see.
        seed: seed of weights and data.
    """
    environment = with_absolute_python_path(base)
    is_nvidia = device.kind == "nvidia"
    return environment | {
        "PYTHONSAFEPATH": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": device.uuid if is_nvidia else "",
        progress.SESSION_VARIABLE: session_id,
        "HEATSOAK_RECIPE": recipe.to_json(),
        "HEATSOAK_SEED": str(seed),
        "HEATSOAK_DEVICE": device.uuid if is_nvidia else "cpu",
    }


def with_absolute_python_path(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with only the absolute parts of PYTHONPATH.

    An empty or relative part would put the working directory on a program's path, `-P` or not.
    """
    kept = dict(environment)
    parts = [part for part in kept.pop("PYTHONPATH", "").split(os.pathsep) if part.startswith("/")]
    return kept | ({"PYTHONPATH": os.pathsep.join(parts)} if parts else {})


def signal_name(number: int) -> str:
    """`SIGKILL (signal 9)`."""
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def _read_all(fd: int) -> tuple[bytes, bool]:
    """What is in a non-blocking pipe, and whether its other end is closed."""
    parts: list[bytes] = []
    while True:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return b"".join(parts), False
        if not data:
            return b"".join(parts), True
        parts.append(data)


def _widen(fd: int) -> None:
    """Let a pipe hold a second's worth of output; a refusal only makes the child wait earlier."""
    try:
        fcntl.fcntl(fd, _F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        return
