"""Rows into the tables of a session file, within a transaction of whoever calls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from heatsoak.session import codec

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from heatsoak.session.rows import Batch, JobRow, LogRow, StepsRow

LOG_FIRST, LOG_LAST, LOG_SLACK = 500, 1500, 100
"""Lines of a job's output that are kept, the first and the last; and how many more there may be
before they are thinned out."""
_COLUMNS = {
    "devices": 7, "jobs": 8, "job_devices": 3, "samples": len(codec.SAMPLE_COLUMNS), "steps": 5,
    "phases": 3, "rollups": 7, "events": 6, "verdicts": len(codec.VERDICT_COLUMNS), "results": 4,
    "log": 4, "environment": 2,
}  # fmt: skip


def insert(
    connection: sqlite3.Connection, batch: Batch, seconds: dict[str, int], lines: dict[str, int]
) -> None:
    """Everything of a batch but its devices and rollups.

    Args:
        connection: to the session file, in a transaction.
        batch: new rows.
        seconds: the last second of each job that has its row of `steps`; brought up to date.
        lines: how many lines of output of each job are kept; brought up to date.
    """
    set_meta(connection, batch.meta)
    put_jobs(connection, batch.jobs)
    many(connection, "samples", map(codec.sample_values, batch.samples))
    many(connection, "steps", map(codec.steps_values, _one_a_second(batch.steps, seconds)))
    many(connection, "phases", ((p.t_s, p.job_id, p.phase) for p in batch.phases))
    many(connection, "events", map(codec.event_values, batch.events))
    many(connection, "verdicts", map(codec.verdict_values, batch.verdicts))
    many(connection, "results", map(codec.result_values, batch.results))
    many(connection, "log", map(codec.log_values, batch.logs))
    _thin_log(connection, batch.logs, lines)


def set_meta(connection: sqlite3.Connection, meta: dict[str, str]) -> None:
    """Merge into `meta`."""
    rows = [(key, codec.to_text(value)) for key, value in meta.items()]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def put_jobs(connection: sqlite3.Connection, jobs: Sequence[JobRow]) -> None:
    """Jobs with their devices, in place of those of the same id."""
    for job in jobs:
        many(connection, "jobs", [codec.job_values(job)], "INSERT OR REPLACE")
        ranks = [(job.job_id, device_id, rank) for rank, device_id in enumerate(job.device_ids)]
        many(connection, "job_devices", ranks, "INSERT OR REPLACE")


def many(
    connection: sqlite3.Connection,
    table: str,
    rows: Iterable[tuple[Any, ...]],
    statement: str = "INSERT",
) -> None:
    """Append rows to a table."""
    places = ",".join("?" * _COLUMNS[table])
    connection.executemany(f"{statement} INTO {table} VALUES ({places})", rows)


def _one_a_second(steps: Sequence[StepsRow], seconds: dict[str, int]) -> list[StepsRow]:
    """At most one row a job and second: counters are cumulative, so the last says all.

    Args:
        steps: new rows; a counter that is not a number says nothing.
        seconds: the last second of each job that has its row; brought up to date.
    """
    last = {(row.job_id, int(row.t_s)): row for row in steps if math.isfinite(row.units_done)}
    kept = [
        row for (job_id, second), row in last.items() if second > seconds.get(job_id, -1)
    ]  # fmt: skip
    for row in kept:
        seconds[row.job_id] = max(int(row.t_s), seconds.get(row.job_id, -1))
    return kept


def _thin_log(
    connection: sqlite3.Connection, logs: Sequence[LogRow], lines: dict[str, int]
) -> None:
    """Leave of each job's output its first and last lines.

    The newest line always stays: readers follow the highest rowid, and SQLite gives one that was
    deleted to the next row.
    """
    for row in logs:
        lines[row.job_id] = lines.get(row.job_id, 0) + 1
    for job_id in {row.job_id for row in logs}:
        surplus = lines[job_id] - LOG_FIRST - LOG_LAST
        if surplus >= LOG_SLACK:
            connection.execute(
                "DELETE FROM log WHERE rowid IN (SELECT rowid FROM log WHERE job_id = ? "
                "ORDER BY rowid LIMIT ? OFFSET ?)",
                (job_id, surplus, LOG_FIRST),
            )
            connection.execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET "
                "value = CAST(value + excluded.value AS TEXT)",
                (f"log_lines_not_kept.{job_id}", str(surplus)),
            )
            lines[job_id] -= surplus
