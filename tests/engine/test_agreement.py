"""nvitop and gpustat print what `heatsoak devices` prints: the emulator's own test.

Three programs that know nothing of each other read the same NVML; where they agree, the emulator
answers as NVML does, and heatsoak reads it as others do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

MIB = 1024 * 1024
STILL = "now 600"
"""Time stands still, so that three processes one after another see the same instant."""

NVITOP = """
import json, sys
from nvitop import Device
from nvitop.cli import main

def number(value):
    return None if value == "N/A" else value

rows = []
for device in Device.all():
    for one in [device, *device.mig_devices()]:
        rows.append({
            "uuid": one.uuid(),
            "card": device.uuid(),
            "name": one.name(),
            "power_mw": number(one.power_usage()),
            "temperature_c": number(one.temperature()),
            "used_bytes": number(one.memory_used()),
            "total_bytes": number(one.memory_total()),
            "utilization_pct": number(one.gpu_utilization()),
        })
print(json.dumps(rows), flush=True)
sys.argv = ["nvitop", "--once", "--ascii"]
sys.exit(main())
"""

SCENARIOS = [
    "eight-cards",
    "mixed-cards",
    "mig",
    "gb10",
    "wsl",
    "laptop",
    "old-driver",
    "jetson",
    "superchip",
    "four-digit-watts",
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_three_programs_print_the_same(nvml, scenario):
    nvml.play(scenario, STILL)
    devices = {
        device["uuid"]: device
        for device in json.loads(_output(nvml.heatsoak("devices", "--json")))["devices"]
        if device["kind"] == "nvidia"
    }
    rows, _, screen = _output(nvml.call(sys.executable, "-c", NVITOP)).partition("\n")
    nvitop = json.loads(rows)
    gpustat = str(Path(sys.executable).with_name("gpustat"))
    gpus = json.loads(_output(nvml.call(gpustat, "--json")))["gpus"]
    assert {row["uuid"] for row in nvitop} == set(devices)
    assert {row["uuid"] for row in gpus} <= set(devices)
    assert gpus
    cards = {row["uuid"]: row for row in nvitop}
    for row in nvitop:
        device, reading = devices[row["uuid"]], devices[row["uuid"]]["reading"]
        assert row["name"] == device["name"]
        # A slice has no power or heat of its own: heatsoak shows its card's, and says so.
        assert (device["mig_parent_uuid"] or row["uuid"]) == row["card"]
        card = cards[row["card"]]
        if row is card:
            assert f" {_watts(reading['power_w'])} / {_watts(device['power_limit_w'])} " in screen
        assert _same(card["power_mw"], reading["power_w"], 1000)
        assert _same(card["temperature_c"], reading["temperature_c"])
        assert _same(row["utilization_pct"], reading["utilization_pct"])
        assert row["total_bytes"] == device["memory_total_bytes"]
        assert _near(row["used_bytes"], reading["memory_used_bytes"], scenario)
    for row in gpus:
        device, reading = devices[row["uuid"]], devices[row["uuid"]]["reading"]
        assert row["name"] == device["name"]
        assert row["index"] == device["index"]
        assert _same(row["power.draw"], _floor(reading["power_w"]))
        assert _same(row["enforced.power.limit"], _floor(device["power_limit_w"]))
        assert _same(row["temperature.gpu"], reading["temperature_c"])
        assert _same(row["utilization.gpu"], reading["utilization_pct"])
        if row["memory.total"] is not None:
            assert row["memory.total"] == device["memory_total_bytes"] // MIB
            assert row["memory.used"] == reading["memory_used_bytes"] // MIB


def _output(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def _watts(value):
    """Power as nvitop's screen has it."""
    return "N/A" if value is None else f"{round(value)}W"


def _floor(value):
    return None if value is None else int(value)


def _same(theirs, ours, factor=1):
    return (theirs is None) == (ours is None) and (ours is None or theirs == round(ours * factor))


def _near(theirs, ours, scenario):
    """Whether memory in use is the same; what the host uses of its own moves a little."""
    if scenario in ("gb10", "jetson"):
        return abs(theirs - ours) < 0.1 * theirs + 256 * MIB
    return theirs == ours
