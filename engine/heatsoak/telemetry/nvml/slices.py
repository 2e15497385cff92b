"""MIG devices: slices of a card, with their own memory and the whole card's power and heat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.telemetry.nvml.errors import ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

BUSY_BYTES = 256 * 1024 * 1024
"""A slice with more than this in use is busy: an idle one holds tens of megabytes, and processes
of other containers are not listed."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One MIG device."""

    handle: object
    number: int
    """Of the MIG devices of its card, from 0."""
    uuid: str
    instance_name: str
    """The other form of its UUID, by which older drivers call it: `MIG-GPU-.../GI/CI`."""

    def is_named(self, name: str) -> bool:
        """Whether either form of its UUID is this."""
        return name in (self.uuid, self.instance_name)


def slices_of(nvml: ModuleType, handle: object) -> Iterator[Slice]:
    """The MIG devices of a card; none where it is not split.

    Raises:
        DeviceLostError: the card is gone.
    """
    modes, _ = ask(nvml, "nvmlDeviceGetMigMode", handle)
    if not modes or not modes[0]:
        return
    card_uuid, _ = ask(nvml, "nvmlDeviceGetUUID", handle)
    most, _ = ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)
    for number in range(most or 0):
        part, _ = ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        if part is None:  # Numbers need not follow each other.
            continue
        uuid, _ = ask(nvml, "nvmlDeviceGetUUID", part)
        gpu, _ = ask(nvml, "nvmlDeviceGetGpuInstanceId", part)
        compute, _ = ask(nvml, "nvmlDeviceGetComputeInstanceId", part)
        if uuid:
            yield Slice(part, number, str(uuid), f"MIG-{card_uuid}/{gpu}/{compute}")


def busy_slices(nvml: ModuleType, handle: object, but: str) -> tuple[str, ...]:
    """UUIDs of the MIG devices of a card that somebody uses.

    Args:
        nvml: the loaded library.
        handle: of the card.
        but: UUID of the one not to look at.

    Raises:
        DeviceLostError: the card is gone.
    """
    busy = []
    for part in slices_of(nvml, handle):
        if part.uuid == but:
            continue
        memory, _ = ask(nvml, "nvmlDeviceGetMemoryInfo", part.handle)
        processes, _ = ask(nvml, "nvmlDeviceGetComputeRunningProcesses_v3", part.handle)
        if processes or (memory is not None and memory.used > BUSY_BYTES):
            busy.append(part.uuid)
    return tuple(busy)
