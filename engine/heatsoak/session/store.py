"""Writing a session file: one transaction a commit, nothing acknowledged is ever lost."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from heatsoak.clock import monotonic_s
from heatsoak.errors import HeatsoakError, UsageError
from heatsoak.session import codec
from heatsoak.session.access import (
    check_is_session,
    is_network_file_system,
    reading,
    sqlite_words,
)
from heatsoak.session.insert import insert, many, put_jobs, set_meta
from heatsoak.session.queries import last_t_s, last_verdicts
from heatsoak.session.rollup import Rollups
from heatsoak.session.rows import EventRow
from heatsoak.session.schema import APPLICATION_ID, TABLES, UPGRADES, VERSION
from heatsoak.session.wal import beside, is_busy, leave_wal, transaction, uri
from heatsoak.steady_state.verdict import FINAL_STATES, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from heatsoak.session.rollup import Row as RollupValues
    from heatsoak.session.rows import Batch, JobRow, SessionState
    from heatsoak.telemetry.device import DeviceInfo

CHECKPOINT_EVERY_S = 10.0
"""So far at most is the file alone, without its `-wal`, behind."""
CLOSE_WITHIN_S = 5.0
"""How long the end waits for readers before it leaves the WAL to the next opener."""
BALLAST_BYTES = 256 * 1024
"""Held beside the file while it is recorded, given up on a full disk so that the end fits."""
SQLITE_MAGIC = b"SQLite format 3\0"
"""The first bytes of every file of SQLite's."""
FREE_WITHIN_S = 0.5
"""How long `--force` waits for readers of the file it is to replace."""


class SessionFullError(HeatsoakError):
    """The session file cannot be written: the disk is full, over quota, or gone."""

    exit_code = 5


class SessionWriter:
    """The one writer of a session file."""

    def __init__(self, path: Path) -> None:
        """Open a session file that `create` has made."""
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10.0)
        try:
            self._configure()
        except sqlite3.Error:
            self._connection.close()
            raise
        self._where = path.absolute()
        self._identity = _identity(self._where)
        self._ballast = ballast_path(self._where)
        self._is_full = False
        self._rollups = Rollups()
        self._passed: list[RollupValues] = []
        """Rollups of committed readings that are not in the file yet."""
        self._checkpoint_at_s = monotonic_s() + CHECKPOINT_EVERY_S
        self._steps_second: dict[str, int] = {}
        self._log_lines: dict[str, int] = {}

    def _configure(self) -> None:
        mode = "TRUNCATE" if is_network_file_system(self.path) else "WAL"
        (given,) = self._connection.execute(f"PRAGMA journal_mode={mode}").fetchone()
        if given != mode.lower():
            self._connection.execute("PRAGMA journal_mode=TRUNCATE")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("PRAGMA cache_size=-1024")
        # SQLite checkpoints by itself only past 4 MB; ours come first.
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        meta: dict[str, str],
        devices: Sequence[DeviceInfo],
        jobs: Sequence[JobRow],
        environment: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> SessionWriter:
        """Make a session file and open it.

        Args:
            path: where; its folder exists.
            meta: what is known of the session, at least `META_KEYS`.
            devices: its devices.
            jobs: its jobs.
            environment: what was seen of the machine, by topic; anything that is JSON.
            force: replace a file that is there.

        Raises:
            UsageError: the file exists, is being recorded, or cannot be written there; nothing is
                left behind.
        """
        where = path.absolute()
        try:
            where.lstat()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        if where.is_dir():
            raise UsageError(f"{path} is a folder; --out takes a file")
        if where.exists() and not force:
            raise UsageError(f"{path} exists; give another --out, or --force to replace it")
        if not where.parent.is_dir():
            raise UsageError(f"cannot write {path}: there is no folder {path.parent}")
        if force and not _is_database(where):
            raise UsageError(f"{path} is no session file; --force replaces only those")
        if force and not _is_free(where):
            raise UsageError(f"{path} is in use by another run or reader; give another --out")
        made = where.with_name(f".{where.name}.{os.getpid()}")
        is_placed = False
        try:
            _remove(made)
            _make(made, meta, devices, jobs, environment or {})
            ballast_path(made).write_bytes(os.urandom(BALLAST_BYTES))
            _put_in_place(made, where, force=force)
            is_placed = True
            made.unlink(missing_ok=True)  # SQLite wants a file to have one name.
            ballast_path(made).replace(ballast_path(where))
            return cls(path)
        except (OSError, sqlite3.Error) as error:
            if is_placed:
                _remove(where)
            raise UsageError(f"cannot write {path}: {_words(error)}") from None
        finally:
            _remove(made)

    def write(self, batch: Batch) -> None:
        """Commit everything in a batch in one transaction.

        Args:
            batch: new rows; its `meta` is merged into the table, its `jobs` replace those of the
                same id, its `devices` and `rollups` are not looked at.

        Raises:
            SessionFullError: the disk is full; nothing of the batch is in the file, which stays
                readable, and a small batch with the end can still be written. Or the file was
                removed, and nobody could ever read what is written.
        """
        if _identity(self._where) != self._identity:
            raise SessionFullError(f"{self.path} was removed or replaced while it was recorded")
        seconds, lines = dict(self._steps_second), dict(self._log_lines)
        # With the disk full only the end counts; what has passed is then tried once, by close.
        passed = [] if self._is_full else self._passed
        try:
            self._checkpoint()
            with transaction(self._connection):
                insert(self._connection, batch, seconds, lines)
                many(self._connection, "rollups", passed)
        except sqlite3.DatabaseError as error:
            if type(error) not in (sqlite3.OperationalError, sqlite3.DatabaseError):
                raise  # A row that is no row: a defect of ours.
            self._is_full = True
            self._drop_ballast()
            raise SessionFullError(f"cannot write {self.path}: {_words(error)}") from error
        # Only what is in the file counts from here on.
        self._steps_second, self._log_lines = seconds, lines
        self._passed = self._passed if self._is_full else []
        for sample in batch.samples:
            self._rollups.add_sample(sample)
        for phase in batch.phases:
            self._rollups.add_phase(phase)
        for steps in batch.steps:
            self._rollups.add_steps(steps)
        self._passed += self._rollups.take()

    def close(self, state: SessionState) -> None:
        """End the session: last rollups, its state, everything in the one file.

        Args:
            state: the end state.
        """
        try:
            with transaction(self._connection):
                many(self._connection, "rollups", [*self._passed, *self._rollups.finish()])
                set_meta(self._connection, {"state": state})
        except sqlite3.Error:
            # The disk is full: without rollups, the state alone may fit into what the ballast held.
            self._drop_ballast()
            with suppress(sqlite3.Error), transaction(self._connection):
                set_meta(self._connection, {"state": state})
        self._drop_ballast()
        leave_wal(self._connection, CLOSE_WITHIN_S)
        self._connection.close()

    def _checkpoint(self) -> None:
        """What was committed, into the file itself; before a commit, so that a failure is its."""
        now_s = monotonic_s()
        if now_s >= self._checkpoint_at_s:
            self._checkpoint_at_s = now_s + CHECKPOINT_EVERY_S
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _drop_ballast(self) -> None:
        with suppress(OSError):
            self._ballast.unlink(missing_ok=True)


def close_crashed(path: Path) -> bool:
    """Close a session whose recorder is gone: what was recorded stays, the state says so.

    Returns:
        Whether anything was changed: false for a session that had ended.

    Raises:
        UsageError: the file is no session, or cannot be written.
    """
    check_is_session(path)
    where = path.resolve()
    with suppress(OSError):  # Gone first: the disk may be full.
        ballast_path(where).unlink(missing_ok=True)
    try:
        with closing(_connect_rw(where, timeout_s=10.0)) as connection:
            with transaction(connection):
                is_changed = _interrupt(connection)
            # Two that wait for each other to go would wait in vain: who came second does not.
            leave_wal(connection, CLOSE_WITHIN_S if is_changed else 0.0)
            return is_changed
    except sqlite3.Error as error:
        raise UsageError(f"cannot close {path}: {_words(error)}") from None


def _interrupt(connection: sqlite3.Connection) -> bool:
    """Say that a session and what was not final in it ended here, unless it has ended."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()
    if row is None or row[0] != "recording":
        return False
    text = "the recorder ended without closing this session: killed, or the machine went down"
    t_s = max(last_t_s(connection, table) or 0.0 for table in ("samples", "steps", "events"))
    verdicts = last_verdicts(connection)
    devices = [row[0] for row in connection.execute("SELECT device_id FROM devices")]
    for device_id in devices:
        last = verdicts.get(device_id) or Verdict(t_s, device_id, "warming", (), "", ())
        if last.state not in FINAL_STATES:
            end = replace(
                last, t_s=t_s, state="interrupted", reason=text, blocked_by=None, time_left_s=None
            )
            # The file may be of an earlier version, whose rows lack the newest columns.
            known = len(connection.execute("PRAGMA table_info(verdicts)").fetchall())
            values = codec.verdict_values(end)[:known]
            places = ",".join("?" * known)
            connection.execute(f"INSERT INTO verdicts VALUES ({places})", values)
    set_meta(connection, {"state": "interrupted", "end_reason": text})
    many(connection, "events", [codec.event_values(EventRow(t_s, "end", text))])
    return True


def copy_session(path: Path, copy: Path) -> None:
    """Copy a session, also one that is being recorded, by `VACUUM INTO`.

    The copy of one that an earlier heatsoak made is brought up to today's version.

    Raises:
        UsageError: the copy exists or cannot be written, or `path` is no session.
    """
    if copy.exists():
        raise UsageError(f"{copy} exists; choose another file")
    with reading(path) as connection:
        try:
            # As a URI: SQLite takes no other name that is not UTF-8.
            connection.execute("VACUUM INTO ?", (copy.absolute().as_uri(),))
        except sqlite3.Error as error:
            _remove(copy)
            raise UsageError(f"cannot copy to {copy}: {_words(error)}") from None
    _upgrade(copy)


def _upgrade(path: Path) -> None:
    """Bring a file that is nobody's yet up to today's version."""
    try:
        with closing(_connect_rw(path.resolve(), timeout_s=0.0)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == VERSION:
                return
            with transaction(connection):
                for earlier in range(version, VERSION):
                    for statement in UPGRADES[earlier]:
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version={VERSION}")
    except sqlite3.Error as error:
        _remove(path)
        raise UsageError(f"cannot copy to {path}: {_words(error)}") from None


def _is_database(path: Path) -> bool:
    """Whether a file is one of SQLite's, empty, or not there; any other is somebody's."""
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) in (SQLITE_MAGIC, b"")
    except FileNotFoundError:
        return True
    except OSError as error:
        raise UsageError(f"{path} cannot be replaced: {error.strerror}") from None


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another of its name; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def ballast_path(path: Path) -> Path:
    """The ballast file of a session while it is recorded."""
    return beside(path, "-ballast")


def _connect_rw(path: Path, *, timeout_s: float) -> sqlite3.Connection:
    return sqlite3.connect(uri(path, "mode=rw"), uri=True, timeout=timeout_s, isolation_level=None)


def _is_free(path: Path) -> bool:
    """Whether nobody has a file open that is to be replaced; what they write would be lost."""
    if not path.is_file():
        return True
    try:
        with closing(_connect_rw(path.resolve(), timeout_s=0.0)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return leave_wal(connection, FREE_WITHIN_S)
    except sqlite3.Error as error:  # Foreign, damaged or unwritable files are not in use.
        return not is_busy(error)


def _remove(path: Path) -> None:
    """Remove a session file and whatever is beside it."""
    for suffix in ("", "-wal", "-shm", "-journal", "-ballast"):
        with suppress(OSError):
            beside(path, suffix).unlink(missing_ok=True)


def _make(
    path: Path,
    meta: dict[str, str],
    devices: Sequence[DeviceInfo],
    jobs: Sequence[JobRow],
    environment: Mapping[str, Any],
) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.executescript(f"BEGIN;{TABLES}COMMIT;")
        with transaction(connection):
            set_meta(connection, meta)
            many(connection, "devices", map(codec.device_values, devices))
            put_jobs(connection, jobs)
            seen = ((key, codec.to_json(value)) for key, value in environment.items())
            many(connection, "environment", seen)
    finally:
        connection.close()


def _put_in_place(made: Path, path: Path, *, force: bool) -> None:
    if force:
        for suffix in ("-wal", "-shm", "-journal"):
            beside(path, suffix).unlink(missing_ok=True)
        made.replace(path)
        return
    try:
        path.hardlink_to(made)  # Unlike a rename, refuses a file that has come meanwhile.
    except FileExistsError:
        raise
    except OSError:  # A file system without hard links.
        made.rename(path)


def _words(error: Exception) -> str:
    if isinstance(error, sqlite3.Error):
        return sqlite_words(error)
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
