"""What owning the cards of one job means, as entries of `heatsoak-result/1`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heatsoak.economics import checkpointing, tco
from heatsoak.economics.cost import HOURS_PER_YEAR
from heatsoak.economics.rules import ecc_of
from heatsoak.profiles.cards import card_profiles

if TYPE_CHECKING:
    from heatsoak.economics.estimate import Estimate
    from heatsoak.session.money_inputs import Ledger

Entry = dict[str, Any]


def ownership_entry(
    ledger: Ledger,
    rate: Estimate,
    power_w: Estimate | None,
    *,
    measured_idle_w: float | None,
    per_unit: str,
) -> Entry:
    """The entries `tco`, `total_per_million`, `cloud` and `faults` of a job.

    All but `faults` are null while price or kWh price are not the user's, or power is not known.

    Args:
        ledger: the inputs.
        rate: units a second of all cards.
        power_w: sustained, all cards; None: not known.
        measured_idle_w: all cards before the load, where it was read.
        per_unit: unit of a cost per million units.

    Raises:
        MixedCurrenciesError: amounts in several currencies, without a rate.
    """
    faults, lost_money = _faults(ledger)
    entry: Entry = {"tco": None, "total_per_million": None, "cloud": None, "faults": faults}
    price, kwh_price = ledger.price(), ledger.kwh_price()
    if price is None or kwh_price is None or power_w is None:
        return entry
    idle_w = ledger.summed_given("idle_w")
    owned = tco.Ownership(
        price=price,
        kwh_price=kwh_price,
        years=ledger.value("horizon_years"),
        utilisation_frac=ledger.value("utilisation_frac"),
        residual_frac=ledger.residual_frac(),
        pue=ledger.value("pue"),
        active_w=power_w,
        idle_w=measured_idle_w if idle_w is None else idle_w,
        support_per_year=ledger.summed("support_per_year"),
        staff_per_year=ledger.summed("staff_per_year"),
        downtime_per_load_hour=lost_money,
    )
    entry["tco"] = _tco_entry(owned, str(ledger.currency), is_idle_read=idle_w is None)
    each = partial(tco.cost_per_million, rate=rate)
    per_million, (low, high) = each(owned), tco.band(owned, each)
    entry["total_per_million"] = {
        "mean": per_million.mean, "u95": per_million.u95, "low": low, "high": high,
        "unit": per_unit,
    }  # fmt: skip
    cloud = ledger.summed_given("cloud_per_hour")
    if cloud is not None:
        found = tco.cloud_break_even(owned, cloud)
        entry["cloud"] = {
            "per_hour": cloud,
            "hours": None if found is None else found.hours,
            "utilisation_frac": None if found is None else found.utilisation_frac,
        }
    return entry


def _tco_entry(owned: tco.Ownership, currency: str, *, is_idle_read: bool) -> Entry:
    terms, (low, high) = tco.parts(owned), tco.band(owned)
    total = terms.total
    names = (
        "price", "residual", "energy_active", "energy_idle", "support", "staff", "downtime",
    )  # fmt: skip
    return {
        "mean": total.mean,
        "u95": total.u95,
        "low": low,
        "high": high,
        "unit": currency,
        "years": owned.years,
        "idle_w": owned.idle_w,
        "is_idle_read": is_idle_read and owned.idle_w is not None,
        "parts": {name: getattr(terms, name).mean for name in names},
        "tornado": [
            {
                "input": swing.input,
                "low_value": swing.low_value,
                "high_value": swing.high_value,
                "at_low": swing.at_low,
                "at_high": swing.at_high,
            }
            for swing in tco.tornado(owned)
        ],
    }


def _faults(ledger: Ledger) -> tuple[Entry | None, float]:
    """The entry `faults`, and what faults cost an hour under load.

    Null and 0 without a price of downtime.
    """
    per_hour = ledger.optional("downtime_per_hour")
    if per_hour is None or not ledger.keys:
        return None, 0.0
    cards, faults = len(ledger.keys), _known_faults(ledger, ledger.mtbf_h())
    hours = HOURS_PER_YEAR * ledger.value("utilisation_frac")
    lost_h = checkpointing.lost_per_year_h(faults, cards, hours)
    entry = {
        "checkpoint_interval_h": checkpointing.interval_h(faults, cards),
        "lost_h_per_year": lost_h,
        "cost_per_year": lost_h * per_hour,
        "unit": str(ledger.currency),
        "ecc_premiums": _premiums(ledger, hours * ledger.value("horizon_years"), per_hour),
    }
    return entry, lost_h * per_hour / hours


def _known_faults(ledger: Ledger, mtbf_h: float) -> checkpointing.Faults:
    names = ("detect_h", "restart_h", "checkpoint_s")
    return checkpointing.Faults(mtbf_h, *(ledger.value(name) for name in names))


def _premiums(ledger: Ledger, hours: float, per_hour: float) -> list[Entry]:
    """For a card without end-to-end ECC: when that of each card with it and a price would pay."""
    profiles, cards = card_profiles(), len(ledger.keys)
    key = ledger.keys[0]
    is_without = key in profiles and ecc_of(profiles[key])[0] is False
    if len(set(ledger.keys)) != 1 or not is_without or ledger.money.given("invoice", key) is None:
        return []
    found = []
    for other, profile in profiles.items():
        if not ecc_of(profile)[0] or ledger.money.given("invoice", other) is None:
            continue
        mtbf_h, own, more = (
            ledger.of_card(*named)
            for named in (("mtbf_h", other), ("invoice", key), ("invoice", other))
        )
        if mtbf_h is None or own is None or more is None:
            continue
        faults, amount = _known_faults(ledger, mtbf_h), cards * (more - own)
        premium = checkpointing.premium_pays(
            faults, cards, hours=hours, per_hour=per_hour, premium=amount
        )
        if premium is not None:
            found.append(
                {
                    "card": other,
                    "premium": premium.amount,
                    "faults_per_1000_card_hours": premium.faults_per_1000_card_hours,
                    "mtbf_h": premium.mtbf_h,
                }
            )
    return found
