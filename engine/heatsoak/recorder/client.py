"""Starts recorders and talks to them: what the command line and the screen use."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak.clock import monotonic_s
from heatsoak.errors import DeviceUnavailableError, HeatsoakError, UsageError
from heatsoak.launch.child import with_absolute_python_path
from heatsoak.launch.processes import is_stopped
from heatsoak.recorder.registry import Entry, Registry

if TYPE_CHECKING:
    from heatsoak.recorder.plan import Plan

READY_WITHIN_S = 60.0
"""A recorder that is not ready by then is ended; opening many cards can take several seconds."""
ANSWER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.05


class NotAnsweringError(HeatsoakError):
    """The recorder of a run does not answer, or has just ended."""


@dataclass(frozen=True, slots=True)
class Running:
    """A run that is going on, or was when it was looked for."""

    id: str
    path: Path
    """Its session file."""
    pid: int
    """Of its recorder."""
    notices: tuple[str, ...] = ()
    """What its start found of earlier runs: sessions closed after a crash, a sentence each."""
    socket: str = ""
    name: str | None = None


def start(plan: Plan) -> Running:
    """Start a recorder and wait until it records.

    Raises:
        UsageError, DeviceUnavailableError: the plan is refused; nothing was started.
    """
    command = [sys.executable, "-P", "-m", "heatsoak.recorder"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env=with_absolute_python_path(os.environ),
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(plan.to_json().encode(), READY_WITHIN_S)
        except subprocess.TimeoutExpired:
            # The process itself has forked and left; its group is the recorder's.
            os.killpg(process.pid, signal.SIGKILL)
            raise UsageError(
                f"the recorder was not ready within {READY_WITHIN_S:.0f} s; is a device hanging?"
            ) from None
    try:
        said = json.loads(out)
    except ValueError:
        words = err.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"the recorder ended before it was ready: {words[-1] if words else 'no word'}"
        ) from None
    if "error" in said:
        error = DeviceUnavailableError if said["code"] == 5 else UsageError
        raise error(said["error"])
    return Running(
        id=said["id"], path=Path(said["session"]), pid=said["pid"],
        notices=tuple(said["notices"]), socket=said["socket"], name=said["name"],
    )  # fmt: skip


def clear_crashed() -> list[str]:
    """Close what runs that crashed have left open; a sentence about each."""
    registry = Registry()
    if not registry.entries()[1]:
        return []
    with registry.exclusive():
        return registry.clear_crashed()


def running() -> list[Running]:
    """The runs of this user that are going on."""
    return [_of(entry) for entry in Registry().entries()[0]]


def find_running(ref: str | None) -> Running:
    """The run meant by `ref`.

    Args:
        ref: beginning of an id, a name, or a session file; None: the only one.

    Raises:
        UsageError: there is none, or several.
    """
    all_ = running()
    if not all_:
        raise UsageError("no run is going on; `heatsoak run` starts one")
    found = all_ if ref is None else [one for one in all_ if _is_meant(one, ref)]
    listed = ", ".join(one.id for one in (found or all_))
    if not found:
        raise UsageError(f"no run {ref!r} is going on; there is {listed}")
    if len(found) > 1:
        raise UsageError(f"several runs are going on: {listed}; name one")
    return found[0]


def is_alive(run: Running) -> bool:
    """Whether the recorder of a run still holds its lock."""
    return any(one.id == run.id for one in running())


def say_quiet(run: Running, quiet_s: float) -> str:
    """A sentence on a recorder that has written nothing for `quiet_s` real seconds."""
    if is_stopped(run.pid):
        why = f"its process {run.pid} is stopped; kill -CONT {run.pid} lets it go on"
    else:
        why = f"its process {run.pid} is there; it may wait for a disk"
    return f"nothing has come from the recorder for {quiet_s:.0f} s: {why}"


def wait_ended(run: Running, deadline_s: float = 60.0) -> None:
    """Wait until a run has ended and its file is closed.

    Raises:
        NotAnsweringError: it has not within `deadline_s` real seconds.
    """
    until_s = monotonic_s() + deadline_s
    while is_alive(run):
        if monotonic_s() > until_s:
            raise NotAnsweringError(f"the run {run.id} has not ended within {deadline_s:.0f} s")
        select.select([], [], [], LOOK_EVERY_S)


def status(run: Running) -> dict[str, Any]:
    """What the recorder says of itself: session time, states, jobs.

    Raises:
        NotAnsweringError: it does not answer.
    """
    return _ask(run, {"command": "status"})


def stop(run: Running) -> None:
    """End a run: its jobs finish their step; what is not steady by now is `interrupted`."""
    _ask(run, {"command": "stop"})


def kill(run: Running) -> None:
    """End a run at once; its file is still closed cleanly."""
    _ask(run, {"command": "kill"})


def mark(run: Running, text: str) -> None:
    """Write an event of the user's own."""
    _ask(run, {"command": "mark", "text": text})


def extend(run: Running, seconds: float) -> None:
    """Give a run more time before its protocol's time-out."""
    _ask(run, {"command": "extend", "seconds": seconds})


def _ask(run: Running, request: dict[str, Any]) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_WITHIN_S)
            connection.connect(run.socket)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as stream:
                answer: dict[str, Any] = json.loads(stream.readline() or b"{}")
    except (OSError, ValueError):
        answer = {}
    if not answer:
        raise NotAnsweringError(f"the recorder of run {run.id} does not answer; has it ended?")
    if "error" in answer:
        raise UsageError(answer["error"])
    return answer


def _of(entry: Entry) -> Running:
    return Running(entry.id, Path(entry.path), entry.pid, socket=entry.socket, name=entry.name)


def _is_meant(run: Running, ref: str) -> bool:
    return run.id.startswith(ref) or ref == run.name or run.path.resolve() == Path(ref).resolve()
