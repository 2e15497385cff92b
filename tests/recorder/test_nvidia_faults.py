"""Emulated cards that fail while real children run on them (cases A2, B1, C1, C3, C4, C5, C7)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from heatsoak.errors import UsageError
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan
from heatsoak.session.result import load_result

EIGHT = "card 0-7 like rtx-5090\n"


@pytest.fixture
def cards(nvml, tiny):
    """Eight cards, and the workload that needs no torch; tells what NVML answers from now on."""
    nvml.tell(EIGHT)
    return nvml.tell


def test_c3_of_eight_cards_one_hangs_one_is_lost_and_the_others_go_on(cards, begin, until):
    run = begin("all", workload="tiny")
    until(lambda: all(job["units_done"] for job in client.status(run)["jobs"]), 30.0)
    cards(EIGHT + "hang 5 *\nfail 6 * GPU_IS_LOST\n")
    until(lambda: client.status(run)["devices"][6]["state"] == "lost")
    until(lambda: client.status(run)["devices"][5]["is_silent"], 30.0)
    status = client.status(run)
    assert [d["is_silent"] for d in status["devices"]] == [n == 5 for n in range(8)]
    assert [d["state"] for d in status["devices"]] == [
        "lost" if n == 6 else "warming" for n in range(8)
    ]
    before = [job["units_done"] for job in status["jobs"]]
    going_on = [0, 1, 2, 3, 4, 5, 7]
    until(lambda: all(client.status(run)["jobs"][n]["units_done"] > before[n] for n in going_on))
    client.stop(run)
    client.wait_ended(run)  # although a call of card 5 never returns
    document = load_result(run.path)
    assert [device["verdict"]["state"] for device in document["devices"]] == [
        "lost" if n == 6 else "interrupted" for n in range(8)
    ]
    assert "has not answered for" in _events(run, "silent")[0]["text"]


def test_c3_a_recorder_with_nothing_to_write_still_says_that_it_is_there(cards, begin, until):
    run = begin("0", workload="tiny", recipe={"settings": {"behaviour": "mute"}})
    cards(EIGHT + "hang 0 *\n")
    query = "select value from meta where key = 'now_s'"
    (first,) = until(lambda: _rows(run, query))
    until(lambda: float(_rows(run, query)[0]["value"]) > float(first["value"]))
    client.kill(run)
    client.wait_ended(run)


def test_c4_a_container_that_loses_nvml_keeps_its_workload_and_is_explained(
    cards, nvml, begin, until
):
    run = begin("0", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    nvml.play("container-cut-off")
    (event,) = until(lambda: _events(run, "warning"), 30.0)
    assert "cannot be read any more (the driver reports an unknown error)" in event["text"]
    assert "its workload goes on" in event["text"]
    before = client.status(run)["jobs"][0]["units_done"]
    until(lambda: client.status(run)["jobs"][0]["units_done"] > before)
    status = client.status(run)
    assert (status["state"], status["devices"][0]["is_silent"]) == ("recording", False)
    cards(EIGHT)
    until(lambda: any("can be read again" in e["text"] for e in _events(run, "warning")))
    client.stop(run)
    client.wait_ended(run)


def test_c5_a_driver_replaced_during_the_run_is_explained_and_ends_it(cards, nvml, begin, until):
    run = begin("0", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    nvml.play("driver-replaced")
    client.wait_ended(run, 30.0)
    (device,) = load_result(run.path)["devices"]
    assert device["verdict"]["state"] == "lost"
    assert "driver was replaced while running: reboot" in device["verdict"]["reason"]


def test_c7_ecc_errors_and_xids_of_the_run_are_on_the_result(nvml, tiny, begin, until):
    nvml.play("ecc-storm")
    run = begin("0", workload="tiny")
    # Long before the next question: the last one comes at the end.
    until(lambda: _rows(run, "select * from samples where t_s > 3"))
    client.stop(run)
    client.wait_ended(run)
    document = load_result(run.path)
    health = document["devices"][0]["health"]
    assert health["after"]["ecc_uncorrected"] >= health["before"]["ecc_uncorrected"]
    assert 94 in health["after"]["xids"]
    assert any("Xid" in words and "94" in words for words in health["worse"])
    assert any("Xid" in event["text"] for event in _events(run, "health"))
    for words in health["worse"]:
        assert f"0: during the run {words}" in document["warnings"]


def test_a2_a_card_without_sensors_is_told_what_is_impossible_before_the_run(
    nvml, tiny, begin, until
):
    nvml.play("jetson")
    run = begin("0", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    (event,) = until(lambda: _events(run, "warning"))
    assert event["t_s"] < 5.0
    assert "no power, temperature or clock" in event["text"]
    assert "judged on throughput alone" in event["text"]
    until(lambda: _rows(run, "select * from steps where t_s > 5.5"), 30.0)
    # A card that has nothing to say is neither silent nor lost.
    assert not client.status(run)["devices"][0]["is_silent"]
    client.stop(run)
    client.wait_ended(run)
    document = load_result(run.path)
    assert any("no power, temperature or clock" in words for words in document["warnings"])
    assert document["devices"][0]["missing"]["power_w"]


def test_b1_a_child_on_another_card_measures_nothing(cards, begin):
    run = begin("1", workload="tiny", recipe={"settings": {"behaviour": "uuid=GPU-other"}})
    client.wait_ended(run, 30.0)
    assert load_result(run.path)["session"]["state"] == "failed"
    assert "GPU-other" in load_result(run.path)["session"]["end_reason"]
    assert _rows(run, "select * from steps") == []


def test_b6_the_cards_that_are_named_are_those_that_are_read_and_loaded(cards, begin, until):
    cards(EIGHT + "".join(f"card {n} nvmlDeviceGetTemperature:0 {50 + n}\n" for n in range(8)))
    run = begin("7,0,3", workload="tiny")
    query = "select distinct device_id, temperature_c from samples"
    rows = until(lambda: len(found := _rows(run, query)) == 3 and found)
    assert {tuple(row) for row in rows} == {("0", 50.0), ("3", 53.0), ("7", 57.0)}
    client.kill(run)
    client.wait_ended(run)


def test_b2_a_hidden_card_is_refused_before_anything_starts(cards, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES"):
        client.start(Plan("1", workload="tiny"))
    assert client.running() == []


def _rows(run, sql, *values):
    if not Path(run.path).exists():
        return []
    connection = sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)
    try:
        connection.row_factory = sqlite3.Row
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def _events(run, kind):
    return _rows(run, "select * from events where kind = ? order by t_s", kind)
