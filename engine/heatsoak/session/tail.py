"""Following a session file: each poll gives everything that has come into it since the last."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from heatsoak.session import codec
from heatsoak.session.access import SessionBusyError, check_is_file, reading, session_meta
from heatsoak.session.queries import jobs_of, last_t_s
from heatsoak.session.rollup import SPANS_S
from heatsoak.session.rows import Batch, LogRow, PhaseRow, RollupRow, StepsRow
from heatsoak.session.wal import is_allowed, stamp

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from heatsoak.session.rows import JobRow


LONG_S = 2 * 3600.0
"""A past longer than this is first given as rollups."""
RECENT_S = 1200.0
"""So much of a long past is given reading by reading all the same."""
MOST_ROLLUPS = 40_000
"""Rollup rows that are still read in an instant; beyond, the coarser span is taken."""

_TABLES = ("samples", "steps", "phases", "events", "verdicts", "results", "log")
_HIGHEST = "SELECT " + ", ".join(
    f"(SELECT coalesce(max(rowid), 0) FROM {table})" for table in _TABLES
)


class Tail:
    """One reader's place in a session file; opens and closes the file in each poll."""

    def __init__(self, path: Path) -> None:
        """Begin before the first row.

        Args:
            path: the session file, finished or being recorded.
        """
        self.path = path
        self.state: str | None = None
        """State of the session as of the last poll; None before the first."""
        self._places: dict[str, int] | None = None
        """The highest rowid seen, by table; None before the first poll."""
        self._jobs: list[codec.Values] = []
        self._meta: dict[str, str] = {}
        self._seen: object = None
        """What the file looked like from outside, in a folder that cannot be written."""

    def poll(self) -> Batch | None:
        """Everything new, or None when nothing is, or the file is locked for a moment.

        Raises:
            UsageError: the file is not there, no session, or of a newer version.
        """
        try:
            return self._poll()
        except SessionBusyError:
            if self._places is None:
                raise
            return None

    def _poll(self) -> Batch | None:
        check_is_file(self.path)
        # Where a look may take a copy of the file, only when there is something to see. Taken
        # before the look: what comes during it is seen by the next.
        seen = _seen_from_outside(self.path.resolve())
        if seen is not None and seen == self._seen:
            return None
        with reading(self.path) as connection:
            connection.execute("BEGIN")  # One view of all tables.
            meta = session_meta(connection, self.path)
            if meta["id"] != self._meta.get("id"):  # Another session in the file's place.
                self._places, self._jobs, self._meta = None, [], {}
            job_rows = connection.execute("SELECT * FROM jobs ORDER BY job_id").fetchall()
            jobs = jobs_of(connection) if job_rows != self._jobs else ()
            highest = _highest(connection)
            if self._places is None:
                batch = self._first(connection, meta, jobs)
            elif highest != self._places or jobs or meta != self._meta:
                batch = _since(connection, self._places, meta, jobs)
            else:
                batch = None
        self._places, self._jobs, self._meta, self._seen = highest, job_rows, meta, seen
        self.state = meta["state"]
        return batch

    def _first(
        self, connection: sqlite3.Connection, meta: dict[str, str], jobs: tuple[JobRow, ...]
    ) -> Batch:
        devices = tuple(
            codec.device_of(info)
            for (info,) in connection.execute("SELECT info FROM devices ORDER BY rowid")
        )
        places = dict.fromkeys(_TABLES, 0)
        rollups: tuple[RollupRow, ...] = ()
        end_s = last_t_s(connection, "samples")
        if end_s is not None and end_s > LONG_S:
            # Rows come about in the order of time: their number back from the end is found by
            # halving, where an index would cost the recorder a write for each.
            recent_s = end_s - RECENT_S
            places |= {
                table: _place_at(connection, table, recent_s)
                for table in ("samples", "steps", "verdicts")
            }
            rollups = _rollups(connection, recent_s)
        batch = _since(connection, places, meta, jobs)
        return Batch(
            meta=meta, devices=devices, jobs=jobs, samples=batch.samples, steps=batch.steps,
            phases=batch.phases, events=batch.events, verdicts=batch.verdicts,
            results=batch.results, logs=batch.logs, rollups=rollups,
        )  # fmt: skip


def _seen_from_outside(path: Path) -> object:
    """What changes with the file's contents; None in a folder that can be written."""
    if is_allowed(path.parent, os.W_OK):
        return None
    try:
        return stamp(path)
    except OSError:
        raise SessionBusyError(f"{path} changes while it is read") from None


def _since(
    connection: sqlite3.Connection,
    places: dict[str, int],
    meta: dict[str, str],
    jobs: tuple[JobRow, ...],
) -> Batch:
    def rows(table: str) -> sqlite3.Cursor:
        query = f"SELECT * FROM {table} WHERE rowid > ? ORDER BY rowid"
        return connection.execute(query, (places[table],))

    return Batch(
        meta=meta,
        jobs=jobs,
        samples=tuple(map(codec.sample_of, rows("samples"))),
        steps=tuple(StepsRow(*row) for row in rows("steps")),
        phases=tuple(PhaseRow(*row) for row in rows("phases")),
        events=tuple(map(codec.event_of, rows("events"))),
        verdicts=tuple(map(codec.verdict_of, rows("verdicts"))),
        results=tuple(map(codec.result_of, rows("results"))),
        logs=tuple(LogRow(*row) for row in rows("log")),
    )


def _highest(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(zip(_TABLES, connection.execute(_HIGHEST).fetchone(), strict=True))


def _place_at(connection: sqlite3.Connection, table: str, t_s: float) -> int:
    """The rowid before the first row of about `t_s` or later."""
    low, high = 0, connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0
    while low < high:
        middle = (low + high) // 2
        query = f"SELECT t_s FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1"
        row = connection.execute(query, (middle,)).fetchone()
        if row is None or row[0] >= t_s:
            high = middle
        else:
            low = middle + 1
    return low


def _rollups(connection: sqlite3.Connection, until_s: float) -> tuple[RollupRow, ...]:
    """The past up to `until_s`, as fine as can be read in an instant."""
    fine, coarse = SPANS_S
    # Counting all of a day would take longer than reading what is taken.
    query = "SELECT count(*) FROM (SELECT 1 FROM rollups WHERE span_s = ? AND start_s < ? LIMIT ?)"
    (count,) = connection.execute(query, (fine, until_s, MOST_ROLLUPS + 1)).fetchone()
    span_s = fine if count <= MOST_ROLLUPS else coarse
    query = (
        "SELECT start_s, span_s, owner, reading, minimum, maximum, mean FROM rollups "
        "WHERE span_s = ? AND start_s < ? ORDER BY start_s"
    )
    return tuple(RollupRow(*row) for row in connection.execute(query, (span_s, until_s)))
