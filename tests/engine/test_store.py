"""Writing session files: what is acknowledged is there, whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from heatsoak.errors import UsageError
from heatsoak.session import insert, store
from heatsoak.session.result import load_result
from heatsoak.session.rows import Batch, EventRow, LogRow, StepsRow
from heatsoak.session.store import SessionFullError, close_crashed, copy_session
from heatsoak.session.tail import Tail

ODD_NAMES = ("a?b#c%41 d&mode=ro.heatsoak", "überhitzt 冷.heatsoak", ":memory:", "file:x?mode=ro")


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def pragma(path, name):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


# -- a session from its start to its end ------------------------------------------------------


def test_a_session_is_one_file_once_closed_and_three_with_ballast_before(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    assert files(tmp_path) == [
        "s.heatsoak", "s.heatsoak-ballast", "s.heatsoak-shm", "s.heatsoak-wal",
    ]  # fmt: skip
    assert store.ballast_path(path).stat().st_size == store.BALLAST_BYTES
    writer.close("interrupted")
    assert files(tmp_path) == ["s.heatsoak"]
    assert pragma(path, "journal_mode") == "delete"
    assert pragma(path, "application_id") == 0x48454154
    assert pragma(path, "integrity_check") == "ok"
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
    assert files(tmp_path) == ["s.heatsoak"]


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
    assert files(tmp_path) == ["s.heatsoak"]
    assert len(Tail(path).poll().samples) == 2


# -- creating ---------------------------------------------------------------------------------


def test_an_existing_file_is_kept_unless_forced(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"exists; give another --out, or --force"):
        sessions.create(path)
    assert path.read_text() == "mine"
    assert files(tmp_path) == ["s.heatsoak"]
    sessions.create(path, force=True).close("interrupted")
    assert files(tmp_path) == ["s.heatsoak"]


def test_forced_over_a_crashed_session_nothing_of_its_log_comes_back(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    crash(sessions, path, 5)
    assert path.with_name("s.heatsoak-wal").stat().st_size
    writer = sessions.create(path, force=True, id="new1")
    assert Tail(path).poll().samples == ()
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(0,)]
    assert files(tmp_path) == ["s.heatsoak"]


def test_a_session_that_is_being_recorded_cannot_be_forced_away(sessions, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "FREE_WITHIN_S", 0.05)
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    with pytest.raises(UsageError, match="in use by another run"):
        sessions.create(path, force=True)
    writer.write(sessions.second(1))
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(2,)]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_is_a_name(sessions, tmp_path, name):
    path = tmp_path / name
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    assert len(Tail(path).poll().samples) == 1
    copy_session(path, tmp_path / f"copy {name}")
    writer.close("interrupted")
    assert not close_crashed(path)
    assert load_result(path)["session"]["id"] == "k3f9"
    assert files(tmp_path) == sorted([name, f"copy {name}"])


def test_a_name_that_is_no_utf8(sessions, tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.heatsoak"))
    writer = sessions.create(path, name=path.name)
    writer.write(Batch({}, events=(EventRow(0.0, "mark", path.name),)))
    writer.close("interrupted")
    copy_session(path, path.with_name(f"copy-{path.name}"))
    batch = Tail(path.with_name(f"copy-{path.name}")).poll()
    assert batch.events[0].text == "caf?.heatsoak"


def test_a_relative_path_means_the_folder_of_the_start(sessions, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = sessions.create(Path("s.heatsoak"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.write(sessions.second(0))
    writer.close("interrupted")
    assert files(tmp_path) == ["elsewhere", "s.heatsoak"]


def test_what_cannot_be_made_leaves_nothing(sessions, tmp_path):
    with pytest.raises(UsageError, match="there is no folder"):
        sessions.create(tmp_path / "no" / "s.heatsoak")
    with pytest.raises(UsageError, match="is a folder; --out takes a file"):
        sessions.create(tmp_path)
    (tmp_path / "link.heatsoak").symlink_to("gone.heatsoak")
    with pytest.raises(UsageError, match="cannot write"):
        sessions.create(tmp_path / "link.heatsoak")
    assert files(tmp_path) == ["link.heatsoak"]


def test_a_folder_that_cannot_be_written(sessions, open_folder, as_nobody):
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(UsageError, match=r"cannot write .*s\.heatsoak"):
        sessions.create(open_folder / "s.heatsoak")
    assert files(open_folder) == []


@pytest.mark.parametrize("kib", [40, 160, 330])
def test_a_full_disk_refuses_a_new_session_and_keeps_nothing(sessions, small_disk, kib):
    disk = small_disk(kib)
    with pytest.raises(UsageError, match=r"cannot write .*s\.heatsoak: "):
        sessions.create(disk / "s.heatsoak")
    assert files(disk) == []


# -- the disk is full -------------------------------------------------------------------------


@pytest.fixture(params=["log", "file"])
def filled(sessions, small_disk, monkeypatch, request):
    """A session whose disk filled up while it was recorded, and how many seconds it holds.

    By its log alone, or with the log brought into the file at every commit.
    """
    if request.param == "file":
        monkeypatch.setattr(store, "CHECKPOINT_EVERY_S", 0.0)
    path = small_disk(900) / "s.heatsoak"
    writer = sessions.create(path, 4)
    seconds = 0
    while True:
        try:
            writer.write(sessions.second(seconds, 4))
        except SessionFullError:
            return path, writer, seconds
        seconds += 1


def test_on_a_full_disk_the_end_is_still_written(sessions, filled):
    path, writer, seconds = filled
    assert not store.ballast_path(path).exists()
    text = "the disk is full"
    verdicts = tuple(sessions.verdict(9.0, str(n), "interrupted") for n in range(4))
    meta = {"state": "interrupted", "end_reason": text}
    writer.write(Batch(meta, events=(EventRow(9.0, "end", text),), verdicts=verdicts))
    writer.close("interrupted")
    assert files(path.parent) == ["s.heatsoak"]
    assert pragma(path, "integrity_check") == "ok"
    held = "SELECT count(*) FROM samples"
    assert sessions.rows(path, held) == [(4 * seconds,)]
    assert load_result(path)["session"]["end_reason"] == text
    assert seconds > 20


def test_where_nothing_fits_any_more_the_log_waits_for_room(sessions, filled):
    path, writer, seconds = filled
    with pytest.raises(SessionFullError, match=rf"cannot write {path}: the disk is full"):
        writer.write(Batch({}, logs=(LogRow(9.0, "job-0", "stdout", "x" * 900_000),)))
    writer.close("interrupted")
    assert path.with_name("s.heatsoak-wal").exists()  # No room to bring it into the file.
    assert load_result(path)["session"]["state"] == "interrupted"
    subprocess.run(["mount", "-o", "remount,size=4m", str(path.parent)], check=True)
    assert load_result(path)["session"]["state"] == "interrupted"
    assert files(path.parent) == ["s.heatsoak"]
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(4 * seconds,)]


def test_a_batch_that_did_not_fit_leaves_no_trace_in_the_bookkeeping(sessions, filled):
    path, writer, seconds = filled
    # The same second again, smaller, is not taken for one that has its row.
    writer.write(Batch({}, steps=(StepsRow(float(seconds), "job-0", 7.0, 7, None),)))
    writer.close("interrupted")
    query = "SELECT units_done FROM steps WHERE job_id = 'job-0' AND t_s = ?"
    assert sessions.rows(path, query, float(seconds)) == [(7.0,)]
    # Every 10 s that have passed have their rollup, also those in hand when the disk was full.
    query = "SELECT count(*) FROM rollups WHERE span_s = 10 AND owner = '0' AND reading = 'power_w'"
    assert sessions.rows(path, query) == [((seconds - 1) // 10 + 1,)]


def test_without_an_end_a_full_disk_can_be_closed_by_the_next(sessions, filled):
    path, writer, seconds = filled
    writer._connection.close()
    assert close_crashed(path)
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(4 * seconds,)]


def test_a_limit_of_the_file_size_is_a_full_disk(tmp_path):
    script = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from conftest import Sessions\n"
        "from heatsoak.session.store import SessionFullError\n"
        "sessions = Sessions()\n"
        "writer = sessions.create(Path(sys.argv[1]))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "try:\n"
        "    for t in range(10_000):\n"
        "        writer.write(sessions.second(t))\n"
        "except SessionFullError as error:\n"
        "    print(error)\n"
    )
    path = tmp_path / "s.heatsoak"
    done = run_script(script, path)
    assert "cannot write" in done.stdout
    assert close_crashed(path)
    assert pragma(path, "integrity_check") == "ok"


# -- kill -9 ----------------------------------------------------------------------------------

WRITE = (
    "import sys\n"
    "from pathlib import Path\n"
    "sys.path.insert(0, sys.argv[2])\n"
    "from conftest import Sessions\n"
    "sessions = Sessions()\n"
    "writer = sessions.create(Path(sys.argv[1]), 2)\n"
    "for t in range(100_000):\n"
    "    writer.write(sessions.second(t, 2))\n"
    "    print(t, flush=True)\n"
)


def run_script(script, path):
    command = [sys.executable, "-c", script, str(path), str(Path(__file__).parent)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)


def crash(sessions, path, seconds):
    """A session whose writer was killed after it acknowledged so many seconds, or a few more."""
    command = [sys.executable, "-c", WRITE, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(seconds):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
    return int(rest[-1]) + 1 if rest else seconds


@pytest.mark.parametrize("seconds", [1, 40])
def test_killed_no_acknowledged_commit_is_lost(sessions, tmp_path, seconds):
    path = tmp_path / "s.heatsoak"
    acknowledged = crash(sessions, path, seconds)
    assert store.ballast_path(path).exists()
    batch = Tail(path).poll()  # Opens, and says nothing of an end.
    assert batch.meta["state"] == "recording"
    times = [s.t_s for s in batch.samples if s.device_id == "1"]
    assert times == [float(t) for t in range(len(times))]
    assert len(times) in (acknowledged, acknowledged + 1)

    assert close_crashed(path)
    assert files(tmp_path) == ["s.heatsoak"]
    assert not close_crashed(path)
    batch = Tail(path).poll()
    assert batch.meta["state"] == "interrupted"
    assert [event.kind for event in batch.events if event.kind == "end"] == ["end"]
    last = {verdict.device_id: verdict for verdict in batch.verdicts}
    assert {v.state for v in last.values()} == {"interrupted"}
    assert last["0"].bounds == sessions.verdict(0.0).bounds
    assert last["0"].t_s == times[-1]


def test_two_that_close_a_crashed_session_close_it_once(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    crash(sessions, path, 3)
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from heatsoak.session.store import close_crashed\n"
        "sys.stdin.readline()\n"
        "print(close_crashed(Path(sys.argv[1])))\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    closers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for closer in closers:
        closer.stdin.write("go\n")
        closer.stdin.flush()
    said = [closer.communicate(timeout=30)[0].strip() for closer in closers]
    assert sorted(said) == ["False", "True"]
    assert sessions.rows(path, "SELECT count(*) FROM events WHERE kind = 'end'") == [(1,)]
    assert files(tmp_path) == ["s.heatsoak"]


def test_a_crash_keeps_what_was_final(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path, 2)
    writer.write(Batch({}, verdicts=(sessions.verdict(5.0, "0", "steady", frozen_at_s=5.0),)))
    writer._connection.close()
    assert close_crashed(path)
    states = {v.device_id: v.state for v in Tail(path).poll().verdicts}
    assert states == {"0": "steady", "1": "interrupted"}


def test_a_crashed_session_that_cannot_be_written_says_so(sessions, open_folder, as_nobody):
    path = open_folder / "s.heatsoak"
    crash(sessions, path, 2)
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(UsageError, match="cannot close"):
        close_crashed(path)


# -- what goes in -----------------------------------------------------------------------------


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


# -- copies -----------------------------------------------------------------------------------


def test_a_copy_of_a_session_being_recorded_is_whole(sessions, tmp_path):
    path, copy = tmp_path / "s.heatsoak", tmp_path / "copy.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    copy_session(path, copy)
    writer.write(sessions.second(1))
    assert not copy.with_name("copy.heatsoak-wal").exists()
    assert pragma(copy, "journal_mode") == "delete"
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
    assert files(disk) == []
