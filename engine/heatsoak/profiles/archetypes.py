"""Kinds of buyers: what each must have, what decides, and what the article about them got loose.

Shipped as `profiles/archetypes.yaml`, after the article named there. Entries of the user's own
`archetypes.yaml` in the settings folder replace shipped ones of the same id, or join them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, cast, get_args

from heatsoak.errors import UsageError
from heatsoak.profiles import checks
from heatsoak.profiles.checks import SchemaError, known, listed, mapping, text
from heatsoak.profiles.files import read_yaml, shipped_folder, user_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

SCHEMA = "heatsoak-archetypes/1"
FILE = "archetypes.yaml"
MEASURED = "measured"
"""What `holds` says for the workload that was measured."""

Must = Literal["ecc", "isv", "support", "mig"]
"""What a buyer may insist on beside memory and money."""
MUSTS: tuple[Must, ...] = get_args(Must)
Criterion = Literal[
    "units_per_price", "units_per_total", "units_per_joule", "rate", "set_price", "cards",
    "headroom_bytes", "memory_bytes",
]  # fmt: skip
"""What may decide among cards that meet every requirement."""
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)
TIERS = ("geforce", "pro_workstation", "datacenter_pcie", "datacenter_sxm")
MOST_CARDS = 64


@dataclass(frozen=True, slots=True)
class Require:
    """What a card, or a set of equal cards, must have. None: no such requirement."""

    cards_at_most: int
    """How many cards a set may have."""
    holds: str | None = None
    """`measured` for the measured workload, or a recipe such as `13b-full@4096`."""
    ecc: bool = False
    """Error correction of the whole memory, that can be switched on."""
    isv: bool = False
    """Drivers certified by software vendors."""
    support: bool = False
    """An enterprise driver branch and a support contract."""
    mig: int | None = None
    """Least number of hardware partitions."""
    nvlink_gb_per_s: float | None = None
    """Least bandwidth between cards, both directions summed, decimal GB/s."""
    memory_gb: tuple[float, float] | None = None
    """Nominal memory, from and to, decimal GB as the maker says it."""
    tiers: tuple[str, ...] | None = None
    """Kinds of cards that come into question."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Where the evidence is against the article, or narrower."""

    id: str
    says: str
    """What the article says."""
    holds: str
    """What holds."""
    evidence: str
    """Where that can be read or seen."""
    cards: tuple[str, ...] = ()
    """Ids of the cards it is about; empty: all."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing to plan for."""

    text: str
    tiers: tuple[str, ...] = ()
    """Kinds of cards it is said of; empty: all."""
    cards: tuple[str, ...] = ()
    """Ids of the cards it is said of; empty: all."""


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One thing to settle before an order."""

    id: str
    item: str
    ask: str
    """The question to the seller where heatsoak cannot know."""


@dataclass(frozen=True, slots=True)
class Archetype:
    """One kind of buyer."""

    id: str
    name: str
    who: str
    priority: str
    article_cards: tuple[str, ...]
    """Ids of the cards the article recommends to this buyer, its first choice first."""
    article_says: str
    require: Require
    rank: tuple[Criterion, ...]
    """What decides, in this order: the first that shows a difference."""
    needs: Criterion | None
    """The criterion without which nothing is recommended."""
    why: str
    constraints: tuple[Constraint, ...]
    corrections: tuple[Correction, ...]
    checklist: tuple[ChecklistItem, ...]
    provenance: Literal["shipped", "user"] = "shipped"


@dataclass(frozen=True, slots=True)
class Archetypes:
    """All of them."""

    article: str
    """Title of the article they come from."""
    archetypes: tuple[Archetype, ...]


def archetypes() -> Archetypes:
    """The shipped archetypes with the user's own in place of those of the same id.

    Raises:
        UsageError: a file is not what it should be; the text says which, and what is wrong in it.
    """
    return _load(shipped_folder() / FILE, user_folder() / FILE)


@cache
def _load(shipped: Path, user: Path) -> Archetypes:
    document = _read(shipped)
    own = _read(user) if user.is_file() else {}
    parts: dict[str, dict[str, Any]] = {
        part: document[part] | own.get(part, {})
        for part in ("corrections", "checklist", "archetypes")
    }
    found = []
    for entry_id, entry in parts["archetypes"].items():
        is_own = entry_id in own.get("archetypes", {})
        with _speaking_of(user if is_own else shipped):
            found.append(_archetype(entry, parts, "user" if is_own else "shipped"))
    return Archetypes(own.get("article") or document["article"], tuple(found))


def _read(path: Path) -> dict[str, Any]:
    """The entries of one file by part and id; corrections and checklist items already parsed."""
    with _speaking_of(path):
        return _parse(read_yaml(path, "archetypes file"))


@contextmanager
def _speaking_of(path: Path) -> Iterator[None]:
    """Turns what is wrong into an error that names the file."""
    try:
        yield
    except SchemaError as error:
        raise UsageError(f"archetypes file {path}: {error}") from error


def _parse(document: object) -> dict[str, Any]:
    top = mapping(document, "the file")
    known(top, ("schema", "article", "archetypes", "corrections", "checklist"), "the file")
    checks.schema(top, SCHEMA)
    parsed: dict[str, Any] = {"article": checks.optional_text(top.get("article"), "article")}
    makers: dict[str, Callable[[dict[str, Any], str], object]] = {
        "corrections": _correction, "checklist": _item, "archetypes": lambda entry, _: entry,
    }  # fmt: skip
    for part, make in makers.items():
        entries: dict[str, object] = {}
        for entry in listed(top.get(part, []), part):
            names = mapping(entry, f"each entry of {part}")
            entry_id = text(names.get("id"), f"id in {part}")
            if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", entry_id):
                raise SchemaError(f"id {entry_id!r} must be lower-case letters, digits and hyphens")
            if entry_id in entries:
                raise SchemaError(f"{part} has the id {entry_id!r} twice")
            entries[entry_id] = make(names, f"{part}.{entry_id}")
        parsed[part] = entries
    return parsed


def _correction(names: dict[str, Any], where: str) -> Correction:
    known(names, ("id", "cards", "says", "holds", "evidence"), where)
    return Correction(
        id=names["id"],
        says=text(names.get("says"), f"{where}.says"),
        holds=text(names.get("holds"), f"{where}.holds"),
        evidence=text(names.get("evidence"), f"{where}.evidence"),
        cards=_texts(names.get("cards", []), f"{where}.cards"),
    )


def _item(names: dict[str, Any], where: str) -> ChecklistItem:
    known(names, ("id", "item", "ask"), where)
    item, ask = (text(names.get(key), f"{where}.{key}") for key in ("item", "ask"))
    return ChecklistItem(names["id"], item, ask)


_KEYS = (
    "id", "name", "who", "priority", "article", "require", "rank", "needs", "why", "constraints",
    "corrections", "checklist",
)  # fmt: skip


def _archetype(
    names: dict[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    provenance: Literal["shipped", "user"],
) -> Archetype:
    where = f"archetypes.{names['id']}"
    known(names, _KEYS, where)
    article = mapping(names.get("article", {}), f"{where}.article")
    known(article, ("cards", "says"), f"{where}.article")
    rank = _one_of(names.get("rank", []), CRITERIA, f"{where}.rank")
    needs = names.get("needs")
    if not rank:
        raise SchemaError(f"{where}.rank names nothing that could decide")
    if needs is not None and needs not in rank:
        raise SchemaError(f"{where}.needs is {needs!r}, which is not in its rank")
    return Archetype(
        id=names["id"],
        name=text(names.get("name"), f"{where}.name"),
        who=text(names.get("who"), f"{where}.who"),
        priority=text(names.get("priority"), f"{where}.priority"),
        article_cards=_texts(article.get("cards", []), f"{where}.article.cards"),
        article_says=checks.optional_text(article.get("says"), f"{where}.article.says") or "",
        require=_require(mapping(names.get("require"), f"{where}.require"), f"{where}.require"),
        rank=cast("tuple[Criterion, ...]", rank),
        needs=needs,
        why=text(names.get("why"), f"{where}.why"),
        constraints=_constraints(names.get("constraints", []), f"{where}.constraints"),
        corrections=_named(names, "corrections", parts, where),
        checklist=_named(names, "checklist", parts, where),
        provenance=provenance,
    )


def _require(names: dict[str, Any], where: str) -> Require:
    known(names, tuple(Require.__dataclass_fields__), where)
    count = names.get("cards_at_most")
    if not _is_count(count):
        raise SchemaError(f"{where}.cards_at_most must be a whole number of cards, not {count!r}")
    for flag in ("ecc", "isv", "support"):
        if not isinstance(names.get(flag, False), bool):
            raise SchemaError(f"{where}.{flag} must be true or false, not {names[flag]!r}")
    mig, nvlink, memory = (names.get(key) for key in ("mig", "nvlink_gb_per_s", "memory_gb"))
    if mig is not None and not _is_count(mig):
        raise SchemaError(f"{where}.mig must be a whole number of instances, not {mig!r}")
    if nvlink is not None and not checks.is_number(nvlink):
        raise SchemaError(f"{where}.nvlink_gb_per_s must be a number, not {nvlink!r}")
    if memory is not None:
        ends = listed(memory, f"{where}.memory_gb")
        if len(ends) != 2 or not all(map(checks.is_number, ends)) or ends[0] > ends[1]:
            raise SchemaError(f"{where}.memory_gb must be [from, to] in GB, not {memory!r}")
        memory = (float(ends[0]), float(ends[1]))
    tiers = names.get("tiers")
    return Require(
        cards_at_most=count,
        holds=checks.optional_text(names.get("holds"), f"{where}.holds"),
        ecc=names.get("ecc", False),
        isv=names.get("isv", False),
        support=names.get("support", False),
        mig=mig,
        nvlink_gb_per_s=None if nvlink is None else float(nvlink),
        memory_gb=memory,
        tiers=None if tiers is None else _one_of(tiers, TIERS, f"{where}.tiers"),
    )


def _constraints(value: object, where: str) -> tuple[Constraint, ...]:
    """Each a text, or a text with the tiers or cards it is said of."""
    found = []
    for entry in listed(value, where):
        names = entry if isinstance(entry, dict) else {"text": entry}
        known(names, ("text", "tiers", "cards"), where)
        found.append(
            Constraint(
                text(names.get("text"), where),
                _one_of(names.get("tiers", []), TIERS, f"{where}.tiers"),
                _texts(names.get("cards", []), f"{where}.cards"),
            )
        )
    return tuple(found)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_CARDS


def _texts(value: object, where: str) -> tuple[str, ...]:
    return tuple(text(part, where) for part in listed(value, where))


def _one_of(value: object, allowed: tuple[str, ...], where: str) -> tuple[str, ...]:
    found = _texts(value, where)
    for name in found:
        if name not in allowed:
            raise SchemaError(f"{where} has {name!r}; known: {', '.join(allowed)}")
    return found


def _named(
    names: Mapping[str, Any], part: str, parts: Mapping[str, Mapping[str, Any]], where: str
) -> tuple[Any, ...]:
    """The corrections or checklist items that an archetype names."""
    ids = _texts(names.get(part, []), f"{where}.{part}")
    for entry_id in ids:
        if entry_id not in parts[part]:
            raise SchemaError(f"{where}.{part} names {entry_id!r}, which is not under {part}")
    return tuple(parts[part][entry_id] for entry_id in ids)
