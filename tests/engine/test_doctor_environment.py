"""What doctor saw of the machine, in a session file and in its result."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

import heatsoak.session
from doctor_machines import card, machine
from heatsoak.doctor import environment
from heatsoak.session.result import load_result
from heatsoak.session.store import SessionWriter
from heatsoak_tui.cli.environment_text import environment_lines

SCHEMA = Path(heatsoak.session.__file__).with_name("heatsoak-result-1.schema.json")


def written(path, sessions, document):
    devices = sessions.devices()
    writer = SessionWriter.create(
        path, meta=sessions.meta(), devices=devices, jobs=sessions.jobs(devices),
        environment=document,
    )  # fmt: skip
    writer.write(sessions.second(0))
    writer.close("interrupted")
    return load_result(path)


def test_it_comes_back_as_it_was_and_fits_the_schema(tmp_path, sessions):
    document = environment(machine(card(0, power_limit_w=450.0, persistence=False)))
    result = written(tmp_path / "a.heatsoak", sessions, document)
    assert result["session"]["environment"] == json.loads(json.dumps(document))
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    assert document["devices"][0]["measured"]["within_bytes_per_s"] == 1.55e12


def test_a_session_without_one_has_none(tmp_path, sessions):
    result = written(tmp_path / "a.heatsoak", sessions, None)
    assert result["session"]["environment"] == {}
    jsonschema.validate(result, json.loads(SCHEMA.read_text()))
    assert list(environment_lines({})) == []


def test_nothing_of_the_users_environment_goes_into_the_file():
    secret = {"HF_TOKEN": "hf_secret", "OMP_NUM_THREADS": "1"}
    text = json.dumps(environment(machine(card(0), environ=secret)))
    assert "hf_secret" not in text
    assert "HF_TOKEN" not in text


def test_the_result_says_it_in_a_line_and_what_was_warned_of():
    document = environment(machine(card(0, power_limit_w=450.0), confines={"container": "Docker"}))
    first, *warnings = environment_lines(document)
    assert first == (
        "machine  aurora, AMD Ryzen 9 9950X 16-Core Processor, 32 cores, 128 GiB, "
        "Linux 6.8.0-45-generic, driver 580.95.05, torch 2.9.1+cu128, in Docker"
    )
    assert warnings == [
        "! at the start: 0: its power limit is 450 W, 22% below the default of 575 W"
    ]
