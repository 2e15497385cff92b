"""Cards that hang, are lost or lie, beside cards that do not (cases C1, C3; B5)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import jsonschema
import pytest

from heatsoak.recorder import client
from heatsoak.session import result
from heatsoak.session.rejudge import judge_file
from heatsoak.session.result import exit_code, load_result

SCHEMA = Path(result.__file__).with_name("heatsoak-result-1.schema.json")
pytestmark = pytest.mark.usefixtures("tiny")
CARD = "synthetic:rtx-5090"
EIGHT = f"{CARD}x5,{CARD}+hang@200,{CARD}+lost@300,{CARD}+stuck@250"
SPEED = 250.0


def test_c3_eight_cards_of_which_one_hangs_one_is_lost_and_one_is_stuck(begin):
    run = begin(EIGHT, speed=SPEED)
    client.wait_ended(run, 90.0)
    document = load_result(run.path)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    assert exit_code(document["session"]["state"]) == 5
    *sound, hung, lost, stuck = document["devices"]

    # The five others: steady, when and with what a judge finds who knows of each card alone.
    alone = {line["device"]: line for line in judge_file(run.path)}
    for device in sound:
        verdict, line = device["verdict"], alone[device["device_id"]]
        assert verdict["state"] == line["state"] == "steady"
        assert verdict["frozen_at_s"] == pytest.approx(line["frozen_at_s"], abs=30.0)
        watts = device["sustained"]["power_w"]["mean"]
        assert watts == pytest.approx(line["power_w"]["mean"], rel=0.005)

    # What happened to each of the three is on the result, and was told when it happened.
    assert hung["verdict"]["state"] == "lost"
    assert "no answer for" in hung["verdict"]["reason"]
    assert hung["sustained"] is None
    assert lost["verdict"]["state"] == "lost"
    assert "told to be lost" in lost["verdict"]["reason"]
    assert stuck["sensors"]["stuck"] == ["power"]
    assert any("power sensor is stuck" in words for words in document["warnings"])
    assert stuck["verdict"]["state"] != "lost"
    if stuck["sustained"] is not None:
        assert stuck["sustained"]["power_w"] is stuck["sustained"]["joules_per_unit"] is None
    texts = {row["device_id"]: row["text"] for row in _events(run, "lost")}
    assert set(texts) == {hung["device_id"], lost["device_id"]}
    assert [row["device_id"] for row in _events(run, "silent")] == [hung["device_id"]]
    told = [row["text"] for row in _events(run, "warning") if "stuck" in row["text"]]
    assert told == ["synthetic-7: its power sensor is stuck; what it says is left out"]


def test_c3_a_silent_card_is_not_frozen_meanwhile(begin, until):
    """Its job goes on, so throughput alone would soon be called steady."""
    run = begin(f"{CARD}+hang@30", speed=20.0, protocol="smoke")
    until(lambda: client.status(run)["devices"][0]["is_silent"])
    state = client.status(run)["devices"][0]["state"]
    until(lambda: client.status(run)["t_s"] > 130.0, 30.0)
    status = client.status(run)
    assert status["jobs"][0]["units_done"] > 0
    assert status["devices"][0]["state"] == state
    client.stop(run)
    client.wait_ended(run)


def _events(run, kind):
    connection = sqlite3.connect(f"file:{run.path}?mode=ro", uri=True)
    try:
        connection.row_factory = sqlite3.Row
        query = "select * from events where kind = ? order by t_s"
        return connection.execute(query, (kind,)).fetchall()
    finally:
        connection.close()
