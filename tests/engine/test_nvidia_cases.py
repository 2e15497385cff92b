"""NVIDIA cards as they are in the field: one test a case, on emulated cards (cases A, C and G)."""

from __future__ import annotations

from pathlib import Path

import pytest

PRELUDE = """
import json, os, sys, threading, time
from dataclasses import asdict
from heatsoak.telemetry import discovery
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.vendors import nvidia
from heatsoak.telemetry.vendors.nvidia import NvidiaDevice

def look(index, times=1):
    device = NvidiaDevice(index)
    samples = [asdict(device.read(float(k))) for k in range(times)]
    device.close()
    return [asdict(device.info), samples[-1]]

def looks(*indices):
    print(json.dumps([look(index) for index in indices]))
"""


@pytest.fixture
def run(nvml):
    """run(code, scenario_name, *statements): what the code prints, behind the prelude."""

    def play(code, name, *statements):
        nvml.play(name, *statements)
        return nvml.run(PRELUDE + code)

    return play


def test_a1_a_known_integrated_part_has_the_hosts_memory_and_no_link(run):
    ((info, sample),) = run("looks(0)", "gb10")
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    assert (info["integrated"], info["memory_kind"]) == (True, "unified")
    assert info["memory_total_bytes"] == total_kib * 1024
    assert 0 < sample["memory_used_bytes"] < info["memory_total_bytes"]
    assert (sample["pcie_gen"], info["pcie_gen_max"], info["pcie_width_max"]) == (None,) * 3
    assert "no PCIe link" in info["missing"]["pcie_gen"]
    assert (sample["fan_pct"], info["fan_max_pct"]) == (None, None)
    assert sample["power_w"] == 65.43


def test_a1_a_card_that_is_not_known_as_integrated_is_not_treated_so(run):
    # Memory that is not supported and a link that is not there, but another name.
    ((info, sample),) = run("looks(0)", "gb10", "card 0 name NVIDIA GB105 Prototype")
    assert (info["integrated"], info["memory_kind"]) == (False, "framebuffer")
    assert (info["memory_total_bytes"], sample["memory_used_bytes"]) == (None, None)
    assert sample["pcie_width"] == 1


def test_a1_an_integrated_part_whose_driver_is_gone_is_lost_although_the_host_has_memory(run):
    text, silent = run(
        """
device = NvidiaDevice(0)
path = os.environ["NVML_EMULATOR_SCENARIO"]
base = open(path).read()
open(path, "a").write("fail 0 * UNKNOWN\\n")
try:
    device.read(1.0)
except DeviceReadError as error:
    silent = str(error)
open(path, "a").write("fail 0 * GPU_IS_LOST\\n")
try:
    device.read(2.0)
except DeviceLostError as error:
    print(json.dumps([str(error), silent]))
""",
        "gb10",
    )
    assert "lost" in text
    assert "unknown error" in silent


def test_a1_memory_and_numa_node_come_from_the_host(run, tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(
        "MemTotal:       127600748 kB\nMemFree:  1 kB\nMemAvailable:   118566368 kB\n"
    )
    slot = tmp_path / "sys/bus/pci/devices/000f:01:00.0"
    slot.mkdir(parents=True)
    (slot / "numa_node").write_text("1\n")
    code = f"""
from pathlib import Path
from heatsoak.telemetry.nvml.facts import describe
def look(root):
    with nvidia.kept_open() as nvml:
        info, poll = describe(nvml, nvml.nvmlDeviceGetHandleByIndex(0), 0, root=root)
        return [info.memory_total_bytes, poll.read()["memory_used_bytes"], info.numa_node]
root = Path({str(tmp_path)!r})
before = look(root)
(root / "sys/bus/pci/devices/000f:01:00.0/numa_node").write_text("-1")  # there is only one
(root / "proc/meminfo").write_text("MemTotal: many")
print(json.dumps([before, look(root)]))
"""
    known, unknown = run(code, "gb10")
    assert known == [127600748 * 1024, (127600748 - 118566368) * 1024, 1]
    assert unknown == [None, None, None]


def test_a2_a_card_that_answers_nothing_gives_empty_readings_with_their_reasons(run):
    ((info, sample),) = run("looks(0)", "jetson")
    values = {k: v for k, v in sample.items() if k not in ("t_s", "device_id", "rejected")}
    assert {name for name, value in values.items() if value is not None} == {"memory_used_bytes"}
    assert {"power_w", "energy_j", "temperature_c", "sm_clock_mhz"} <= set(info["missing"])
    assert info["power_method"] is info["power_scope"] is None


def test_a3_a_card_without_energy_counter_has_none_and_never_0(run):
    ((info, sample),) = run("looks(0)", "old-driver")
    assert sample["energy_j"] is None
    assert info["missing"]["energy_j"] == "not supported by this card or driver"
    assert sample["power_w"] == 244.8


def test_a6_average_and_instant_power_are_told_apart_and_labelled(run):
    averages, instants, old = run(
        """
first, second = NvidiaDevice(0), NvidiaDevice(1)
path = os.environ["NVML_EMULATOR_SCENARIO"]
base = open(path).read()
seen = []
for now in (1.9, 2.4, 3.5):  # the step from 300 W to 500 W is at 2 s
    with open(path, "w") as file:
        file.write(base + f"now {now}\\n")
    seen.append(first.read(now))
info = second.info
print(json.dumps([[s.power_w for s in seen] + [first.info.power_method],
                  [s.power_instant_w for s in seen],
                  [second.read(9.0).power_instant_w, info.power_method, info.missing]]))
""",
        "two-powers",
    )
    assert averages == [300.0, pytest.approx(380.0, abs=5.0), 500.0, "average"]
    assert instants == [300.0, 500.0, 500.0]
    # Only the old function: NVML's documentation says by generation what it gives.
    assert old[:2] == [None, "average"]
    assert "not supported" in old[2]["power_instant_w"]


def test_a6_what_power_is_where_the_driver_tells_and_by_generation_where_not(run):
    cases = [
        ("8 0", "field:185 -", "instant"),  # A100
        ("7 0", "field:185 -", "instant"),  # V100
        ("9 0", "field:185 -", "average"),  # H100
        ("8 0", "field:185 300000", "average"),  # whatever the driver says wins
        ("9 0", "field:186 300000", "instant"),
    ]
    told = ["card 1-4 like gtx-1080-ti"]
    for n, (capability, field, _) in enumerate(cases):
        major, minor = capability.split()
        told += [
            f"card {n} nvmlDeviceGetCudaComputeCapability:0 {major}",
            f"card {n} nvmlDeviceGetCudaComputeCapability:1 {minor}",
            f"card {n} {field}",
        ]
    found = run("looks(0, 1, 2, 3, 4)", "old-driver", *told)
    assert [info["power_method"] for info, _ in found] == [method for *_, method in cases]
    assert {sample["power_instant_w"] for _, sample in found} == {None}


def test_a7_on_a_superchip_power_is_the_gpus_and_the_modules_counter_is_left_out(run):
    ((info, sample),) = run("looks(0)", "superchip")
    assert (info["power_scope"], info["power_method"]) == ("gpu", "average")
    assert (sample["power_w"], sample["power_instant_w"]) == (512.3, 515.0)
    assert sample["energy_j"] is None
    assert "whole module" in info["missing"]["energy_j"]


def test_a7_on_a_superchip_without_scopes_the_watts_are_called_the_modules(run):
    ((info, sample),) = run("looks(0)", "superchip", "card 0 field:185:0 -", "card 0 field:186:0 -")
    assert info["power_scope"] == "module"
    assert sample["energy_j"] is not None


def test_a9_the_old_name_of_the_clock_reasons_is_read_into_the_same_names(run):
    ((_, sample),) = run("looks(0)", "old-driver")
    assert sample["throttle_reasons"] == ["sw_power_cap", "sw_thermal_slowdown"]


def test_a13_unknown_bits_are_hex_and_states_are_no_throttling(run):
    (_, first), (held, second), (_, third) = run("looks(0, 1, 2)", "unknown-bits")
    assert first["throttle_reasons"] == ["sw_power_cap", "0x2000", "0x200000000"]
    assert second["throttle_reasons"] == third["throttle_reasons"] == []
    assert held["sm_clock_is_held"] is True


def test_a15_a10_sentinels_are_no_readings_and_are_told(run):
    (_, first), (_, second), (_, third) = run("looks(0, 1, 2)", "sentinels")
    absent = (
        "power_w", "energy_j", "temperature_c", "sm_clock_mhz", "power_limit_w", "throttle_reasons",
    )  # fmt: skip
    assert [first[name] for name in absent] == [None] * len(absent)
    assert {name for name, _ in first["rejected"]} >= set(absent)
    for name in ("temperature_c", "fan_pct", "pstate", "utilization_pct", "memory_temperature_c"):
        assert second[name] is None, name
    rejected = dict(map(tuple, second["rejected"]))
    assert rejected["temperature_c"] == 127.0
    assert rejected["fan_pct"] == 255.0
    assert "pstate" not in rejected  # 32 is the driver's own word for "unknown"
    assert third["temperature_c"] is third["sm_clock_mhz"] is None
    assert sorted(third["rejected"]) == [["sm_clock_mhz", 0.0], ["temperature_c", 0.0]]


def test_a15_of_a_broken_card_only_what_can_be_is_read(run):
    ((_, sample),) = run("looks(0)", "broken-card")
    assert sample["temperature_c"] is sample["power_w"] is sample["power_instant_w"] is None
    told = {name for name, _ in sample["rejected"]}
    assert told == {"temperature_c", "power_w", "power_instant_w"}
    assert (sample["sm_clock_mhz"], sample["utilization_pct"]) == (210.0, 99.0)


def test_a17_a_laptop_without_limit_and_fan_says_so(run):
    ((info, sample),) = run("looks(0)", "laptop")
    assert (info["power_limit_w"], sample["power_limit_w"]) == (None, None)
    assert (info["fan_max_pct"], sample["fan_pct"]) == (None, None)
    assert {"power_limit_w", "fan_pct"} <= set(info["missing"])
    assert sample["power_w"] == 148.7


def test_a18_a_constant_is_no_memory_temperature(run):
    found = run(
        "looks(0, 1, 2)", "one-card", "card 1-2 like rtx-5090",
        "card 0 field:82 0", "card 1 field:82 127", "card 2 field:82 255",
    )  # fmt: skip
    for info, sample in found:
        assert sample["memory_temperature_c"] is None
        assert info["missing"]["memory_temperature_c"] == "not exposed by the driver"
        assert sample["rejected"] == []  # and it is not asked for again


def test_a18_a_memory_temperature_comes_from_the_driver(run):
    ((_, sample),) = run("looks(0)", "superchip")
    assert sample["memory_temperature_c"] == 63.0


def test_a19_a_margin_is_never_a_temperature_and_is_read_where_there_is_no_limit(run):
    (info, sample), *_ = run("looks(0)", "eight-cards")
    assert info["temperature_limit_c"] is None
    assert 26.0 <= sample["temperature_margin_c"] <= 54.0
    (other, reading), *_ = run("looks(0)", "one-card", "card 0 nvmlDeviceGetMarginTemperature 20")
    assert (other["temperature_limit_c"], reading["temperature_margin_c"]) == (90.0, None)


def test_a19_a_margin_below_0_is_kept_and_a_driver_without_it_says_so(run):
    ((_, sample),) = run("looks(0)", "eight-cards", "card 0 nvmlDeviceGetMarginTemperature -3")
    assert sample["temperature_margin_c"] == -3.0
    ((info, _),) = run("looks(0)", "eight-cards", "without nvmlDeviceGetMarginTemperature")
    assert info["missing"]["temperature_margin_c"].startswith("driver too old")


def test_a20_a21_the_link_is_what_it_is_now_beside_its_maximum(run):
    (_, idle), (flapping, slow), (_, narrow) = run("looks(0, 1, 2)", "link-flaps", "now 0")
    assert (idle["pcie_gen"], slow["pcie_gen"], narrow["pcie_width"]) == (1, 2, 8)
    assert (flapping["pcie_gen_max"], flapping["pcie_width_max"]) == (5, 16)


def test_a23_what_was_set_on_the_card_is_in_its_facts(run):
    (first, _), (second, _), (third, _) = run("looks(0, 1, 2)", "locked-clocks")
    assert first["application_clock_mhz"] == 1200.0
    assert first["application_clock_default_mhz"] == 1980.0
    assert first["sm_clock_is_held"] is True
    assert (second["power_limit_w"], second["power_limit_default_w"]) == (400.0, 700.0)
    assert (second["persistence"], third["persistence"]) == (True, False)
    assert (third["ecc_is_on"], third["vbios"]) == (True, "96.00.89.00.01")
    assert (third["driver_version"], third["cuda_version"]) == ("580.95.05", "13.0")
    assert third["compute_capability"] == "9.0"


def test_c10_functions_that_an_old_driver_lacks_are_unsupported_fields(run):
    ((info, sample),) = run("looks(0)", "old-driver")
    assert (sample["memory_used_bytes"], sample["fan_pct"]) == (9216 * 1024 * 1024, 58.0)
    assert info["missing"]["temperature_margin_c"] != ""
    assert (info["pcie_width_max"], sample["pcie_width"]) == (16, 8)


def test_c10_bindings_that_lack_a_function_are_like_a_driver_that_does(run):
    ((info, sample),) = run(
        """
import pynvml
del pynvml.nvmlDeviceGetCurrentClocksEventReasons
del pynvml.nvmlDeviceGetPerformanceState
looks(0)
""",
        "one-card",
        "card 0 nvmlDeviceGetCurrentClocksThrottleReasons 0x4",
    )
    assert sample["throttle_reasons"] == ["sw_power_cap"]
    assert info["missing"]["pstate"].startswith("driver too old")


def test_g1_a_card_under_wsl_is_read_without_utilization_limit_and_fan(run):
    ((info, sample),) = run("looks(0)", "wsl")
    for name in ("utilization_pct", "power_limit_w", "fan_pct", "throttle_reasons", "energy_j"):
        assert sample[name] is None
        assert info["missing"][name] == "not supported by this card or driver"
    assert sample["power_w"] > 0
    assert sample["temperature_c"] > 0
