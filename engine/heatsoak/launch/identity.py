"""Whether a child runs where it was told to: a card of the right UUID, with the right memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from heatsoak.progress import Hello
    from heatsoak.telemetry.device import DeviceInfo

MEMORY_TOLERANCE_FRAC = 0.1
"""CUDA counts a little less memory than the driver, which also counts what it reserves."""


def device_problem(hello: Hello, device: DeviceInfo) -> str | None:
    """Why the child is not where it should be, in a sentence; None when it is.

    Args:
        hello: what the child says of itself.
        device: what it was given.
    """
    expected = device.uuid if device.kind == "nvidia" else None
    total_bytes = device.memory_total_bytes if expected is not None else None
    is_right = hello.device_uuid == expected
    if not is_right and device.mig_parent_uuid is not None:
        # Older CUDA runtimes name the card of a slice; then the memory must prove which part.
        is_right = hello.device_uuid == device.mig_parent_uuid and (
            _agree(hello.device_memory_bytes, total_bytes) is True
        )
    if not is_right:
        return (
            f"the workload runs on {hello.device_name} ({hello.device_uuid or 'the host CPU'}), "
            f"not on the device it was given ({expected or 'the host CPU'})"
        )
    if _agree(hello.device_memory_bytes, total_bytes) is False:
        return (
            f"the workload sees {_gib(hello.device_memory_bytes)} of memory on {expected}, "
            f"the driver {_gib(total_bytes)}: not the same device"
        )
    return None


def _agree(seen_bytes: int | None, known_bytes: int | None) -> bool | None:
    """Whether both are the same memory; None where one is not known."""
    if seen_bytes is None or known_bytes is None:
        return None
    return abs(seen_bytes - known_bytes) <= MEMORY_TOLERANCE_FRAC * known_bytes


def _gib(count_bytes: int | None) -> str:
    return "unknown" if count_bytes is None else f"{count_bytes / BYTES_PER_GIB:.1f} GiB"
