"""The emulated NVML itself: declared as pynvml has it, and doing what its scenarios say."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pynvml  # noqa: TID251 - what the emulator is compared with
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "nvml_emulator"

STRUCTURES = {
    "memory_t": pynvml.c_nvmlMemory_t,
    "memory_v2_t": pynvml.c_nvmlMemory_v2_t,
    "bar1_memory_t": pynvml.c_nvmlBAR1Memory_t,
    "utilization_t": pynvml.c_nvmlUtilization_t,
    "pci_v2_t": pynvml.nvmlPciInfo_v2_t,
    "pci_t": pynvml.nvmlPciInfo_t,
    "temperature_t": pynvml.c_nvmlTemperature_v1_t,
    "margin_temperature_t": pynvml.c_nvmlMarginTemperature_v1_t,
    "thermal_sensor_t": pynvml.c_nvmlGpuThermalSensor_t,
    "thermal_settings_t": pynvml.c_nvmlGpuThermalSettings_t,
    "fan_speed_t": pynvml.c_nvmlFanSpeedInfo_t,
    "value_union_t": pynvml.c_nvmlValue_t,
    "field_value_t": pynvml.c_nvmlFieldValue_t,
    "c2c_mode_t": pynvml.c_nvmlC2cModeInfo_v1_t,
    "violation_time_t": pynvml.c_nvmlViolationTime_t,
    "row_remapper_histogram_t": pynvml.c_nvmlRowRemapperHistogramValues,
    "attributes_t": pynvml.c_nvmlDeviceAttributes,
    "process_t": pynvml.c_nvmlProcessInfo_v3_t,
    "process_utilization_t": pynvml.c_nvmlProcessUtilizationSample_t,
    "accounting_stats_t": pynvml.c_nvmlAccountingStats_t,
    "event_data_t": pynvml.c_nvmlEventData_t,
}
VERSIONS = {
    ("memory_v2_t", 2): pynvml.nvmlMemory_v2,
    ("temperature_t", 1): pynvml.nvmlTemperature_v1,
    ("margin_temperature_t", 1): pynvml.nvmlMarginTemperature_v1,
    ("fan_speed_t", 1): pynvml.nvmlFanSpeedInfo_v1,
}

PRELUDE = """
import json, os, threading, time
import pynvml as nvml

def tell(*statements):
    path = os.environ["NVML_EMULATOR_SCENARIO"]
    with open(path + ".new", "w") as file:
        file.write("\\n".join(statements) + "\\n")
    os.replace(path + ".new", path)

def ask(function, *arguments):
    try:
        return getattr(nvml, function)(*arguments)
    except nvml.NVMLError as error:
        return -error.value

nvml.nvmlInit()
card = nvml.nvmlDeviceGetHandleByIndex
"""


@pytest.fixture
def python(nvml):
    def run(code: str, scenario: str):
        return nvml.run(PRELUDE + code, scenario)

    return run


def test_structures_have_the_sizes_and_offsets_of_pynvml(nvml_libraries):
    checks = ['#include "nvml.h"', "#include <stddef.h>"]
    for ours, theirs in STRUCTURES.items():
        checks.append(f'_Static_assert(sizeof({ours}) == {ctypes.sizeof(theirs)}, "size");')
        checks += [
            f'_Static_assert(offsetof({ours}, {name}) == {getattr(theirs, name).offset}, "{name}");'
            for name, *_ in theirs._fields_
        ]
    checks += [
        f'_Static_assert(VERSION({ours}, {number}) == {version}, "version");'
        for (ours, number), version in VERSIONS.items()
    ]
    done = subprocess.run(
        [*nvml_libraries.compiler, "-std=c11", "-fsyntax-only", "-I", str(FOLDER), "-x", "c", "-"],
        input="\n".join(checks),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    declared = re.findall(r"^\} (\w+);", (FOLDER / "nvml.h").read_text(), re.MULTILINE)
    assert set(declared) - {"card_t", "process_v1_t"} == set(STRUCTURES)


def test_it_compiles_without_a_warning(nvml_libraries):
    nvml_libraries.library()
    assert nvml_libraries.warnings == ""


MOVING = {
    "7": {0: 7, 100: 7},
    "0xffffffffffffffff": {1: 0xFFFFFFFFFFFFFFFF},
    "32607MiB": {1: 32607 * 1024 * 1024},
    "ramp 10 30 4": {0: 10, 1: 15, 4: 30, 9: 30},
    "approach 1000 2000 10": {0: 1000, 10: 1632, 1000: 2000},
    "sine 1000 100 8": {0: 1000, 2: 1100, 6: 900},
    "steps 0:5 2:8 4:1": {0: 5, 1.9: 5, 2: 8, 3.9: 8, 5: 1},
    "100 + ramp 0 10 10 + steps 0:0 5:1000": {0: 100, 4: 104, 5: 1105},
    "ramp 0 1000 1000 | every 10": {9.9: 0, 10: 10, 25: 20},
    "steps 0:0 10:100 | average 4": {10: 0, 12: 50, 14: 100},
    "ramp 0 100 100 | freeze 30": {20: 20, 30: 30, 90: 30},
    "50 + ramp 0 100 100 | restart 30": {20: 70, 30: 0, 40: 10},
    "ramp 0 100 100 | back 30 25": {29: 29, 30: 5, 40: 15},
    "ramp 0 100 100 | round 15": {7: 0, 8: 15, 44: 45},
    "ramp 0 100 100 | clamp 20 60": {0: 20, 40: 40, 90: 60},
    "integral field:1003": {0: 0, 4: 80, 5: 110},
    "100 + integral field:1003 | restart 4": {4: 0, 5: 30},
}


def test_values_move_over_time(python):
    ids = {1000 + n: value for n, value in enumerate(MOVING)}
    scenario = "card 0 name A card\n" + "\n".join(
        f"card 0 field:{number} {value}" for number, value in ids.items()
    )
    instants = sorted({t for expected in MOVING.values() for t in expected})
    found = python(
        f"""
answers = {{}}
for t in {instants}:
    tell({scenario!r}, f"now {{t}}")
    fields = nvml.nvmlDeviceGetFieldValues(card(0), {list(ids)})
    answers[t] = [field.value.ullVal for field in fields]
print(json.dumps(answers))
""",
        scenario,
    )
    for number, (value, expected) in enumerate(MOVING.items()):
        assert {t: found[str(t)][number] for t in expected} == expected, value


def test_noise_has_its_width_and_is_the_same_for_all_who_ask(python):
    first, second = (
        python(
            """
values = []
for t in range(400):
    tell("card 0-1 name A card", "card 0-1 nvmlDeviceGetPowerUsage 5000 + noise 100", f"now {t}")
    values.append([nvml.nvmlDeviceGetPowerUsage(card(n)) for n in (0, 1)])
print(json.dumps(values))
""",
            "card 0-1 name A card\n",
        )
        for _ in range(2)
    )
    assert first == second
    ours = [one for one, _ in first]
    mean = sum(ours) / len(ours)
    assert abs(mean - 5000) < 20
    assert 80 < (sum((one - mean) ** 2 for one in ours) / len(ours)) ** 0.5 < 120
    assert any(one != other for one, other in first)


def test_an_integral_goes_on_when_the_scenario_changes(python):
    found = python(
        """
def at(t, power):
    tell("card 0 name A card", f"card 0 nvmlDeviceGetPowerUsage {power}",
         "card 0 nvmlDeviceGetTotalEnergyConsumption integral nvmlDeviceGetPowerUsage", f"now {t}")
    return nvml.nvmlDeviceGetTotalEnergyConsumption(card(0))
print(json.dumps([at(10, 500), at(11, 100), at(12, 100)]))
""",
        "card 0 name A card\n",
    )
    assert found == [5000, 5100, 5200]


def test_failures_come_and_go_and_the_last_statement_counts(python):
    base = "card 0-1 like rtx-5090\ncard 0 nvmlDeviceGetPowerUsage 1000\n"
    found = python(
        f"""
def at(t, *statements):
    tell({base!r}, *statements, f"now {{t}}")
    return [ask("nvmlDeviceGetPowerUsage", cards[0]), ask("nvmlDeviceGetNumFans", cards[0]),
            ask("nvmlDeviceGetNumFans", cards[1])]
tell({base!r})
cards = [card(0), card(1)]
print(json.dumps([
    at(0, "fail 0 nvmlDeviceGetPowerUsage NO_PERMISSION 5 8"),
    at(5, "fail 0 nvmlDeviceGetPowerUsage NO_PERMISSION 5 8"),
    at(8, "fail 0 nvmlDeviceGetPowerUsage NO_PERMISSION 5 8"),
    at(6, "fail 0 * GPU_IS_LOST 5", "fail 0 * RESET_REQUIRED 7"),
    at(7, "fail 0 * GPU_IS_LOST 5", "fail 0 * RESET_REQUIRED 7"),
    at(1, "fail * * 999"),
    at(1, "card 0 nvmlDeviceGetPowerUsage -"),
    at(1, "card * nvmlDeviceGetNumFans 7"),
]))
""",
        base,
    )
    assert found == [
        [1000, 2, 2],
        [-4, 2, 2],
        [1000, 2, 2],
        [-15, -15, 2],
        [-16, -16, 2],
        [-999, -999, -999],
        [-3, 2, 2],
        [1000, 7, 7],
    ]


def test_an_argument_and_a_field_fail_alone(python):
    found = python(
        """
first = card(0)
fields = nvml.nvmlDeviceGetFieldValues(first, [185, 186, 82])
print(json.dumps([
    ask("nvmlDeviceGetTemperatureThreshold", first, 1),
    ask("nvmlDeviceGetTemperatureThreshold", first, 3),
    [field.nvmlReturn for field in fields],
]))
""",
        "card 0 like rtx-5090\nfail 0 nvmlDeviceGetTemperatureThreshold:3 4\nfail 0 field:186 10\n",
    )
    assert found == [92, -4, [0, 10, 3]]


def test_a_call_hangs_for_ever_and_another_is_slow(python):
    found = python(
        """
thread = threading.Thread(target=nvml.nvmlDeviceGetPowerUsage, args=(card(0),), daemon=True)
thread.start()
begin = time.monotonic()
nvml.nvmlDeviceGetPowerUsage(card(1))
print(json.dumps([time.monotonic() - begin, thread.is_alive()]), flush=True)
os._exit(0)
""",
        "card 0-1 like rtx-5090\nhang 0 nvmlDeviceGetPowerUsage\n"
        "slow 1 nvmlDeviceGetPowerUsage 0.2\n",
    )
    assert found[0] > 0.19
    assert found[1]


def test_symbols_are_left_out(python):
    found = python(
        """
print(json.dumps([ask("nvmlDeviceGetNumFans", card(0)), ask("nvmlDeviceGetPowerUsage", card(0))]))
""",
        "card 0 name A card\ncard 0 nvmlDeviceGetPowerUsage 5\nwithout nvmlDeviceGetNumFans\n",
    )
    assert found == [-13, 5]


def test_cards_are_found_by_every_name(python):
    found = python(
        """
def index(function, name):
    handle = ask(function, name)
    return handle if isinstance(handle, int) else nvml.nvmlDeviceGetIndex(handle)
print(json.dumps([
    nvml.nvmlDeviceGetCount(),
    index("nvmlDeviceGetHandleByUUID", b"GPU-60000000-0000-4000-8000-000000000001"),
    index("nvmlDeviceGetHandleByUUID", b"GPU-6"),
    index("nvmlDeviceGetHandleBySerial", b"1790324000001"),
    index("nvmlDeviceGetHandleByPciBusId", b"0000:11:00.0"),
    index("nvmlDeviceGetHandleByPciBusId", b"00000000:11:00.0"),
    index("nvmlDeviceGetHandleByIndex", 2),
    nvml.nvmlDeviceGetPciInfo(card(1)).busId,
]))
""",
        "card 0-1 like rtx-pro-6000\n",
    )
    assert found == [2, 1, -6, 1, 1, 1, -2, "00000000:11:00.0"]


def test_mig_devices_belong_to_their_card(nvml):
    nvml.play("mig")
    found = nvml.run(
        PRELUDE
        + """
slice = nvml.nvmlDeviceGetMigDeviceHandleByIndex(card(0), 1)
older = nvml.nvmlDeviceGetHandleByUUID(b"MIG-GPU-a1000000-0000-4000-8000-000000000000/2/0")
parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(slice)
print(json.dumps([
    nvml.nvmlDeviceGetMigMode(card(0)),
    nvml.nvmlDeviceGetMigMode(card(1)),
    nvml.nvmlDeviceGetName(slice),
    nvml.nvmlDeviceGetUUID(older) == nvml.nvmlDeviceGetUUID(slice),
    nvml.nvmlDeviceGetIndex(slice),
    nvml.nvmlDeviceGetIndex(parent),
    nvml.nvmlDeviceIsMigDeviceHandle(slice).value,
    nvml.nvmlDeviceGetAttributes(slice).memorySizeMB,
    ask("nvmlDeviceGetPowerUsage", slice),
    ask("nvmlDeviceGetMigDeviceHandleByIndex", card(0), 2),
    nvml.nvmlDeviceGetPciInfo(slice).busId == nvml.nvmlDeviceGetPciInfo(parent).busId,
]))
"""
    )
    name = "NVIDIA A100-SXM4-80GB MIG 3g.40gb"
    assert found == [[1, 1], [0, 0], name, True, 1, 0, 1, 40192, -3, -6, True]


def test_processes_are_listed_hidden_or_not_supported(python):
    found = python(
        """
def pids(function, handle):
    answer = ask(function, handle)
    return answer if isinstance(answer, int) else [[p.pid, p.usedGpuMemory] for p in answer]
print(json.dumps([
    pids("nvmlDeviceGetComputeRunningProcesses_v3", card(0)),
    pids("nvmlDeviceGetComputeRunningProcesses_v2", card(0)),
    pids("nvmlDeviceGetGraphicsRunningProcesses", card(0)),
    pids("nvmlDeviceGetComputeRunningProcesses", card(1)),
    pids("nvmlDeviceGetComputeRunningProcesses", card(2)),
    [[s.pid, s.smUtil] for s in nvml.nvmlDeviceGetProcessUtilization(card(0), 0)],
    nvml.nvmlDeviceGetAccountingPids(card(0)),
    nvml.nvmlDeviceGetAccountingStats(card(0), 17).maxMemoryUsage,
]))
""",
        """
card 0-2 name A card
card 0 nvmlDeviceGetAccountingBufferSize 4000
process 0 compute 17 1MiB 90
process 0 compute 18 ? 5
process 0 graphics 19 3
card 1 processes listed
""",
    )
    compute = [[17, 1024 * 1024], [18, None]]
    assert found == [
        compute,
        compute,
        [[19, 3]],
        [],
        -3,
        [[17, 90], [18, 5], [19, 0]],
        [17, 18],
        1024 * 1024,
    ]


def test_events_come_once_in_order_to_who_registered(python):
    base = "card 0-1 name A card\ncard 0-1 nvmlDeviceGetSupportedEventTypes 0x8\n"
    found = python(
        f"""
events = nvml.nvmlEventSetCreate()
def wait():
    event = ask("nvmlEventSetWait_v2", events, 0)
    return event if isinstance(event, int) else [event.eventType, event.eventData,
                                                 nvml.nvmlDeviceGetIndex(event.device)]
nvml.nvmlDeviceRegisterEvents(card(0), 8, events)
nvml.nvmlDeviceRegisterEvents(card(1), 8, events)
refused = ask("nvmlDeviceRegisterEvents", card(0), 9, events)
before = wait()
tell({base!r}, "xid 1 79 5", "xid 0 31 4", "event 0 1 0 3", "now 6")
seen = [wait() for _ in range(3)]
tell({base!r}, "now 7", "xid 0 13")
seen.append(wait())
tell({base!r}, "fail 1 * GPU_IS_LOST", "now 7")
seen.append(wait())
print(json.dumps([refused, before, seen]))
""",
        base + "now 0\n",
    )
    assert found == [-3, -10, [[8, 31, 0], [8, 79, 1], -10, [8, 13, 0], -15]]


def test_two_cards_have_answers_in_both_directions(nvml):
    nvml.play("mixed-cards")
    found = nvml.run(
        PRELUDE
        + """
print(json.dumps([[ask("nvmlDeviceGetTopologyCommonAncestor", card(a), card(b))
                   for b in range(3)] for a in range(3)]
                 + [nvml.nvmlDeviceGetP2PStatus(card(2), card(0), 2)]))
"""
    )
    assert found == [[-3, 50, 30], [50, -3, 50], [30, 50, -3], 5]


@pytest.mark.parametrize(
    "statement",
    [
        "carb 0 name X",
        "card 0 nvmlDeviceGetPowerUsage many",
        "card 0 nvmlDeviceGetPowerUsage ramp 1 2",
        "card 0 nvmlDeviceGetPowerUsage 5 | evry 2",
        "fail 0 * LOST",
        "card 0 like no-such-card",
        "init SOMEHOW",
    ],
)
def test_a_statement_that_is_not_understood_ends_the_process_with_its_line(nvml, statement):
    nvml.tell(f"driver 1\n{statement}\n")
    done = nvml.call(
        "python3", "-c", "import ctypes; ctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2()"
    )
    assert done.returncode == -6
    assert "nvml.scenario:2: " in done.stderr


def test_every_scenario_can_be_played(nvml):
    found = nvml.run(
        PRELUDE
        + f"""
from pathlib import Path
found = {{}}
for path in Path({str(FOLDER / "scenarios")!r}).glob("*.scenario"):
    tell(path.read_text())
    count = ask("nvmlDeviceGetCount")
    found[path.stem] = [count, [ask("nvmlDeviceGetName", card(n)) for n in range(count)]]
print(json.dumps(found))
""",
        "card 0 name A card\n",
    )
    assert found["eight-cards"] == [8, ["NVIDIA H100 80GB HBM3"] * 8]
    cut_off = {name for name, (count, _) in found.items() if count < 1}
    assert cut_off == {"container-cut-off", "driver-replaced"}
    assert all(isinstance(name, str) for _, names in found.values() for name in names)
