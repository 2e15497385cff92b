"""The clauses an archetype is made of, and what may decide: each shows its evidence. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.economics import cost
from heatsoak.economics.estimate import exact
from heatsoak.economics.offers import Evidence
from heatsoak.economics.words import gib, money
from heatsoak.profiles.archetypes import MEASURED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heatsoak.economics.estimate import Estimate
    from heatsoak.economics.offers import CardSet, Needs, Offer
    from heatsoak.profiles.archetypes import Criterion, Must, Require
    from heatsoak.profiles.cards import CardProfile, Fact

DRIVER_FAMILIES = "https://ai-infrastructure.net/driver-by-tier/"
"""Which driver families and support a tier of cards gets (paraphrases the vendor's licence)."""
MUST_WORDS: dict[Must, str] = {
    "ecc": "ECC", "isv": "ISV-certified drivers", "support": "enterprise support", "mig": "MIG",
}  # fmt: skip
TIER_WORDS = {
    "geforce": "GeForce", "pro_workstation": "professional workstation",
    "datacenter_pcie": "data center PCIe", "datacenter_sxm": "data center SXM",
}  # fmt: skip
"""What a tier of cards is called."""
LESS_IS_BETTER = frozenset({"set_price", "cards"})
LEAST_MIG = 2
"""Instances that `--must mig` asks for: one would be the card itself."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One requirement, held against one set of cards."""

    name: str
    wanted: str
    """The requirement in words."""
    is_met: bool | None
    """None: not known; a question, not a yes."""
    text: str
    """What is the case."""
    evidence: tuple[Evidence, ...] = ()
    is_yours: bool = False
    """Whether the buyer asked for it, rather than the archetype."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory the measured workload used on a card, and which card that was."""

    used_bytes: float
    name: str
    provenance: str


def measured_peak(offers: Sequence[Offer]) -> Peak | None:
    """The greatest over all measured cards; None where none reports its memory."""
    peaks = [
        Peak(o.measured.memory_used_bytes, o.name, o.measured.provenance)
        for o in offers
        if o.measured is not None and o.measured.memory_used_bytes is not None
    ]
    return max(peaks, key=lambda peak: peak.used_bytes, default=None)


def clauses(
    require: Require, cards: CardSet, needs: Needs, peak: Peak | None
) -> tuple[Clause, ...]:
    """Every requirement of archetype and buyer, held against one set of cards.

    Args:
        require: the archetype's.
        cards: the set, with its memory plan where a training was named.
        needs: the buyer's.
        peak: what the measured workload used.
    """
    return tuple(_clauses(require, cards, needs, peak))


def _clauses(require: Require, cards: CardSet, needs: Needs, peak: Peak | None) -> Iterator[Clause]:
    card = cards.offer.profile
    if require.tiers is not None:
        yield _tier(require.tiers, card)
    if require.memory_gb is not None:
        yield _nominal_memory(require.memory_gb, card)
    label = needs.recipe or require.holds
    if label is not None:
        is_yours = needs.recipe is not None
        if label == MEASURED:
            yield _holds_measured(cards, peak, with_ecc=needs_ecc(require, needs))
        else:
            yield _holds(label, cards, is_yours=is_yours)
    if needs_ecc(require, needs):
        yield _ecc(cards, is_yours=not require.ecc)
    if require.isv or "isv" in needs.musts:
        yield _isv(card, is_yours=not require.isv)
    if require.support or "support" in needs.musts:
        yield _support(card, is_yours=not require.support)
    if require.mig is not None or "mig" in needs.musts:
        yield _mig(require.mig or LEAST_MIG, card, is_yours=require.mig is None)
    if require.nvlink_gb_per_s is not None:
        yield _nvlink(require.nvlink_gb_per_s, card)
    if needs.budget is not None:
        yield _budget(needs.budget, cards)
    if needs.power_w is not None:
        yield _power(needs.power_w, cards)


def _tier(tiers: tuple[str, ...], card: CardProfile | None) -> Clause:
    wanted = f"a {' or '.join(TIER_WORDS[tier] for tier in tiers)} card"
    if card is None or card.tier is None:
        return Clause("tier", wanted, None, "not known what kind of card it is")
    text = f"it is a {TIER_WORDS.get(card.tier, card.tier)} card"
    return Clause("tier", wanted, card.tier in tiers, text, (Evidence("reference", text),))


def _nominal_memory(ends: tuple[float, float], card: CardProfile | None) -> Clause:
    low, high = ends
    wanted = f"{low:g} GB" if low == high else f"{low:g} to {high:g} GB"
    fact = _fact(card, "memory_nominal_gb")
    value = fact.value if fact else None
    if fact is None or not isinstance(value, float):
        return Clause("memory_gb", wanted, None, "its memory is not known")
    text = f"it has {value:g} GB"
    return Clause("memory_gb", wanted, low <= value <= high, text, (_cited(text, fact),))


def _holds_measured(cards: CardSet, peak: Peak | None, *, with_ecc: bool) -> Clause:
    """A card that ran the workload holds it; of others the memory it used elsewhere is asked."""
    wanted = "memory for the measured workload"
    measured, card = cards.offer.measured, cards.offer.profile
    total = memory_of(card, with_ecc=with_ecc)
    if measured is not None:
        used = measured.memory_used_bytes
        of = f"; it used {gib(used)}" + (f" of {gib(total)}" if total else "") if used else ""
        text = f"the measured workload ran on it{of}"
        evidence = Evidence(measured.provenance, text, ", ".join(measured.devices))
        return Clause("holds", wanted, True, text, (evidence,))
    if peak is None or total is None:
        return Clause("holds", wanted, None, "not known how much the measured workload needs here")
    text = (
        f"the measured workload used {gib(peak.used_bytes)} on {peak.name}; this has {gib(total)}"
    )
    evidence = _cited(text, _fact(card, "memory_total_mib"))
    return Clause("holds", wanted, peak.used_bytes <= total, text, (evidence,))


def _holds(label: str, cards: CardSet, *, is_yours: bool) -> Clause:
    wanted = f"memory for {label}"
    plan = cards.plan
    if plan is None:
        text = "not known: the card has no profile that says its memory"
        return Clause("holds", wanted, None, text, is_yours=is_yours)
    sums = f"{gib(plan.peak_bytes)} of {gib(plan.usable_bytes)} usable a card on {cards.n}"
    if cards.one is not None and plan.verdict == "yes":
        sums += f"; one alone would have to hold {gib(cards.one.peak_bytes)}"
    text = {
        "yes": f"fits: {sums}",
        "tight": f"tight, under 5 % to spare: {sums}",
        "no": f"does not fit: {sums}",
    }[plan.verdict]
    is_met = {"yes": True, "tight": None, "no": False}[plan.verdict]
    evidence = Evidence("planned", f"{label} on {cards.label}: {sums}", "heatsoak fit")
    return Clause("holds", wanted, is_met, text, (evidence,), is_yours)


def ecc_of(card: CardProfile | None) -> tuple[bool | None, bool | None]:
    """Whether the whole memory can be error-corrected, and whether that ships switched on.

    On-die correction does not count: it never leaves the memory chip, and no driver reports it.
    """
    if card is None or card.ecc_kind is None:
        return None, None
    return card.ecc_kind in ("inline", "full"), card.ecc_ships_on


def needs_ecc(require: Require, needs: Needs) -> bool:
    """Whether error correction has to be switched on."""
    return require.ecc or "ecc" in needs.musts


def memory_of(card: CardProfile | None, *, with_ecc: bool) -> int | None:
    """Memory in bytes as NVML reports it; inline correction that is switched on takes its part."""
    if card is None:
        return None
    return card.memory_with_ecc_bytes if with_ecc else card.memory_total_bytes


def _ecc(cards: CardSet, *, is_yours: bool) -> Clause:
    wanted = MUST_WORDS["ecc"]
    card, measured = cards.offer.profile, cards.offer.measured
    can, ships_on = ecc_of(card)
    evidence = [] if can is None else [_cited(_ecc_words(card), _fact(card, "ecc"))]
    is_on = measured.ecc_is_on if measured is not None else None
    if measured is not None and is_on is not None:
        state = f"ECC was {'on' if is_on else 'off'} when it was measured"
        evidence.append(Evidence(measured.provenance, state, ", ".join(measured.devices)))
        text = state if is_on else f"{state}; it can be switched on, then measure again"
        return Clause("ecc", wanted, can if not is_on else True, text, tuple(evidence), is_yours)
    if can is None:
        return Clause("ecc", wanted, None, "not known of this card", is_yours=is_yours)
    how = {True: ", and ships on", False: ", but ships off: read the mode", None: ""}[ships_on]
    text = f"whole memory, can be on{how}" if can else "on-die only, not end to end"
    return Clause("ecc", wanted, can, text, tuple(evidence), is_yours)


def _ecc_words(card: CardProfile | None) -> str:
    fact = _fact(card, "ecc")
    return str(fact.value) if fact else ""


def _isv(card: CardProfile | None, *, is_yours: bool) -> Clause:
    wanted, fact = MUST_WORDS["isv"], _fact(card, "isv_drivers")
    if fact is None or not isinstance(fact.value, bool):
        text = "not known of this card; ask" + (f" ({fact.note})" if fact and fact.note else "")
        return Clause("isv", wanted, None, text, is_yours=is_yours)
    text = "there are certified drivers for it" if fact.value else "none for this line of cards"
    return Clause("isv", wanted, fact.value, text, (_cited(text, fact),), is_yours)


def _support(card: CardProfile | None, *, is_yours: bool) -> Clause:
    wanted, tier = MUST_WORDS["support"], card.tier if card else None
    if tier is None:
        return Clause("support", wanted, None, "not known of this card", is_yours=is_yours)
    has = tier != "geforce"
    text = "enterprise driver branch and contracts" if has else "a consumer card: none"
    evidence = Evidence("reference", f"{TIER_WORDS.get(tier, tier)} card: {text}", DRIVER_FAMILIES)
    return Clause("support", wanted, has, text, (evidence,), is_yours)


def _mig(least: int, card: CardProfile | None, *, is_yours: bool) -> Clause:
    wanted, fact = f"{MUST_WORDS['mig']}, {least} instances at least", _fact(card, "mig_max")
    if fact is None or not isinstance(fact.value, float):
        return Clause("mig", wanted, None, "not known of this card", is_yours=is_yours)
    text = f"up to {fact.value:g} instances" if fact.value else "no MIG"
    if fact.value and fact.note:
        text += f" ({fact.note})"
    return Clause("mig", wanted, fact.value >= least, text, (_cited(text, fact),), is_yours)


def _nvlink(least: float, card: CardProfile | None) -> Clause:
    wanted, fact = f"NVLink of {least:g} GB/s at least", _fact(card, "nvlink_gb_per_s")
    if fact is None or not isinstance(fact.value, float):
        return Clause("nvlink", wanted, None, "not known of this card")
    text = f"NVLink {fact.value:g} GB/s" if fact.value else "no NVLink"
    return Clause("nvlink", wanted, fact.value >= least, text, (_cited(text, fact),))


def _budget(budget: float, cards: CardSet) -> Clause:
    price = cards.offer.price
    if price is None or cards.price is None:
        text = f"no price of {cards.offer.name} was entered"
        return Clause("budget", f"at most {budget:,.0f}", None, text, is_yours=True)
    text = f"{cards.label}: {money(cards.price, price.currency)}"
    wanted = f"at most {money(budget, price.currency)}"
    evidence = Evidence("yours", f"{text}, invoice of {price.date}")
    return Clause("budget", wanted, cards.price <= budget, text, (evidence,), is_yours=True)


def _power(most_w: float, cards: CardSet) -> Clause:
    """What was measured, where these cards were; else the board power of the specification."""
    wanted = f"at most {most_w:,.0f} W together"
    measured, fact = cards.offer.measured, _fact(cards.offer.profile, "power_w")
    if measured is not None and measured.power_w is not None:
        each_w = measured.power_w.mean / measured.n
        text = f"{each_w * cards.n:,.0f} W sustained"
        if cards.n != measured.n:
            text += f", {cards.n} times what one was measured to draw"
        evidence = Evidence(measured.provenance, text, ", ".join(measured.devices))
        return Clause("power", wanted, each_w * cards.n <= most_w, text, (evidence,), True)
    if fact is None or not isinstance(fact.value, float):
        return Clause("power", wanted, None, "its power is not known", is_yours=True)
    text = f"{fact.value * cards.n:,.0f} W by its specification"
    return Clause(
        "power", wanted, fact.value * cards.n <= most_w, text, (_cited(text, fact),), True
    )


def value(criterion: Criterion, cards: CardSet, needs: Needs) -> Estimate | None:
    """What decides, of one set of cards; None where it is not known."""
    measured, price = cards.measured, cards.price
    if criterion == "set_price":
        return None if price is None else exact(price)
    if criterion == "cards":
        return exact(cards.n)
    if criterion == "headroom_bytes":
        return None if cards.plan is None else exact(cards.plan.headroom_bytes)
    if criterion == "memory_bytes":
        total = cards.offer.profile.memory_total_bytes if cards.offer.profile else None
        return None if total is None else exact(total)
    if measured is None:
        return None
    if criterion == "rate":
        return measured.rate_per_s
    if criterion == "units_per_joule":
        joules = measured.joules_per_unit
        return None if joules is None or joules.mean <= 0 else cost.per_joule(joules)
    if price is None:
        return None
    if criterion == "units_per_price":
        return cost.per_price(measured.rate_per_s, price)
    return _per_total(cards, price, needs)


def is_shown_better(one: Estimate, other: Estimate, criterion: Criterion) -> bool:
    """Whether the intervals of 95 % lie apart, `one` on the better side.

    An estimate without an interval is never shown to be better, nor to be worse.
    """
    if one.u95 is None or other.u95 is None:
        return False
    if criterion in LESS_IS_BETTER:
        return one.mean + one.u95 < other.mean - other.u95
    return one.mean - one.u95 > other.mean + other.u95


def _per_total(cards: CardSet, price: float, needs: Needs) -> Estimate | None:
    """Units over the cards' life per unit of money spent on them and on their energy."""
    measured, energy = cards.measured, needs.energy
    if measured is None or measured.joules_per_unit is None or energy is None:
        return None
    if cards.offer.price is None or energy.currency != cards.offer.price.currency:
        return None
    capital = cost.capital_per_million(
        measured.rate_per_s, price, residual_frac=0.0, support_per_year=0.0,
        years=energy.years, utilisation_frac=energy.utilisation_frac,
    )  # fmt: skip
    spent = cost.energy_per_million(measured.joules_per_unit, energy.pue, energy.price_per_kwh)
    return exact(cost.MILLION) / (capital + spent)


def _fact(card: CardProfile | None, name: str) -> Fact | None:
    return card.facts.get(name) if card is not None else None


def _cited(text: str, fact: Fact | None) -> Evidence:
    """A statement of a card profile: known of the card model, not measured here."""
    sources = "; ".join(fact.sources) if fact else ""
    return Evidence("reference", text, sources or None)
