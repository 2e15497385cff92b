"""What heatsoak asks of NVML and what it never asks; every case of the field has its test."""

from __future__ import annotations

import fnmatch
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

OPEN = """
import json
from heatsoak.telemetry import discovery
"""
STATIC = (
    "nvmlDeviceGetName",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetVbiosVersion",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetPowerManagementDefaultLimit",
    "nvmlDeviceGetMaxPcieLinkGeneration",
    "nvmlDeviceGetMaxPcieLinkWidth",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetTemperatureThreshold",
    "nvmlDeviceGetMinMaxFanSpeed",
    "nvmlDeviceGetNumFans",
    "nvmlDeviceGetEccMode",
    "nvmlDeviceGetPersistenceMode",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetApplicationsClock",
    "nvmlDeviceGetDefaultApplicationsClock",
)


@pytest.fixture
def ask(nvml):
    """Runs code on emulated cards; the calls it made, by card."""

    def run(code, scenario):
        nvml.keep_journal()
        nvml.run(OPEN + code, scenario)
        return nvml.calls()

    return run


def test_a_reading_asks_only_what_moves_and_each_of_it_once(ask):
    calls = ask(
        """
(device,) = discovery.open_devices("0")
for n in range(10):
    device.read(float(n))
device.close()
print("null")
""",
        "card 0 like rtx-5090\ncard 0 nvmlDeviceGetSupportedEventTypes -\n",
    )
    counts = Counter(key for card, key in calls if card == 0)
    polled = {key for key, count in counts.items() if count >= 10}
    powers = {"nvmlDeviceGetPowerUsage", "field:185"}  # two names of one number
    assert len(polled & powers) == 1
    assert polled - powers - {"field:185:0"} == {
        "nvmlDeviceGetFieldValues",
        "field:186:0",
        "field:186",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetTemperature:0",
        "nvmlDeviceGetClockInfo:1",
        "nvmlDeviceGetClockInfo:2",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetUtilizationRates:1",
        "nvmlDeviceGetMemoryInfo_v2:0",
        "nvmlDeviceGetMemoryInfo_v2:1",
        "nvmlDeviceGetMemoryInfo_v2:2",
        "nvmlDeviceGetFanSpeed_v2:0",
        "nvmlDeviceGetFanSpeed_v2:1",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrPcieLinkGeneration",
        "nvmlDeviceGetCurrPcieLinkWidth",
        "nvmlDeviceGetPerformanceState",
    }
    assert all(counts[key] <= 12 for key in polled)  # Once when it is opened, once a reading.
    for name in STATIC:
        assert sum(count for key, count in counts.items() if key.split(":")[0] == name) <= 4, name


def test_b5_a_card_that_is_not_selected_is_asked_nothing(ask):
    calls = ask(
        """
(device,) = discovery.open_devices("2")
device.read(0.0)
device.health()
device.close()
print("null")
""",
        "card 0-3 like rtx-5090\n",
    )
    assert {card for card, _ in calls} == {-1, 2}


def test_a11_violation_counters_of_unsure_unit_are_not_asked(ask):
    """Shares of throttling are counted from the reasons of each reading instead."""
    calls = ask(
        """
(device,) = discovery.open_devices("0")
device.read(0.0)
device.health()
device.close()
print("null")
""",
        "card 0 like h100-sxm\n",
    )
    asked = {key for _, key in calls}
    assert "nvmlDeviceGetCurrentClocksEventReasons" in asked
    assert not {key for key in asked if "Violation" in key}
    policies = {f"field:{field}" for field in range(74, 82)}
    assert not {key for key in asked if ":".join(key.split(":")[:2]) in policies}


def test_f6_finding_and_reading_cards_changes_nothing_on_them(ask):
    calls = ask(
        """
for device in discovery.open_devices("all"):
    device.read(0.0)
    device.close()
print("null")
""",
        "card 0-1 like h100-sxm\n",
    )
    assert calls
    assert not {key for _, key in calls if "Set" in key.replace("EventSet", "")}


@pytest.mark.parametrize(("every", "is_flagged"), [(50, False), (5, True)])
def test_a12_throttling_is_a_share_of_the_window_and_no_single_event(every, is_flagged):
    judge = Judge(PROTOCOLS["standard"], [DeviceInfo("0", "GPU-0", "A card", "nvidia", "measured")])
    noise = random.Random(1)
    for t in range(1, 1200):
        reasons = ("sw_thermal_slowdown",) if t % every == 0 else ()
        judge.add_sample(
            DeviceSample(
                float(t),
                "0",
                power_w=round(noise.gauss(300.0, 1.0), 2),
                temperature_c=float(round(noise.gauss(65.0, 0.3))),
                sm_clock_mhz=float(15 * round(noise.gauss(1800.0, 6.0) / 15)),
                throttle_reasons=reasons,
            )
        )
        judge.add_steps(float(t), 1000.0 * t)
        (verdict,) = judge.evaluate(float(t))
        if verdict.state == "steady":
            break
    (result,) = judge.results()
    assert verdict.state == "steady"
    assert ("throttled" in verdict.flags) is is_flagged
    assert result.numbers.throttle_frac["sw_thermal_slowdown"] == pytest.approx(1 / every, rel=0.2)


TESTS = Path(__file__).resolve().parents[1]
CASES = {
    *(f"A{n}" for n in range(1, 26)),
    *(f"B{n}" for n in range(1, 7)),
    *(f"C{n}" for n in range(1, 11)),
    *(f"G{n}" for n in range(1, 4)),
}


def test_every_case_of_the_field_has_tests_that_exist():
    table = (TESTS / "nvml_emulator" / "README.md").read_text().partition("## Cases")[2]
    rows = dict(re.findall(r"^\| ([ABCG]\d+) \| .*? \| (.*) \|$", table, re.MULTILINE))
    assert set(rows) == CASES
    for case, cell in rows.items():
        named = re.findall(r"`(\S+)::(\S+)`", cell)
        assert named or cell.startswith("cannot apply: "), case
        for file, pattern in named:
            there = re.findall(r"^def (test_\w+)", (TESTS / file).read_text(), re.MULTILINE)
            assert fnmatch.filter(there, pattern), f"{case}: {file}::{pattern}"
