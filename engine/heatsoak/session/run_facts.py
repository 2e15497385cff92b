"""What a job took as a whole, read from its session: time, energy, units, and idling before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heatsoak.session.annotations import newest
from heatsoak.session.slices import is_shared

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from heatsoak.session.rows import JobRow

FIRST_READINGS = 5000
"""Readings at the start of a session among which those before the load are looked for."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One job from its first to its last reading, start and end included."""

    units: float
    seconds: float
    joules: float | None
    """Of all its cards; None where one of them reports no power, or shares it."""
    idle_w: float | None
    """Of all its cards before the load, the lowest reading of each; None: there is none."""


def run_facts(
    connection: sqlite3.Connection, job: JobRow, sharing: Sequence[str]
) -> RunFacts | None:
    """What a job took; None before it counted anything.

    Args:
        connection: to its session.
        job: the job.
        sharing: devices that share their power with others, of which none is known then.
    """
    query = "SELECT t_s, units_done FROM steps WHERE job_id = ? ORDER BY rowid DESC LIMIT 1"
    last = connection.execute(query, (job.job_id,)).fetchone()
    if last is None:
        return None
    start_s = job_start_s(connection, job.job_id)
    is_shared = any(device_id in sharing for device_id in job.device_ids)
    joules = [None if is_shared else _joules(connection, d) for d in job.device_ids]
    idle = [None if is_shared else _idle_w(connection, d, start_s) for d in job.device_ids]
    return RunFacts(last[1], last[0] - start_s, _total(joules), _total(idle))


def job_start_s(connection: sqlite3.Connection, job_id: str) -> float:
    """When a job began to work: its first phase, else its first step."""
    for table in ("phases", "steps"):
        query = f"SELECT t_s FROM {table} WHERE job_id = ? ORDER BY rowid LIMIT 1"
        row = connection.execute(query, (job_id,)).fetchone()
        if row is not None:
            return float(row[0])
    return 0.0


def _joules(connection: sqlite3.Connection, device_id: str) -> float | None:
    """By the energy counter, else by the integral of power."""
    ends = [
        connection.execute(
            "SELECT energy_j FROM samples WHERE device_id = ? AND energy_j IS NOT NULL "
            f"ORDER BY rowid {order} LIMIT 1",
            (device_id,),
        ).fetchone()
        for order in ("ASC", "DESC")
    ]
    first, last = ends
    if first is not None and last is not None and last[0] > first[0]:
        return float(last[0] - first[0])
    (integral,) = connection.execute(
        "SELECT sum(mean * span_s) FROM rollups "
        "WHERE owner = ? AND reading = 'power_w' AND span_s = 10",
        (device_id,),
    ).fetchone()
    return None if integral is None else float(integral)


def _idle_w(connection: sqlite3.Connection, device_id: str, start_s: float) -> float | None:
    (power,) = connection.execute(
        "SELECT min(power_w) FROM "
        f"(SELECT t_s, device_id, power_w FROM samples ORDER BY rowid LIMIT {FIRST_READINGS}) "
        "WHERE device_id = ? AND t_s < ?",
        (device_id, start_s),
    ).fetchone()
    return None if power is None else float(power)


def _total(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What of a session its economics need beside its result."""

    by_job: dict[str, RunFacts | None]
    idle_w: dict[str, float]
    """Mean power of devices that no job used, by device_id."""
    stored: dict[str, Any] | None
    """The newest annotation of prices."""


def session_facts(
    connection: sqlite3.Connection, jobs: Sequence[JobRow], devices: Sequence[dict[str, Any]]
) -> SessionFacts:
    """Read them.

    Args:
        connection: to the session.
        jobs: its jobs.
        devices: the entries of `devices[]`.
    """
    sharing = [device["device_id"] for device in devices if is_shared(device["mig"])]
    used = {device_id for job in jobs for device_id in job.device_ids}
    idle = {}
    for device in devices:
        if device["device_id"] not in used:
            query = "SELECT avg(power_w) FROM samples WHERE device_id = ?"
            (power,) = connection.execute(query, (device["device_id"],)).fetchone()
            if power is not None:
                idle[device["device_id"]] = float(power)
    stored = newest(connection, "prices")
    return SessionFacts(
        {job.job_id: run_facts(connection, job, sharing) for job in jobs},
        idle,
        None if stored is None else {"created_utc": stored.created_utc, "data": stored.data},
    )
