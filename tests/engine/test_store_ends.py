"""What is acknowledged is there, whatever happens: kill -9, a full disk."""

from __future__ import annotations

import subprocess
import sys

import pytest

from heatsoak.errors import UsageError
from heatsoak.session import store
from heatsoak.session.result import load_result
from heatsoak.session.rows import Batch, EventRow, LogRow, StepsRow
from heatsoak.session.store import SessionFullError, close_crashed
from heatsoak.session.tail import Tail

# -- the disk is full -----------------------------------------------------------------------------


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
    assert sessions.files(path.parent) == ["s.heatsoak"]
    assert sessions.pragma(path, "integrity_check") == "ok"
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
    assert sessions.files(path.parent) == ["s.heatsoak"]
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


def test_what_passed_before_the_disk_was_full_is_written_at_the_end(sessions, filled):
    path, writer, _ = filled
    row = (10, 1e6, "0", "power_w", 1.0, 2.0, 1.5)
    writer._passed = [row]
    writer.write(Batch({}, events=(EventRow(9.0, "end", "full"),)))
    writer.close("interrupted")
    assert sessions.rows(path, "SELECT * FROM rollups WHERE start_s = 1e6") == [row]


def test_without_an_end_a_full_disk_can_be_closed_by_the_next(sessions, filled):
    path, writer, seconds = filled
    writer._connection.close()
    assert close_crashed(path)
    assert sessions.rows(path, "SELECT count(*) FROM samples") == [(4 * seconds,)]


def test_a_limit_of_the_file_size_is_a_full_disk(sessions, tmp_path):
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
    done = sessions.run(script, path)
    assert "cannot write" in done.stdout
    assert close_crashed(path)
    assert sessions.pragma(path, "integrity_check") == "ok"


# -- kill -9 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [1, 40])
def test_killed_no_acknowledged_commit_is_lost(sessions, tmp_path, seconds):
    path = tmp_path / "s.heatsoak"
    acknowledged = sessions.crash(path, seconds)
    assert store.ballast_path(path).exists()
    batch = Tail(path).poll()  # Opens, and says nothing of an end.
    assert batch.meta["state"] == "recording"
    times = [s.t_s for s in batch.samples if s.device_id == "1"]
    assert times == [float(t) for t in range(len(times))]
    assert len(times) in (acknowledged, acknowledged + 1)

    assert close_crashed(path)
    assert sessions.files(tmp_path) == ["s.heatsoak"]
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
    sessions.crash(path, 3)
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
    assert sessions.files(tmp_path) == ["s.heatsoak"]


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
    sessions.crash(path, 2)
    open_folder.chmod(0o555)
    with as_nobody(), pytest.raises(UsageError, match="cannot close"):
        close_crashed(path)
