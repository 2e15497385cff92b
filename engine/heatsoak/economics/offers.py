"""What a buyer can choose from, and what the buyer insists on: the input of the rules. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heatsoak.economics.estimate import Estimate
    from heatsoak.economics.memory_fit import MemoryPlan
    from heatsoak.economics.training import Training
    from heatsoak.profiles.archetypes import Must
    from heatsoak.profiles.cards import CardProfile
    from heatsoak.profiles.models import ModelShape

Provenance = Literal["measured", "synthetic", "imported", "planned", "reference", "yours"]
"""Where a statement comes from: a session; the memory planner; a card profile (not measured here);
the buyer's own input."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One statement a clause or a ranking stands on."""

    provenance: Provenance
    text: str
    source: str | None = None
    """The session, the address or the file it was read from."""


@dataclass(frozen=True, slots=True)
class HostSeen:
    """The machine it was measured in, as doctor saw it."""

    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    devices: int = 0
    """Cards of the session."""
    problems: tuple[tuple[str, str], ...] = ()
    """Id and title of each warning and error about the machine or this card."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one card, or one job of several, sustained; several of a kind are put together."""

    provenance: Literal["measured", "synthetic", "imported"]
    n: int
    """Cards of the job."""
    devices: tuple[str, ...]
    """`SESSION:DEVICE` of each measurement."""
    unit: str
    """What was counted: tokens, images, samples."""
    rate_per_s: Estimate
    """Units a second, all cards of the job together."""
    power_w: Estimate | None
    """All cards of the job together."""
    joules_per_unit: Estimate | None
    memory_used_bytes: float | None
    """Most that one of its cards used."""
    temperature_c: float | None = None
    flags: tuple[str, ...] = ()
    spoiled: str | None = None
    """Why it is shown but not ranked, or None."""
    ecc_is_on: bool | None = None
    driver_version: str | None = None
    power_limit_w: float | None = None
    throttle_frac: Mapping[str, float] | None = None
    """Share of the window a throttle reason was active; None: not reported."""
    pcie: tuple[int | None, int | None] = (None, None)
    """Most lanes' generation and width that were seen under load."""
    pcie_most: tuple[int | None, int | None] = (None, None)
    """What card and slot could do."""
    host: HostSeen | None = None
    """None: nobody looked, or the figures are of no real machine."""


@dataclass(frozen=True, slots=True)
class Price:
    """What the buyer pays for one card."""

    amount: float
    currency: str
    """ISO 4217, such as USD."""
    date: str
    """ISO 8601, of the invoice."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One card model that comes into question."""

    card: str
    """Id of the card profile, or the name of a device that has none."""
    name: str
    profile: CardProfile | None
    measured: Measured | None = None
    """None: not measured here."""
    price: Price | None = None
    """The buyer's own; None: not entered."""


@dataclass(frozen=True, slots=True)
class Energy:
    """What electricity costs, and how much the cards will work; all of it the buyer's own."""

    price_per_kwh: float
    currency: str
    pue: float
    """Power of the site over power of the cards."""
    years: float
    """How long the cards are kept."""
    utilisation_frac: float
    """Share of that time under load."""


@dataclass(frozen=True, slots=True)
class TrainingNeed:
    """A training that has to fit in memory."""

    label: str
    """As the buyer wrote it: `13b-full@4096`."""
    shape: ModelShape
    training: Training


@dataclass(frozen=True, slots=True)
class Needs:
    """What the buyer insists on, beside what the archetype does."""

    musts: frozenset[Must] = frozenset()
    recipe: str | None = None
    """Label of the training that has to fit; None: the archetype's own."""
    budget: float | None = None
    """Most to pay for all cards, in the currency of the prices."""
    power_w: float | None = None
    """Most the cards may draw together."""
    energy: Energy | None = None
    """None: not all of it was entered."""
    trainings: Mapping[str, TrainingNeed] = field(default_factory=dict)
    """Every training that a label may name."""


@dataclass(frozen=True, slots=True)
class CardSet:
    """So many equal cards."""

    offer: Offer
    n: int
    plan: MemoryPlan | None = None
    """How the training fits; None where no training was named."""
    one: MemoryPlan | None = None
    """How it would on one card, where a set has several; None otherwise."""

    @property
    def label(self) -> str:
        """`4 x RTX PRO 5000 72GB Blackwell`."""
        return f"{self.n} x {self.offer.name}" if self.n > 1 else self.offer.name

    @property
    def is_measured(self) -> bool:
        """Whether this very card was measured here, and may be ranked by it."""
        return self.offer.measured is not None and self.offer.measured.spoiled is None

    @property
    def measured(self) -> Measured | None:
        """What these very cards did together; a single card says nothing of several."""
        measured = self.offer.measured
        if measured is None or measured.spoiled is not None or measured.n != self.n:
            return None
        return measured

    @property
    def price(self) -> float | None:
        """Of all its cards; None: not entered."""
        return None if self.offer.price is None else self.n * self.offer.price.amount
