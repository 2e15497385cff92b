"""The planner against published measurements, each with its source in `memory_cases.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from heatsoak.economics.memory_fit import RESERVE_BYTES, peak_memory, plan_in
from heatsoak.economics.training import Training
from heatsoak.profiles.models import find_model
from heatsoak.units import BYTES_PER_MIB

DOCUMENT = yaml.safe_load(Path(__file__).with_name("memory_cases.yaml").read_text())
CASES = DOCUMENT["cases"]
PLANNED = [case for case in CASES if "plan" in case]
MEASURED = [case for case in PLANNED if "measured_bytes" in case]


def peak_of(case):
    return peak_memory(find_model(case["model"]), Training(**case["plan"]), case["cards"])


def by_id(cases):
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


@by_id(MEASURED)
def test_a_measured_peak_is_met_within_minus_5_and_plus_15_percent(case):
    gap_pct = 100 * (peak_of(case).peak_bytes / case["measured_bytes"] - 1)
    assert case.get("least_pct", -5) <= gap_pct <= 15


@by_id([case for case in PLANNED if case.get("out_of_memory")])
def test_what_ran_out_of_memory_is_never_called_a_fit(case):
    assert plan_in(peak_of(case), case["card_mib"] * BYTES_PER_MIB).verdict == "no"


@by_id(MEASURED)
def test_no_measured_run_is_refused_a_card_with_a_tenth_more_than_peak_and_reserve(case):
    # A verdict that is right about OOM because it always says no would be of no use.
    room = 1.2 * case["measured_bytes"] + RESERVE_BYTES
    assert plan_in(peak_of(case), round(room)).verdict != "no"


def test_every_case_has_a_source_and_a_plan_or_the_reason_why_there_is_none():
    for case in CASES:
        assert case["source"] in DOCUMENT["sources"]
        assert ("plan" in case) != bool(case.get("not_expressed"))
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert len([case for case in CASES if "not_expressed" in case]) == 8
    assert all(case["kind"] == "max_reserved" for case in CASES if "least_pct" in case)
