"""Opening a session file to read it, whatever state its recorder left it in."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.session.schema import APPLICATION_ID, VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs",
     "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph"}
)  # fmt: skip
"""Where the shared memory of a write-ahead log does not work between machines."""


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection for one look; hold it briefly, it keeps the writer from closing.

    Raises:
        UsageError: not there, not readable, no session, or of a newer version.
    """
    check_is_file(path)
    with ExitStack() as stack:
        try:
            connection = _open(path, stack)
            _check(connection, path)
            yield connection
        except sqlite3.DatabaseError as error:
            raise UsageError(f"{path} cannot be read: {sqlite_words(error)}") from None


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
        UsageError: it is not, or it is a folder.
    """
    try:
        is_there, is_folder = path.exists(), path.is_dir()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if not is_there:
        raise UsageError(f"there is no file {path}")
    if is_folder:
        raise UsageError(f"{path} is a folder, not a session file")


def sqlite_words(error: sqlite3.Error) -> str:
    """What SQLite says, in the user's words where it is terse."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_FULL:
        return "the disk is full"
    if code is not None and code & 0xFF == sqlite3.SQLITE_NOTADB:
        return "it is no session file"
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
    return mounts[max(mounts, key=lambda mount: len(mount.parts))] in NETWORK_FILE_SYSTEMS


def _open(path: Path, stack: ExitStack) -> sqlite3.Connection:
    try:
        return _connect(path, "mode=ro", stack)
    except sqlite3.OperationalError as error:
        # A folder that cannot be written: SQLite has nowhere to put the log's shared memory.
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists():
        return _connect(path, "immutable=1", stack)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heatsoak-")))
    shutil.copy2(wal, folder)
    return _connect(Path(shutil.copy2(path, folder)), "mode=rw", stack)


def _connect(path: Path, mode: str, stack: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=5.0)
    stack.callback(connection.close)
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise UsageError(f"{path} is no session file of heatsoak")
    if version > VERSION:
        raise UsageError(
            f"{path} was made by a newer heatsoak (its version is {version}, this one reads up "
            f"to {VERSION}); update heatsoak to read it"
        )
