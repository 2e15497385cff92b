"""Advice on sessions: what they measured, the buyer's money and the card profiles, together."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from heatsoak.economics import advice as economics
from heatsoak.economics.cost import per_price
from heatsoak.economics.offers import Energy, Needs, Offer, Price
from heatsoak.economics.reasons import enter_price
from heatsoak.profiles.archetypes import archetypes
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.prices import known_money, read_prices
from heatsoak.session.access import reading
from heatsoak.session.annotations import newest
from heatsoak.session.measurements import load_measurements
from heatsoak.session.trainings import trainings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from heatsoak.economics.advice import Advice
    from heatsoak.economics.estimate import Estimate
    from heatsoak.profiles.archetypes import Must
    from heatsoak.profiles.money import Money
    from heatsoak.session.measurements import Measurements

SCHEMA = "heatsoak-advice/1"
ENERGY_TERMS = {
    "kwh_price": "--kwh", "pue": "--pue", "horizon_years": "--horizon",
    "utilisation_frac": "--utilisation",
}  # fmt: skip
"""What the cost of energy needs, with the option of `heatsoak prices set` that gives it."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the buyer says on the command line or the screen."""

    musts: frozenset[Must] = frozenset()
    recipe: str | None = None
    """MODEL-METHOD@CONTEXT that has to fit; None: what each archetype has."""
    budget: float | None = None
    """In the currency of the prices."""
    power_w: float | None = None
    allow_smoke: bool = False
    allow_not_steady: bool = False


@dataclass(frozen=True, slots=True)
class AdviceReport:
    """Everything that is shown."""

    article: str
    """Title of the article the archetypes come from."""
    measurements: Measurements
    offers: tuple[Offer, ...]
    """Measured cards first."""
    needs: Needs
    advice: tuple[Advice, ...]
    missing: tuple[str, ...]
    """What is not entered yet and would say more, with the command that enters it."""

    @property
    def currency(self) -> str | None:
        """Of all its amounts; None without any."""
        return economics.currency_of(self.offers)

    @property
    def measured(self) -> tuple[Offer, ...]:
        """The measured ones of the offers."""
        return tuple(offer for offer in self.offers if offer.measured is not None)


def advise_sessions(paths: Sequence[Path], wishes: Wishes, money: Money) -> AdviceReport:
    """Ask every archetype's rule about the cards that some sessions measured.

    Args:
        paths: session files.
        wishes: what the buyer insists on.
        money: only what a user gave of it is used.

    Raises:
        UsageError: the sessions may not be ranked, or a wish is not understood.
    """
    kinds = archetypes()
    measurements = load_measurements(
        paths, allow_smoke=wishes.allow_smoke, allow_not_steady=wishes.allow_not_steady
    )
    offers = _offers(measurements, money)
    currency = economics.currency_of(offers)
    labels = {kind.require.holds for kind in kinds.archetypes} | {wishes.recipe}
    needs = Needs(
        musts=wishes.musts,
        recipe=wishes.recipe,
        budget=wishes.budget,
        power_w=wishes.power_w,
        energy=None if currency is None else _energy(money, currency),
        trainings=trainings([label for label in labels if label is not None]),
    )
    return AdviceReport(
        article=kinds.article,
        measurements=measurements,
        offers=offers,
        needs=needs,
        advice=economics.advise(kinds.archetypes, offers, needs),
        missing=tuple(_missing(offers, money)),
    )


def money_for(paths: Sequence[Path]) -> Money:
    """The user's own prices; where they lack something, what was stored in these sessions.

    Raises:
        UsageError: the user's file is not one of prices, or a file is no session.
    """
    money = read_prices()
    for path in paths:
        with reading(path) as connection:
            stored = newest(connection, "prices")
        if stored is not None:
            money = money.over(known_money(stored=asdict(stored)).users)
    return money


def _offers(measurements: Measurements, money: Money) -> tuple[Offer, ...]:
    """Measured cards first, then every other card profile."""
    profiles = card_profiles()
    cards = [
        *measurements.by_card,
        *(card for card in profiles if card not in measurements.by_card),
    ]
    currency: str | None = None
    offers = []
    for card in cards:
        profile = profiles.get(card)
        entry = money.given("invoice", card)
        price = None
        if entry is not None:
            currency = currency or entry.currency or ""
            price = Price(money.amount(entry, currency), currency, entry.date or "no date")
        name = profile.name if profile is not None else measurements.names[card]
        offers.append(Offer(card, name, profile, measurements.by_card.get(card), price))
    return tuple(offers)


def _energy(money: Money, currency: str) -> Energy | None:
    """All of it from the user; an example is never counted."""
    found = {name: money.given(name) for name in ENERGY_TERMS}
    values = {
        name: money.amount(entry, currency) for name, entry in found.items() if entry is not None
    }
    if len(values) < len(ENERGY_TERMS):
        return None
    return Energy(
        price_per_kwh=values["kwh_price"],
        currency=currency,
        pue=values["pue"],
        years=values["horizon_years"],
        utilisation_frac=values["utilisation_frac"],
    )


def _missing(offers: Sequence[Offer], money: Money) -> list[str]:
    unpriced = [o for o in offers if o.measured is not None and o.price is None]
    told = [f"the price of {o.name}: {enter_price(o)}" for o in unpriced]
    lacking = [option for name, option in ENERGY_TERMS.items() if money.given(name) is None]
    if lacking and not unpriced:
        told.append(f"the cost of energy: heatsoak prices set {' ... '.join(lacking)} ...")
    return told


def document(report: AdviceReport) -> dict[str, Any]:
    """The report as `heatsoak-advice/1`."""
    measurements = report.measurements
    return {
        "schema": SCHEMA,
        "article": report.article,
        "provenance": measurements.provenance,
        "marks": list(measurements.marks),
        "workload": asdict(measurements.workload),
        "unit": measurements.workload.unit,
        "sessions": [asdict(session) for session in measurements.sessions],
        "currency": report.currency,
        "needs": {
            "musts": sorted(report.needs.musts),
            "recipe": report.needs.recipe,
            "budget": report.needs.budget,
            "power_w": report.needs.power_w,
            "energy": None if report.needs.energy is None else asdict(report.needs.energy),
        },
        "measured": [_measured(offer) for offer in report.measured],
        "missing": list(report.missing),
        "archetypes": [economics.document(one) for one in report.advice],
    }


def _measured(offer: Offer) -> dict[str, Any]:
    measured, price = offer.measured, offer.price
    rate = None if measured is None else measured.rate_per_s
    ratio = (
        None
        if rate is None or measured is None or price is None
        else per_price(rate, price.amount * measured.n)
    )
    return {
        "card": offer.card,
        "name": offer.name,
        "has_profile": offer.profile is not None,
        "measured": None if measured is None else asdict(measured),
        "price": None if price is None else asdict(price),
        "units_per_price": _figure(ratio),
    }


def _figure(estimate: Estimate | None) -> dict[str, float | None] | None:
    return None if estimate is None else {"mean": estimate.mean, "u95": estimate.u95}
