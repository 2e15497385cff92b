"""Keeping the prices that were used in the session, as an annotation with its date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak.profiles.money import Input, Money, to_plain
from heatsoak.profiles.prices import read_prices
from heatsoak.session.access import reading
from heatsoak.session.annotations import annotate, newest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def keep_prices(path: Path, economics: Mapping[str, Any]) -> bool:
    """Store the user's prices that a session's economics stand on, unless they are the last stored.

    Args:
        path: the session file; it has ended.
        economics: its field `economics`.

    Returns:
        Whether they were stored; false where none is the user's own, or nothing is new.

    Raises:
        UsageError: the file cannot be written.
    """
    used = [entry for job in economics["jobs"] for entry in job["inputs"]]
    if not any(entry["origin"] == "yours" for entry in used):
        return False
    names = ("name", "value", "origin", "currency", "date", "card")
    inputs = dict.fromkeys(Input(**{name: entry[name] for name in names}) for entry in used)
    data = to_plain(Money(tuple(inputs), read_prices().rates))
    with reading(path) as connection:
        stored = newest(connection, "prices")
    if stored is not None and stored.data == data:
        return False
    annotate(path, "prices", data)
    return True
