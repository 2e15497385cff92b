"""What is written into a session after its measurement: names, tags, notes, the prices used.

Every annotation is a row more with its date; none is changed or removed, and nothing of the
measurement is touched.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.clock import now_utc
from heatsoak.errors import UsageError
from heatsoak.session import codec
from heatsoak.session.access import check_is_session, sqlite_words
from heatsoak.session.wal import leave_wal, transaction, uri

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Kind = Literal["name", "tag", "note", "prices"]
BUSY_WITHIN_S = 10.0
"""How long to wait for somebody else who has the file."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """One row of `annotations`."""

    created_utc: str
    kind: str
    data: dict[str, Any]


def annotate(path: Path, kind: Kind, data: Mapping[str, Any]) -> None:
    """Write an annotation into a session that has ended, with the date of now.

    Args:
        path: the session file.
        kind: what it is.
        data: what it says, as JSON.

    Raises:
        UsageError: the file is no session, is still being recorded, or cannot be written.
    """
    check_is_session(path)
    where = path.resolve()
    row = (now_utc(), kind, codec.to_json(dict(data)))
    try:
        opened = sqlite3.connect(
            uri(where, "mode=rw"), uri=True, timeout=BUSY_WITHIN_S, isolation_level=None
        )
        with closing(opened) as connection:
            with transaction(connection):
                query = "SELECT value FROM meta WHERE key = 'state'"
                state = connection.execute(query).fetchone()
                if state is None or state[0] == "recording":
                    raise UsageError(f"{path} is being recorded; annotate it when it has ended")
                connection.execute("INSERT INTO annotations VALUES (?, ?, ?)", row)
            leave_wal(connection, 0.0)
    except sqlite3.Error as error:
        raise UsageError(f"cannot annotate {path}: {sqlite_words(error)}") from None


def annotations_of(connection: sqlite3.Connection) -> tuple[Annotation, ...]:
    """All annotations of a session, the oldest first."""
    rows = connection.execute("SELECT created_utc, kind, data FROM annotations ORDER BY rowid")
    return tuple(Annotation(created, kind, json.loads(data)) for created, kind, data in rows)


def newest(connection: sqlite3.Connection, kind: Kind) -> Annotation | None:
    """The newest annotation of a kind, or None."""
    found = [entry for entry in annotations_of(connection) if entry.kind == kind]
    return found[-1] if found else None
