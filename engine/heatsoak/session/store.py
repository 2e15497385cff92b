"""Writing a session file: one transaction a commit, nothing acknowledged is ever lost."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING

from heatsoak.clock import monotonic_s
from heatsoak.errors import HeatsoakError, UsageError
from heatsoak.session import codec
from heatsoak.session.access import check_is_session, is_network_file_system, sqlite_words
from heatsoak.session.rollup import Rollups
from heatsoak.session.schema import APPLICATION_ID, TABLES, VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from heatsoak.session.rows import Batch, JobRow, SessionState
    from heatsoak.telemetry.device import DeviceInfo

CHECKPOINT_EVERY_S = 10.0
"""So far at most is the file alone, without its `-wal`, behind."""
CLOSE_WITHIN_S = 5.0
"""How long the end waits for readers before it leaves the WAL to the next opener."""
BALLAST_BYTES = 256 * 1024
"""Held beside the file while it is recorded, given up on a full disk so that the end fits."""
LOG_FIRST, LOG_LAST = 500, 1500
"""Lines of a job's output that are kept: the first and the last."""


class SessionFullError(HeatsoakError):
    """The session file cannot grow: the disk is full, over quota, or gone."""

    exit_code = 5


class SessionWriter:
    """The one writer of a session file."""

    def __init__(self, path: Path) -> None:
        """Open a session file that `create` has made."""
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        mode = "TRUNCATE" if is_network_file_system(path) else "WAL"
        self._connection.execute(f"PRAGMA journal_mode={mode}")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("PRAGMA cache_size=-1024")
        # SQLite checkpoints by itself only past 4 MB; ours come first.
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._ballast = ballast_path(path)
        self._ballast.write_bytes(os.urandom(BALLAST_BYTES))
        self._rollups = Rollups()
        self._checkpoint_at_s = monotonic_s() + CHECKPOINT_EVERY_S
        self._steps_second: dict[str, int] = {}
        self._log_rows: dict[str, int] = {}

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        meta: dict[str, str],
        devices: Sequence[DeviceInfo],
        jobs: Sequence[JobRow],
        force: bool = False,
    ) -> SessionWriter:
        """Make a session file and open it.

        Args:
            path: where; its folder exists.
            meta: what is known of the session.
            devices: its devices.
            jobs: its jobs.
            force: replace a file that is there.

        Raises:
            UsageError: the file exists, or cannot be written there; nothing is left behind.
        """
        if path.is_dir():
            raise UsageError(f"{path} is a folder; --out takes a file")
        if path.exists() and not force:
            raise UsageError(f"{path} exists; give another --out, or --force to replace it")
        if not path.parent.is_dir():
            raise UsageError(f"cannot write {path}: there is no folder {path.parent}")
        made = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            made.unlink(missing_ok=True)
            _make(made, meta, devices, jobs)
            _put_in_place(made, path, force=force)
            return cls(path)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"cannot write {path}: {_words(error)}") from None
        finally:
            with suppress(OSError):
                made.unlink(missing_ok=True)

    def write(self, batch: Batch) -> None:
        """Commit everything in a batch in one transaction.

        Args:
            batch: new rows; its `meta` is merged into the table, its `jobs` replace those of the
                same id, its `devices` and `rollups` are not looked at.

        Raises:
            SessionFullError: the disk is full; nothing of the batch is in the file, which stays
                readable, and a small batch with the end can still be written.
        """
        for sample in batch.samples:
            self._rollups.add_sample(sample)
        for phase in batch.phases:
            self._rollups.add_phase(phase)
        for steps in batch.steps:
            self._rollups.add_steps(steps)
        self._transact(batch, self._rollups.take())

    def close(self, state: SessionState) -> None:
        """End the session: last rollups, its state, everything in the one file.

        Args:
            state: the end state.
        """
        try:
            with _transaction(self._connection):
                self._insert_rollups(self._rollups.finish())
                _set_meta(self._connection, {"state": state})
        except sqlite3.Error:
            # The disk is full: without rollups, the state alone may fit into what the ballast held.
            self._drop_ballast()
            with suppress(sqlite3.Error), _transaction(self._connection):
                _set_meta(self._connection, {"state": state})
        self._drop_ballast()
        _leave_wal(self._connection)
        self._connection.close()

    def _transact(self, batch: Batch, rollups: Sequence[tuple[object, ...]]) -> None:
        try:
            with _transaction(self._connection):
                self._insert(batch)
                self._insert_rollups(rollups)
            now_s = monotonic_s()
            if now_s >= self._checkpoint_at_s:
                self._checkpoint_at_s = now_s + CHECKPOINT_EVERY_S
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error as error:
            self._drop_ballast()
            raise SessionFullError(
                f"the session file cannot grow: {_words(error)} ({self.path})"
            ) from error

    def _insert(self, batch: Batch) -> None:
        connection = self._connection
        _set_meta(connection, batch.meta)
        _put_jobs(connection, batch.jobs)
        _many(connection, "samples", map(codec.sample_values, batch.samples))
        self._insert_steps(batch)
        _many(connection, "phases", ((p.t_s, p.job_id, p.phase) for p in batch.phases))
        _many(connection, "events", map(codec.event_values, batch.events))
        _many(connection, "verdicts", map(codec.verdict_values, batch.verdicts))
        _many(connection, "results", map(codec.result_values, batch.results))
        if batch.logs:
            self._insert_logs(batch)

    def _insert_steps(self, batch: Batch) -> None:
        """At most one row a job and second: counters are cumulative, so the last says all."""
        last = {(row.job_id, int(row.t_s)): row for row in batch.steps}
        rows = [
            (row.t_s, row.job_id, row.units_done, row.steps_done, row.loss)
            for (job_id, second), row in last.items()
            if second > self._steps_second.get(job_id, -1)
        ]
        _many(self._connection, "steps", rows)
        for job_id, second in last:
            self._steps_second[job_id] = max(second, self._steps_second.get(job_id, -1))

    def _insert_logs(self, batch: Batch) -> None:
        _many(self._connection, "log", ((r.t_s, r.job_id, r.stream, r.text) for r in batch.logs))
        for row in batch.logs:
            self._log_rows[row.job_id] = self._log_rows.get(row.job_id, 0) + 1
        for job_id in {row.job_id for row in batch.logs}:
            surplus = self._log_rows[job_id] - LOG_FIRST - LOG_LAST
            if surplus > 0:
                self._connection.execute(
                    "DELETE FROM log WHERE rowid IN (SELECT rowid FROM log WHERE job_id = ? "
                    "ORDER BY rowid LIMIT ? OFFSET ?)",
                    (job_id, surplus, LOG_FIRST),
                )
                self._log_rows[job_id] -= surplus

    def _insert_rollups(self, rows: Sequence[tuple[object, ...]]) -> None:
        _many(self._connection, "rollups", rows)

    def _drop_ballast(self) -> None:
        self._ballast.unlink(missing_ok=True)


def close_crashed(path: Path) -> bool:
    """Close a session whose recorder is gone: what was recorded stays, the state says so.

    Returns:
        Whether anything was changed: false for a session that had ended.

    Raises:
        UsageError: the file is no session, or cannot be written.
    """
    check_is_session(path)
    ballast_path(path).unlink(missing_ok=True)
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=10.0)
        connection.isolation_level = None
        try:
            return _close_crashed(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise UsageError(f"cannot close {path}: {_words(error)}") from None


def _close_crashed(connection: sqlite3.Connection) -> bool:
    (state,) = connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()
    if state != "recording":
        _leave_wal(connection)
        return False
    (t_s,) = connection.execute(
        "SELECT max(t_s) FROM (SELECT max(t_s) AS t_s FROM samples UNION SELECT max(t_s) "
        "FROM steps UNION SELECT max(t_s) FROM events)"
    ).fetchone()
    text = "the recorder ended without closing this session: killed, or the machine went down"
    with _transaction(connection):
        _set_meta(connection, {"state": "interrupted", "end_reason": text})
        _many(connection, "events", [(t_s or 0.0, "end", None, None, text, "{}")])
    _leave_wal(connection)
    return True


def copy_session(path: Path, copy: Path) -> None:
    """Copy a session, also one that is being recorded, by `VACUUM INTO`.

    Raises:
        UsageError: the copy exists or cannot be written, or `path` is no session.
    """
    check_is_session(path)
    if copy.exists():
        raise UsageError(f"{copy} exists; choose another file")
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("VACUUM INTO ?", (str(copy),))
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise UsageError(f"cannot copy to {copy}: {_words(error)}") from None


def ballast_path(path: Path) -> Path:
    """The ballast file of a session while it is recorded."""
    return path.with_name(f"{path.name}-ballast")


class _transaction:  # noqa: N801 - reads as the statement it is
    """`BEGIN IMMEDIATE` ... `COMMIT`, or `ROLLBACK` when anything fails."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._connection.execute("COMMIT")
        # A full disk has SQLite roll back by itself.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _make(
    path: Path, meta: dict[str, str], devices: Sequence[DeviceInfo], jobs: Sequence[JobRow]
) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.executescript(f"BEGIN;{TABLES}COMMIT;")
        with _transaction(connection):
            _set_meta(connection, meta)
            _many(connection, "devices", map(codec.device_values, devices))
            _put_jobs(connection, jobs)
    finally:
        connection.close()


def _put_in_place(made: Path, path: Path, *, force: bool) -> None:
    if force:
        for suffix in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        made.replace(path)
        return
    try:
        path.hardlink_to(made)  # Unlike a rename, refuses a file that has come meanwhile.
    except FileExistsError:
        raise
    except OSError:  # A file system without hard links.
        made.rename(path)


def _leave_wal(connection: sqlite3.Connection) -> None:
    """Bring everything into the one file; a reader that stays leaves it to the next opener."""
    until_s = monotonic_s() + CLOSE_WITHIN_S
    connection.execute("PRAGMA busy_timeout=250")
    while True:
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
            if mode == "delete":
                return
        if monotonic_s() >= until_s:
            return


def _set_meta(connection: sqlite3.Connection, meta: dict[str, str]) -> None:
    if meta:
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", meta.items())


def _put_jobs(connection: sqlite3.Connection, jobs: Sequence[JobRow]) -> None:
    for job in jobs:
        _many(connection, "jobs", [codec.job_values(job)], "INSERT OR REPLACE")
        ranks = ((job.job_id, device_id, rank) for rank, device_id in enumerate(job.device_ids))
        _many(connection, "job_devices", ranks, "INSERT OR REPLACE")


_COLUMNS = {
    "devices": 7, "jobs": 8, "job_devices": 3, "samples": len(codec.SAMPLE_COLUMNS), "steps": 5,
    "phases": 3, "rollups": 7, "events": 6, "verdicts": len(codec.VERDICT_COLUMNS), "results": 4,
    "log": 4,
}  # fmt: skip


def _many(connection: sqlite3.Connection, table: str, rows: object, insert: str = "INSERT") -> None:
    places = ",".join("?" * _COLUMNS[table])
    connection.executemany(f"{insert} INTO {table} VALUES ({places})", rows)  # type: ignore[arg-type]


def _words(error: Exception) -> str:
    if isinstance(error, sqlite3.Error):
        return sqlite_words(error)
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
