"""From a plan to a recorder that nobody waits for."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from heatsoak.doctor import environment_at_start
from heatsoak.errors import HeatsoakError, UsageError
from heatsoak.recorder.plan import Plan
from heatsoak.recorder.prepare import prepare
from heatsoak.recorder.recorder import Recorder
from heatsoak.recorder.registry import Entry, Registry, exclusive_devices, socket_path
from heatsoak.session.store import SessionWriter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from heatsoak.recorder.prepare import Prepared


def record(text: str) -> None:
    """Record the run of a plan from its start to its end.

    Args:
        text: the plan's JSON.

    Raises:
        HeatsoakError: the plan is refused; only before the line that says the run is ready.
    """
    try:
        plan = Plan.from_json(text)
    except (ValueError, TypeError) as error:
        raise UsageError(f"not a plan: {error}") from None
    prepared = prepare(plan)
    registry = Registry()
    try:
        with registry.exclusive():
            # First of all: what a crashed run left may load the device, or have our file open.
            notices = registry.clear_crashed()
            recorder, writer, socket = _begin(prepared, registry)
    except HeatsoakError:
        for device in prepared.devices:
            device.close()
        raise
    try:
        _say_ready(prepared, socket, notices)
    except BrokenPipeError:  # Who asked has left before it knew of the run: there is to be none.
        _undo(prepared, writer, registry)
        return
    _detach(registry.open_log())
    recorder.run()
    registry.leave()


def _begin(prepared: Prepared, registry: Registry) -> tuple[Recorder, SessionWriter, Path]:
    infos = [device.info for device in prepared.devices]
    socket = socket_path(prepared.id)
    registry.check_free(infos, prepared.path)
    if prepared.plan.out is None:
        _make_folder(prepared.path.parent)
    writer = SessionWriter.create(
        prepared.path,
        meta=prepared.meta(socket),
        devices=infos,
        jobs=prepared.jobs,
        environment=environment_at_start(infos, prepared.path),
        force=prepared.plan.force,
    )
    entry = Entry(
        id=prepared.id,
        path=str(prepared.path),
        pid=os.getpid(),
        socket=str(socket),
        host=prepared.host,
        devices=exclusive_devices(infos),
        name=prepared.plan.name,
    )
    registry.enter(entry)
    try:
        return Recorder(prepared, writer, socket), writer, socket
    except OSError as error:
        _undo(prepared, writer, registry)
        raise UsageError(f"cannot listen at {socket}: {error.strerror}") from None


def _undo(prepared: Prepared, writer: SessionWriter, registry: Registry) -> None:
    """Take back what `_begin` has made."""
    writer.close("interrupted")
    prepared.path.unlink()
    registry.leave()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot make {folder} ({error.strerror}); set XDG_STATE_HOME or give --out"
        ) from None


def _say_ready(prepared: Prepared, socket: Path, notices: Sequence[str]) -> None:
    line = {
        "session": str(prepared.path),
        "id": prepared.id,
        "pid": os.getpid(),
        "socket": str(socket),
        "name": prepared.plan.name,
        "notices": notices,
    }
    print(json.dumps(line), flush=True)  # noqa: T201 - the protocol with the client


def _detach(log_fd: int) -> None:
    """Let go of whoever started us: its terminal may close, its pipes are read to their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.dup2(log_fd, 2)
    os.close(null)
    os.close(log_fd)
