"""The field `economics` of a result in rows and words, for panels and commands. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heatsoak.profiles.money import TERMS
from heatsoak_tui.format import (
    DASH,
    as_entered,
    decimals_of,
    input_words,
    money,
    number,
    percent,
    significant,
    span,
    uncertainty,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what it is, how much, how sure, and on what it stands."""

    label: str
    value: str
    doubt: str = ""
    note: str = ""
    is_known: bool = True
    """False: something is missing, and the note says what."""


def job_money(document: Data | None, device_id: str | None) -> Data | None:
    """The economics of the job of a device; None before they are read."""
    economics = (document or {}).get("economics")
    if not document or not economics:
        return None
    own = next((job["job_id"] for job in document["jobs"] if device_id in job["devices"]), None)
    found: Data | None = next((e for e in economics["jobs"] if e["job_id"] == own), None)
    return found


def money_rows(entry: Data) -> list[Row]:
    """Money and energy of one job, the most asked first.

    Args:
        entry: one of `economics.jobs[]`.
    """
    rows = [_per_price(entry), _energy(entry), _tco(entry)]
    if (capital := entry["capital_per_million"]) is not None:
        rows.append(_amount(f"capital per 1M {entry['unit']}", capital, "over the horizon"))
    if (total := entry["total_per_million"]) is not None:
        low, high = significant(total["low"]), significant(total["high"])
        value = money(total["mean"], total["unit"].partition("/")[0])
        rows.append(Row(f"all-in per 1M {entry['unit']}", value, f"({low} to {high})"))
    rows += _cloud(entry)
    rows += _faults(entry)
    return rows


def _per_price(entry: Data) -> Row:
    label = f"{entry['unit']}/s per {entry['currency'] or 'price'}"
    figure = entry["units_per_s_per_price"]
    if figure is None:
        return Row(label, DASH, note=_missing(entry, "invoice"), is_known=False)
    value, doubt = figure_words(figure)
    return Row(label, value, doubt, f"invoice {_inputs_words(entry, 'invoice')}")


def _energy(entry: Data) -> Row:
    label = f"energy per 1M {entry['unit']}"
    kwh, paid = entry["kwh_per_million"], entry["energy_per_million"]
    if kwh is None:
        note = entry["reason"] or "no power is reported"
        return Row(label, DASH, note=note, is_known=False)
    amount = f"{' '.join(figure_words(kwh)).rstrip()} kWh"
    if paid is None:
        return Row(label, amount, note=f"in money: {_missing(entry, 'kwh_price')}", is_known=False)
    note = f"{amount} at {_inputs_words(entry, 'kwh_price', 'pue')}"
    return _amount(label, paid, note)


def _tco(entry: Data) -> Row:
    tco = entry["tco"]
    if tco is None:
        names = [name for name in ("invoice", "kwh_price") if _given(entry, name) is None]
        is_power_known = entry["kwh_per_million"] is not None
        why = _missing(entry, *names) if names or is_power_known else "no power is reported"
        return Row("TCO", DASH, note=why, is_known=False)
    years = f"{as_entered(tco['years'])} year{'s' if tco['years'] != 1 else ''}"
    band = f"({significant(tco['low'])} to {significant(tco['high'])})"
    return Row(f"TCO {years}", money(tco["mean"], tco["unit"]), band, _parts(tco))


def _parts(tco: Data) -> str:
    parts = tco["parts"]
    energy = parts["energy_active"] + parts["energy_idle"]
    text = f"price {as_entered(parts['price'])}, energy {significant(energy)}"
    rest = parts["support"] + parts["staff"] + parts["downtime"]
    if rest:
        text += f", support, staff, downtime {significant(rest)}"
    if parts["residual"]:
        text += f", residual {significant(parts['residual'])}"
    return text


def _cloud(entry: Data) -> Iterator[Row]:
    cloud = entry["cloud"]
    if cloud is None:
        return
    note = f"at {money(cloud['per_hour'], entry['currency'])} an hour"
    if cloud["hours"] is None:
        yield Row("cloud break-even", "never", note=f"renting stays cheaper {note}")
        return
    share = percent(cloud["utilisation_frac"], 0)
    yield Row("cloud break-even", f"{significant(cloud['hours'])} h", f"({share})", note)


def _faults(entry: Data) -> Iterator[Row]:
    faults = entry["faults"]
    if faults is None:
        return
    lost = f"{significant(faults['lost_h_per_year'])} h a year"
    every = span(faults["checkpoint_interval_h"] * 3600)
    yield Row(
        "downtime a year",
        money(faults["cost_per_year"], faults["unit"]),
        note=f"{lost}; a checkpoint every {every}",
    )
    for premium in faults["ecc_premiums"]:
        rate = significant(premium["faults_per_1000_card_hours"])
        amount = money(premium["premium"], faults["unit"])
        yield Row(
            "ECC pays from",
            f"{rate} more",
            note=f"faults per 1000 card-hours than {premium['card']}, which costs {amount} more",
        )


def scaling_rows(document: Data, entry: Data) -> list[Row]:
    """How jobs of several such cards compare with one, if the session has both."""
    rows = []
    for found in document["economics"]["scaling"]:
        if found["card"] not in entry["cards"]:
            continue
        value, doubt = figure_words(found["efficiency"])
        marginal = " ".join(figure_words(found["marginal"]))
        note = f"of {found['cards']} times one card; the last card adds {marginal}"
        if found["is_per_w_rising"]:
            note += "; perf/W rises with the cards: doubt it"
        if found["is_single_offloaded"]:
            note += "; one card alone had to offload: this flatters"
        rows.append(Row(f"scaling {found['cards']} cards", value, doubt, note))
    return rows


def spent_row(label: str, spent: Data, unit: str) -> Row:
    """What a run or an epoch took: kWh, time, money."""
    energy = spent["kwh"]
    value = DASH if energy is None else f"{significant(energy['mean'])} kWh"
    cost = spent["cost"]
    note = f"in {span(spent['seconds']['mean'])}"
    if cost is not None:
        note += f" for {money(cost['mean'], cost['unit'])}"
    return Row(label, value, note=f"{note}, {significant(spent['units'])} {unit}")


def assumed_words(entry: Data) -> str:
    """What was assumed, in one line: the most telling first, examples called so."""
    by_name = {i["name"]: i for i in entry["inputs"] if i["card"] in (None, *entry["cards"])}
    shown = [by_name[name] for name in _TELLING if name in by_name]
    examples = [_named(i) for i in shown if i["origin"] == "example" and i["value"]]
    none = [TERMS[i["name"]].label for i in shown if i["origin"] == "example" and not i["value"]]
    own = [_named(i) for i in shown if i["origin"] != "example"]
    if any(by_name[n]["origin"] == "example" for n in _FAULTS if n in by_name):
        examples.append("how often and how long it fails")
    several = "s" if len(examples) + len(none) > 1 else ""
    if none:
        examples.append(f"no {', '.join(none)}")
    words = [", ".join(own)] if own else []
    if examples:
        words.append(f"{', '.join(examples)} (example{several})")
    tco = entry["tco"]
    if tco is not None:
        words.append(
            "idle power not counted" if tco["idle_w"] is None
            else f"idle {significant(tco['idle_w'])} W"
            + (" as read" if tco["is_idle_read"] else "")
        )  # fmt: skip
    return "; ".join(words) or DASH


_TELLING = (
    "horizon_years", "utilisation_frac", "pue", "residual_frac", "support_per_year",
    "staff_per_year",
)  # fmt: skip
_FAULTS = ("mtbf_h", "detect_h", "restart_h", "checkpoint_s")


def has_prices(entry: Data) -> bool:
    """Whether a price of the user's was used."""
    return bool(_prices(entry))


def _prices(entry: Data) -> list[Data]:
    """The inputs that are prices of this job's cards and of a kWh."""
    return [
        i
        for i in entry["inputs"]
        if i["name"] in ("invoice", "kwh_price") and i["card"] in (None, *entry["cards"])
    ]


def price_words(entry: Data, *, has_days: bool) -> str:
    """The prices used and whose: `yours: USD 2 899 (2026-10-12), 0.187 USD/kWh (2026-12-01)`."""
    used = _prices(entry)
    if not used:
        return "no prices entered"
    words = []
    for i in used:
        card = f"{i['card']} " if len(entry["cards"]) > 1 and i["card"] else ""
        day = f" ({i['date']})" if i["date"] and has_days else ""
        words.append(f"{card}{input_words(i['value'], i['unit'])}{day}")
    stored = [str(i["source"]) for i in used if i["origin"] == "session"]
    whose = "yours" if not stored else stored[0] if len(stored) == len(used) else "yours and stored"
    return f"{whose}: {', '.join(words)}"


def reference_words(entry: Data) -> str:
    """Prices of others, which are never used: `launch price USD 1 999 of 2025-01-30: stale`."""
    words = []
    for found in entry["references"]:
        day = f" of {found['date']}" if found["date"] else ""
        stale = ", stale" if found["is_stale"] and found["date"] else ""
        price = input_words(found["value"], found["unit"])
        words.append(f"{found['card']} launch price {price}{day}{stale}: not used")
    return "; ".join(words)


def origin_words(found: Data) -> str:
    """Whose one input is, with its day."""
    day = f" of {found['date']}" if found["date"] else ""
    if found["origin"] == "yours":
        return f"yours{day}"
    if found["origin"] == "session":
        return f"{found['source']}{day}"
    stale = "stale " if found["is_stale"] else ""
    return f"{stale}{found['origin']}{day}: {found['source']}"


def figure_words(figure: Data) -> tuple[str, str]:
    """A figure and its interval, to the digits that the interval leaves."""
    mean, u95 = figure["mean"], figure["u95"]
    if not u95:
        return significant(mean), ""
    return number(mean, decimals_of(mean, u95)), uncertainty(mean, u95)


def _amount(label: str, figure: Data, note: str) -> Row:
    coin = figure["unit"].partition("/")[0]
    value = money(figure["mean"], coin, figure["u95"])
    return Row(label, value, uncertainty(figure["mean"], figure["u95"]), note)


def _missing(entry: Data, *names: str) -> str:
    """What has to be entered, in a few words."""
    if entry["reason"] is not None:
        return str(entry["reason"])
    mixed = [words for words in entry["needed"] if "exchange rate" in words]
    if mixed:
        return str(mixed[0]).partition(": heatsoak")[0]
    what = {"invoice": "the invoiced price", "kwh_price": "what a kWh costs"}
    return f"enter {' and '.join(what[name] for name in names)}"


def _given(entry: Data, name: str) -> Data | None:
    own = (None, *entry["cards"])
    found = (i for i in entry["inputs"] if i["name"] == name and i["card"] in own)
    return next(found, None)


def _inputs_words(entry: Data, *names: str) -> str:
    found: Sequence[Data] = [
        i
        for name in names
        for i in entry["inputs"]
        if i["name"] == name and i["card"] in (None, *entry["cards"])
    ]
    count = sum(entry["cards"].values())
    words = [
        f"PUE {as_entered(i['value'])}" if i["name"] == "pue"
        else input_words(i["value"], i["unit"])
        for i in found
    ]  # fmt: skip
    times = f"{count} x " if names == ("invoice",) and count > 1 and len(found) == 1 else ""
    return times + ", ".join(words)


def _named(found: Data) -> str:
    value = input_words(found["value"], found["unit"])
    label = TERMS[found["name"]].label
    return f"{label} {value}" + (f" ({found['card']})" if found["card"] else "")
