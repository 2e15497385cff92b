"""Questions that several readers of a session file ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.session import codec

if TYPE_CHECKING:
    import sqlite3

    from heatsoak.session.rows import JobRow
    from heatsoak.steady_state.verdict import Verdict


def jobs_of(connection: sqlite3.Connection) -> tuple[JobRow, ...]:
    """All jobs of a session, with their devices in the order of their ranks."""
    devices: dict[str, list[str]] = {}
    query = "SELECT job_id, device_id FROM job_devices ORDER BY job_id, rank"
    for job_id, device_id in connection.execute(query):
        devices.setdefault(job_id, []).append(device_id)
    rows = connection.execute("SELECT * FROM jobs ORDER BY job_id")
    return tuple(codec.job_of(row, tuple(devices.get(row[0], ()))) for row in rows)


def last_verdicts(connection: sqlite3.Connection) -> dict[str, Verdict]:
    """The last verdict of each device that has one."""
    query = (
        "SELECT * FROM verdicts WHERE rowid IN (SELECT max(rowid) FROM verdicts GROUP BY device_id)"
    )
    return {v.device_id: v for v in map(codec.verdict_of, connection.execute(query))}


def last_t_s(connection: sqlite3.Connection, table: str) -> float | None:
    """The instant of a table's last row, in seconds of session time; None if it has none."""
    row = connection.execute(f"SELECT t_s FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
    return None if row is None else float(row[0])
