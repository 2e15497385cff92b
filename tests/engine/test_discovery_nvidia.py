"""Naming NVIDIA devices, on emulated ones (cases B1, B2, B4, B5; hangs of C3)."""

from __future__ import annotations

import json

CODE = """
import json, os
from heatsoak.errors import HeatsoakError
from heatsoak.telemetry.discovery import best_device, open_devices

def opened(spec, environ, **how):
    try:
        devices = open_devices(spec, environ=environ, **how)
    except HeatsoakError as error:
        return [error.exit_code, str(error)]
    for device in devices:
        device.close()
    return [[device.info.device_id, device.info.uuid] for device in devices]

def best(environ):
    try:
        return best_device(environ)
    except HeatsoakError as error:
        return [error.exit_code, str(error)]

asked = json.loads(ASKED)
print(json.dumps([
    best(environ) if spec is None else opened(spec, environ, **how) for spec, environ, how in asked
]))
"""
CARD = "GPU-50900000-0000-4000-8000-00000000000{}"


def ask(nvml, *asked):
    """What each (spec, environ, how) opens: ids and UUIDs, or exit code and sentence."""
    rows = [(spec, *rest, *({}, {})[len(rest) :]) for spec, *rest in asked]
    answers = nvml.run(f"ASKED = {json.dumps(rows)!r}\n" + CODE)
    for answer in answers:
        if isinstance(answer, list) and answer and isinstance(answer[0], int):
            assert "\n" not in answer[1]
    return answers


def ids(answer):
    return [device_id for device_id, _ in answer]


def visible(value, **more):
    return {"CUDA_VISIBLE_DEVICES": value, **more}


def test_b2_cards_by_index_uuid_and_unique_beginning(nvml):
    nvml.tell("card 0-2 like rtx-5090\ncard 2 uuid GPU-77770000-0000-4000-8000-000000000000\n")
    first, last, both, prefix, far, none, two, twice = ask(
        nvml, ["0"], ["2"], ["2,0"], ["GPU-7"], ["7"], ["GPU-9"], ["GPU-5"], [f"1,{CARD.format(1)}"]
    )
    assert first == [["0", CARD.format(0)]]
    assert last == prefix == [["2", "GPU-77770000-0000-4000-8000-000000000000"]]
    assert ids(both) == ["2", "0"]
    assert far[0] == none[0] == two[0] == twice[0] == 2
    assert "there is no device 7; there are: 0 (" in far[1]
    assert f"could be any of {CARD.format(0)}, {CARD.format(1)}; give more of it" in two[1]
    assert "named twice" in twice[1]


def test_b2_slices_by_number_both_forms_of_their_uuid_and_its_beginning(nvml):
    nvml.play("mig")
    old = "MIG-{}/2/0"
    uuid = "MIG-3a000000-0000-5000-8000-000000000000"
    by_number, whole, prefix, read = ask(
        nvml, ["0:1"], [uuid], ["MIG-3a"], ["0", {}, {"is_only_read": True}]
    )
    assert by_number == whole == prefix == [["0:1", uuid]]
    ((_, parent),) = read
    in_old_form, both, unknown = ask(
        nvml, [old.format(parent)], [f"{uuid},MIG-4a"], [old.format("GPU-nowhere")]
    )
    assert in_old_form == by_number
    assert ids(both) == ["0:1", "0:0"]
    assert unknown[0] == 5


def test_b4_a_split_card_is_refused_with_the_names_of_its_slices(nvml):
    nvml.play("mig")
    whole, everything, best = ask(nvml, ["0"], ["all"], [None])
    assert whole[0] == 2
    assert "split into MIG slices" in whole[1]
    assert "0:0 (NVIDIA A100-SXM4-80GB MIG 4g.40gb, MIG-4a" in whole[1]
    assert ids(everything) == ["0:0", "0:1", "1"]
    assert best == "0:0"
    nvml.play("mig", "card 0.0-0.1 name -")
    (empty,) = ask(nvml, ["0"])
    assert "make one, or turn MIG off" in empty[1]


def test_b2_what_the_user_hides_is_neither_chosen_nor_allowed(nvml):
    nvml.tell("card 0-2 like rtx-5090\n")
    hidden = visible("2")
    everything, best, shown, refused, by_uuid, read = ask(
        nvml,
        ["all", hidden],
        [None, hidden],
        ["2", hidden],
        ["0", hidden],
        [CARD.format(1), hidden],
        ["0,1", hidden, {"is_only_read": True}],
    )
    assert ids(everything) == ids(shown) == ["2"]
    assert best == "2"
    assert refused[0] == by_uuid[0] == 2
    assert "device 0 is hidden by CUDA_VISIBLE_DEVICES='2', which leaves 2 (" in refused[1]
    assert CARD.format(2) in refused[1]
    assert ids(read) == ["0", "1"]


def test_b2_hidden_altogether_means_the_cpu_or_a_sentence(nvml):
    nvml.tell("card 0-1 like rtx-5090\n")
    for value in ("", "-1", "NoDevFiles"):
        best, everything, one = ask(
            nvml, [None, visible(value)], ["all", visible(value)], ["1", visible(value)]
        )
        assert best == "cpu"
        assert everything[0] == 5
        assert f"CUDA_VISIBLE_DEVICES={value!r}, which leaves none" in everything[1]
        assert one[0] == 2


def test_b2_slices_and_the_variable_in_every_form(nvml):
    nvml.play("mig")
    uuid = "MIG-3a000000-0000-5000-8000-000000000000"
    (((_, parent),),) = ask(nvml, ["0", {}, {"is_only_read": True}])
    by_uuid, by_prefix, in_old_form, card, other = ask(
        nvml,
        ["all", visible(uuid)],
        ["all", visible("MIG-3a")],
        ["all", visible(f"MIG-{parent}/2/0")],
        ["all", visible("0")],
        ["MIG-4a", visible(uuid)],
    )
    assert ids(by_uuid) == ids(by_prefix) == ids(in_old_form) == ["0:1"]
    assert ids(card) == ["0:0", "0:1"]
    assert other[0] == 2


def test_b1_an_index_of_ours_is_nvmls_and_never_cudas(nvml):
    nvml.play("mixed-cards")  # CUDA would call NVML's card 1 its device 0.
    first, doubt, explicit = ask(
        nvml,
        ["0"],
        ["all", visible("0")],
        ["all", visible("0", CUDA_DEVICE_ORDER="PCI_BUS_ID")],
    )
    assert ids(first) == ids(explicit) == ["0"]
    assert doubt[0] == 2
    assert "set CUDA_DEVICE_ORDER=PCI_BUS_ID" in doubt[1]


def test_c3_a_card_that_hangs_does_not_keep_its_neighbours_from_being_opened(nvml):
    nvml.tell("card 0-1 like rtx-5090\nhang 0 *\n")
    (other,) = ask(nvml, ["1"])
    assert ids(other) == ["1"]


def test_b2_what_may_be_chosen_is_neither_hidden_nor_split(nvml):
    nvml.play("mig")
    code = """
import json
from heatsoak.telemetry.discovery import discover, usable
found = discover()
print(json.dumps([[i.device_id for i in usable(found, environ)]
                  for environ in ({}, {"CUDA_VISIBLE_DEVICES": "1"})]))
"""
    assert nvml.run(code) == [["0:0", "0:1", "1", "cpu"], ["1", "cpu"]]
