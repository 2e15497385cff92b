"""The field `economics` of `heatsoak-result/1`: what a session's figures mean in money.

Only steady figures are used. What would need a price that no user gave is null, and `needed` says
what to enter; inputs that are examples or references are listed as such.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from heatsoak.clock import now_utc
from heatsoak.economics import cost, scaling
from heatsoak.economics.estimate import Estimate, exact
from heatsoak.errors import UsageError
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.money import MixedCurrenciesError
from heatsoak.profiles.prices import examples, known_money, price_key
from heatsoak.session.money_inputs import Ledger
from heatsoak.session.ownership import ownership_entry
from heatsoak.session.slices import is_shared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heatsoak.profiles.money import Input, Money
    from heatsoak.session.run_facts import RunFacts, SessionFacts

Entry = dict[str, Any]
FIGURES = (
    "units_per_s_per_price", "units_per_s_per_w", "units_per_joule", "kwh_per_million",
    "energy_per_million", "capital_per_million", "total_per_million",
)  # fmt: skip
"""What is computed of every job; null where something for it is missing."""


def economics_of(
    document: Mapping[str, Any], facts: SessionFacts, money: Money, *, today: str
) -> Entry:
    """The field.

    Args:
        document: the rest of `heatsoak-result/1`.
        facts: what else is known of the session.
        money: everything known of prices.
        today: ISO 8601; by it references are stale or not.
    """
    devices = document["devices"]
    by_id = {device["device_id"]: device for device in devices}
    entries = []
    for job in document["jobs"]:
        own = [by_id[device_id] for device_id in job["devices"] if device_id in by_id]
        entries.append(_job(job, own, facts.by_job.get(job["job_id"]), money, today))
    marks = {device["provenance"].upper() for device in devices} - {"MEASURED"}
    if document["session"]["protocol"] == "smoke":
        marks.add("SMOKE")
    return {
        "labels": sorted(marks, reverse=True),
        "as_of": today,
        "problem": None,
        "stored": facts.stored,
        "jobs": entries,
        "scaling": _scaling(document["jobs"], by_id, entries),
        "idle": [
            {"device_id": device_id, "name": by_id[device_id]["name"], "power_w": power_w}
            for device_id, power_w in facts.idle_w.items()
        ],
    }


def economics_today(document: Mapping[str, Any], facts: SessionFacts) -> Entry:
    """The field with the prices known now; those of an unreadable file are missing, and said."""
    profiles = card_profiles()
    ids = dict.fromkeys(device["card"] for device in document["devices"])
    cards = [profiles[card] for card in ids if card in profiles]
    today, problem = now_utc()[:10], None
    try:
        money = known_money(cards, facts.stored)
    except UsageError as error:
        money, problem = examples(), str(error)
    return economics_of(document, facts, money, today=today) | {"problem": problem}


def _job(
    job: Entry, devices: Sequence[Entry], facts: RunFacts | None, money: Money, today: str
) -> Entry:
    keys = [_price_key(device) for device in devices]
    entry: Entry = {
        "job_id": job["job_id"],
        "unit": job["unit"],
        "cards": dict(Counter(keys)),
        "currency": None,
        "reason": None,
        **dict.fromkeys(FIGURES),
        "tco": None, "cloud": None, "faults": None, "run": None, "epoch": None,
        "inputs": [], "references": [], "needed": [],
    }  # fmt: skip
    ledger = Ledger(money, keys)
    entry["currency"] = ledger.currency
    entry["references"] = [
        input_entry(found, today)
        for key in dict.fromkeys(keys)
        if (found := money.find("invoice", key)) is not None and found.origin == "reference"
    ]
    rate, reason = _rate(job, devices)
    if rate is None:
        entry["reason"] = reason
    else:
        _compute(entry, job, devices, rate, ledger, facts)
    _spent(entry, job, rate, devices, ledger, facts)
    entry["inputs"] = [input_entry(used, today) for used in ledger.used]
    entry["needed"] = ledger.needed
    return entry


def _price_key(device: Entry) -> str:
    mig = device["mig"]
    profile = None if mig is None else mig["profile"] or "slice"
    return price_key(device["card"], device["kind"], device["name"], profile)


def _rate(job: Entry, devices: Sequence[Entry]) -> tuple[Estimate | None, str | None]:
    """The sustained rate of the whole job, or why there is none."""
    for device in devices:
        if not device["sustained"]:
            state = device["verdict"]["state"] if device["verdict"] else "not judged"
            return None, f"nothing is computed: {device['device_id']} is {state}, not steady"
    rate = estimate(job["throughput"])
    if rate is None or rate.mean <= 0:
        return None, "nothing is computed: no throughput was counted"
    return rate, None


def _compute(
    entry: Entry,
    job: Entry,
    devices: Sequence[Entry],
    rate: Estimate,
    ledger: Ledger,
    facts: RunFacts | None,
) -> None:
    """Fill in what can be; amounts that would need an exchange rate stay null, and it is said."""
    unit = job["unit"]
    power, joules = job_power(devices), job_joules(devices)
    if power is not None and power.mean > 0:
        per_watt = cost.per_watt(rate, power)
        entry["units_per_s_per_w"] = figure(per_watt, f"{unit}/s/W")
    if joules is not None and joules.mean > 0:
        entry["units_per_joule"] = figure(cost.per_joule(joules), f"{unit}/J")
    million = f"1M {unit}"
    idle_w = facts.idle_w if facts is not None else None
    steps = (
        partial(_per_price, ledger, rate, unit),
        partial(_per_energy, ledger, joules, million),
        partial(_energy_paid, ledger, joules, million),
        partial(
            ownership_entry, ledger, rate, power,
            measured_idle_w=idle_w, per_unit=f"{ledger.currency}/{million}",
        ),
    )  # fmt: skip
    for step in steps:
        try:
            entry |= step()
        except MixedCurrenciesError as error:
            ledger.need(error.needed)


def _per_price(ledger: Ledger, rate: Estimate, unit: str) -> Entry:
    price, coin = ledger.price(), ledger.currency
    if price is None:
        return {}
    capital = cost.capital_per_million(
        rate,
        price,
        residual_frac=ledger.residual_frac(),
        support_per_year=ledger.summed("support_per_year"),
        years=ledger.value("horizon_years"),
        utilisation_frac=ledger.value("utilisation_frac"),
    )
    return {
        "units_per_s_per_price": figure(cost.per_price(rate, price), f"{unit}/s/{coin}"),
        "capital_per_million": figure(capital, f"{coin}/1M {unit}"),
    }


def _per_energy(ledger: Ledger, joules: Estimate | None, million: str) -> Entry:
    if joules is None:
        return {}
    kwh = cost.kwh_per_million(joules, ledger.value("pue"))
    return {"kwh_per_million": figure(kwh, f"kWh/{million}")}


def _energy_paid(ledger: Ledger, joules: Estimate | None, million: str) -> Entry:
    if joules is None or (kwh_price := ledger.kwh_price()) is None:
        return {}
    paid = cost.energy_per_million(joules, ledger.value("pue"), kwh_price)
    return {"energy_per_million": figure(paid, f"{ledger.currency}/{million}")}


def _spent(
    entry: Entry,
    job: Entry,
    rate: Estimate | None,
    devices: Sequence[Entry],
    ledger: Ledger,
    facts: RunFacts | None,
) -> None:
    """Time, energy and money of the run as it was, and of an epoch at the sustained rate."""
    pue, coin = ledger.value("pue"), ledger.currency
    try:
        kwh_price = ledger.kwh_price()
    except MixedCurrenciesError:
        kwh_price = None  # Said where it first mattered.
    if facts is not None:
        run = cost.measured_spent(facts.units, facts.seconds, facts.joules, pue, kwh_price)
        entry["run"] = spent_entry(run, coin)
    units = job["facts"].get("units_per_epoch")
    if rate is not None and isinstance(units, int | float) and units > 0:
        all_in = estimate(job["all_in_throughput"]) or rate
        epoch = cost.spent_on(float(units), all_in, job_joules(devices), pue, kwh_price)
        entry["epoch"] = spent_entry(epoch, coin)


def _scaling(
    jobs: Sequence[Entry], by_id: Mapping[str, Entry], entries: Sequence[Entry]
) -> list[Entry]:
    """Jobs of one recipe on one kind of card, against that on a single one."""
    groups: dict[tuple[str, str, str], list[scaling.Point]] = {}
    names: dict[tuple[str, str, str], str] = {}
    for job, entry in zip(jobs, entries, strict=True):
        rate = estimate(job["throughput"])
        if rate is None or len(entry["cards"]) != 1:
            continue
        (card,) = entry["cards"]
        key = (job["workload"], job["recipe_hash"], card)
        names[key] = by_id[job["devices"][0]]["name"]
        offloads = "offload" in str(job["facts"].get("strategy", ""))
        per_watt = estimate(entry["units_per_s_per_w"])
        point = scaling.Point(len(job["devices"]), rate, per_watt, offloads)
        groups.setdefault(key, []).append(point)
    return [
        {
            "card": key[2],
            "name": names[key],
            "workload": key[0],
            "recipe_hash": key[1],
            "cards": found.cards,
            "efficiency": figure(found.efficiency, "1"),
            "marginal": figure(found.marginal, "1"),
            "is_per_w_rising": found.is_per_watt_rising,
            "is_single_offloaded": found.is_single_offloaded,
        }
        for key, points in groups.items()
        for found in scaling.scaled(points)
    ]


def job_power(devices: Sequence[Entry]) -> Estimate | None:
    """Sustained power of all cards of a job, W; None where one is not known or not its own."""
    if any(is_shared(device["mig"]) for device in devices):
        return None
    return _summed(devices, "power_w")


def job_joules(devices: Sequence[Entry]) -> Estimate | None:
    """Joules a unit of all cards of a job; each card's are over the units of the whole job."""
    return _summed(devices, "joules_per_unit")


def _summed(devices: Sequence[Entry], name: str) -> Estimate | None:
    found = exact(0.0)
    for device in devices:
        part = estimate((device["sustained"] or {}).get(name))
        if part is None:
            return None
        found += part
    return found if devices else None


def estimate(entry: Mapping[str, Any] | None) -> Estimate | None:
    """The estimate of a figure of the document."""
    return None if entry is None else Estimate(entry["mean"], entry["u95"])


def figure(found: Estimate, unit: str) -> Entry:
    """An estimate as the document has it."""
    return {"mean": found.mean, "u95": found.u95, "unit": unit}


def spent_entry(spent: cost.Spent, currency: str | None) -> Entry:
    """What a stretch of work took, as the document has it."""
    return {
        "units": spent.units,
        "seconds": figure(spent.seconds, "s"),
        "kwh": None if spent.kwh is None else figure(spent.kwh, "kWh"),
        "cost": None if spent.money is None else figure(spent.money, str(currency)),
    }


def input_entry(used: Input, today: str) -> Entry:
    """An input as the document has it."""
    return {
        "name": used.name,
        "card": used.card,
        "value": used.value,
        "unit": used.unit,
        "currency": used.currency,
        "date": used.date,
        "origin": used.origin,
        "source": used.source,
        "is_stale": used.is_stale(today),
    }
