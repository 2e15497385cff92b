"""Whole runs from the command line: real recorder, synthetic cards faster than real time."""

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from heatsoak.profiles.cards import card_profiles
from heatsoak.telemetry.discovery import open_devices

HEATSOAK = str(Path(sys.executable).with_name("heatsoak"))
WITHIN_S = 90.0


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Every folder of heatsoak's below `tmp_path`."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir(mode=0o700)
    yield tmp_path
    subprocess.run([HEATSOAK, "stop"], capture_output=True, check=False)
    assert marked_processes(tmp_path) == []


def marked_processes(folder):
    """Command lines of processes that carry this test's folder in their environment."""
    mark = f"XDG_STATE_HOME={folder / 'XDG_STATE_HOME'}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes())
            except OSError:
                continue
    return found


def heatsoak(*arguments):
    return subprocess.run(
        [HEATSOAK, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=WITHIN_S, check=False,
    )  # fmt: skip


def schema():
    text = resources.files("heatsoak.session").joinpath("heatsoak-result-1.schema.json").read_text()
    return json.loads(text)


def wait_for_line(stream, *words):
    """Read lines until one holds all words; a line that never comes fails the test."""
    until = time.monotonic() + WITHIN_S
    seen = []
    while time.monotonic() < until:
        if select.select([stream], [], [], 1.0)[0]:
            line = stream.readline()
            seen.append(line)
            if all(word in line for word in words):
                return line
            assert line, seen
    raise AssertionError(seen)


def test_two_synthetic_cards_to_steady_state(folders):
    out = folders / "two.heatsoak"
    done = heatsoak(
        "run", "-d", "synthetic:rtx-5090x2", "--protocol", "standard", "--speed", "400",
        "--out", str(out), "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    assert document["session"]["state"] == "steady"
    asymptotes = [card.asymptote() for card in open_devices("synthetic:rtx-5090x2")]
    assert len(document["devices"]) == 2
    for device, truth in zip(document["devices"], asymptotes, strict=True):
        assert device["provenance"] == "synthetic"
        assert device["verdict"]["state"] == "steady"
        assert device["sustained"]["throughput"]["mean"] == pytest.approx(
            truth.rate_per_s, rel=0.01
        )
        assert device["sustained"]["power_w"]["mean"] == pytest.approx(truth.power_w, rel=0.01)
        assert device["boost"]["drop_frac"] > 0.01
    assert any("synthetic" in warning for warning in document["warnings"])
    # The same file, read again by every other command.
    shown = heatsoak("result", str(out))
    assert "SYNTHETIC" in shown.stdout
    assert "sustained, frozen at" in shown.stdout
    assert json.loads(heatsoak("result", str(out), "--json").stdout) == document


def test_headless_lines_name_what_is_synthetic(folders):
    done = heatsoak("run", "-d", "synthetic:l40s", "--protocol", "smoke", "--speed", "100")
    assert done.returncode == 0, done.stderr
    states = [line for line in done.stderr.splitlines() if "SYNTHETIC" in line]
    assert any("warming" in line for line in states)
    assert any("steady" in line for line in states)
    assert "SMOKE" in done.stdout
    assert "not sustained" in done.stdout
    (row,) = json.loads(heatsoak("sessions", "--json").stdout)["sessions"]
    assert row["state"] == "steady"
    assert row["provenance"] == "synthetic"
    assert Path(row["path"]).is_file()


def test_detach_attach_stop(folders):
    started = heatsoak("run", "-d", "synthetic:rtx-5090", "--detach", "--name", "night", "--json")
    assert started.returncode == 0, started.stderr
    run = json.loads(started.stdout)
    attached = subprocess.Popen(
        [HEATSOAK, "attach", "night"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with attached:
        wait_for_line(attached.stderr, "0:00:0", "warming", "SYNTHETIC")
        # A watcher that dies takes nothing with it.
        attached.kill()
    assert heatsoak("sessions").stdout.count("recording") == 1
    stopped = heatsoak("stop", run["id"][:4])
    assert stopped.returncode == 0, stopped.stderr
    assert Path(run["session"]).is_file()
    assert [p.name for p in Path(run["session"]).parent.iterdir()] == [Path(run["session"]).name]
    done = heatsoak("result", "night", "--json")
    assert json.loads(done.stdout)["session"]["state"] == "interrupted"
    ended = heatsoak("attach", "night")
    assert ended.returncode == 2
    assert "has ended (interrupted)" in ended.stderr


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c(folders, times):
    run = subprocess.Popen(
        [HEATSOAK, "run", "-d", "synthetic:rtx-5090", "--out", str(folders / "c.heatsoak")],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with run:
        wait_for_line(run.stderr, "warming")
        for _ in range(times):
            run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=WITHIN_S)
    assert run.returncode == 130, err
    assert "INTERRUPTED" in out
    assert "Traceback" not in err
    assert heatsoak("result", str(folders / "c.heatsoak")).returncode == 0


def test_a_watcher_that_is_ended_says_that_the_run_goes_on(folders):
    run = subprocess.Popen(
        [HEATSOAK, "run", "-d", "synthetic:rtx-5090"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with run:
        wait_for_line(run.stderr, "warming")
        run.terminate()
        assert "heatsoak stop" in run.communicate(timeout=WITHIN_S)[1]
    assert run.returncode == -signal.SIGTERM
    assert heatsoak("sessions").stdout.count("recording") == 1
    assert heatsoak("stop").returncode == 0


def test_a_stopped_recorder_is_told_instead_of_its_last_line_again_and_again(folders):
    run = subprocess.Popen(
        [HEATSOAK, "run", "-d", "synthetic:rtx-5090"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with run:
        wait_for_line(run.stderr, "warming")
        (row,) = json.loads(heatsoak("sessions", "--json").stdout)["sessions"]
        pid = recorder_pid(row["path"])
        os.kill(pid, signal.SIGSTOP)
        try:
            line = wait_for_line(run.stderr, "nothing has come from the recorder")
            assert f"its process {pid} is stopped; kill -CONT {pid} lets it go on" in line
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_for_line(run.stderr, "warming", "SYNTHETIC")
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=WITHIN_S)


def recorder_pid(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        query = "select value from meta where key = 'recorder_pid'"
        return int(connection.execute(query).fetchone()[0])
    finally:
        connection.close()


def test_a_crashed_run_is_told_and_closed_by_the_next_look(folders):
    run = json.loads(heatsoak("run", "-d", "synthetic:rtx-5090", "--detach", "--json").stdout)
    os.kill(run["pid"], signal.SIGKILL)
    shown = heatsoak("result", run["id"])
    assert run["id"] in shown.stderr
    assert "INTERRUPTED" in shown.stdout


def test_judge_says_what_is_synthetic(folders):
    out = str(folders / "j.heatsoak")
    heatsoak("run", "-d", "synthetic:l40s", "--protocol", "smoke", "--speed", "100", "--out", out)
    (line,) = heatsoak("judge", out, "--json").stdout.splitlines()
    assert json.loads(line)["provenance"] == "synthetic"
    assert json.loads(line)["unit"] == "tokens"
    assert "SYNTHETIC" in heatsoak("judge", out).stdout


def test_high_speed_is_no_stuck_counter(folders):
    done = heatsoak(
        "run", "-d", "synthetic:l40sx4", "--protocol", "smoke", "--speed", "1000", "--json"
    )
    states = {d["verdict"]["state"] for d in json.loads(done.stdout)["devices"]}
    assert states <= {"steady", "not-steady"}


def test_a_lost_card_is_exit_code_5(folders):
    done = heatsoak(
        "run", "-d", "synthetic:l40s,synthetic:l40s+lost@90", "--protocol", "smoke",
        "--speed", "100", "--json",
    )  # fmt: skip
    assert done.returncode == 5, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    assert [device["verdict"]["state"] for device in document["devices"]] == ["steady", "lost"]


def test_lists(folders):
    devices = json.loads(heatsoak("devices", "--json").stdout)
    cpu = next(d for d in devices["devices"] if d["device_id"] == "cpu")
    assert cpu["provenance"] == "measured"
    assert cpu["memory_total_bytes"] > 0
    assert "cpu" in heatsoak("devices").stdout
    workloads = json.loads(heatsoak("workloads", "--json").stdout)["workloads"]
    assert {"llm_pretrain", "synthetic"} <= {w["name"] for w in workloads}
    assert "llm_pretrain" in heatsoak("workloads").stdout
    assert "rtx-5090" in card_profiles()
