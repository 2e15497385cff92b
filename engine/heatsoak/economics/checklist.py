"""What to settle before an order: answered from what heatsoak saw, or left as a question. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from heatsoak.economics.rules import ecc_of
from heatsoak.economics.words import gib, money

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heatsoak.economics.offers import CardSet, Provenance
    from heatsoak.profiles.archetypes import Archetype, ChecklistItem

Mark = Literal["seen", "known", "attention", "ask"]
"""`seen` when it was measured, `known` from a card profile or the buyer's own input, `attention`:
seen, and not as it should be, `ask`: a question for the seller."""

HOT_FRAC = 0.01
"""Share of the window in a thermal slow-down from which cooling needs attention."""
THERMAL_REASONS = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_slowdown")
PROBLEMS = {
    "slot": ("pcie",),
    "driver": ("driver", "early-driver", "driver-cuda", "architectures"),
    "branch": ("driver", "early-driver"),
    "power": ("power-limit",),
    "ecc": ("ecc", "defects"),
    "mig": ("mig",),
    "topology": ("peers", "nvlink", "route", "generations"),
    "host": ("host-load", "governor", "cores", "numa", "quota", "steal", "memory-bandwidth",
             "transfers", "disk-read"),
}  # fmt: skip
"""By item of the checklist: the ids of doctor's findings that speak of it."""
ERRATIC_BRANCHES = ("571", "572")
"""First driver branches of the 50-series, erratic in some training applications."""


@dataclass(frozen=True, slots=True)
class ChecklistRow:
    """One item of the checklist for one recommendation."""

    id: str
    item: str
    mark: Mark
    text: str
    """What was found, or the question to the seller."""
    provenance: Provenance | None = None
    """Where the answer comes from; None for a question."""
    ask: str = ""
    """The question that stays, also beside an answer."""


Found = tuple[Mark, str, "Provenance"]


def checklist(archetype: Archetype, cards: CardSet | None) -> tuple[ChecklistRow, ...]:
    """The archetype's checklist for what is recommended to it.

    Args:
        archetype: the kind of buyer.
        cards: the recommended set; None: nothing is recommended, so everything is a question.
    """
    return tuple(_row(item, cards) for item in archetype.checklist)


def _row(item: ChecklistItem, cards: CardSet | None) -> ChecklistRow:
    look = _LOOKS.get(item.id)
    found = look(cards) if look is not None and cards is not None else None
    if cards is not None:
        found = _with_problems(item.id, cards, found)
    if found is None:
        return ChecklistRow(item.id, item.item, "ask", item.ask, None, item.ask)
    mark, text, provenance = found
    return ChecklistRow(item.id, item.item, mark, text, provenance, item.ask)


def _with_problems(item: str, cards: CardSet, found: Found | None) -> Found | None:
    """The answer with what doctor warned of when the card was measured."""
    measured = cards.offer.measured
    if measured is None or measured.host is None:
        return found
    titles = [t for name, t in measured.host.problems if name in PROBLEMS.get(item, ())]
    if not titles:
        return found
    words = f"doctor: {'; '.join(titles)}"
    text = words if found is None else f"{found[1]}; {words}"
    return "attention", text, measured.provenance


def _price(cards: CardSet) -> Found | None:
    price = cards.offer.price
    if price is None:
        return None
    text = f"{money(price.amount, price.currency)} a card, invoice of {price.date}"
    return "known", text, "yours"


def _driver(cards: CardSet) -> Found | None:
    measured = cards.offer.measured
    if measured is None or measured.driver_version is None:
        return None
    text = f"measured on driver {measured.driver_version}"
    if measured.driver_version.split(".")[0] in ERRATIC_BRANCHES:
        return "attention", f"{text}, a launch branch that was erratic", measured.provenance
    return "seen", text, measured.provenance


def _isv(cards: CardSet) -> Found | None:
    fact = cards.offer.profile.facts.get("isv_drivers") if cards.offer.profile else None
    if fact is None or not isinstance(fact.value, bool):
        return None
    if not fact.value:
        return "attention", "no certified drivers for this line of cards", "reference"
    text = "this line of cards has certified drivers; the very combination has to be checked"
    return "known", text, "reference"


def _ecc(cards: CardSet) -> Found | None:
    measured = cards.offer.measured
    can, ships_on = ecc_of(cards.offer.profile)
    if measured is not None and measured.ecc_is_on is not None:
        if measured.ecc_is_on:
            return "seen", "on while it was measured", measured.provenance
        text = "off while it was measured" + ("; it can be switched on" if can else "")
        return "attention", text, measured.provenance
    if can is None:
        return None
    if not can:
        return "attention", "on-die only; it cannot be read or relied on", "reference"
    text = {True: "ships on", False: "ships off", None: "can be on"}[ships_on]
    return ("known" if ships_on else "attention"), f"{text}; read the mode", "reference"


def _mig(cards: CardSet) -> Found | None:
    fact = cards.offer.profile.facts.get("mig_max") if cards.offer.profile else None
    if fact is None or not isinstance(fact.value, float):
        return None
    text = f"up to {fact.value:g} instances" if fact.value else "no MIG"
    note = f" ({fact.note})" if fact.note and fact.value else ""
    is_sure = fact.value > 0 and not note
    return ("known" if is_sure else "attention"), text + note, "reference"


def _power(cards: CardSet) -> Found | None:
    measured = cards.offer.measured
    if measured is None or measured.power_w is None:
        fact = cards.offer.profile.power_w if cards.offer.profile else None
        if fact is None:
            return None
        return "known", f"{fact * cards.n:,.0f} W by specification, cards alone", "reference"
    each_w = measured.power_w.mean / measured.n
    text = f"{each_w:,.0f} W a card sustained"
    if measured.power_limit_w is not None:
        text += f", limit {measured.power_limit_w:,.0f} W"
    if cards.n > 1:
        text += f"; {cards.n} of them {each_w * cards.n:,.0f} W"
        if measured.n != cards.n:
            return "attention", f"{text}, not measured together", measured.provenance
    return "seen", text, measured.provenance


def _cooling(cards: CardSet) -> Found | None:
    measured = cards.offer.measured
    if measured is None or measured.temperature_c is None:
        return None
    text = f"steady at {measured.temperature_c:.0f} °C in this case"
    if measured.throttle_frac is None:
        return "seen", f"{text}; throttling is not reported", measured.provenance
    hot = max((measured.throttle_frac.get(name, 0.0) for name in THERMAL_REASONS), default=0.0)
    if hot > HOT_FRAC:
        text = f"{text}, slowed down by heat for {hot:.0%} of the window"
        return "attention", text, measured.provenance
    if cards.n > measured.n:
        return "attention", f"{text}, alone; {cards.n} warm each other", measured.provenance
    return "seen", f"{text}, not slowed down by heat", measured.provenance


def _slot(cards: CardSet) -> Found | None:
    measured, profile = cards.offer.measured, cards.offer.profile
    if measured is not None and None not in measured.pcie:
        gen, width = measured.pcie
        text = f"PCIe {gen} x{width} under load"
        want = (profile.pcie_gen, profile.pcie_width) if profile else measured.pcie_most
        if None not in want and (gen, width) != want:
            text = f"{text}, of PCIe {want[0]} x{want[1]}"
            return "attention", text, measured.provenance
        if cards.n > 1:
            text = f"{text}; {cards.n} cards need {cards.n} such slots"
            return "attention", text, measured.provenance
        return "seen", text, measured.provenance
    return None


def _memory(cards: CardSet) -> Found | None:
    measured, plan = cards.offer.measured, cards.plan
    if plan is not None:
        text = f"planned {gib(plan.peak_bytes)} of {gib(plan.usable_bytes)} usable a card"
        if cards.n > 1:
            text += f" on {cards.n}"
        return ("known" if plan.verdict == "yes" else "attention"), text, "planned"
    total = cards.offer.profile.memory_total_bytes if cards.offer.profile else None
    if measured is None or measured.memory_used_bytes is None or total is None:
        return None
    text = f"the measured workload used {gib(measured.memory_used_bytes)} of {gib(total)}"
    return "seen", text, measured.provenance


def _topology(cards: CardSet) -> Found | None:
    measured = cards.offer.measured
    if cards.n == 1 or measured is None or measured.host is None:
        return None
    if measured.host.devices < cards.n:
        return None
    text = f"doctor saw no fault between the {measured.host.devices} cards of this host"
    return "seen", text, measured.provenance


def _host(cards: CardSet) -> Found | None:
    measured = cards.offer.measured
    if measured is None or measured.host is None:
        return None
    host = measured.host
    known = [host.cpu, f"{host.cores} cores" if host.cores else None,
             f"{gib(host.memory_bytes)} of memory" if host.memory_bytes else None]  # fmt: skip
    text = ", ".join(part for part in known if part)
    if not text:
        return None
    if "unsaturated" in measured.flags:
        return "attention", f"{text}; it did not load the card fully", measured.provenance
    return "seen", f"{text}; it loaded the card fully", measured.provenance


_LOOKS: Mapping[str, Callable[[CardSet], Found | None]] = {
    "price": _price, "driver": _driver, "branch": _driver, "isv": _isv, "ecc": _ecc, "mig": _mig,
    "power": _power, "cooling": _cooling, "slot": _slot, "memory": _memory, "host": _host,
    "topology": _topology,
}  # fmt: skip
"""What heatsoak can say to an item; the others are the seller's to answer."""
