"""The recorded sessions of this user: where they lie, what each of them is, how one is named."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.session.access import reading, session_meta

if TYPE_CHECKING:
    import sqlite3

SUFFIX = ".heatsoak"


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One line of the library."""

    path: Path
    id: str | None = None
    """None for a file that is no session or cannot be read."""
    name: str | None = None
    created_utc: str | None = None
    host: str | None = None
    workload: str | None = None
    """Names of the workloads, joined by `, `."""
    devices: tuple[str, ...] = ()
    """Names of the devices."""
    protocol: str | None = None
    state: str | None = None
    provenance: str | None = None
    """`measured`, `synthetic` or `imported`."""
    throughput: float | None = None
    """Sum of the frozen throughputs of its devices, units a second; None if one is not steady."""
    unit: str | None = None
    flags: tuple[str, ...] = ()
    problem: str | None = None
    """Why the file is no session that can be read, or None."""


def sessions_dir() -> Path:
    """The folder of the sessions: `$XDG_STATE_HOME/heatsoak/sessions`."""
    state = os.environ.get("XDG_STATE_HOME", "")
    root = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return root / "heatsoak" / "sessions"


def list_sessions(folder: Path | None = None) -> list[SessionSummary]:
    """All session files of a folder, newest first; damaged and foreign ones say so.

    Args:
        folder: where to look; None: the sessions folder.
    """
    where = sessions_dir() if folder is None else folder
    found = [_summary(path) for path in sorted(where.glob(f"*{SUFFIX}"), reverse=True)]
    return sorted(found, key=lambda summary: summary.created_utc or "", reverse=True)


def find_session(reference: str | None) -> Path:
    """The session file that a user means.

    Args:
        reference: a path, the beginning of an id, or a name; None: the newest session.

    Raises:
        UsageError: there is none, or more than one.
    """
    if reference is None:
        newest = next((s for s in list_sessions() if s.problem is None), None)
        if newest is None:
            raise UsageError("no session yet; `heatsoak run` records one")
        return newest.path
    path = Path(reference)
    if path.is_file() or os.sep in reference:
        return path  # Whoever opens it says what is wrong with it.
    if reference.endswith(SUFFIX):
        known = sessions_dir() / reference
        return known if known.is_file() else path
    sessions = [s for s in list_sessions() if s.id is not None]
    exact = [s for s in sessions if reference in (s.id, s.name)]
    found = exact or [s for s in sessions if str(s.id).startswith(reference)]
    if not reference or not found:
        raise UsageError(f"no file, session id or name {reference!r}; see `heatsoak sessions`")
    if len(found) > 1:
        ids = ", ".join(str(s.id) for s in found)
        raise UsageError(f"{reference!r} could be any of {ids}; give more of the id, or the file")
    return found[0].path


def _summary(path: Path) -> SessionSummary:
    try:
        with reading(path) as connection:
            return _read(path, connection)
    except UsageError as error:
        words = str(error).removeprefix(f"{path} ")
        return SessionSummary(path, problem=words)
    except (KeyError, TypeError, ValueError, AttributeError):
        # Every cell is read here: what does not parse was not written by a recorder.
        return SessionSummary(path, problem="is damaged: its contents make no sense")


def _read(path: Path, connection: sqlite3.Connection) -> SessionSummary:
    meta = session_meta(connection, path)
    jobs = connection.execute("SELECT workload, unit FROM jobs ORDER BY rowid").fetchall()
    query = "SELECT name, provenance FROM devices ORDER BY rowid"
    devices = connection.execute(query).fetchall()
    results = [
        json.loads(data)
        for (data,) in connection.execute(
            "SELECT data FROM results WHERE rowid IN "
            "(SELECT max(rowid) FROM results GROUP BY device_id)"
        )
    ]
    rates = [(r["sustained"] or {}).get("throughput") for r in results]
    is_whole = len(rates) == len(devices) and None not in rates
    flags = dict.fromkeys(flag for r in results for flag in r["verdict"]["flags"])
    return SessionSummary(
        path,
        id=meta["id"],
        name=meta.get("name"),
        created_utc=meta["created_utc"],
        host=meta["host"],
        workload=", ".join(dict.fromkeys(workload for workload, _ in jobs)) or None,
        devices=tuple(name for name, _ in devices),
        protocol=meta["protocol"],
        state=meta["state"],
        provenance=_least({provenance for _, provenance in devices}),
        throughput=sum(rate["mean"] for rate in rates if rate) if is_whole else None,
        unit=jobs[0][1] if len({unit for _, unit in jobs}) == 1 else None,
        flags=tuple(flags),
    )


def _least(provenances: set[str]) -> str | None:
    """A session is as good as its least device."""
    order = ("imported", "synthetic", "measured")
    return next((provenance for provenance in order if provenance in provenances), None)
