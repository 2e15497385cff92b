"""Runs on NVIDIA cards, as far as they go without one: the real pynvml on an emulated NVML."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from heatsoak.errors import DeviceUnavailableError
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan
from heatsoak.session.result import load_result

CARD = """
card {n} name NVIDIA GeForce RTX 5090
card {n} uuid GPU-5090{n}aaa-0000-1111-2222-333333333333
card {n} bus 00000000:0{n}:00.0
card {n} nvmlDeviceGetPowerUsage 431250
card {n} nvmlDeviceGetTemperature:0 71
card {n} nvmlDeviceGetClockInfo:1 2407
card {n} nvmlDeviceGetMemoryInfo:0 34190917632
card {n} nvmlDeviceGetMemoryInfo:1 21000000000
"""
TWO_CARDS = CARD.format(n=0) + CARD.format(n=1)
FIRST_IS_LOST = TWO_CARDS + "fail 0 * 15\n"


@pytest.fixture
def cards(nvml, tiny):
    """Two cards, and the workload that needs no torch; tells what NVML answers from now on."""
    nvml.tell(TWO_CARDS)
    return nvml.tell


def test_each_card_has_its_own_child_that_sees_only_that_card(cards, begin, until):
    run = begin("0,1", workload="tiny")
    until(lambda: all(job["units_done"] for job in client.status(run)["jobs"]))
    visible = sorted(_environment(pid)[b"CUDA_VISIBLE_DEVICES"] for pid in _children(run))
    assert visible == [b"GPU-5090%daaa-0000-1111-2222-333333333333" % n for n in (0, 1)]
    client.stop(run)
    client.wait_ended(run)
    assert _meta(run)["state"] == "interrupted"


def test_a_lost_card_ends_its_child_and_the_other_goes_on(cards, begin, until):
    run = begin("0,1", workload="tiny")
    until(lambda: all(job["units_done"] for job in client.status(run)["jobs"]))
    cards(FIRST_IS_LOST)
    until(lambda: client.status(run)["devices"][0]["state"] == "lost")
    until(lambda: len(_children(run)) == 1)
    before = client.status(run)["jobs"][1]["units_done"]
    until(lambda: client.status(run)["jobs"][1]["units_done"] > before)
    client.stop(run)
    client.wait_ended(run)
    states = [device["verdict"]["state"] for device in load_result(run.path)["devices"]]
    assert states == ["lost", "interrupted"]
    assert _meta(run)["state"] == "interrupted"


def test_a_card_that_takes_its_workload_with_it_is_lost_not_failed(cards, begin, until):
    run = begin("0", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    (child,) = _children(run)
    os.kill(child, signal.SIGKILL)
    until(lambda: _children(run) == [])
    cards(FIRST_IS_LOST)
    client.wait_ended(run, 15.0)
    assert _meta(run)["state"] == "lost"


def test_a_workload_that_dies_on_a_sound_card_has_failed(cards, begin, until):
    run = begin("0", workload="tiny", recipe={"settings": {"behaviour": "exit=3"}})
    client.wait_ended(run, 20.0)
    assert _meta(run)["state"] == "failed"
    assert "exit status 3" in _meta(run)["end_reason"]


def test_a_card_in_use_is_refused_by_whatever_name(cards, begin):
    run = begin("1", workload="tiny")
    with pytest.raises(DeviceUnavailableError, match=run.id):
        client.start(Plan("GPU-50901", workload="tiny"))
    other = begin("0", workload="tiny")
    assert {one.id for one in client.running()} == {run.id, other.id}


def _children(run):
    """Pids of the workloads of a run."""
    mark = b"HEATSOAK_SESSION=" + run.id.encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            is_of_run = mark in (folder / "environ").read_bytes().split(b"\0")
            is_guard = b"guard.py" in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if folder.name.isdigit() and is_of_run and not is_guard:
            found.append(int(folder.name))
    return found


def _environment(pid):
    parts = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(part.split(b"=", 1) for part in parts if part)


def _meta(run):
    connection = sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)
    try:
        return dict(connection.execute("select key, value from meta"))
    finally:
        connection.close()
