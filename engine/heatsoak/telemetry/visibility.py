"""What CUDA_VISIBLE_DEVICES leaves of the NVIDIA devices: the user's own word on which are theirs.

Read as CUDA reads it: a comma-separated list of indices, UUIDs, their unique beginnings, or MIG
UUIDs; what stands after an invalid entry (such as -1 or NoDevFiles) counts for nothing. Indices in
it are CUDA's, not NVML's: CUDA puts the fastest card first unless CUDA_DEVICE_ORDER=PCI_BUS_ID.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from heatsoak.telemetry.device import DeviceInfo

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER_VARIABLE = "CUDA_DEVICE_ORDER"
UUID_PREFIXES = ("GPU-", "MIG-")
OLD_FORM = "MIG-GPU-"
"""How drivers before 470 name a MIG slice: `MIG-GPU-UUID/GPU-INSTANCE/COMPUTE-INSTANCE`."""


def visible_uuids(
    environ: Mapping[str, str],
    infos: Sequence[DeviceInfo],
    uuid_of: Callable[[str], str | None] = lambda _: None,
) -> frozenset[str] | None:
    """UUIDs of the cards and MIG slices that the environment leaves; None: all of them.

    Args:
        environ: the user's environment.
        infos: every NVIDIA card and every MIG slice.
        uuid_of: the UUID of the slice that has this name in the older form (`OLD_FORM`), or None.

    Raises:
        UsageError: the environment counts cards in an order that only CUDA knows.
    """
    text = environ.get(VARIABLE)
    if text is None:
        return None
    words = _valid(text)
    by_index = _cuda_order(environ, [i for i in infos if i.mig_parent_uuid is None], words)
    found: set[str] = set()
    for word in words:
        if word.isdecimal():
            meant = [info.uuid for info in by_index[int(word) : int(word) + 1]]
        elif word.startswith(OLD_FORM):
            meant = [uuid for uuid in (uuid_of(word),) if uuid is not None]
        else:
            meant = [info.uuid for info in named(word, infos)]
        if len(meant) != 1:
            break
        found.add(meant[0])
    return frozenset(found)


def is_visible(info: DeviceInfo, uuids: frozenset[str] | None) -> bool:
    """Whether a device is among the visible ones; the slices of a visible card are."""
    return uuids is None or info.uuid in uuids or info.mig_parent_uuid in uuids


def named(word: str, infos: Sequence[DeviceInfo]) -> list[DeviceInfo]:
    """The devices whose UUID is `word`, else those whose UUID begins with it."""
    exact = [info for info in infos if info.uuid == word]
    return exact or [info for info in infos if info.uuid.startswith(word)]


def _valid(text: str) -> list[str]:
    """The entries before the first that is neither an index nor the beginning of a UUID."""
    words = [word.strip() for word in text.split(",")]
    return list(takewhile(lambda word: word.isdecimal() or word.startswith(UUID_PREFIXES), words))


def _cuda_order(
    environ: Mapping[str, str], cards: Sequence[DeviceInfo], words: Sequence[str]
) -> list[DeviceInfo]:
    """The cards as an index in the environment counts them."""
    ordered = sorted(cards, key=lambda info: (info.pci_bus_id or "", info.index or 0))
    is_counted = any(word.isdecimal() for word in words)
    is_by_bus = environ.get(ORDER_VARIABLE) == "PCI_BUS_ID"
    if is_by_bus or not is_counted or len({info.name for info in cards}) <= 1:
        return ordered
    if {str(index) for index in range(len(cards))} <= set(words):
        return ordered  # All of them, in whatever order.
    raise UsageError(
        f"{VARIABLE}={environ[VARIABLE]} counts the cards with the fastest first, which on a "
        f"machine with different cards only CUDA can tell; set {ORDER_VARIABLE}=PCI_BUS_ID, or "
        "give UUIDs"
    )
