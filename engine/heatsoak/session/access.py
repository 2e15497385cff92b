"""Opening a session file to read it, whatever state its recorder left it in."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.session.schema import APPLICATION_ID, META_KEYS, VERSION
from heatsoak.session.wal import (
    beside,
    fold,
    is_allowed,
    is_busy,
    primary_code,
    side_files,
    stamp,
    uri,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs",
     "glusterfs", "orangefs", "gfs2", "ocfs2", "virtiofs", "vboxsf", "prl_fs"}
)  # fmt: skip
"""Where the shared memory of a write-ahead log does not work between machines."""
BUSY_WITHIN_S = 5.0
"""How long a reader waits for whoever has the file locked."""
COPY_TRIES = 5
"""How often a file that changes while it is copied is copied anew."""


class SessionBusyError(UsageError):
    """Somebody else has the file for a moment; the next look may succeed."""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection for one look; hold it briefly, it keeps the writer from closing.

    A session that ended while somebody read it, so that its log stayed beside it, is made one file
    again afterwards.

    Raises:
        SessionBusyError: it is locked, and was for some seconds.
        UsageError: not there, not readable, no session, or of a newer version.
    """
    check_is_file(path)
    where = path.resolve()  # SQLite's own files lie beside what a link points to.
    has_log = False
    with ExitStack() as stack:
        try:
            connection = _open(where, stack)
            _check(connection, path)
            yield connection
            has_log = beside(where, "-wal").exists() and _has_ended(connection)
        except sqlite3.Error as error:
            kind = SessionBusyError if is_busy(error) else UsageError
            raise kind(f"{path} cannot be read: {sqlite_words(error)}") from None
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
        except json.JSONDecodeError as error:  # All of it was written by `codec.to_json`.
            raise UsageError(f"{path} is damaged: {error}") from None
    if has_log:
        fold(where)


def check_is_session(path: Path) -> None:
    """See that a file is a session of a version that can be read.

    Raises:
        UsageError: it is not, in words.
    """
    with reading(path):
        pass


def check_is_file(path: Path) -> None:
    """See that a file is there.

    Raises:
        UsageError: it is not, or it is no ordinary file.
    """
    try:
        is_there, is_folder, is_file = path.exists(), path.is_dir(), path.is_file()
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {words}") from None
    if not is_there:
        raise UsageError(f"there is no file {path}")
    if is_folder:
        raise UsageError(f"{path} is a folder, not a session file")
    if not is_file:  # A pipe would be waited for without end.
        raise UsageError(f"{path} is no ordinary file")


def session_meta(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """The whole of `meta`.

    Raises:
        UsageError: something that every session has is not there.
    """
    meta: dict[str, str] = dict(connection.execute("SELECT key, value FROM meta"))
    missing = [key for key in META_KEYS if key not in meta]
    if missing:
        raise UsageError(f"{path} is damaged: it does not say its {', '.join(missing)}")
    return meta


def sqlite_words(error: sqlite3.Error) -> str:
    """What SQLite says, in the user's words where it is terse."""
    code = primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        return "the disk is full"
    if code == sqlite3.SQLITE_NOTADB:
        return "it is no session file"
    if code == sqlite3.SQLITE_CORRUPT:
        return "it is damaged"
    return str(error)


def is_network_file_system(path: Path) -> bool:
    """Whether a file lies on a file system that several machines share."""
    import psutil  # Only the recorder asks.

    where = path.absolute().resolve()
    mounts = {
        Path(mount.mountpoint): mount.fstype
        for mount in psutil.disk_partitions(all=True)
        if where.is_relative_to(mount.mountpoint)
    }
    if not mounts:
        return False
    kind = mounts[max(mounts, key=lambda mount: len(mount.parts))]
    # Of user-space file systems most are remote, and the others lose nothing by a rollback journal.
    return kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse.")


def _open(path: Path, stack: ExitStack) -> sqlite3.Connection:
    try:
        return _connect(path, "mode=ro", stack)
    except sqlite3.OperationalError as error:
        # A folder that cannot be written: SQLite has nowhere to put the log's shared memory, or
        # cannot undo what a crash left half done.
        if primary_code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
    if not is_allowed(path, os.R_OK):
        raise UsageError(f"{path} cannot be read: {os.strerror(errno.EACCES)}")
    for _ in range(COPY_TRIES):
        if not side_files(path):
            return _connect(path, "immutable=1", stack)
        copy = _copy(path, stack)
        if copy is not None:
            return _connect(copy, "mode=rw", stack)
    raise SessionBusyError(f"{path} changes while it is read; try again")


def _copy(path: Path, stack: ExitStack) -> Path | None:
    """A private copy of a file and what is beside it; None if they changed meanwhile."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heatsoak-")))
    before = stamp(path)
    for file in (path, *side_files(path)):
        # Without its permissions: the copy has to be writable.
        shutil.copyfile(file, folder / file.name)
    return folder / path.name if stamp(path) == before else None


def _connect(path: Path, mode: str, stack: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(uri(path, mode), uri=True, timeout=BUSY_WITHIN_S)
    stack.callback(connection.close)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def _has_ended(connection: sqlite3.Connection) -> bool:
    row = connection.execute("SELECT value FROM meta WHERE key = 'state'").fetchone()
    return row is not None and row[0] != "recording"


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise UsageError(f"{path} is no session file of heatsoak")
    if version < 1:
        raise UsageError(f"{path} is damaged: it has no version")
    if version > VERSION:
        raise UsageError(
            f"{path} was made by a newer heatsoak (its version is {version}, this one reads up "
            f"to {VERSION}); update heatsoak to read it"
        )
