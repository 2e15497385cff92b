"""Whether a child runs where it was told to (cases B1, B2)."""

from __future__ import annotations

import pytest

from heatsoak.launch.identity import device_problem
from heatsoak.progress import Hello
from heatsoak.telemetry.device import DeviceInfo

GIB = 1024**3
CPU = DeviceInfo("cpu", "cpu-here", "a CPU", "cpu", "measured", memory_total_bytes=64 * GIB)
CARD = DeviceInfo("0", "GPU-a", "a card", "nvidia", "measured", memory_total_bytes=80 * GIB)
SLICE = DeviceInfo("0:1", "MIG-b", "a slice", "nvidia", "measured", memory_total_bytes=20 * GIB,
                   mig_parent_uuid="GPU-a")  # fmt: skip


def said(uuid, memory_gib=None):
    memory = None if memory_gib is None else int(memory_gib * GIB)
    return Hello(1.0, 2, "tokens", uuid, "some device", device_memory_bytes=memory)


@pytest.mark.parametrize(
    ("device", "hello"),
    [
        (CPU, said(None)),
        (CARD, said("GPU-a")),
        (CARD, said("GPU-a", 79.1)),
        (SLICE, said("MIG-b", 19.6)),
        (SLICE, said("MIG-b")),
        (SLICE, said("GPU-a", 19.6)),
    ],
)
def test_b1_a_child_where_it_should_be(device, hello):
    assert device_problem(hello, device) is None


@pytest.mark.parametrize(
    ("device", "hello", "words"),
    [
        (CPU, said("GPU-a"), "runs on some device (GPU-a), not on the device it was given (the h"),
        (CARD, said(None), "runs on some device (the host CPU), not on the device it was given"),
        (CARD, said("GPU-c", 79.1), "(GPU-c), not on the device it was given (GPU-a)"),
        (CARD, said("GPU-a", 24.0), "sees 24.0 GiB of memory on GPU-a, the driver 80.0 GiB"),
        (SLICE, said("MIG-c", 19.6), "(MIG-c), not on the device it was given (MIG-b)"),
        (SLICE, said("GPU-a", 79.1), "(GPU-a), not on the device it was given (MIG-b)"),
        (SLICE, said("GPU-a"), "(GPU-a), not on the device it was given (MIG-b)"),
        (SLICE, said("MIG-b", 79.1), "sees 79.1 GiB of memory on MIG-b, the driver 20.0 GiB"),
    ],
)
def test_b1_a_child_elsewhere_is_told_in_one_line(device, hello, words):
    problem = device_problem(hello, device)
    assert words in problem
    assert "\n" not in problem
