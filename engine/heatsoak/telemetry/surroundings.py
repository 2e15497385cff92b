"""What is around a card: who uses it, and how it is joined to other cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Route = Literal["board", "switch", "switches", "host bridge", "node", "sockets"]
"""The way between two cards, from near to far (`nvidia-smi topo -m`: PIX, PXB, PHB, NODE, SYS)."""


@dataclass(frozen=True, slots=True)
class CardUser:
    """A process that uses a card."""

    pid: int
    """As the driver counts: in a container a number of the host's."""
    kind: Literal["compute", "graphics"]
    memory_bytes: int | None
    """Memory of the card it holds; None where the driver does not say."""


@dataclass(frozen=True, slots=True)
class CardPair:
    """How two cards are joined; None where the driver does not say."""

    first: str
    second: str
    """Their device ids."""
    route: Route | None
    peer_status: str | None
    """`ok`, or in words why one cannot read the memory of the other (`nvidia-smi topo -p2p r`)."""
    has_nvlink: bool | None
