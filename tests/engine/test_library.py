"""The sessions of a user: listed whatever they are, found by what they are called."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from heatsoak.errors import UsageError
from heatsoak.session.library import find_session, list_sessions, sessions_dir
from heatsoak.session.rows import Batch, ResultRow
from heatsoak.session.schema import VERSION


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    where = sessions_dir()
    where.mkdir(parents=True)
    return where


def ended(sessions, path, count=1, *, rates=(), **meta):
    writer = sessions.create(path, count, **meta)
    for n, rate in enumerate(rates):
        sustained = None if rate is None else {"throughput": {"mean": rate}}
        data = {"sustained": sustained, "verdict": {"flags": ["smoke"]}}
        writer.write(Batch({}, results=(ResultRow(9.0, str(n), f"job-{n}", data),)))
    writer.close("steady")
    return path


def test_the_folder_of_the_sessions(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert sessions_dir() == tmp_path / "heatsoak" / "sessions"
    for no_path in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", no_path)
        assert sessions_dir() == Path.home() / ".local" / "state" / "heatsoak" / "sessions"


def test_no_folder_is_no_session(tmp_path):
    assert list_sessions(tmp_path / "gone") == []


def test_a_session_is_told_in_a_line(sessions, folder):
    ended(sessions, folder / "a.heatsoak", 2, rates=(100.0, 50.5), name="first")
    (summary,) = list_sessions()
    assert summary.path == folder / "a.heatsoak"
    assert (summary.id, summary.name, summary.host) == ("k3f9", "first", "aurora")
    assert (summary.workload, summary.unit, summary.protocol) == ("synthetic", "tokens", "standard")
    assert summary.devices == ("NVIDIA GeForce RTX 5090",) * 2
    assert (summary.state, summary.provenance) == ("steady", "measured")
    assert summary.throughput == 150.5
    assert summary.flags == ("smoke",)
    assert summary.problem is None


@pytest.mark.parametrize("rates", [(), (100.0,), (100.0, None)])
def test_the_throughput_of_a_part_is_not_told_as_the_whole(sessions, folder, rates):
    ended(sessions, folder / "a.heatsoak", 2, rates=rates)
    assert list_sessions()[0].throughput is None


def test_whatever_lies_there_is_listed_and_says_its_problem(sessions, folder):
    ended(sessions, folder / "good.heatsoak")
    (folder / "empty.heatsoak").touch()
    (folder / "text.heatsoak").write_text("some text\n" * 200)
    (folder / "folder.heatsoak").mkdir()
    os.mkfifo(folder / "pipe.heatsoak")
    (folder / "gone.heatsoak").symlink_to("nowhere")
    (folder / "other.txt").write_text("no session by its name")
    whole = ended(sessions, folder / "cut.heatsoak").read_bytes()
    (folder / "cut.heatsoak").write_bytes(whole[: len(whole) // 2])
    sessions.rows(ended(sessions, folder / "newer.heatsoak"), "PRAGMA user_version=9")
    for name, statement in (
        ("keyless", "DELETE FROM meta WHERE key = 'host'"),
        ("senseless", "INSERT INTO results VALUES (1, '0', 'job-0', '[not JSON')"),
        ("shapeless", "INSERT INTO results VALUES (1, '0', 'job-0', '[]')"),
        ("tableless", "DROP TABLE jobs"),
    ):
        connection = sqlite3.connect(ended(sessions, folder / f"{name}.heatsoak"))
        connection.execute(statement)
        connection.commit()
        connection.close()
    problems = {summary.path.stem: summary.problem for summary in list_sessions()}
    assert problems.pop("good") is None
    gone = folder / "gone.heatsoak"
    assert problems == {
        "empty": "is no session file of heatsoak",
        "text": "cannot be read: it is no session file",
        "folder": "is a folder, not a session file",
        "pipe": "is no ordinary file",
        "gone": f"there is no file {gone}",
        "cut": "cannot be read: it is damaged",
        "newer": "was made by a newer heatsoak "
        f"(its version is 9, this one reads up to {VERSION}); update heatsoak to read it",
        "keyless": "is damaged: it does not say its host",
        "senseless": "is damaged: Expecting value: line 1 column 2 (char 1)",
        "shapeless": "is damaged: its contents make no sense",
        "tableless": "cannot be read: no such table: jobs",
    }


def test_the_newest_comes_first_and_is_what_no_name_means(sessions, folder):
    for n in (2, 3, 1):
        ended(
            sessions, folder / f"{n}.heatsoak", id=f"id{n}", created_utc=f"2026-11-0{n}T00:00:00Z"
        )
    (folder / "9.heatsoak").touch()
    assert [summary.id for summary in list_sessions()] == ["id3", "id2", "id1", None]
    assert find_session(None) == folder / "3.heatsoak"


def test_no_session_yet(folder):
    with pytest.raises(UsageError, match="no session yet; `heatsoak run` records one"):
        find_session(None)


def test_a_session_is_found_by_path_file_id_and_name(sessions, folder, tmp_path):
    a = ended(sessions, folder / "a.heatsoak", id="abc1", name="ab")
    b = ended(sessions, folder / "b.heatsoak", id="abd2", name="long soak")
    here = ended(sessions, tmp_path / "here", id="zzzz")
    assert find_session("abc") == a
    assert find_session("long soak") == b
    assert find_session("ab") == a  # A whole name comes before the beginning of an id.
    assert find_session("b.heatsoak") == b
    assert find_session("here") == Path("here")
    assert find_session(str(here)) == here
    assert find_session("none.heatsoak") == Path("none.heatsoak")  # Opening it says what is wrong.
    (tmp_path / "abd").mkdir()
    assert find_session("abd") == b  # A folder is no session.
    with pytest.raises(UsageError, match=r"'a' could be any of ab[cd].*; give more of the id"):
        find_session("a")
    for nothing in ("x", ""):
        with pytest.raises(UsageError, match="no file, session id or name"):
            find_session(nothing)
