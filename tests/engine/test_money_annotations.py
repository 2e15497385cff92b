"""Annotations are written after the measurement, and nothing of the measurement is touched."""

from __future__ import annotations

import os
import sqlite3

import pytest

from heatsoak.errors import UsageError
from heatsoak.profiles.money import Input
from heatsoak.profiles.prices import change_prices
from heatsoak.session.access import reading
from heatsoak.session.annotations import annotate, annotations_of, newest
from heatsoak.session.kept_prices import keep_prices
from heatsoak.session.result import load_result

KWH = Input("kwh_price", 0.187, "yours", "USD", "2026-12-01")


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


@pytest.fixture
def ended(sessions, tmp_path):
    """A session that has ended, with some seconds of everything."""
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path, 2)
    for t in range(30):
        writer.write(sessions.second(t, 2))
    writer.close("interrupted")
    return path


def dump(path):
    """Every row of every table but the annotations."""
    connection = sqlite3.connect(path)
    try:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'annotations'"
        tables = [name for (name,) in connection.execute(query)]
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in tables}
    finally:
        connection.close()


def test_an_annotation_is_a_row_more_with_its_date(ended, tmp_path):
    before, files = dump(ended), sorted(os.listdir(tmp_path))  # noqa: PTH208
    annotate(ended, "note", {"text": "window open"})
    annotate(ended, "prices", {"all": {}})
    annotate(ended, "prices", {"cards": {}})
    with reading(ended) as connection:
        found = annotations_of(connection)
        assert [(a.kind, a.data) for a in found] == [
            ("note", {"text": "window open"}), ("prices", {"all": {}}), ("prices", {"cards": {}}),
        ]  # fmt: skip
        assert all(a.created_utc.endswith("Z") and len(a.created_utc) == 20 for a in found)
        assert newest(connection, "prices") == found[-1]
        assert newest(connection, "tag") is None
    assert dump(ended) == before
    assert sorted(os.listdir(tmp_path)) == files  # noqa: PTH208 - one file still


def test_a_session_that_is_recorded_is_not_annotated(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    with pytest.raises(UsageError, match="being recorded"):
        annotate(path, "note", {})
    writer.write(sessions.second(1))
    writer.close("interrupted")
    annotate(path, "note", {})


def test_what_is_no_session_is_not_annotated(tmp_path):
    other = tmp_path / "other.heatsoak"
    other.write_text("mine")
    with pytest.raises(UsageError):
        annotate(other, "note", {})
    with pytest.raises(UsageError, match="no file"):
        annotate(tmp_path / "none.heatsoak", "note", {})
    assert other.read_text() == "mine"


def test_a_session_that_may_not_be_written_says_so(ended, as_nobody):
    ended.chmod(0o444)
    with as_nobody():
        if os.access(ended.parent, os.X_OK, effective_ids=True):
            with pytest.raises(UsageError, match="cannot annotate"):
                annotate(ended, "note", {})


def test_the_prices_used_are_kept_once(ended):
    assert not keep_prices(ended, load_result(ended)["economics"])  # There are none.
    change_prices(put=[KWH])
    before = dump(ended)
    assert keep_prices(ended, load_result(ended)["economics"])
    assert not keep_prices(ended, load_result(ended)["economics"])
    stored = load_result(ended)["economics"]["stored"]
    assert stored["data"]["all"]["kwh_price"] == {
        "value": 0.187, "currency": "USD", "date": "2026-12-01",
    }  # fmt: skip
    change_prices(put=[Input("kwh_price", 0.3, "yours", "USD", "2026-12-02")])
    assert keep_prices(ended, load_result(ended)["economics"])
    with reading(ended) as connection:
        assert [a.data["all"]["kwh_price"]["value"] for a in annotations_of(connection)] == [
            0.187, 0.3,
        ]  # fmt: skip
    assert dump(ended) == before
    change_prices(drop=[KWH])
    economics = load_result(ended)["economics"]
    (entry,) = [i for i in economics["jobs"][0]["inputs"] if i["name"] == "kwh_price"]
    assert (entry["value"], entry["origin"]) == (0.3, "session")
    assert not keep_prices(ended, economics)
