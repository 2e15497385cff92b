"""Who uses a card, and how two cards are joined: asked when somebody looks, never polled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from heatsoak.telemetry.nvml.errors import ask
from heatsoak.telemetry.surroundings import CardPair, CardUser

if TYPE_CHECKING:
    from types import ModuleType

    from heatsoak.telemetry.surroundings import Route

_PEER_READ, _PEER_NVLINK = 0, 2
_ROUTES: dict[int, Route] = {
    0: "board", 10: "switch", 20: "switches", 30: "host bridge", 40: "node", 50: "sockets",
}  # fmt: skip
"""By `nvmlGpuTopologyLevel_t`."""
_PEER_STATUS = {
    0: "ok",
    1: "the chipset does not support it",
    2: "the card does not support it",
    3: "the way between the processors does not support it",
    4: "it is switched off in the driver",
    5: "not supported",
}
"""By `nvmlGpuP2PStatus_t`."""
_KINDS: tuple[tuple[Literal["compute", "graphics"], str], ...] = (
    ("compute", "nvmlDeviceGetComputeRunningProcesses"),
    ("compute", "nvmlDeviceGetMPSComputeRunningProcesses"),
    ("graphics", "nvmlDeviceGetGraphicsRunningProcesses"),
)


def card_users(nvml: ModuleType, handle: object) -> tuple[tuple[CardUser, ...] | None, str]:
    """The processes on a card, each once; None, and why in words, where they are not told.

    Raises:
        DeviceLostError: the card is gone.
    """
    found: dict[int, CardUser] = {}
    is_told, why = False, ""
    for kind, name in _KINDS:
        listed, reason = ask(nvml, f"{name}_v3", handle)
        if listed is None:  # A driver older than 510 has the form before.
            listed, reason = ask(nvml, f"{name}_v2", handle)
        if listed is None:
            why = why or reason
            continue
        is_told = True
        for process in listed:
            found.setdefault(process.pid, CardUser(process.pid, kind, process.usedGpuMemory))
    return (tuple(found.values()) if is_told else None), why


def card_pair(nvml: ModuleType, first: tuple[str, object], second: tuple[str, object]) -> CardPair:
    """How two cards are joined.

    Args:
        nvml: the loaded library.
        first: device id and handle of a card.
        second: of another.

    Raises:
        DeviceLostError: one of them is gone.
    """
    handles = first[1], second[1]
    level, _ = ask(nvml, "nvmlDeviceGetTopologyCommonAncestor", *handles)
    read, _ = ask(nvml, "nvmlDeviceGetP2PStatus", *handles, _PEER_READ)
    link, _ = ask(nvml, "nvmlDeviceGetP2PStatus", *handles, _PEER_NVLINK)
    return CardPair(
        first[0],
        second[0],
        route=None if level is None else _ROUTES.get(level),
        peer_status=None if read is None else _PEER_STATUS.get(read),
        has_nvlink=None if link is None else link == 0,
    )
