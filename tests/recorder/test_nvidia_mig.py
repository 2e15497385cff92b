"""Runs on emulated MIG slices (cases B2, B3, B4)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan
from heatsoak.session.result import load_result

FOUR = "MIG-4a000000-0000-5000-8000-000000000000"
THREE = "MIG-3a000000-0000-5000-8000-000000000000"


@pytest.fixture
def slices(nvml, tiny):
    """One card in two slices beside a whole card, and the workload that needs no torch."""
    nvml.play("mig")
    return nvml


def test_b3_two_slices_are_two_jobs_that_share_the_cards_power(slices, begin, until):
    run = begin(f"{FOUR},0:1", workload="tiny")
    until(lambda: all(job["units_done"] for job in client.status(run)["jobs"]))
    assert sorted(_visible_to_children(run)) == sorted([FOUR, THREE])
    until(lambda: len(_rows(run, "select distinct device_id from samples")) == 2)
    client.stop(run)
    client.wait_ended(run)
    document = load_result(run.path)
    first, second = document["devices"]
    assert (first["uuid"], second["uuid"]) == (FOUR, THREE)
    parent = first["mig"]["parent_uuid"]
    assert parent.startswith("GPU-")
    assert second["mig"] == {
        "parent_uuid": parent, "profile": "3g.40gb", "soaked_with": ["0:0"], "busy_siblings": [],
    }  # fmt: skip
    (card,) = document["shared_power"]
    assert card["devices"] == ["0:0", "0:1"]
    assert card["reason"] == "not every slice of this run is steady"
    (told,) = [row["text"] for row in _rows(run, "select * from events where kind = 'warning'")
               if "MIG slice" in row["text"]]  # fmt: skip
    assert told.startswith("0:0, 0:1: a MIG slice: power, temperature and clocks are those of the")


def test_b3_a_slice_beside_a_busy_one_of_others_is_told_at_once(slices, begin, until):
    run = begin(THREE, workload="tiny")
    (text,) = until(lambda: _texts(run, "on the same card is busy"))
    assert text == f"0:1: {FOUR} on the same card is busy: no perf/W meanwhile"
    client.stop(run)
    client.wait_ended(run)
    (device,) = load_result(run.path)["devices"]
    assert device["mig"]["busy_siblings"] == [FOUR]


def test_b2_a_child_that_names_its_card_is_known_by_its_memory(slices, begin, until):
    parent = next(
        row["mig_parent_uuid"] for row in slices.run(LIST) if row["mig_parent_uuid"] is not None
    )
    total = 40192 * 1024**2
    behaviour = f"uuid={parent},memory={total}"
    run = begin(THREE, workload="tiny", recipe={"settings": {"behaviour": behaviour}})
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    client.stop(run)
    client.wait_ended(run)


def test_b4_a_split_card_cannot_be_soaked_whole(slices):
    with pytest.raises(UsageError, match="split into MIG slices"):
        client.start(Plan("0", workload="tiny"))


def test_b4_a_slice_is_loaded_once(slices, begin):
    run = begin(THREE, workload="tiny")
    with pytest.raises(DeviceUnavailableError, match=run.id):
        client.start(Plan("0:1", workload="tiny"))


LIST = """
import json
from dataclasses import asdict
from heatsoak.telemetry.discovery import discover
print(json.dumps([asdict(info) for info in discover()], default=str))
"""


def _rows(run, sql, *values):
    connection = sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)
    try:
        connection.row_factory = sqlite3.Row
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def _texts(run, words):
    rows = _rows(run, "select text from events where kind = 'warning'")
    return [row["text"] for row in rows if words in row["text"]]


def _visible_to_children(run):
    """CUDA_VISIBLE_DEVICES of each workload of a run."""
    mark = f"HEATSOAK_SESSION={run.id}".encode()
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            parts = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in parts:
            values = dict(part.split(b"=", 1) for part in parts if b"=" in part)
            found.add(values[b"CUDA_VISIBLE_DEVICES"].decode())
    return found
