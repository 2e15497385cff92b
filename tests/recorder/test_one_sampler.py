"""Who talks to the driver during a run: the recorder alone, about the chosen cards (B5, G3)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from heatsoak.recorder import client


@pytest.fixture
def cards(nvml, tiny):
    """Four cards, and the workload that needs no torch."""
    nvml.keep_journal()
    nvml.tell("card 0-3 like rtx-5090\n")
    return nvml


def test_b5_one_process_reads_the_selected_cards_however_many_ranks_there_are(cards, begin, until):
    run = begin("1,3", workload="tiny")
    until(lambda: all(job["units_done"] for job in client.status(run)["jobs"]))
    assert len(_processes(run)) >= 5  # the recorder, and a guard with its child for each card
    assert len([pid for pid in _processes(run) if _has_loaded_nvml(pid)]) == 1
    until(lambda: len(_columns(run)) == 2)
    assert _columns(run) == {"1", "3"}
    client.stop(run)
    client.wait_ended(run)
    # G3: whose processes are ours is known by launch; NVML's pids may be another name space's.
    assert not [key for _, key in cards.calls() if "RunningProcesses" in key]


def _processes(run):
    mark = b"HEATSOAK_SESSION=" + run.id.encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return [*found, *_recorders(run)]


def _recorders(run):
    """The recorder carries no mark of its run: it is what has the session file open."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            names = {str(link.readlink()) for link in (folder / "fd").iterdir()}
        except OSError:
            continue
        if folder.name.isdigit() and str(run.path) in names:
            found.append(int(folder.name))
    return found


def _has_loaded_nvml(pid):
    try:
        return "libnvidia-ml.so.1" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def _columns(run):
    connection = sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)
    try:
        return {name for (name,) in connection.execute("select distinct device_id from samples")}
    finally:
        connection.close()
