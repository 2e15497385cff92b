"""What is known of a card model before measuring it: one YAML file a card, every figure sourced.

Shipped files live in `profiles/cards/`; a user's own, in `$XDG_CONFIG_HOME/heatsoak/cards/`, win
over a shipped one of the same id. An unknown figure is absent, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from heatsoak.errors import UsageError
from heatsoak.profiles import checks
from heatsoak.profiles.checks import SchemaError, is_number, known, mapping, optional_text, text
from heatsoak.profiles.files import read_yaml, shipped_folder, user_folder
from heatsoak.units import BYTES_PER_MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SCHEMA = "heatsoak-card/1"
MEMORY_TOLERANCE_FRAC = 0.1
"""How far the memory a driver reports may be from the profile's (inline ECC takes 1/16)."""

FactValue = float | str | bool | tuple[float, float] | None

_NUMBERS = (
    "memory_total_mib",
    "memory_nominal_gb",
    "bandwidth_gb_per_s",
    "power_w",
    "bf16_dense_tflops",
    "fp8_dense_tflops",
    "bf16_gemm_measured_tflops",
    "nvlink_gb_per_s",
    "mig_max",
    "msrp_usd",
    "street_2026_usd",
)
_TEXTS = ("architecture", "compute_capability", "memory_type", "ecc", "ecc_kind", "pcie", "launch")
_FLAGS = ("isv_drivers", "ecc_ships_on")
EccKind = Literal["none", "on-die", "inline", "full"]
INLINE_ECC_FRAC = 1 / 16
"""Of the memory, what inline ECC takes (GDDR6; an RTX 6000 Ada reports 49140 or 46068 MiB)."""
_TOP_KEYS = ("schema", "id", "name", "tier", "nvml", "facts", "sources")


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure with its evidence."""

    value: FactValue
    """The figure in the unit its name says; a pair is a range; None: known to be not known."""
    sources: tuple[str, ...] = ()
    """Where it was read, in words or as an address."""
    note: str | None = None
    confidence: str | None = None
    """`measured`, `derived`, `secondary` or `conflicting`; None: stated by the vendor."""
    as_of: str | None = None
    """The day or month of the newest source, for what changes: `2026-06-25`, `2026-05`."""


@dataclass(frozen=True, slots=True)
class CardProfile:
    """One card model. None: not known."""

    id: str
    """Name on the command line, such as `rtx-5090`."""
    name: str
    """Marketing name without the vendor, such as `GeForce RTX 5090`."""
    tier: str | None
    """`geforce`, `pro_workstation`, `datacenter_pcie`, `datacenter_sxm`."""
    nvml_names: tuple[str, ...]
    """Whole names NVML reports for this card."""
    architecture: str | None
    compute_capability: str | None
    memory_total_bytes: int | None
    """Memory as NVML reports it."""
    memory_type: str | None
    bandwidth_bytes_per_s: float | None
    power_w: float | None
    """Board power of the specification."""
    bf16_dense_flops: float | None
    """Nominal peak without sparsity, fp32 accumulate; the upper end of a derived range, so that a
    share of it is never flattered."""
    fp8_dense_flops: float | None
    bf16_gemm_measured_flops: tuple[float, float] | None
    """Lowest and highest large matrix multiplication that was measured by somebody."""
    pcie_gen: int | None
    pcie_width: int | None
    memory_nominal_gb: float | None
    """Memory as it is sold."""
    ecc_kind: EccKind | None
    """`on-die`: inside the memory chips, reported by no driver; `inline`: end to end, and takes a
    sixteenth of the memory; `full`: end to end, and takes none of it."""
    ecc_ships_on: bool | None
    """Whether the card leaves the factory with its ECC switched on."""
    nvlink_bytes_per_s: float | None
    """Both directions together; 0: it has none."""
    mig_max: int | None
    """Most MIG instances; 0: it has none."""
    has_isv_drivers: bool | None
    """Whether a driver certified by software vendors exists for it."""
    launch: str | None
    """Day, month or year of its launch."""
    launch_price_usd: float | None
    """What the vendor asked then."""
    street_price_usd: tuple[float, float] | None
    """Lowest and highest price seen at `street_as_of`."""
    street_as_of: str | None
    provenance: Literal["shipped", "user"]
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """Every figure of the file by its name there, with sources, ranges and notes."""

    @property
    def memory_with_ecc_bytes(self) -> int | None:
        """Memory NVML reports once ECC is switched on; None: not known."""
        if self.memory_total_bytes is None:
            return None
        is_taken = self.ecc_kind == "inline" and self.ecc_ships_on is False
        return round(self.memory_total_bytes * (1 - INLINE_ECC_FRAC * is_taken))


def card_profiles() -> dict[str, CardProfile]:
    """All card profiles by id, the user's own in place of shipped ones of the same id.

    Raises:
        UsageError: a file is no card profile; the text says which, and what is wrong in it.
    """
    return dict(_load(shipped_folder() / "cards", user_folder() / "cards"))


def card_for_name(nvml_name: str, memory_bytes: int | None) -> CardProfile | None:
    """The profile of the card with this whole NVML name, or None.

    Args:
        nvml_name: name as the driver says it; never matched in part, since siblings (laptop,
            Max-Q, server) share most of their names.
        memory_bytes: memory as NVML reports it, which tells two cards of one name apart.
    """
    found = [
        card
        for card in card_profiles().values()
        if nvml_name in card.nvml_names and _memory_fits(card, memory_bytes)
    ]
    own = [card for card in found if card.provenance == "user"]
    found = own or found
    return found[0] if len(found) == 1 else None


def load_card(path: Path, provenance: Literal["shipped", "user"] = "user") -> CardProfile:
    """The card profile of one file.

    Raises:
        UsageError: it cannot be read or is no card profile.
    """
    try:
        return _parse(read_yaml(path, "card profile"), provenance)
    except SchemaError as error:
        raise UsageError(f"card profile {path}: {error}") from error


@cache
def _load(shipped: Path, user: Path) -> dict[str, CardProfile]:
    cards: dict[str, CardProfile] = {}
    folders: tuple[tuple[Path, Literal["shipped", "user"]], ...] = (
        (shipped, "shipped"),
        (user, "user"),
    )
    for folder, provenance in folders:
        own: dict[str, Path] = {}
        try:
            paths = sorted(folder.glob("*.yaml"))
        except OSError as error:
            raise UsageError(
                f"the card profiles in {folder} cannot be read: {error.strerror}"
            ) from None
        for path in paths:
            card = load_card(path, provenance)
            if card.id in own:
                raise UsageError(
                    f"card profile {path}: the id {card.id} is also in {own[card.id]}; "
                    "give one of them another id"
                )
            own[card.id] = path
            cards[card.id] = card
    return cards


def _memory_fits(card: CardProfile, memory_bytes: int | None) -> bool:
    if memory_bytes is None or card.memory_total_bytes is None:
        return True
    gap = abs(memory_bytes - card.memory_total_bytes)
    return gap <= MEMORY_TOLERANCE_FRAC * card.memory_total_bytes


def _parse(document: object, provenance: Literal["shipped", "user"]) -> CardProfile:
    top = mapping(document, "the file")
    known(top, _TOP_KEYS, "the file")
    checks.schema(top, SCHEMA)
    card_id = text(top.get("id"), "id")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", card_id):
        raise SchemaError(f"id {card_id!r} must be lower-case letters, digits and hyphens")
    nvml = mapping(top.get("nvml", {}), "nvml")
    known(nvml, ("names", "sources", "note"), "nvml")
    names = nvml.get("names", [])
    if not isinstance(names, list):
        raise SchemaError("nvml.names must be a list of whole NVML names")
    texts = mapping(top.get("sources", {}), "sources")
    named = mapping(top.get("facts", {}), "facts")
    known(named, (*_NUMBERS, *_TEXTS, *_FLAGS), "facts")
    facts = {name: _fact(name, entry, texts) for name, entry in named.items()}
    pcie_gen, pcie_width = _pcie(facts)
    memory_mib = _upper(facts, "memory_total_mib")
    mig_max = _upper(facts, "mig_max")
    street = facts.get("street_2026_usd")
    return CardProfile(
        id=card_id,
        name=text(top.get("name"), "name"),
        tier=optional_text(top.get("tier"), "tier"),
        nvml_names=tuple(text(name, "nvml.names") for name in names),
        architecture=_string(facts, "architecture"),
        compute_capability=_string(facts, "compute_capability"),
        memory_total_bytes=None if memory_mib is None else round(memory_mib * BYTES_PER_MIB),
        memory_type=_string(facts, "memory_type"),
        bandwidth_bytes_per_s=_scaled(_upper(facts, "bandwidth_gb_per_s"), 1e9),
        power_w=_upper(facts, "power_w"),
        bf16_dense_flops=_scaled(_upper(facts, "bf16_dense_tflops"), 1e12),
        fp8_dense_flops=_scaled(_upper(facts, "fp8_dense_tflops"), 1e12),
        bf16_gemm_measured_flops=_range(facts, "bf16_gemm_measured_tflops", 1e12),
        pcie_gen=pcie_gen,
        pcie_width=pcie_width,
        memory_nominal_gb=_upper(facts, "memory_nominal_gb"),
        ecc_kind=_ecc_kind(facts),
        ecc_ships_on=_flag(facts, "ecc_ships_on"),
        nvlink_bytes_per_s=_scaled(_upper(facts, "nvlink_gb_per_s"), 1e9),
        mig_max=None if mig_max is None else round(mig_max),
        has_isv_drivers=_flag(facts, "isv_drivers"),
        launch=_string(facts, "launch"),
        launch_price_usd=_upper(facts, "msrp_usd"),
        street_price_usd=_range(facts, "street_2026_usd", 1.0),
        street_as_of=street.as_of if street is not None else None,
        provenance=provenance,
        facts=facts,
    )


def _fact(name: str, entry: object, texts: Mapping[str, Any]) -> Fact:
    if not isinstance(entry, dict):
        return Fact(_value(name, entry))
    known(entry, ("value", "sources", "note", "confidence", "as_of"), f"facts.{name}")
    keys = entry.get("sources", [])
    if not isinstance(keys, list):
        raise SchemaError(f"facts.{name}.sources must be a list of names under sources")
    unknown = [key for key in keys if key not in texts]
    if unknown:
        raise SchemaError(f"facts.{name} names the source {unknown[0]!r}, not under sources")
    return Fact(
        value=_value(name, entry.get("value")),
        sources=tuple(str(texts[key]) for key in keys),
        note=optional_text(entry.get("note"), f"facts.{name}.note"),
        confidence=optional_text(entry.get("confidence"), f"facts.{name}.confidence"),
        as_of=_day(entry.get("as_of"), f"facts.{name}.as_of"),
    )


def _day(value: object, where: str) -> str | None:
    day = optional_text(value, where)
    if day is not None and re.fullmatch(r"\d{4}-\d\d(-\d\d)?", day) is None:
        raise SchemaError(f"{where} must read like '2026-05' or '2026-05-31', not {day!r}")
    return day


def _value(name: str, value: object) -> FactValue:
    if value is None:
        return None
    if name in _NUMBERS:
        if isinstance(value, list) and len(value) == 2 and all(map(is_number, value)):
            low, high = (float(part) for part in value)
            if low > high:
                raise SchemaError(f"facts.{name} is a range from high to low: {value}")
            return (low, high)
        if is_number(value):
            return float(value)
        raise SchemaError(f"facts.{name} must be a number or [low, high], not {value!r}")
    if name in _FLAGS:
        if isinstance(value, bool):
            return value
        raise SchemaError(f"facts.{name} must be true or false, not {value!r}")
    return text(value, f"facts.{name}")


def _ecc_kind(facts: Mapping[str, Fact]) -> EccKind | None:
    kind = _string(facts, "ecc_kind")
    for known_kind in get_args(EccKind):
        if kind == known_kind:
            found: EccKind = known_kind
            return found
    if kind is None:
        return None
    kinds = ", ".join(get_args(EccKind))
    raise SchemaError(f"facts.ecc_kind must be one of {kinds}, not {kind!r}")


def _flag(facts: Mapping[str, Fact], name: str) -> bool | None:
    value = facts[name].value if name in facts else None
    return value if isinstance(value, bool) else None


def _string(facts: Mapping[str, Fact], name: str) -> str | None:
    value = facts[name].value if name in facts else None
    return value if isinstance(value, str) else None


def _range(facts: Mapping[str, Fact], name: str, factor: float) -> tuple[float, float] | None:
    value = facts[name].value if name in facts else None
    if isinstance(value, tuple):
        return (value[0] * factor, value[1] * factor)
    return (value * factor, value * factor) if isinstance(value, float) else None


def _upper(facts: Mapping[str, Fact], name: str) -> float | None:
    ends = _range(facts, name, 1.0)
    return None if ends is None else ends[1]


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _pcie(facts: Mapping[str, Fact]) -> tuple[int | None, int | None]:
    text = _string(facts, "pcie")
    if text is None:
        return None, None
    match = re.fullmatch(r"(\d)\.0 x(\d+)", text)
    if match is None:
        raise SchemaError(f"facts.pcie must read like '5.0 x16', not {text!r}")
    return int(match[1]), int(match[2])
