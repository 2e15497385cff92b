"""The public document of sessions that ended in every way, against its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import heatsoak.session.result as result_module
from heatsoak.session.result import exit_code, load_result, result_entry
from heatsoak.session.rows import Batch, JobRow, ResultRow, StepsRow
from heatsoak.session.store import SessionWriter, close_crashed
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.steady_state.verdict import Boost, Figure, Result, Sustained
from heatsoak.telemetry.discovery import open_devices
from heatsoak.telemetry.sample import DeviceSample

SCHEMA = json.loads(
    Path(result_module.__file__).with_name("heatsoak-result-1.schema.json").read_text()
)


@cache
def soak(until_s, *, is_cpu=False, closed=None):
    """The judge's own words after so long: one card whose readings are a synthetic card's."""
    (card,) = open_devices("synthetic:rtx-5090", seed=7)
    info = card.info
    if is_cpu:
        info = replace(info, device_id="cpu", uuid="cpu-aurora", name="Some CPU", kind="cpu",
                       provenance="measured", card=None, cores=16, power_limit_w=None)  # fmt: skip
    judge = Judge(PROTOCOLS["quick"], [info])
    card.start_load(0.0)
    judge.add_phase(0.0, "train")
    verdicts, samples, steps = [], [], []
    for t in range(until_s):
        t_s = float(t)
        sample = DeviceSample(t_s, "cpu", utilization_pct=99.0) if is_cpu else card.read(t_s)
        judge.add_sample(sample)
        judge.add_steps(t_s, card.units_done(t_s))
        samples.append(sample)
        steps.append(StepsRow(t_s, "job-0", card.units_done(t_s), t, 4.0))
        verdicts += judge.evaluate(t_s)
        if judge.is_over:
            break
    if closed is not None:
        verdicts += judge.close(float(until_s), *closed)
    return info, judge.results(), tuple(verdicts), tuple(samples), tuple(steps)


@pytest.fixture
def written(sessions, tmp_path):
    """written(soaked, state, ...) -> path of its session file."""

    def write(soaked, state, *, has_results=True, facts=None, unit="tokens", **meta):
        info, results, verdicts, samples, steps = soaked
        path = tmp_path / "s.heatsoak"
        job = JobRow("job-0", "synthetic", 1, sessions.RECIPE, "synthetic", unit,
                     (info.device_id,), facts or {})  # fmt: skip
        writer = SessionWriter.create(path, meta=sessions.meta(**meta), devices=[info], jobs=[job])
        rows = tuple(
            ResultRow(9.0, r.device_id, "job-0", result_entry(r, info, unit)) for r in results
        )
        batch = Batch({}, samples=samples, steps=steps, verdicts=verdicts)
        writer.write(replace(batch, results=rows) if has_results else batch)
        if state == "recording":
            writer._connection.close()
        else:
            writer.close(state)
        return path

    return write


def valid(path):
    document = load_result(path)
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    return document


def test_the_schema_is_a_schema_and_says_what_everything_is():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def silent(node, where):
        for name, child in node.get("properties", {}).items():
            if not child.get("description"):
                yield f"{where}.{name}"
            for part in (child, child.get("items", {}), *child.get("anyOf", ())):
                yield from silent(part, f"{where}.{name}")

    nodes = {"": SCHEMA, **SCHEMA["$defs"]}
    assert [path for name, node in nodes.items() for path in silent(node, name)] == []


def test_a_frozen_synthetic_soak(written):
    document = valid(written(soak(1200), "steady", provenance="synthetic"))
    (device,), (job,) = document["devices"], document["jobs"]
    assert device["verdict"]["state"] == "steady"
    assert device["last_window"] is None
    numbers = device["sustained"]
    assert numbers["throughput"]["unit"] == "tokens/s"
    assert numbers["joules_per_unit"]["unit"] == "J/token"
    assert numbers["power_w"]["unit"] == "W"
    joules = numbers["power_w"]["mean"] / numbers["all_in_throughput"]["mean"]
    assert numbers["joules_per_unit"]["mean"] == pytest.approx(joules, rel=0.01)
    assert device["energy"]["gap_frac"] == pytest.approx(0.0, abs=0.01)
    assert job["throughput"] == numbers["throughput"]
    assert job["mfu"] == {"nominal_frac": None, "measured_frac": None}  # Not of a real card.
    assert any("synthetic figures; not measured" in words for words in document["warnings"])
    assert exit_code(document["session"]["state"]) == 0


def test_a_session_being_recorded(written):
    document = valid(written(soak(400), "recording", has_results=False))
    (device,) = document["devices"]
    assert device["verdict"]["state"] in ("settling", "warming", "holding")
    assert device["sustained"] is device["last_window"] is device["energy"] is None
    assert document["jobs"][0]["throughput"] is None
    assert document["warnings"][0].startswith("the session has not come to its end")
    assert exit_code("recording") is None


def test_a_session_before_its_first_verdict(sessions, tmp_path):
    writer = sessions.create(tmp_path / "s.heatsoak", 2)
    document = valid(tmp_path / "s.heatsoak")
    assert [device["verdict"] for device in document["devices"]] == [None, None]
    writer.close("interrupted")
    document = valid(tmp_path / "s.heatsoak")
    assert "some devices have no verdict; the session ended before" in document["warnings"]


def test_a_crashed_session(written):
    path = written(soak(400), "recording", has_results=False)
    assert close_crashed(path)
    document = valid(path)
    assert document["session"]["state"] == "interrupted"
    assert document["devices"][0]["verdict"]["state"] == "interrupted"
    assert "recorder ended without closing" in document["session"]["end_reason"]
    assert any("so nothing was frozen: the recorder ended" in w for w in document["warnings"])
    assert exit_code("interrupted") == 130


def test_a_crash_after_the_freeze_keeps_what_was_frozen(written):
    path = written(soak(1200), "recording")
    assert close_crashed(path)
    document = valid(path)
    assert document["session"]["state"] == "interrupted"
    assert document["devices"][0]["verdict"]["state"] == "steady"
    assert document["jobs"][0]["throughput"]["mean"] > 0


@pytest.mark.parametrize(("state", "code"), [("failed", 4), ("lost", 5), ("interrupted", 130)])
def test_a_soak_that_was_cut_short(written, state, code):
    closed = (state, "the workload ended with exit status 1")
    document = valid(written(soak(700, closed=closed), state))
    (device,) = document["devices"]
    assert device["verdict"]["state"] == state
    assert device["sustained"] is None
    assert device["last_window"]["throughput"]["mean"] > 0
    assert document["jobs"][0]["throughput"] is None
    assert any(f"{state}, so nothing was frozen: " in words for words in document["warnings"])
    assert exit_code(state) == code


def test_a_cpu_that_reports_no_power(written):
    document = valid(written(soak(3000, is_cpu=True), "steady"))
    (device,) = document["devices"]
    assert device["verdict"]["state"] == "steady"
    numbers = device["sustained"]
    assert numbers["throughput"]["mean"] > 0
    hardware = ("power_w", "temperature_c", "sm_clock_mhz", "mem_clock_mhz", "memory_used_bytes")
    assert [numbers[name] for name in hardware] == [None] * 5
    assert numbers["joules_per_unit"] is None
    assert device["energy"] == {
        "method": None, "counter_j": None, "integrated_j": None, "gap_frac": None,
        "scope": None, "power_method": None,
    }  # fmt: skip
    assert "cpu: no energy a unit: power is not reported" in document["warnings"]


def test_a_job_is_steady_only_if_all_its_devices_are(sessions, tmp_path):
    devices = sessions.devices(2)
    job = JobRow("job-0", "llm", 1, sessions.RECIPE, "ddp", "tokens", ("1", "0"))
    path = tmp_path / "s.heatsoak"
    writer = SessionWriter.create(path, meta=sessions.meta(), devices=devices, jobs=[job])
    results = [made(sessions, "1", "steady"), made(sessions, "0", "not-steady")]
    for info, result in zip(reversed(devices), results, strict=True):
        entry = result_entry(result, info, "tokens")
        writer.write(Batch({}, results=(ResultRow(9.0, info.device_id, "job-0", entry),)))
    document = valid(path)
    assert document["jobs"][0]["devices"] == ["1", "0"]
    assert document["jobs"][0]["throughput"] is None
    entry = result_entry(made(sessions, "0", "steady"), devices[0], "tokens")
    writer.write(Batch({}, results=(ResultRow(9.5, "0", "job-0", entry),)))
    assert valid(path)["jobs"][0]["throughput"]["mean"] == 100.0
    writer.close("steady")


def test_mfu_of_a_measured_card_whose_workload_says_what_a_unit_costs(sessions, tmp_path):
    (info,) = sessions.devices()
    (job,) = sessions.jobs([info])
    path = tmp_path / "s.heatsoak"
    facts = {"flops_per_unit": 1e9, "integrity": {"checks": 9, "failures": 2}}
    job = replace(job, facts=facts)
    writer = SessionWriter.create(path, meta=sessions.meta(), devices=[info], jobs=[job])
    entry = result_entry(made(sessions, "0", "steady"), info, "tokens")
    writer.write(Batch({}, results=(ResultRow(9.0, "0", "job-0", entry),)))
    writer.close("steady")
    document = valid(path)
    peak = result_module.card_profiles()["rtx-5090"].bf16_dense_flops
    assert document["jobs"][0]["mfu"]["nominal_frac"] == pytest.approx(100.0 * 1e9 / peak)
    assert document["jobs"][0]["integrity"] == {"checks": 9, "failures": 2}
    assert document["jobs"][0]["facts"] == {"flops_per_unit": 1e9}
    assert "job-0: 2 of 9 checks of its arithmetic failed" in document["warnings"][0]


def test_a_figure_that_is_no_number_is_none(sessions, tmp_path):
    (info,) = sessions.devices()
    throughput = Figure(float("nan"), 1.0, 2.0, "units/s")
    power_w = Figure(np.float64(450.0), float("inf"), np.float32(3.0), "W")
    result = made(sessions, "0", "steady", throughput=throughput, power_w=power_w)
    entry = result_entry(result, info, "images")
    assert entry["sustained"]["throughput"] is None
    assert entry["sustained"]["power_w"] == {
        "mean": 450.0, "u95": None, "n_eff": 3.0, "unit": "W",
    }  # fmt: skip
    json.dumps(entry, allow_nan=False)


def test_warnings_say_what_the_flags_mean(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path, protocol="smoke")
    (info,) = sessions.devices()
    result = made(sessions, "0", "steady", counter_j=100.0, integrated_j=120.0)
    verdict = replace(result.verdict, flags=("superseded", "power-capped", "smoke"))
    entry = result_entry(replace(result, verdict=verdict), info, "tokens")
    writer.write(Batch({}, results=(ResultRow(9.0, "0", "job-0", entry),)))
    writer.close("steady")
    assert valid(path)["warnings"] == [
        "protocol smoke: a demonstration, never a sustained result",
        "0: the rate moved on after the freeze; soak again, longer",
        "0: energy counter and integral of power differ by +20%",
    ]


def made(sessions, device_id, state, **numbers):
    """A result with round numbers."""
    figure = Figure(100.0, 0.5, 20.0, "units/s")
    every = dict.fromkeys(result_module.FIGURES, figure)
    window = {
        "window_start_s": 600.0, "window_s": 300.0, "energy_method": "counter",
        "counter_j": 100.0, "integrated_j": 101.0, "throttle_frac": {"sw_power_cap": 1.0},
    }  # fmt: skip
    verdict = sessions.verdict(900.0, device_id, state)
    sustained = Sustained(**(window | every | numbers))
    boost = Boost(110.0, 60.0, 30.0, 1 - 100 / 110)
    return Result(device_id, replace(verdict, flags=()), sustained, boost, 104.0, None)
