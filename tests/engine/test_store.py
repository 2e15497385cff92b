"""Writing session files: one file, one row for each thing, whole copies."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from heatsoak.errors import UsageError
from heatsoak.session import insert, store
from heatsoak.session.rows import Batch, EventRow, LogRow, StepsRow
from heatsoak.session.store import copy_session
from heatsoak.session.tail import Tail

# -- a session from its start to its end ----------------------------------------------------------


def test_a_session_is_one_file_once_closed_and_three_with_ballast_before(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    assert sessions.files(tmp_path) == [
        "s.heatsoak", "s.heatsoak-ballast", "s.heatsoak-shm", "s.heatsoak-wal",
    ]  # fmt: skip
    assert store.ballast_path(path).stat().st_size == store.BALLAST_BYTES
    writer.close("interrupted")
    assert sessions.files(tmp_path) == ["s.heatsoak"]
    assert sessions.pragma(path, "journal_mode") == "delete"
    assert sessions.pragma(path, "application_id") == 0x48454154
    assert sessions.pragma(path, "integrity_check") == "ok"
    assert Tail(path).poll().meta["state"] == "interrupted"


def test_the_recorder_syncs_every_commit_into_a_log(sessions, tmp_path):
    writer = sessions.create(tmp_path / "s.heatsoak")
    asked = {
        name: writer._connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous")
    }
    assert asked == {"journal_mode": "wal", "synchronous": 2}
    writer.close("interrupted")


def test_a_network_file_system_gets_a_rollback_journal(sessions, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "is_network_file_system", lambda path: True)
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    assert writer._connection.execute("PRAGMA journal_mode").fetchone()[0] == "truncate"
    assert not path.with_name("s.heatsoak-wal").exists()
    assert len(Tail(path).poll().samples) == 1
    writer.close("steady")
    assert sessions.files(tmp_path) == ["s.heatsoak"]


def test_the_schema_is_in_the_file_itself_from_the_start(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    alone = shutil.copy(path, tmp_path / "alone.heatsoak")  # What a power cut may leave.
    assert sessions.rows(alone, "SELECT value FROM meta WHERE key = 'id'") == [("k3f9",)]
    writer.close("interrupted")


def test_the_file_alone_is_ten_seconds_behind_at_most(sessions, tmp_path, monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(store, "monotonic_s", lambda: now_s[0])
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    for t in range(12):
        now_s[0] = float(t)
        writer.write(sessions.second(t))
    alone = shutil.copy(path, tmp_path / "alone.heatsoak")
    assert sessions.rows(alone, "SELECT max(t_s) FROM samples") == [(9.0,)]
    writer.close("interrupted")


def test_a_reader_that_stays_leaves_the_log_to_the_next_that_reads(sessions, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "CLOSE_WITHIN_S", 0.1)
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM samples").fetchall()
    writer.write(sessions.second(1))
    writer.close("steady")
    assert path.with_name("s.heatsoak-wal").exists()
    tail = Tail(path)
    assert len(tail.poll().samples) == 2
    assert path.with_name("s.heatsoak-wal").exists()  # The other reader is still there.
    reader.close()
    assert tail.poll() is None
    assert sessions.files(tmp_path) == ["s.heatsoak"]
    assert len(Tail(path).poll().samples) == 2


# -- what goes in ---------------------------------------------------------------------------------


def test_one_steps_row_a_job_and_second(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    first = [StepsRow(t, "job-0", t * 10, int(t * 10), None) for t in (0.1, 0.5, 0.9, 1.2)]
    second = [StepsRow(t, "job-0", t * 10, int(t * 10), None) for t in (1.7, 2.3, 2.8)]
    writer.write(Batch({}, steps=tuple(first)))
    writer.write(Batch({}, steps=tuple(second)))
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT t_s FROM steps") == [(0.9,), (1.2,), (2.8,)]


def test_the_log_keeps_the_first_and_last_lines(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path, 2)
    tail = Tail(path)
    tail.poll()
    seen = []
    for start in range(0, 5000, 50):
        lines = tuple(
            LogRow(float(n), f"job-{n % 2}", "stderr", f"{n}") for n in range(start, start + 50)
        )
        writer.write(Batch({}, logs=lines))
        seen += [int(row.text) for row in tail.poll().logs]
    writer.close("interrupted")
    assert seen == list(range(5000))  # Thinning out hides no line from who follows.
    kept = [int(text) for (text,) in sessions.rows(path, "SELECT text FROM log ORDER BY rowid")]
    of_one = [n for n in kept if n % 2]
    assert of_one[: insert.LOG_FIRST] == list(range(1, 1000, 2))
    assert of_one[-insert.LOG_LAST :] == list(range(2001, 5000, 2))
    assert len(of_one) <= insert.LOG_FIRST + insert.LOG_LAST + insert.LOG_SLACK
    query = "SELECT value FROM meta WHERE key = 'log_lines_not_kept.job-1'"
    assert sessions.rows(path, query) == [(str(2500 - len(of_one)),)]


def test_a_counter_that_is_no_number_ends_nothing(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    nan = float("nan")
    rows = (StepsRow(0.0, "job-0", nan, 1, None), StepsRow(1.0, "job-0", 5.0, 2, nan))
    writer.write(Batch({}, steps=rows, samples=(sessions.sample(0.0),)))
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT units_done, loss FROM steps") == [(5.0, None)]


def test_a_row_that_is_none_is_a_defect_not_a_full_disk(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    with pytest.raises(sqlite3.IntegrityError):
        writer.write(Batch({}, events=(EventRow(None, "mark", "without a time"),)))
    writer.write(sessions.second(0))  # Nothing is left half done.
    writer.close("interrupted")
    assert store.ballast_path(path).exists() is False


# -- copies ---------------------------------------------------------------------------------------


def test_a_copy_of_a_session_being_recorded_is_whole(sessions, tmp_path):
    path, copy = tmp_path / "s.heatsoak", tmp_path / "copy.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    copy_session(path, copy)
    writer.write(sessions.second(1))
    assert not copy.with_name("copy.heatsoak-wal").exists()
    assert sessions.pragma(copy, "journal_mode") == "delete"
    assert len(Tail(copy).poll().samples) == 1
    with pytest.raises(UsageError, match="exists; choose another file"):
        copy_session(path, copy)
    writer.close("interrupted")


def test_a_copy_that_does_not_fit_is_not_left(sessions, tmp_path, small_disk):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    for t in range(60):
        writer.write(sessions.second(t))
    writer.close("interrupted")
    disk = small_disk(60)
    with pytest.raises(UsageError, match=r"cannot copy to .*: the disk is full"):
        copy_session(path, disk / "copy.heatsoak")
    assert sessions.files(disk) == []
