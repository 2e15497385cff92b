"""What CUDA_VISIBLE_DEVICES leaves (cases B1, B2, B5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.errors import UsageError
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.visibility import is_visible, visible_uuids


def card(index, *, name="NVIDIA H100 PCIe", bus=None):
    return DeviceInfo(
        str(index), f"GPU-{index}aaaa-0000", name, "nvidia", "measured", index=index,
        pci_bus_id=bus or f"00000000:{index:02X}:00.0",
    )  # fmt: skip


CARDS = [card(0), card(1), card(2)]
SLICE = replace(
    CARDS[1], device_id="1:0", uuid="MIG-1bbbb-0000", mig_parent_uuid=CARDS[1].uuid, index=None
)


def visible(value, cards=CARDS, slices=(), **more):
    """Names of the devices that are left, of the cards and the slices."""
    environ = more if value is None else {"CUDA_VISIBLE_DEVICES": value, **more}
    infos = [*cards, *slices]
    old_names = {"MIG-GPU-1aaaa-0000/2/0": SLICE.uuid}
    uuids = visible_uuids(environ, infos, old_names.get)
    return [info.device_id for info in infos if is_visible(info, uuids)]


def test_b2_without_the_variable_everything_is_visible():
    assert visible_uuids({}, CARDS) is None
    assert visible(None, slices=[SLICE]) == ["0", "1", "2", "1:0"]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("0", ["0"]),
        ("2,0", ["0", "2"]),
        (" 1 , 2 ", ["1", "2"]),
        ("GPU-1aaaa-0000", ["1"]),
        ("GPU-2", ["2"]),
        ("GPU-0,2", ["0", "2"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("none", []),
        ("0,-1,1", ["0"]),
        ("7", []),
        ("1,7,2", ["1"]),
        ("GPU-", []),
        ("GPU-9,0", []),
        ("MIG-GPU-9/1/0,0", []),
    ],
)
def test_b2_the_variable_is_read_as_cuda_reads_it(value, left):
    assert visible(value) == left


@pytest.mark.parametrize("value", ["MIG-1bbbb-0000", "MIG-1bb", "MIG-GPU-1aaaa-0000/2/0"])
def test_b2_a_slice_makes_neither_its_card_nor_another_slice_visible(value):
    other = replace(SLICE, device_id="1:1", uuid="MIG-1cccc-0000")
    assert visible(value, slices=[SLICE, other]) == ["1:0"]


def test_b2_the_slices_of_a_visible_card_are_visible():
    assert visible("1", slices=[SLICE]) == ["1", "1:0"]
    assert visible("0", slices=[SLICE]) == ["0"]


def test_b1_an_index_counts_by_bus_and_not_as_nvml_lists():
    listed = [card(0, bus="00000000:C1:00.0"), card(1, bus="00000000:01:00.0")]
    assert visible("0", listed) == ["1"]
    assert visible("0", listed, CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["1"]


def test_b1_where_only_cuda_knows_the_order_nothing_is_guessed():
    mixed = [card(0), card(1, name="NVIDIA GeForce RTX 5090")]
    with pytest.raises(UsageError, match="CUDA_DEVICE_ORDER=PCI_BUS_ID") as caught:
        visible("0", mixed)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError):
        visible("0,-1,1", mixed)
    assert visible("0", mixed, CUDA_DEVICE_ORDER="PCI_BUS_ID") == ["0"]
    assert visible("1,0", mixed) == ["0", "1"]
    assert visible("GPU-1", mixed) == ["1"]
