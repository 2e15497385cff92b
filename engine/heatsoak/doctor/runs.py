"""Runs of ours that are going on, known by the mark that each of their processes carries."""

from __future__ import annotations

from pathlib import Path

from heatsoak.progress import SESSION_VARIABLE

_MARK = f"{SESSION_VARIABLE}=".encode()


def run_of(pid: int) -> str | None:
    """The run that a process belongs to; None: none, or another user's."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    values = (value[len(_MARK) :] for value in variables if value.startswith(_MARK))
    return next((value.decode(errors="replace") for value in values), None)


def runs_here() -> tuple[str, ...]:
    """The runs of this user that have a process now."""
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())
    return tuple(sorted({run for pid in pids if (run := run_of(pid)) is not None}))
