"""Everything that the checks look at: one machine, gathered once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heatsoak.doctor.confines import Confines
    from heatsoak.doctor.host import Host
    from heatsoak.doctor.stack import Stack
    from heatsoak.doctor.storage import Storage
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.health import DeviceHealth
    from heatsoak.telemetry.sample import DeviceSample
    from heatsoak.telemetry.surroundings import CardPair, CardUser


@dataclass(frozen=True, slots=True)
class CardMeasures:
    """What a child program did on one card; None where it did not come to it."""

    problem: str | None = None
    """Why nothing can be computed on the card, in words; None: a tiny kernel ran, and was right."""
    to_card_bytes_per_s: float | None = None
    """From pinned host memory."""
    to_host_bytes_per_s: float | None = None
    """Into pinned host memory."""
    within_bytes_per_s: float | None = None
    """Within the card's memory, read and write both counted."""
    pcie_gen: int | None = None
    pcie_width: int | None = None
    """The link while it was copied."""


@dataclass(frozen=True, slots=True)
class Card:
    """A device that was looked at."""

    info: DeviceInfo
    is_asked: bool = False
    """Whether the user named it, or would get it without naming one."""
    reading: DeviceSample | None = None
    health: DeviceHealth | None = None
    users: tuple[CardUser, ...] | None = None
    """Processes on it, ours left out; None: not told."""
    users_problem: str = ""
    """Why they are not told."""
    soaked_by: tuple[str, ...] = ()
    """Runs of ours that are on it."""
    problem: str | None = None
    """Why it could not be read, in words."""
    measures: CardMeasures | None = None
    """None: nothing was measured."""


@dataclass(frozen=True, slots=True)
class PciCard:
    """An NVIDIA card as the kernel lists it, whether or not there is a driver."""

    bus_id: str
    is_asleep: bool
    """Whether the kernel has switched it off until somebody needs it."""


@dataclass(frozen=True, slots=True)
class DiskMeasure:
    """How fast the folder of the sessions is read, past the cache."""

    read_bytes_per_s: float | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine."""

    host: Host
    confines: Confines
    storage: Storage
    stack: Stack
    environ: Mapping[str, str]
    cards: tuple[Card, ...] = ()
    """NVIDIA cards and MIG slices that were looked at."""
    others: tuple[Card, ...] = ()
    """Host CPU and synthetic cards that were asked for."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Devices that were asked for and cannot be used, each with the reason."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Cards that nobody asked for and that cannot be read, by index."""
    nvidia_problem: str | None = None
    """Why no NVIDIA card can be read; None: one can, or nobody looked."""
    present: tuple[PciCard, ...] = ()
    pairs: tuple[CardPair, ...] = ()
    runs: tuple[str, ...] = ()
    """Runs of ours that are going on."""
    disk: DiskMeasure | None = None
    """None: nothing was measured."""

    def asking(self, devices: Sequence[DeviceInfo]) -> Machine:
        """The same machine when these devices are the ones that would be loaded."""
        ids = {info.device_id for info in devices}
        seen = {card.info.device_id for card in (*self.cards, *self.others)}
        return replace(
            self,
            cards=tuple(replace(card, is_asked=card.info.device_id in ids) for card in self.cards),
            others=(
                *(replace(card, is_asked=card.info.device_id in ids) for card in self.others),
                *(Card(info, is_asked=True) for info in devices if info.device_id not in seen),
            ),
        )

    @property
    def boards(self) -> tuple[Card, ...]:
        """One for each whole card; of a split one whose slices alone were asked for, a slice."""
        found: dict[str, Card] = {}
        for card in sorted(self.cards, key=lambda card: card.info.mig_parent_uuid is not None):
            found.setdefault(card.info.mig_parent_uuid or card.info.uuid, card)
        return tuple(found.values())

    @property
    def asked_boards(self) -> tuple[Card, ...]:
        """The boards that would be loaded."""
        asked = {c.info.mig_parent_uuid or c.info.uuid for c in self.cards if c.is_asked}
        return tuple(c for c in self.boards if (c.info.mig_parent_uuid or c.info.uuid) in asked)

    @property
    def is_synthetic(self) -> bool:
        """Whether nothing but synthetic cards would be loaded: arithmetic, which needs no torch."""
        asked = [card for card in (*self.cards, *self.others) if card.is_asked]
        return bool(asked) and all(card.info.kind == "synthetic" for card in asked)

    @property
    def loads_cpu(self) -> bool:
        """Whether the host CPU is what would be loaded."""
        return any(card.info.kind == "cpu" and card.is_asked for card in self.others)
