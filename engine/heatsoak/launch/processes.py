"""Processes of this machine through /proc: who is below whom, and who carries a session's mark."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

from heatsoak.clock import monotonic_s
from heatsoak.launch.guard import PR_SET_CHILD_SUBREAPER, prctl
from heatsoak.progress import SESSION_VARIABLE

ROUND_S = 0.02


def become_subreaper() -> None:
    """From now on orphaned descendants come back to this process instead of to init."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def parents() -> dict[int, tuple[int, str]]:
    """Parent pid and state letter (`R`, `S`, `Z`, ...) of every process that can be seen."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_bytes()
        except OSError:
            continue
        state, parent = stat.rpartition(b")")[2].split()[:2]
        found[int(folder.name)] = (int(parent), state.decode())
    return found


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped (SIGSTOP, a debugger) and waits to be continued."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] in (b"T", b"t")


def sweep_orphans(keep: set[int]) -> int:
    """SIGKILL and wait for the children of this process that are not in `keep`, and all below them.

    Called after a guard has ended: what it could not see, because it was killed itself, has come
    back here.

    Args:
        keep: pids of the guards that are still at work.

    Returns:
        How many live processes were signalled.
    """
    own = os.getpid()
    tree = parents()
    below: dict[int, list[int]] = {}
    for pid, (parent, _) in tree.items():
        below.setdefault(parent, []).append(pid)
    orphans = [pid for pid in below.get(own, []) if pid not in keep]
    killed = 0
    todo = list(orphans)
    while todo:
        pid = todo.pop()
        todo += below.get(pid, [])
        if tree[pid][1] != "Z" and _kill(pid):
            killed += 1
    for pid in orphans:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue
    return killed


def marked(session_id: str) -> list[int]:
    """Pids of this user's processes that carry the mark of a session in their environment."""
    mark = f"{SESSION_VARIABLE}={session_id}".encode()
    own = os.getpid()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == own:
            continue
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0"):
            found.append(int(folder.name))
    return found


def end_marked(session_id: str, deadline_s: float = 5.0) -> tuple[int, int]:
    """SIGKILL every process that carries the mark of a session whose recorder is gone.

    Args:
        session_id: the session.
        deadline_s: how long to wait for them to be gone, in seconds.

    Returns:
        How many were ended, and how many would not die in time.
    """
    seen: set[int] = set()
    until_s = monotonic_s() + deadline_s
    while left := marked(session_id):
        seen.update(left)
        for pid in left:
            _kill(pid)
        if monotonic_s() > until_s:
            return len(seen) - len(left), len(left)
        select.select([], [], [], ROUND_S)
    return len(seen), 0


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True
