"""A session file and what SQLite keeps beside it, and how it becomes one file again."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from heatsoak.clock import monotonic_s

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TRY_EVERY_S = 0.02
"""Between two tries to leave the write-ahead log; a reader holds the file for about 1 ms."""
SIDES = ("-wal", "-journal")
"""What SQLite may keep beside a file that belongs to its contents."""


def uri(path: Path, option: str) -> str:
    """The URI by which SQLite opens a file, whatever characters are in its name.

    Args:
        path: the file.
        option: such as `mode=ro`.
    """
    return f"{path.absolute().as_uri()}?{option}"


def beside(path: Path, suffix: str) -> Path:
    """A file beside a session file: its name and a suffix more."""
    return path.with_name(path.name + suffix)


def side_files(path: Path) -> list[Path]:
    """The files beside a session file without which it is not complete."""
    found = []
    for side in (beside(path, suffix) for suffix in SIDES):
        with suppress(OSError):
            if side.stat().st_size:
                found.append(side)
    return found


def stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes whenever the contents of a session file do: ages and sizes of its files."""
    stats = [(file.name, file.stat()) for file in (path, *side_files(path))]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def is_allowed(path: Path, mode: int) -> bool:
    """Whether this process may do `os.R_OK` or `os.W_OK` with a file or in a folder."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether SQLite failed only because somebody else has the file for a moment."""
    return primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its extension; None for an error of the module's own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """`BEGIN IMMEDIATE` ... `COMMIT`, or `ROLLBACK` when anything fails, the commit included."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        # A full disk has SQLite roll back by itself.
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")


def leave_wal(connection: sqlite3.Connection, within_s: float) -> bool:
    """Bring everything into the one file, whose log is then gone.

    Args:
        connection: to the file, able to write.
        within_s: how long to wait for others who have it open; at least one try is made.

    Returns:
        Whether it is one file now. If not, the next opener that can write tries again.
    """
    until_s = monotonic_s() + within_s
    connection.execute(f"PRAGMA busy_timeout={min(250, int(within_s * 1000))}")
    while True:
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
            if mode == "delete":
                return True
        except sqlite3.Error as error:
            if not is_busy(error):
                return False
        if monotonic_s() >= until_s:
            return False
        time.sleep(TRY_EVERY_S)


def fold(path: Path) -> None:
    """Leave the log of a session that has ended, if that can be done at once."""
    if not is_allowed(path, os.W_OK) or not is_allowed(path.parent, os.W_OK):
        return
    with suppress(sqlite3.Error):
        opened = sqlite3.connect(uri(path, "mode=rw"), uri=True, timeout=0.0, isolation_level=None)
        with closing(opened) as connection:
            leave_wal(connection, 0.0)
