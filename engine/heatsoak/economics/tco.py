"""Total cost of ownership over the horizon, with bands, and when a rented card is dearer. Pure.

TCO = price - residual + energy (active and idle, at the meter) + support + staff + expected
downtime: the article's framework (Workstation AI ROI Favors RTX PRO 5000 for 13B Fine-Tunes and
RTX 5090 for Perf-per-Dollar, 2026) with each term written out. No discounting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.economics.cost import HOURS_PER_YEAR, MILLION, lifetime_units
from heatsoak.economics.estimate import Estimate, exact

if TYPE_CHECKING:
    from collections.abc import Callable

SWING_FRAC = 0.2
"""How far each input of the bands is varied, up and down."""
Varied = Literal["price", "kwh_price", "utilisation_frac", "residual_frac"]
VARIED: tuple[Varied, ...] = ("price", "kwh_price", "utilisation_frac", "residual_frac")
"""What the bands vary: the inputs a buyer is least sure of."""
_MOST_ONE = frozenset({"utilisation_frac", "residual_frac"})


@dataclass(frozen=True, slots=True)
class Ownership:
    """What owning the cards of one job means, all in one currency."""

    price: float
    """Of all cards."""
    kwh_price: float
    years: float
    """How long they are kept."""
    utilisation_frac: float
    """Share of that time under load."""
    residual_frac: float
    """Share of the price they sell for at the end."""
    pue: float
    active_w: Estimate
    """Sustained, all cards."""
    idle_w: float | None
    """Idle, all cards; None: not known, and not counted."""
    support_per_year: float = 0.0
    """For all cards."""
    staff_per_year: float = 0.0
    """For all cards."""
    downtime_per_load_hour: float = 0.0
    """Expected cost of faults for each hour under load."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The terms of a total."""

    price: Estimate
    residual: Estimate
    """Negative: what comes back."""
    energy_active: Estimate
    energy_idle: Estimate
    support: Estimate
    staff: Estimate
    downtime: Estimate

    @property
    def total(self) -> Estimate:
        """Their sum."""
        return (
            self.price + self.residual + self.energy_active + self.energy_idle
            + self.support + self.staff + self.downtime
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Swing:
    """What one input does to the total when it alone is varied."""

    input: Varied
    low_value: float
    high_value: float
    at_low: float
    """Total with the low value."""
    at_high: float

    @property
    def width(self) -> float:
        """How much it moves the total."""
        return abs(self.at_high - self.at_low)


def kwh_per_year(
    active_w: Estimate, idle_w: float | None, utilisation_frac: float, pue: float
) -> tuple[Estimate, Estimate]:
    """Energy a year at the meter, under load and idle, kWh.

    8.76 x (u x P_active + (1 - u) x P_idle) x PUE: 8760 h a year, 1000 W a kW.

    Args:
        active_w: under load.
        idle_w: idle; None: not known, taken as none and to be said.
        utilisation_frac: share of the year under load.
        pue: from 1 up.
    """
    kwh_per_w = HOURS_PER_YEAR / 1000 * pue
    idle = exact((1 - utilisation_frac) * (idle_w or 0.0) * kwh_per_w)
    return active_w * (utilisation_frac * kwh_per_w), idle


def parts(owned: Ownership) -> Parts:
    """The terms of the total cost of ownership."""
    active, idle = kwh_per_year(owned.active_w, owned.idle_w, owned.utilisation_frac, owned.pue)
    per_kwh = owned.kwh_price * owned.years
    hours = HOURS_PER_YEAR * owned.years * owned.utilisation_frac
    return Parts(
        price=exact(owned.price),
        residual=exact(-owned.price * owned.residual_frac),
        energy_active=active * per_kwh,
        energy_idle=idle * per_kwh,
        support=exact(owned.support_per_year * owned.years),
        staff=exact(owned.staff_per_year * owned.years),
        downtime=exact(owned.downtime_per_load_hour * hours),
    )


def total(owned: Ownership) -> Estimate:
    """Total cost of ownership over the horizon."""
    return parts(owned).total


def cost_per_million(owned: Ownership, rate: Estimate) -> Estimate:
    """Everything that is paid, per million units: TCO / lifetime units x 1e6.

    Args:
        owned: the cards.
        rate: units a second of all of them, above 0.
    """
    units = lifetime_units(rate, owned.years, owned.utilisation_frac)
    return total(owned) * MILLION / units


def tornado(owned: Ownership) -> tuple[Swing, ...]:
    """What +-20 % on each of `VARIED` alone does to the total, the widest first.

    A share ends at 1.
    """
    found = []
    for name in VARIED:
        low, high = _ends(owned, name)
        at_low, at_high = (
            total(_with(owned, {name: value})).mean for value in (low, high)
        )  # fmt: skip
        found.append(Swing(name, low, high, at_low, at_high))
    return tuple(sorted(found, key=lambda swing: -swing.width))


def band(owned: Ownership, of: Callable[[Ownership], Estimate] = total) -> tuple[float, float]:
    """Lowest and highest figure with each of `VARIED` anywhere within +-20 %.

    Every figure here is monotone in each of them, so its extremes are at corners; the interval of
    what was measured is added at both ends.

    Args:
        owned: the cards.
        of: the figure: their total, or what a unit costs with them.
    """
    corners = product(*(_ends(owned, name) for name in VARIED))
    figures = [of(_with(owned, dict(zip(VARIED, c, strict=True)))) for c in corners]
    return min(figure.low for figure in figures), max(figure.high for figure in figures)


def _with(owned: Ownership, varied: dict[Varied, float]) -> Ownership:
    changed: dict[str, Any] = {str(name): value for name, value in varied.items()}
    return replace(owned, **changed)


def _ends(owned: Ownership, name: Varied) -> tuple[float, float]:
    value = float(getattr(owned, name))
    high = value * (1 + SWING_FRAC)
    return value * (1 - SWING_FRAC), min(high, 1.0) if name in _MOST_ONE else high


@dataclass(frozen=True, slots=True)
class BreakEven:
    """From how many hours of use on a rented card costs more than the owned one."""

    hours: float
    """Hours under load within the horizon, of the whole job."""
    utilisation_frac: float
    """The same as a share of the horizon; above 1: not within it."""


def cloud_break_even(owned: Ownership, cloud_per_hour: float) -> BreakEven | None:
    """Hours of use at which renting has cost as much as owning.

    Owning costs a fixed part F (price less residual, support, staff and the energy of idling
    through the horizon) and, for each hour of use, the energy above idling e; renting costs c an
    hour: h = F / (c - e). An hour of the rented card is taken to do what one of this does, and to
    fail as often.

    Args:
        owned: the cards.
        cloud_per_hour: for as many rented cards.

    Returns:
        None where renting is never dearer: an hour of it costs no more than the energy of owning.
    """
    terms = parts(replace(owned, utilisation_frac=0.0))
    per_hour = (owned.active_w.mean - (owned.idle_w or 0.0)) / 1000 * owned.pue * owned.kwh_price
    if cloud_per_hour <= per_hour:
        return None
    hours = terms.total.mean / (cloud_per_hour - per_hour)
    return BreakEven(hours, hours / (HOURS_PER_YEAR * owned.years))
