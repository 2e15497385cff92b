"""Whole runs: a recorder process, its children, signals, requests, and the file they leave."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan
from heatsoak.session import result
from heatsoak.session.result import exit_code, load_result

SCHEMA = Path(result.__file__).with_name("heatsoak-result-1.schema.json")
pytestmark = pytest.mark.usefixtures("tiny")


def test_two_synthetic_cards_reach_steady_state(begin, until):
    run = begin("synthetic:rtx-5090x2", speed=400.0, name="two cards")
    client.wait_ended(run, 60.0)
    document = load_result(run.path)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert document["session"]["state"] == "steady"
    assert document["session"]["name"] == "two cards"
    assert exit_code("steady") == 0
    for device in document["devices"]:
        assert device["provenance"] == "synthetic"
        assert device["sustained"]["throughput"]["mean"] > 0
    assert _meta(run)["provenance"] == "synthetic"
    assert _count(run, "samples") > 1000
    assert _count(run, "steps") > 1000
    assert _nothing_is_left(run)


def test_a_lost_card_ends_only_its_own_part(begin):
    run = begin("synthetic:rtx-5090+lost@30,synthetic:rtx-5090", speed=200.0, protocol="smoke")
    client.wait_ended(run, 60.0)
    states = {d["device_id"]: d["verdict"]["state"] for d in load_result(run.path)["devices"]}
    assert states["synthetic-0"] == "lost"
    assert states["synthetic-1"] in ("steady", "not-steady")
    assert _meta(run)["state"] == "lost"
    assert "told to be lost" in _meta(run)["end_reason"]
    assert exit_code("lost") == 5


def test_a_card_that_hangs_is_told_once(begin, until):
    run = begin("synthetic:rtx-5090+hang@20,synthetic:rtx-5090", speed=20.0, protocol="smoke")
    until(lambda: _events(run, "silent"))
    client.stop(run)
    client.wait_ended(run)
    assert [row["device_id"] for row in _events(run, "silent")] == ["synthetic-0"]


def test_a_real_child_is_recorded_and_stopped(begin, until, mark):
    run = begin("cpu", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    status = client.status(run)
    assert status["state"] == "recording"
    assert status["pid"] == run.pid
    assert [device["device_id"] for device in status["devices"]] == ["cpu"]
    client.mark(run, "the window was opened")
    client.extend(run, 60)
    client.stop(run)
    client.wait_ended(run)
    assert _meta(run)["state"] == "interrupted"
    assert _meta(run)["end_reason"] == "stopped by the user"
    assert [row["text"] for row in _events(run, "mark")] == ["the window was opened"]
    assert _events(run, "extend")
    assert _count(run, "steps") >= 1
    facts = _rows(run, "select * from jobs")[0]
    assert "tiny" in json.dumps(dict(facts))
    assert _nothing_is_left(run)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_cleanly(begin, until, number):
    run = begin("cpu", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    os.kill(run.pid, number)
    client.wait_ended(run)
    assert _meta(run)["state"] == "interrupted"
    assert number.name in _meta(run)["end_reason"]
    assert _nothing_is_left(run)


def test_a_hang_up_is_ignored(begin, until):
    run = begin("synthetic:rtx-5090")
    before = until(lambda: client.status(run)["jobs"][0]["units_done"] or None)
    os.kill(run.pid, signal.SIGHUP)
    assert until(lambda: client.status(run)["jobs"][0]["units_done"] > before)


def test_the_recorder_is_away_from_the_terminal_of_its_starter(begin):
    run = begin("synthetic:rtx-5090")
    stat = Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()
    session, terminal = int(stat[3]), int(stat[4])
    assert session != os.getsid(0)
    assert terminal == 0
    for fd in (0, 1):
        assert Path(f"/proc/{run.pid}/fd/{fd}").readlink() == Path("/dev/null")


def test_kill_ends_at_once_a_child_that_ignores_a_stop(begin, until, mark):
    run = begin("cpu", workload="tiny", recipe=_behaviour("ignore-term,grandchild"))
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    client.stop(run)
    assert client.status(run)["state"] == "stopping"
    client.kill(run)
    client.wait_ended(run, 5.0)
    assert _meta(run)["state"] == "interrupted"
    assert _nothing_is_left(run)


def test_nobody_left_to_tell_means_no_run(until, mark):
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    command = [sys.executable, "-P", "-m", "heatsoak.recorder"]
    plan = Plan("synthetic:rtx-5090").to_json()
    subprocess.run(command, input=plan, text=True, stdout=write_fd, stderr=write_fd, check=True)
    os.close(write_fd)
    until(lambda: not _carrying_test_mark())
    state = Path(os.environ["XDG_STATE_HOME"]) / "heatsoak"
    assert list(state.glob("sessions/*")) == []
    assert list(state.glob("running/*.json")) == []


def test_kill_9_of_the_recorder_leaves_no_process_and_a_file_that_opens(begin, until):
    run = begin("cpu", workload="tiny", recipe=_behaviour("ignore-term,grandchild"))
    until(lambda: _count(run, "steps") >= 1)
    recorded = _count(run, "steps")
    assert len(_marked(run.id)) >= 3  # guard, child, grandchild
    os.kill(run.pid, signal.SIGKILL)
    until(lambda: _marked(run.id) == [], 5.0)
    assert _count(run, "steps") >= recorded


def test_a_crashed_session_is_closed_by_the_next_start(begin, until):
    crashed = begin("cpu", workload="tiny")
    until(lambda: _count(crashed, "steps") >= 1)
    os.kill(crashed.pid, signal.SIGKILL)
    until(lambda: not client.is_alive(crashed))
    run = begin("cpu", workload="tiny")
    assert len(run.notices) == 1
    assert crashed.id in run.notices[0]
    assert str(crashed.path) in run.notices[0]
    assert _meta(crashed)["state"] == "interrupted"
    assert [one.id for one in client.running()] == [run.id]


def test_what_recorder_and_guard_left_together_is_ended_by_the_next_start(begin, until):
    crashed = begin("cpu", workload="tiny", recipe=_behaviour("ignore-term,grandchild"))
    until(lambda: len(_marked(crashed.id)) >= 3)
    guard = next(pid for pid in _marked(crashed.id) if b"guard.py" in _command(pid))
    os.kill(guard, signal.SIGSTOP)
    os.kill(crashed.pid, signal.SIGKILL)
    until(lambda: not client.is_alive(crashed))
    os.kill(guard, signal.SIGKILL)
    until(lambda: guard not in _marked(crashed.id))
    assert _marked(crashed.id)
    run = begin("synthetic:rtx-5090")
    assert "processes it left" in run.notices[0]
    assert _marked(crashed.id) == []


def test_a_defect_of_the_recorder_ends_the_run_and_is_told(begin):
    program = """
import sys
from heatsoak.recorder import track
from heatsoak.recorder.entry import record

def broken(*_):
    raise ZeroDivisionError("a defect")

track.Track.evaluate = broken
record(sys.stdin.read())
"""
    plan = Plan("cpu", workload="tiny").to_json()
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=plan, capture_output=True, text=True)
    said = json.loads(done.stdout)
    assert done.returncode != 0
    assert _marked(said["id"]) == []
    document = load_result(Path(said["session"]))
    assert document["session"]["state"] == "interrupted"
    reason = document["session"]["end_reason"]
    assert reason == "the recorder failed: ZeroDivisionError: a defect"
    (notice,) = begin("synthetic:rtx-5090").notices
    assert notice.endswith("it said: ZeroDivisionError: a defect")


def test_kill_9_of_the_child_is_said_in_words(begin, until):
    run = begin("cpu", workload="tiny", recipe=_behaviour("stderr=out-of-luck"))
    until(lambda: _count(run, "steps") >= 1)
    child = next(p for p in _marked(run.id) if b"guard.py" not in _command(p))
    os.kill(child, signal.SIGKILL)
    client.wait_ended(run, 10.0)
    meta = _meta(run)
    assert meta["state"] == "failed"
    assert "killed by SIGKILL (signal 9)" in meta["end_reason"]
    assert "out-of-luck" in meta["end_reason"]
    assert exit_code("failed") == 4
    (event,) = _events(run, "error")
    assert "out-of-luck" in event["text"]
    assert _count(run, "steps") >= 1


def test_a_child_that_fails_ends_only_its_own_part(begin, until):
    run = begin("cpu", workload="tiny", recipe=_behaviour("exit=3"), protocol="smoke")
    client.wait_ended(run, 20.0)
    assert _meta(run)["state"] == "failed"
    assert "exit status 3" in _meta(run)["end_reason"]


def test_a_child_on_another_device_fails_the_run(begin):
    run = begin("cpu", workload="tiny", recipe=_behaviour("uuid=GPU-elsewhere"))
    client.wait_ended(run, 20.0)
    assert _meta(run)["state"] == "failed"
    assert "GPU-elsewhere" in _meta(run)["end_reason"]


def test_a_device_in_use_is_refused(begin):
    run = begin("cpu", workload="tiny")
    with pytest.raises(DeviceUnavailableError, match=run.id):
        client.start(Plan("cpu", workload="tiny"))


def test_a_refused_plan_starts_nothing():
    with pytest.raises(UsageError) as caught:
        client.start(Plan("cpu", workload="tiny", out="/proc/nothing/x.heatsoak"))
    assert "/proc/nothing" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert client.running() == []


def test_an_existing_file_is_kept_unless_forced(begin, tmp_path):
    out = tmp_path / "a.heatsoak"
    out.write_text("mine")
    with pytest.raises(UsageError, match=r"a\.heatsoak"):
        client.start(Plan("synthetic:rtx-5090", out=str(out)))
    assert out.read_text() == "mine"


def test_a_file_that_is_being_written_is_kept_even_if_forced(begin, until, tmp_path):
    out = str(tmp_path / "a.heatsoak")
    run = begin("synthetic:rtx-5090", out=out)
    with pytest.raises(UsageError, match=f"being written by the run {run.id}"):
        client.start(Plan("synthetic:rtx-5090", out=out, force=True))
    assert _meta(run)["state"] == "recording"
    client.kill(run)
    client.wait_ended(run)
    again = begin("synthetic:rtx-5090", out=out, force=True)
    assert _meta(again)["id"] == again.id


def test_a_missing_card_is_unavailable():
    with pytest.raises(DeviceUnavailableError) as caught:
        client.start(Plan("all", workload="tiny"))
    assert "\n" not in str(caught.value)


def test_runs_are_found_by_id_name_and_file(begin):
    with pytest.raises(UsageError, match="no run is going on"):
        client.find_running(None)
    first = begin("synthetic:rtx-5090", name="first")
    assert client.find_running(None).id == first.id
    second = begin("synthetic:rtx-5090")
    with pytest.raises(UsageError, match="several"):
        client.find_running(None)
    assert client.find_running("first").id == first.id
    assert client.find_running(second.id[:6]).id == second.id
    assert client.find_running(str(second.path)).id == second.id
    with pytest.raises(UsageError, match="no run 'third'"):
        client.find_running("third")


def test_a_full_disk_stops_the_run_with_a_sentence(begin, until, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        out = disk / "full.heatsoak"
        run = begin("synthetic:rtx-5090x16", speed=200.0, out=str(out))
        client.wait_ended(run, 60.0)
        assert _meta(run)["state"] == "interrupted"
        assert "full" in _meta(run)["end_reason"]
        assert _count(run, "samples") > 10
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_removed_session_file_ends_the_run(begin, until):
    run = begin("synthetic:rtx-5090", speed=10.0)
    until(lambda: _count(run, "samples") > 3)
    for path in run.path.parent.glob(f"{run.path.name}*"):
        path.unlink()
    client.wait_ended(run, 30.0)
    assert _nothing_is_left(run)
    assert not list(run.path.parent.iterdir())


def test_the_recorder_imports_neither_torch_nor_a_screen():
    program = (
        "import sys, heatsoak.recorder.entry, heatsoak.recorder.client; "
        "print([m for m in ('torch', 'lightning', 'textual', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def _behaviour(text):
    return {"settings": {"behaviour": text}}


def _rows(run, sql, *values):
    connection = sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)
    try:
        connection.row_factory = sqlite3.Row
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def _count(run, table):
    return _rows(run, f"select count(*) from {table}")[0][0]


def _meta(run):
    return dict(map(tuple, _rows(run, "select key, value from meta")))


def _events(run, kind):
    return _rows(run, "select * from events where kind = ? order by t_s", kind)


def _carrying_test_mark():
    return _carrying(f"HEATSOAK_TEST={os.environ['HEATSOAK_TEST']}")


def _marked(session_id):
    return _carrying(f"HEATSOAK_SESSION={session_id}")


def _carrying(text):
    mark = text.encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name == str(os.getpid()):
                continue
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def _command(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def _nothing_is_left(run):
    state = Path(os.environ["XDG_STATE_HOME"]) / "heatsoak" / "running"
    sockets = Path(os.environ["XDG_RUNTIME_DIR"]) / "heatsoak"
    return (
        _marked(run.id) == []
        and list(state.glob(f"{run.id}*")) == []
        and list(sockets.iterdir()) == []
        and not run.path.with_name(run.path.name + "-wal").exists()
    )
