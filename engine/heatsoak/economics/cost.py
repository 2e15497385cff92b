"""What a unit of work costs in energy and in money. Pure: estimates in, estimates out.

Amounts are in one currency, which the caller knows. A rate is units a second (tokens, images,
samples), all cards of the job together; a price is that of all its cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.economics.estimate import exact
from heatsoak.units import JOULES_PER_KWH

if TYPE_CHECKING:
    from heatsoak.economics.estimate import Estimate

HOURS_PER_YEAR = 8760.0
SECONDS_PER_HOUR = 3600.0
MILLION = 1e6


def per_price(rate: Estimate, price: float) -> Estimate:
    """Units a second per unit of money: sustained rate over invoiced price.

    The article's "perf per dollar" (Workstation AI ROI Favors RTX PRO 5000 for 13B Fine-Tunes and
    RTX 5090 for Perf-per-Dollar, 2026), on the sustained rate.

    Args:
        rate: units a second.
        price: of all cards, above 0.
    """
    return rate / price


def per_joule(joules_per_unit: Estimate) -> Estimate:
    """Units per joule: the inverse of the joules a unit took over the frozen window.

    Args:
        joules_per_unit: above 0.
    """
    return joules_per_unit.inverse


def per_watt(rate: Estimate, power_w: Estimate) -> Estimate:
    """Units a second per watt of the cards that did them (the article's "tokens/s/W").

    Rate and power are taken as independent. They mostly rise and fall together, so the interval is
    rather too wide than too narrow.

    Args:
        rate: units a second.
        power_w: of all cards of the job, above 0.
    """
    return rate / power_w


def kwh_per_million(joules_per_unit: Estimate, pue: float) -> Estimate:
    """Energy at the meter per million units, kWh: J a unit / 3.6 x PUE.

    1e6 units x J / 3.6e6 J/kWh; PUE is site power over computer power (ISO/IEC 30134-2).

    Args:
        joules_per_unit: at the card.
        pue: from 1 up.
    """
    return joules_per_unit * (MILLION / JOULES_PER_KWH * pue)


def energy_per_million(joules_per_unit: Estimate, pue: float, kwh_price: float) -> Estimate:
    """Money for the energy of a million units: J a unit / 3.6 x price of a kWh x PUE.

    Args:
        joules_per_unit: at the card.
        pue: from 1 up.
        kwh_price: money a kWh.
    """
    return kwh_per_million(joules_per_unit, pue) * kwh_price


def lifetime_units(rate: Estimate, years: float, utilisation_frac: float) -> Estimate:
    """Units done while the cards are kept: rate x 8760 h x 3600 s x years x utilisation.

    Args:
        rate: units a second.
        years: how long they are kept.
        utilisation_frac: share of that time under load.
    """
    return rate * (HOURS_PER_YEAR * SECONDS_PER_HOUR * years * utilisation_frac)


def capital_per_million(
    rate: Estimate,
    price: float,
    *,
    residual_frac: float,
    support_per_year: float,
    years: float,
    utilisation_frac: float,
) -> Estimate:
    """Money for the cards per million units they will do.

    (price x (1 - residual) + support x years) / lifetime units x 1e6: straight-line depreciation
    over units of production.

    Args:
        rate: units a second, above 0.
        price: of all cards.
        residual_frac: share of the price they sell for at the end.
        support_per_year: for all cards.
        years: how long they are kept.
        utilisation_frac: share of that time under load, above 0.
    """
    capital = price * (1 - residual_frac) + support_per_year * years
    return exact(capital * MILLION) / lifetime_units(rate, years, utilisation_frac)


@dataclass(frozen=True, slots=True)
class Spent:
    """What a stretch of work takes: an epoch, a run to its target."""

    units: float
    seconds: Estimate
    kwh: Estimate | None
    """At the meter; None where the energy is not known."""
    money: Estimate | None
    """For the energy; None without a price of a kWh."""


def spent_on(
    units: float,
    rate: Estimate,
    joules_per_unit: Estimate | None,
    pue: float,
    kwh_price: float | None,
) -> Spent:
    """Time, energy and its price for so many units at the sustained rate: an epoch, a target.

    Time = units / rate; energy = units x J a unit / 3.6e6 x PUE.

    Args:
        units: how many, such as those of one epoch.
        rate: units a second, pauses included, above 0.
        joules_per_unit: at the card; None: not known.
        pue: from 1 up.
        kwh_price: money a kWh; None: not entered.
    """
    kwh = (
        None
        if joules_per_unit is None
        else kwh_per_million(joules_per_unit, pue) * (units / MILLION)
    )
    money = None if kwh is None or kwh_price is None else kwh * kwh_price
    return Spent(units, exact(units) / rate, kwh, money)


def measured_spent(
    units: float, seconds: float, joules: float | None, pue: float, kwh_price: float | None
) -> Spent:
    """Time, energy and its price of a run as it was: from start to end, or to its target.

    Args:
        units: done.
        seconds: it took.
        joules: at the cards, by their counters or the integral of power; None: not known.
        pue: from 1 up.
        kwh_price: money a kWh; None: not entered.
    """
    kwh = None if joules is None else exact(joules / JOULES_PER_KWH * pue)
    money = None if kwh is None or kwh_price is None else kwh * kwh_price
    return Spent(units, exact(seconds), kwh, money)
