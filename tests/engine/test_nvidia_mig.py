"""MIG devices: their own memory, their card's power and heat (cases B2, B3)."""

from __future__ import annotations

import pytest

PRELUDE = """
import json
from dataclasses import asdict
from heatsoak.errors import DeviceUnavailableError
from heatsoak.telemetry.vendors import nvidia

def refusal(uuid):
    try:
        nvidia.open_mig(uuid)
    except DeviceUnavailableError as error:
        return str(error)
"""
MIB = 1024 * 1024
CARD = "GPU-a1000000-0000-4000-8000-000000000000"
FOUR, THREE = "MIG-4a000000-0000-5000-8000-000000000000", "MIG-3a000000-0000-5000-8000-000000000000"


@pytest.fixture
def run(nvml):
    """run(code, *statements): what the code prints on an A100 in two parts, beside a whole one."""

    def play(code, *statements):
        nvml.play("mig", *statements)
        return nvml.run(PRELUDE + code)

    return play


def test_b3_a_part_has_its_own_memory_and_its_cards_power(run):
    card, part, sample = run(
        f"""
card = nvidia.NvidiaDevice(0).info
part = nvidia.open_mig("{THREE}")
print(json.dumps([asdict(card), asdict(part.info), asdict(part.read(1.0))]))
"""
    )
    assert (part["device_id"], part["uuid"], part["index"]) == ("0:1", THREE, 0)
    assert part["name"] == "NVIDIA A100-SXM4-80GB MIG 3g.40gb"
    assert (part["mig_profile"], part["mig_parent_uuid"]) == ("3g.40gb", CARD)
    assert part["memory_total_bytes"] == 40192 * MIB
    assert part["card"] is None
    assert (card["mig_mode"], card["mig_parent_uuid"]) == (True, None)
    assert sample["memory_used_bytes"] == 10240 * MIB
    assert (sample["device_id"], sample["power_w"], sample["temperature_c"]) == ("0:1", 287.654, 56)
    assert sample["utilization_pct"] is None
    assert "part of a card" in part["missing"]["utilization_pct"]


def test_b3_parts_are_found_behind_their_card(run):
    found = run(
        """
print(json.dumps([[i.device_id, i.uuid, i.mig_mode] for i in nvidia.discover()]))
"""
    )
    assert found == [
        ["0", CARD, True],
        ["0:0", FOUR, True],
        ["0:1", THREE, True],
        ["1", CARD[:-1] + "1", False],
    ]


def test_b2_a_part_is_opened_by_either_form_of_its_uuid_and_by_no_other(run):
    found = run(
        f"""
print(json.dumps([nvidia.open_mig("{FOUR}").info.uuid,
                  nvidia.open_mig("MIG-{CARD}/2/0").info.uuid,
                  refusal("MIG-{CARD}/9/0"), refusal("{CARD}")]))
"""
    )
    assert found[:2] == [FOUR, THREE]
    assert found[2] == f"device MIG-{CARD}/9/0 cannot be read: no card has it"
    assert "no card has it" in found[3]


def test_b3_a_sibling_is_busy_by_its_processes_or_by_its_memory(run):
    idle = "card 0.0 nvmlDeviceGetMemoryInfo_v2:1 12MiB"
    code = f'print(json.dumps(nvidia.open_mig("{THREE}").busy_siblings()))'
    assert run(code) == [FOUR]  # 20 GiB in use, whoever it is
    assert run(code, idle) == []
    assert run(code, idle, "process 0.0 compute 4711 10MiB") == [FOUR]


def test_b3_a_whole_card_has_no_siblings(run):
    assert run("print(json.dumps(nvidia.NvidiaDevice(1).busy_siblings()))") == []
