"""What stands beside the figures of a result: missing sensors, energy, link, slices, defects."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import heatsoak.session.result as result_module
from heatsoak.recorder.evidence import Evidence
from heatsoak.session.result import load_result, result_entry
from heatsoak.session.rows import Batch, ResultRow
from heatsoak.session.store import SessionWriter
from heatsoak.session.warnings import limits_of
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.steady_state.verdict import Figure, Result, Sustained
from heatsoak.telemetry.sample import DeviceSample

SCHEMA = json.loads(
    Path(result_module.__file__).with_name("heatsoak-result-1.schema.json").read_text()
)
PARENT = "GPU-parent-0000"


def found(sessions, device_id="0", state="steady", **numbers):
    """A result with round numbers."""
    figures = dict.fromkeys(result_module.FIGURES, Figure(100.0, 1.0, 20.0, "units/s"))
    window = {
        "window_start_s": 600.0, "window_s": 300.0, "energy_method": "counter",
        "counter_j": 100.0, "integrated_j": 101.0, "throttle_frac": {},
    }  # fmt: skip
    verdict = replace(sessions.verdict(900.0, device_id, state), flags=())
    return Result(device_id, verdict, Sustained(**(window | figures | numbers)), None, None, None)


@pytest.fixture
def document(sessions, tmp_path):
    """document((info, result, evidence), ...) -> the document of a session of these devices."""

    def make(*rows):
        infos = [info for info, _, _ in rows]
        jobs = sessions.jobs(infos)
        path = tmp_path / "s.heatsoak"
        writer = SessionWriter.create(path, meta=sessions.meta(), devices=infos, jobs=jobs)
        for info, result, evidence in rows:
            entry = result_entry(result, info, "tokens", evidence)
            row = ResultRow(9.0, info.device_id, f"job-{info.device_id}", entry)
            writer.write(Batch({}, results=(row,)))
        writer.close("steady")
        made = load_result(path)
        jsonschema.validate(made, SCHEMA, cls=jsonschema.Draft202012Validator)
        return made

    return make


def test_a2_a_device_without_sensors_says_what_is_impossible():
    why = "not supported by this card or driver"
    (all_,) = limits_of(dict.fromkeys(("power_w", "temperature_c", "sm_clock_mhz"), why))
    assert f"no power, temperature or clock ({why})" in all_
    assert "judged on throughput alone" in all_
    assert "no perf/W" in all_
    assert limits_of({"power_w": why, "energy_j": why}) == [
        f"no power ({why}): no watts, no perf/W, and no telling whether a limit holds it down"
    ]
    (energy,) = limits_of({"energy_j": why})
    assert "the integral of its power" in energy
    assert "judged without it" in limits_of({"temperature_c": why})[0]
    assert limits_of({"fan_pct": "no fan", "utilization_pct": why}) == []


def test_a2_missing_sensors_and_their_consequences_are_in_the_result(sessions, document):
    (info,) = sessions.devices()
    info = replace(info, missing={"power_w": "too old", "energy_j": "too old"})
    none = {"power_w": None, "joules_per_unit": None, "energy_method": None,
            "counter_j": None, "integrated_j": None}  # fmt: skip
    made = document((info, found(sessions, **none), None))
    assert made["devices"][0]["missing"]["power_w"] == "too old"
    assert [words for words in made["warnings"] if "no power (too old)" in words]
    assert not [words for words in made["warnings"] if "no energy a unit" in words]
    energy = made["devices"][0]["energy"]
    assert energy["method"] is energy["scope"] is energy["counter_j"] is None


def test_a2_a_window_with_few_values_is_told(sessions, document):
    (info,) = sessions.devices()
    evidence = Evidence(info)
    for t in range(600, 900):
        power_w = 450.0 if t % 2 else None
        evidence.add(DeviceSample(float(t), "0", power_w=power_w, temperature_c=60.0))
    made = document((info, found(sessions), evidence.entry(600.0, 300.0)))
    assert made["devices"][0]["coverage"]["power_w"] == pytest.approx(0.5)
    assert "0: only 50% of the window has a value of its power" in made["warnings"]
    assert not [words for words in made["warnings"] if "temperature" in words]


def test_a3_without_a_counter_the_integral_is_used_and_said(sessions, document):
    (info,) = sessions.devices()
    info = replace(info, missing={"energy_j": "not supported"})
    made = document((info, found(sessions, energy_method="integral", counter_j=None), None))
    energy = made["devices"][0]["energy"]
    assert (energy["method"], energy["counter_j"], energy["integrated_j"]) == (
        "integral", None, 101.0,
    )  # fmt: skip
    assert energy["gap_frac"] is None
    assert [words for words in made["warnings"] if "no energy counter (not supported)" in words]


@pytest.mark.parametrize(("integrated_j", "is_told"), [(104.9, False), (105.2, True), (57.0, True)])
def test_a4_counter_and_integral_are_both_there_and_a_gap_is_told(
    sessions, document, integrated_j, is_told
):
    (info,) = sessions.devices()
    made = document((info, found(sessions, integrated_j=integrated_j), None))
    energy = made["devices"][0]["energy"]
    assert (energy["method"], energy["counter_j"]) == ("counter", 100.0)
    assert energy["gap_frac"] == pytest.approx(integrated_j / 100.0 - 1)
    assert any("energy counter and integral" in words for words in made["warnings"]) == is_told


@pytest.mark.parametrize(
    ("more", "scope"),
    [({"power_scope": "gpu"}, "gpu"), ({"power_scope": "module"}, "module"), ({}, None),
     ({"kind": "cpu"}, "package"), ({"mig_parent_uuid": PARENT}, "card")],
)  # fmt: skip
def test_a7_the_energy_says_of_what_it_is(sessions, document, more, scope):
    (info,) = sessions.devices()
    info = replace(info, **more)
    made = document((info, found(sessions), Evidence(info).entry(None, None)))
    assert made["devices"][0]["energy"]["scope"] == scope
    assert any("the whole module's" in w for w in made["warnings"]) == (scope == "module")


@pytest.mark.parametrize(("gen", "width", "is_told"), [(5, 16, False), (1, 16, True), (5, 8, True)])
def test_a21_a_link_below_its_maximum_under_load_is_told(sessions, document, gen, width, is_told):
    (info,) = sessions.devices()
    info = replace(info, pcie_gen_max=5, pcie_width_max=16)
    evidence = Evidence(info)
    for t in range(600, 900):
        evidence.add(DeviceSample(float(t), "0", pcie_gen=gen, pcie_width=width))
    made = document((info, found(sessions), evidence.entry(600.0, 300.0)))
    assert made["devices"][0]["pcie"]["gen"] == gen
    told = f"0: its PCIe link ran at gen {gen} x{width} under load; card and slot can gen 5 x16"
    assert (told in made["warnings"]) == is_told


def test_a20_a_link_that_is_not_reported_is_not_judged(sessions, document):
    (info,) = sessions.devices()
    made = document((info, found(sessions), Evidence(info).entry(600.0, 300.0)))
    assert made["devices"][0]["pcie"] is None
    assert not [words for words in made["warnings"] if "PCIe" in words]


def test_a14_stuck_and_suspect_sensors_are_in_the_result(sessions, document):
    (info,) = sessions.devices()
    evidence = Evidence(info)
    evidence.stuck = frozenset({"power"})
    evidence.suspect.append("power is suspect: 900 W at a limit of 450 W")
    none = {"power_w": None, "joules_per_unit": None, "energy_method": None}
    made = document((info, found(sessions, **none), evidence.entry(None, None)))
    assert made["devices"][0]["sensors"]["stuck"] == ["power"]
    assert "0: no energy a unit: its power cannot be believed" in made["warnings"]
    assert "0: its power sensor is stuck; what it says is left out" in made["warnings"]
    assert "0: power is suspect: 900 W at a limit of 450 W" in made["warnings"]


def test_c7_defects_of_the_run_are_in_the_result(sessions, document):
    (info,) = sessions.devices()
    counts = dict.fromkeys(SCHEMA["$defs"]["health"]["properties"])
    health = {"before": counts | {"ecc_uncorrected": 3}, "after": counts | {"ecc_uncorrected": 5},
              "worse": ["2 memory errors could not be corrected"]}  # fmt: skip
    made = document((info, found(sessions), {"health": health}))
    assert made["devices"][0]["health"]["after"]["ecc_uncorrected"] == 5
    assert "0: during the run 2 memory errors could not be corrected" in made["warnings"]


def test_a24_an_external_cap_is_in_the_result_and_explained(sessions, document):
    (info,) = sessions.devices()
    result = found(sessions)
    verdict = replace(result.verdict, flags=("external-cap",))
    made = document((info, replace(result, verdict=verdict), None))
    assert made["devices"][0]["verdict"]["flags"] == ["external-cap"]
    assert any("other than heat or its power limit" in words for words in made["warnings"])


def test_a22_compute_at_p2_with_its_lower_memory_clock_is_no_throttling(sessions):
    (info,) = sessions.devices()
    judge = Judge(PROTOCOLS["smoke"], [info])
    judge.add_phase(0.0, "train")
    for t in range(240):
        wobble = (t * 7919) % 11 - 5
        judge.add_sample(
            DeviceSample(
                float(t), "0", power_w=450.0 + wobble, temperature_c=60.0, sm_clock_mhz=2400.0,
                mem_clock_mhz=13365.0, power_limit_w=575.0, throttle_reasons=(), pstate=2,
            )
        )  # fmt: skip
        judge.add_steps(float(t), 100.0 * t)
        judge.evaluate(float(t))
    (result,) = judge.results()
    assert "throttled" not in result.verdict.flags
    assert result_entry(result, info, "tokens")["throttle"] == {}


# -- slices of one card ----------------------------------------------------------------------------


def slices(sessions, *, busy=(), together=True, **numbers):
    """Two slices of one card as rows of a document."""
    rows = []
    for info in sessions.devices(2):
        info = replace(info, uuid=f"MIG-{info.device_id}", mig_parent_uuid=PARENT,
                       mig_profile="3g.40gb")  # fmt: skip
        evidence = Evidence(info)
        evidence.see_busy(700.0, busy)
        other = "1" if info.device_id == "0" else "0"
        evidence.soaked_with = (other,) if together else ()
        result = found(sessions, info.device_id, **numbers)
        rows.append((info, result, evidence.entry(600.0, 300.0)))
    return rows


def test_b3_two_slices_soaked_together_have_one_perf_per_watt(sessions, document):
    watts = {"power_w": Figure(300.0, 3.0, 20.0, "W")}
    made = document(*slices(sessions, **watts))
    for device in made["devices"]:
        assert device["sustained"]["joules_per_unit"] is None
        assert device["sustained"]["throughput"]["mean"] == 100.0
    (card,) = made["shared_power"]
    assert (card["parent_uuid"], card["devices"], card["reason"]) == (PARENT, ["0", "1"], None)
    assert card["power_w"]["mean"] == 300.0
    assert card["all_in_throughput"]["mean"] == 200.0
    assert card["joules_per_unit"]["mean"] == pytest.approx(1.5)
    assert card["joules_per_unit"]["unit"] == "J/token"
    assert card["joules_per_unit"]["u95"] == pytest.approx(
        1.5 * (0.01**2 + (2**0.5 / 200) ** 2) ** 0.5
    )
    told = [words for words in made["warnings"] if "1.5 J/token" in words]
    assert len(told) == 1
    assert f"0 and 1 share the card {PARENT}" in told[0]


def test_b3_power_of_a_slice_is_said_to_be_the_cards(sessions, document):
    made = document(*slices(sessions))
    for device_id in ("0", "1"):
        words = f"{device_id}: a MIG slice (3g.40gb): power, temperature and clocks are those of"
        assert any(w.startswith(words) for w in made["warnings"])


def test_b3_perf_per_watt_is_refused_beside_a_busy_slice_of_others(sessions, document):
    row, _ = slices(sessions, busy=["MIG-other"], together=False)
    made = document(row)
    assert made["devices"][0]["sustained"]["joules_per_unit"] is None
    assert made["shared_power"] == []
    assert "0: no perf/W of its own: MIG-other on the same card was busy" in made["warnings"]


def test_b3_a_slice_alone_on_its_card_has_a_perf_per_watt(sessions, document):
    row, _ = slices(sessions, together=False)
    made = document(row)
    assert made["devices"][0]["sustained"]["joules_per_unit"]["mean"] == 100.0
    assert made["shared_power"] == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"busy": ["MIG-other"]}, "a slice that is not of this run was busy too"),
        ({"power_w": None}, "power or throughput is not known"),
    ],
)
def test_b3_without_evidence_slices_have_no_perf_per_watt_together(
    sessions, document, change, reason
):
    made = document(*slices(sessions, **change))
    (card,) = made["shared_power"]
    assert (card["joules_per_unit"], card["reason"]) == (None, reason)
    assert any("no perf/W for them" in words for words in made["warnings"])


def test_b3_windows_of_different_power_saw_different_loads(sessions, document):
    first, second = slices(sessions, power_w=Figure(300.0, 3.0, 20.0, "W"))
    numbers = replace(second[1].numbers, power_w=Figure(200.0, 3.0, 20.0, "W"))
    made = document(first, (second[0], replace(second[1], numbers=numbers), second[2]))
    assert "different power" in made["shared_power"][0]["reason"]


def test_b3_slices_are_not_summed_before_all_are_steady(sessions, document):
    first, second = slices(sessions)
    ended = replace(second[1], verdict=replace(second[1].verdict, state="not-steady"))
    made = document(first, (second[0], ended, second[2]))
    assert made["shared_power"][0]["reason"] == "not every slice of this run is steady"


def test_an_entry_of_an_earlier_version_is_completed(sessions, tmp_path):
    (info,) = sessions.devices()
    path = tmp_path / "s.heatsoak"
    writer = SessionWriter.create(
        path, meta=sessions.meta(), devices=[info], jobs=sessions.jobs([info])
    )
    entry = result_entry(found(sessions), info, "tokens")
    for key in ("missing", "coverage", "pcie", "sensors", "health", "mig"):
        del entry[key]
    del entry["energy"]["scope"], entry["energy"]["power_method"]
    writer.write(Batch({}, results=(ResultRow(9.0, "0", "job-0", entry),)))
    writer.close("steady")
    made = load_result(path)
    jsonschema.validate(made, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert made["devices"][0]["missing"] == {"fan_pct": "no fan"}
