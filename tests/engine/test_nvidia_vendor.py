"""NVIDIA cards through the real pynvml, on an emulated libnvidia-ml.so.1 in a child process."""

from __future__ import annotations

import pytest

from heatsoak.telemetry.nvml.reasons import decode_reasons

MIB = 1024 * 1024

RTX_5090 = """
card {n} name NVIDIA GeForce RTX 5090
card {n} uuid GPU-5090{n}aaa-0000-1111-2222-333333333333
card {n} bus 00000000:0{n}:00.0
card {n} nvmlDeviceGetPowerUsage 431250
card {n} nvmlDeviceGetTotalEnergyConsumption 9876543210
card {n} nvmlDeviceGetTemperature:0 71
card {n} nvmlDeviceGetTemperatureThreshold:1 92
card {n} nvmlDeviceGetTemperatureThreshold:3 90
card {n} nvmlDeviceGetClockInfo:1 2407
card {n} nvmlDeviceGetClockInfo:2 13801
card {n} nvmlDeviceGetMaxClockInfo:1 3090
card {n} nvmlDeviceGetUtilizationRates 99
card {n} nvmlDeviceGetMemoryInfo:0 34190917632
card {n} nvmlDeviceGetMemoryInfo:1 21000000000
card {n} nvmlDeviceGetMemoryInfo_v2:0 34190917632
card {n} nvmlDeviceGetMemoryInfo_v2:1 20000000000
card {n} nvmlDeviceGetNumFans 2
card {n} nvmlDeviceGetFanSpeed 54
card {n} nvmlDeviceGetFanSpeed_v2:0 54
card {n} nvmlDeviceGetFanSpeed_v2:1 61
card {n} nvmlDeviceGetMinMaxFanSpeed:0 30
card {n} nvmlDeviceGetMinMaxFanSpeed:1 100
card {n} nvmlDeviceGetEnforcedPowerLimit 575000
card {n} nvmlDeviceGetPowerManagementDefaultLimit 600000
card {n} nvmlDeviceGetCurrentClocksEventReasons 0x4
card {n} nvmlDeviceGetCurrentClocksThrottleReasons 0x4
card {n} nvmlDeviceGetCurrPcieLinkGeneration 5
card {n} nvmlDeviceGetCurrPcieLinkWidth 16
card {n} nvmlDeviceGetMaxPcieLinkGeneration 5
card {n} nvmlDeviceGetMaxPcieLinkWidth 16
card {n} nvmlDeviceGetPerformanceState 1
"""

PRELUDE = """
import json, os, sys, threading, time
from dataclasses import asdict
from heatsoak.errors import HeatsoakError
from heatsoak.telemetry import discovery
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.vendors.nvidia import NvidiaDevice

def scenario(text):
    path = os.environ["NVML_EMULATOR_SCENARIO"]
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)

def refusal(spec):
    try:
        discovery.open_devices(spec)
    except HeatsoakError as error:
        return [error.exit_code, str(error)]
"""


@pytest.fixture
def emulator(nvml):
    """Runs code behind the prelude in a process whose NVML answers by a scenario."""

    class Emulator:
        def run(self, code: str, scenario: str) -> object:
            return nvml.run(PRELUDE + code, scenario)

    return Emulator()


def without(scenario: str, *functions: str) -> str:
    return "\n".join(
        line
        for line in scenario.splitlines()
        if not any(line.split()[2:3] == [name] for name in functions)
    )


def test_a_card_is_described_and_read_in_our_units(emulator):
    found = emulator.run(
        """
info = discovery.discover()[0]
device = discovery.open_devices("0")[0]
sample = device.read(12.5)
device.close()
device.close()
print(json.dumps([asdict(info), asdict(sample), discovery.nvidia_problem(),
                  discovery.best_device()]))
""",
        "driver 580.95.05\n" + RTX_5090.format(n=0),
    )
    info, sample, problem, best = found
    missing = info.pop("missing")
    assert set(missing) == {"power_instant_w", "memory_temperature_c", "temperature_margin_c"}
    assert missing["temperature_margin_c"] == "the limit itself is known"
    del info["numa_node"]  # of whatever is in that slot here
    assert info == {
        "device_id": "0",
        "uuid": "GPU-50900aaa-0000-1111-2222-333333333333",
        "name": "NVIDIA GeForce RTX 5090",
        "kind": "nvidia",
        "provenance": "measured",
        "card": "rtx-5090",
        "index": 0,
        "memory_total_bytes": 32607 * MIB,
        "cores": None,
        "power_limit_w": 575.0,
        "power_limit_default_w": 600.0,
        "temperature_limit_c": 90.0,
        "fan_max_pct": 100.0,
        "sm_clock_max_mhz": 3090.0,
        "pci_bus_id": "00000000:00:00.0",
        "pcie_gen_max": 5,
        "pcie_width_max": 16,
        "driver_version": "580.95.05",
        "cuda_version": None,
        "power_method": None,
        "power_scope": "gpu",
        "memory_kind": "framebuffer",
        "integrated": False,
        "compute_capability": None,
        "vbios": None,
        "ecc_is_on": None,
        "persistence": None,
        "application_clock_mhz": None,
        "application_clock_default_mhz": None,
        "sm_clock_is_held": False,
        "mig_mode": None,
        "mig_parent_uuid": None,
        "mig_profile": None,
    }
    assert sample == {
        "t_s": 12.5,
        "device_id": "0",
        "power_w": 431.25,
        "energy_j": 9876543.21,
        "temperature_c": 71.0,
        "sm_clock_mhz": 2407.0,
        "mem_clock_mhz": 13801.0,
        "utilization_pct": 99.0,
        "memory_used_bytes": 20_000_000_000,
        "fan_pct": 61.0,
        "power_limit_w": 575.0,
        "throttle_reasons": ["sw_power_cap"],
        "pcie_gen": 5,
        "pcie_width": 16,
        "pstate": 1,
        "power_instant_w": None,
        "memory_temperature_c": None,
        "temperature_margin_c": None,
        "rejected": [],
    }
    assert problem is None
    assert best == "0"


def test_what_a_card_does_not_support_is_none_for_good_with_its_reason(emulator):
    passive = without(
        RTX_5090.format(n=0),
        "nvmlDeviceGetNumFans",
        "nvmlDeviceGetFanSpeed",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetEnforcedPowerLimit",
    )
    info, sample = emulator.run(
        """
device = NvidiaDevice(0)
print(json.dumps([asdict(device.info), asdict(device.read(1.0))]))
""",
        passive + "\nfail 0 nvmlDeviceGetCurrPcieLinkWidth 4\n",
    )
    newer = {"power_instant_w", "memory_temperature_c", "temperature_margin_c"}
    assert set(info["missing"]) - newer == {"fan_pct", "energy_j", "power_limit_w", "pcie_width"}
    assert info["missing"]["energy_j"] == "not supported by this card or driver"
    assert info["missing"]["pcie_width"].startswith("no permission")
    assert info["fan_max_pct"] is None
    assert info["power_limit_w"] is None
    assert {name for name, value in sample.items() if value is None} == set(info["missing"])


def test_an_old_driver_without_newer_functions_is_read_through_its_older_ones(emulator):
    info, sample = emulator.run(
        """
device = NvidiaDevice(0)
print(json.dumps([asdict(device.info), asdict(device.read(1.0))]))
""",
        RTX_5090.format(n=0)
        + """
without nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetCurrentClocksEventReasons
without nvmlDeviceGetNumFans nvmlDeviceGetMinMaxFanSpeed nvmlDeviceGetTotalEnergyConsumption
""",
    )
    assert info["missing"]["energy_j"] == "driver too old: it has no such function"
    assert not {"memory_used_bytes", "throttle_reasons", "fan_pct"} & set(info["missing"])
    assert sample["memory_used_bytes"] == 21_000_000_000
    assert sample["throttle_reasons"] == ["sw_power_cap"]
    assert sample["fan_pct"] == 54.0
    assert sample["energy_j"] is None


def test_sentinels_are_absent_and_a_margin_is_no_temperature_limit(emulator):
    scenario = without(
        RTX_5090.format(n=0),
        "nvmlDeviceGetTemperatureThreshold:1",
        "nvmlDeviceGetTemperatureThreshold:3",
        "nvmlDeviceGetPerformanceState",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetTemperature:0",
    )
    scenario += """
card 0 nvmlDeviceGetTemperatureThreshold:1 0xfffffffe
card 0 nvmlDeviceGetPerformanceState 32
card 0 nvmlDeviceGetPowerUsage 0xffffffff
"""
    found = emulator.run(
        f"""
base = {scenario!r}
device = NvidiaDevice(0)
seen = []
for raw in (0, 71, 126, 127, 255, 0x7fffffff, 0xffffffff):
    scenario(base + f"card 0 nvmlDeviceGetTemperature:0 {{raw}}\\n")
    seen.append(device.read(1.0).temperature_c)
sample = device.read(1.0)
print(json.dumps([seen, sample.pstate, sample.power_w, device.info.temperature_limit_c]))
""",
        scenario + "card 0 nvmlDeviceGetTemperature:0 71\n",
    )
    assert found == [[None, 71.0, 126.0, None, None, None, None], None, None, None]


def test_a_field_that_fails_once_is_none_once(emulator):
    base = RTX_5090.format(n=0)
    found = emulator.run(
        f"""
base = {base!r}
device = NvidiaDevice(0)
scenario(base + "fail 0 nvmlDeviceGetPowerUsage 999\\n")
first = device.read(1.0)
scenario(base)
second = device.read(2.0)
scenario(base + "fail 0 * 10\\n")
try:
    device.read(3.0)
    third = None
except DeviceReadError as error:
    third = str(error)
print(json.dumps([first.power_w, first.temperature_c, second.power_w, third]))
""",
        base,
    )
    assert found == [None, 71.0, 431.25, "the driver did not answer in time"]


@pytest.mark.parametrize("code", [15, 16, 28, 18])
def test_a_card_that_falls_off_the_bus_is_lost_and_its_neighbour_is_not(emulator, code):
    base = RTX_5090.format(n=0) + RTX_5090.format(n=1)
    found = emulator.run(
        f"""
first, second = discovery.open_devices("0,1")
scenario({base!r} + "fail 0 * {code}\\n")
try:
    first.read(1.0)
    text = None
except DeviceLostError as error:
    text = str(error)
print(json.dumps([text, second.read(1.0).power_w]))
""",
        base,
    )
    assert found[0]
    assert "NVML" not in found[0]
    assert found[1] == 431.25


def test_a_card_lost_after_a_time_is_noticed(emulator):
    found = emulator.run(
        """
device = NvidiaDevice(0)
end = time.monotonic() + 20
readings = 0
while time.monotonic() < end:
    try:
        device.read(1.0)
        readings += 1
    except DeviceLostError as error:
        text = str(error)
        break
print(json.dumps([readings, text]))
""",
        RTX_5090.format(n=0) + "fail 0 * 15 0.3\n",
    )
    assert found[0] > 0
    assert "lost" in found[1]


def test_a_card_that_is_lost_from_the_start_is_left_out_and_refused(emulator):
    found = emulator.run(
        """
print(json.dumps([[info.device_id for info in discovery.discover()], refusal("0"),
                  refusal("all"), discovery.best_device()]))
""",
        RTX_5090.format(n=0) + RTX_5090.format(n=1) + "fail 0 * 15\n",
    )
    ids, one, every, best = found
    assert ids == ["1", "cpu"]
    assert one[0] == 5
    assert "device 0 cannot be read: the GPU is lost" in one[1]
    assert every[0] == 5
    assert every[1].startswith(one[1])
    assert best == "1"


def test_a_card_that_hangs_in_nvml_delays_no_other_and_lets_the_process_end(emulator):
    base = RTX_5090.format(n=0) + RTX_5090.format(n=1)
    found = emulator.run(
        f"""
first, second = discovery.open_devices("0,1")
scenario({base!r} + "hang 0 nvmlDeviceGetPowerUsage\\n")
thread = threading.Thread(target=first.read, args=(1.0,), daemon=True)
thread.start()
watts = [second.read(float(k)).power_w for k in range(50)]
first.close()
second.close()
print(json.dumps([thread.is_alive(), set(watts) == {{431.25}}]))
""",
        base,
    )
    assert found == [True, True]


def test_devices_are_named_by_index_uuid_and_unique_prefix(emulator):
    found = emulator.run(
        """
def names(spec):
    devices = discovery.open_devices(spec)
    ids = [device.info.device_id for device in devices]
    for device in devices:
        device.close()
    return ids
print(json.dumps({
    "index": names("1,0"),
    "all": names("all"),
    "uuid": names("GPU-50901aaa-0000-1111-2222-333333333333"),
    "prefix": names("GPU-50900,cpu"),
    "mixed": names("synthetic:rtx-5090,1"),
    "ambiguous": refusal("GPU-5090"),
    "unknown_uuid": refusal("GPU-7"),
    "unknown_index": refusal("2"),
    "twice": refusal("0,GPU-50900"),
}))
""",
        RTX_5090.format(n=0) + RTX_5090.format(n=1),
    )
    assert found["index"] == ["1", "0"]
    assert found["all"] == ["0", "1"]
    assert found["uuid"] == ["1"]
    assert found["prefix"] == ["0", "cpu"]
    assert found["mixed"] == ["synthetic-0", "1"]
    for key in ("ambiguous", "unknown_uuid", "unknown_index", "twice"):
        code, text = found[key]
        assert code == 2, key
        assert "\n" not in text
    assert "GPU-50901aaa" in found["ambiguous"][1]
    assert "1 (NVIDIA GeForce RTX 5090" in found["unknown_index"][1]


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("init 9\n", "kernel driver is not loaded"),
        ("init 18\n", "different versions"),
        ("init 4\n", "no permission"),
        ("init 999\n", "unknown error"),
        ("driver 580.95.05\n", "finds no card"),
    ],
)
def test_a_driver_that_does_not_work_is_one_sentence_and_no_error(emulator, scenario, words):
    problem, ids, one = emulator.run(
        """
print(json.dumps([discovery.nvidia_problem(),
                  [info.device_id for info in discovery.discover()], refusal("0")]))
""",
        scenario,
    )
    assert words in problem
    assert ids == ["cpu"]
    assert one[0] == 5
    assert words in one[1]


def test_a_library_too_old_to_start_is_one_sentence(emulator):
    problem = emulator.run(
        "print(json.dumps(discovery.nvidia_problem()))", "without nvmlInitWithFlags\n"
    )
    assert "too old" in problem


def test_throttle_reasons_are_bits_unknown_ones_hex_and_states_left_out():
    assert decode_reasons(0) == ()
    assert decode_reasons(0x1 | 0x2 | 0x100) == ()
    assert decode_reasons(0x4 | 0x20 | 0x1) == ("sw_power_cap", "sw_thermal_slowdown")
    assert decode_reasons(0x8 | 0x10 | 0x40 | 0x80) == (
        "hw_slowdown",
        "sync_boost",
        "hw_thermal_slowdown",
        "hw_power_brake_slowdown",
    )
    assert decode_reasons(0x4 | 1 << 33) == ("sw_power_cap", "0x200000000")
    assert decode_reasons(0x200 | 0x400) == ("board_limit", "reliability")
