"""How a child names the device it runs on (cases B1, B2)."""

from __future__ import annotations

import pytest

from heatsoak_workloads._workload import nvml_uuid


@pytest.mark.parametrize(
    ("seen", "asked", "told"),
    [
        ("aaaa", "GPU-aaaa", "GPU-aaaa"),
        ("bbbb", "GPU-aaaa", "GPU-bbbb"),
        ("cccc", "MIG-cccc", "MIG-cccc"),
        ("aaaa", "MIG-cccc", "GPU-aaaa"),  # an older runtime names the card of a slice
        ("aaaa", "", "GPU-aaaa"),
    ],
)
def test_b1_a_child_never_claims_a_device_that_cuda_did_not_name(seen, asked, told):
    assert nvml_uuid(seen, asked) == told
