"""Files of earlier versions: read as they are, and brought up to date on a copy."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from heatsoak.session.rejudge import judge_file
from heatsoak.session.result import load_result
from heatsoak.session.schema import TABLES, UPGRADES, VERSION
from heatsoak.session.store import close_crashed, copy_session
from heatsoak.session.tail import Tail

SINCE_1 = ("power_instant_w", "memory_temperature_c", "temperature_margin_c")


@pytest.fixture
def version_1(sessions, tmp_path):
    """A session as the first version wrote it."""
    path = tmp_path / "old.heatsoak"
    writer = sessions.create(path)
    for t in range(3):
        writer.write(sessions.second(t))
    writer.close("interrupted")
    with closing(sqlite3.connect(path)) as connection:
        for statement in UPGRADES[1]:
            _, _, table, _, _, column, _ = statement.split()
            drop_column(connection, table, column)
        connection.execute("PRAGMA user_version=1")
    return path


def drop_column(connection, table, column):
    """SQLite would keep the comments of the table's text, and then stumble over the last."""
    query = "SELECT sql FROM sqlite_master WHERE name = ?"
    (sql,) = connection.execute(query, (table,)).fetchone()
    plain = re.sub("--[^\n]*", "", sql).replace(table, "plain", 1)
    connection.execute(plain)
    connection.execute(f"INSERT INTO plain SELECT * FROM {table}")
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE plain RENAME TO {table}")
    connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.commit()


def test_a_file_of_an_earlier_version_is_read_and_left_as_it_is(version_1):
    before = version_1.read_bytes()
    samples = Tail(version_1).poll().samples
    assert [sample.power_w for sample in samples] == [450.0, 450.1, 450.2]
    assert {getattr(sample, name) for sample in samples for name in SINCE_1} == {None}
    assert samples[1].throttle_reasons == ("sw_power_cap",)
    assert load_result(version_1)["devices"][0]["device_id"] == "0"
    assert len(list(judge_file(version_1))) == 1
    assert version_1.read_bytes() == before


def test_a_crashed_file_of_an_earlier_version_can_be_closed(version_1):
    with closing(sqlite3.connect(version_1)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'recording' WHERE key = 'state'")
    assert close_crashed(version_1)
    assert Tail(version_1).poll().meta["state"] == "interrupted"


def test_a_copy_of_a_file_of_an_earlier_version_is_of_this_one(version_1, sessions, tmp_path):
    copy = tmp_path / "copy.heatsoak"
    copy_session(version_1, copy)
    assert sessions.pragma(version_1, "user_version") == 1
    assert sessions.pragma(copy, "user_version") == VERSION
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        for table in ("samples", "verdicts"):
            wanted = connection.execute(f"PRAGMA table_info({table})").fetchall()
            assert sessions.rows(copy, f"PRAGMA table_info({table})") == wanted
    assert Tail(copy).poll().samples == Tail(version_1).poll().samples
    assert sessions.files(tmp_path) == ["copy.heatsoak", "old.heatsoak"]


def test_there_is_a_way_up_from_every_earlier_version():
    assert sorted(UPGRADES) == list(range(1, VERSION))
