"""The tables of a session file, as the design and its other readers know them."""

from __future__ import annotations

import sqlite3
from typing import get_type_hints

import pytest

from heatsoak.session import codec
from heatsoak.session.schema import APPLICATION_ID, META_KEYS, TABLES, VERSION
from heatsoak.telemetry.sample import READING_NAMES, READINGS, DeviceSample


@pytest.fixture
def tables():
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
    found = {
        name: {row[1]: row for row in connection.execute(f"PRAGMA table_info({name})")}
        for name in names
    }
    connection.close()
    return found


def test_the_tables_are_those_of_the_design(tables):
    assert set(tables) == {
        "meta", "devices", "jobs", "job_devices", "samples", "steps", "phases", "rollups", "events",
        "verdicts", "results", "environment", "annotations", "log",
    }  # fmt: skip
    assert (APPLICATION_ID.to_bytes(4, "big"), VERSION) == (b"HEAT", 2)


def test_every_reading_has_its_column_and_may_be_null(tables):
    assert tuple(tables["samples"]) == ("t_s", "device_id", *READINGS) == codec.SAMPLE_COLUMNS
    hints = get_type_hints(DeviceSample)
    for reading in READINGS:
        _, _, kind, is_not_null, default, _ = tables["samples"][reading]
        assert (is_not_null, default) == (0, None), reading
        expected = {float: "REAL", int: "INTEGER", tuple: "TEXT"}
        asked = next(a for a in hints[reading].__args__ if a is not type(None))
        assert kind == expected[getattr(asked, "__origin__", asked)], reading


def test_every_reading_has_a_name_for_its_users():
    assert set(READING_NAMES) == set(READINGS)


def test_what_is_written_fits_the_tables(tables):
    assert tuple(tables["verdicts"]) == codec.VERDICT_COLUMNS


def test_every_session_says_what_is_asked_of_it(sessions):
    assert set(META_KEYS) <= set(sessions.meta())
