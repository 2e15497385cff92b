"""What differs between runs beside the thing that is compared, by how much it could explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heatsoak.session.compared_runs import Run

START_APART_C = 5.0
"""Start temperatures closer than this are one: a room's own change in a day."""
LOAD_APART = 0.25
"""Load averages a core closer than this are one: an idle host wanders by as much."""
WORK = frozenset({"throughput", "joules_per_unit"})
"""Measures that mean something only for one and the same work."""
WATTS = frozenset({"power_w", "joules_per_unit"})
WHAT_A_UNIT_IS = ("workload", "size", "context")
"""Fields of a recipe that decide how much work a unit is; the others are ways to do it."""


@dataclass(frozen=True, slots=True)
class Confounder:
    """One thing that may differ."""

    id: str
    title: str
    explains: str
    """What it could explain, in words."""
    is_setting: bool = True
    """Part of what makes runs repeats of one configuration; else it changes from run to run."""
    apart: float | None = None
    """Numbers closer than this are one; None: only equal ones are."""


CONFOUNDERS = (
    Confounder("provenance", "provenance", "all: figures of one kind are no real card's"),
    Confounder("unit", "unit", "all: rates and energies count different things"),
    Confounder("workload", "workload", "all: a unit is another amount of work"),
    Confounder("recipe", "recipe", "all of it: another amount of work, or another way to do it"),
    Confounder("devices", "devices", "all: a set of cards is not one card"),
    Confounder("card", "card", "all: it is what most comparisons are about"),
    Confounder("mig", "MIG slice", "all: a slice is a part of a card"),
    Confounder("watts", "watts are of", "all of the watts and joules: they do not compare"),
    Confounder("driver", "driver", "several per cent of rate and power"),
    Confounder("torch", "torch", "several per cent of rate, more with other kernels"),
    Confounder("cuda", "CUDA of torch", "several per cent of rate"),
    Confounder("power_limit_w", "power limit", "power up to the ratio, and the clock with it"),
    Confounder("application_clock_mhz", "clock asked for", "rate up to the ratio"),
    Confounder("clock_is_held", "clock is held", "rate: the clock may not rise"),
    Confounder("ecc", "ECC", "some per cent where it costs bandwidth"),
    Confounder("specimen", "specimen", "some per cent: cards of one model differ"),
    Confounder("host", "machine", "cooling, room, processor and supply"),
    Confounder("vbios", "firmware", "fan curve and limits"),
    Confounder(
        "start_temperature_c", "start temp.",
        "boost, drop and time to steady; sustained figures hardly", False, START_APART_C,
    ),
    Confounder("busy", "other use of card", "rate, and heat that is not the workload's", False),
    Confounder("load_per_core", "load a core", "rate, where the host feeds the card", False,
               LOAD_APART),
    Confounder("protocol", "protocol", "how strictly it was judged, hardly the figures"),
    Confounder("findings", "doctor warned", "see the warnings of each session", False),
)  # fmt: skip
"""What could explain most comes first. The order is a judgement, not a measurement."""


def key(run: Run) -> tuple[str, ...]:
    """Equal for repeats of one configuration."""
    return tuple(repr(run.facts[one.id]) for one in CONFOUNDERS if one.is_setting)


def differing(
    groups: Mapping[str, Sequence[Run]],
) -> list[tuple[Confounder, dict[str, Any]]]:
    """What differs between groups of runs, with the value of each group; what explains most first.

    Args:
        groups: the runs of each configuration, by label.
    """
    found = []
    for one in CONFOUNDERS:
        values = {label: _value(one, runs) for label, runs in groups.items()}
        if one.id == "specimen" and not _has_specimens(groups):
            continue
        if _differ(one, [run.facts[one.id] for runs in groups.values() for run in runs]):
            found.append((one, _only_differing(groups) if one.id == "recipe" else values))
    return found


def _has_specimens(groups: Mapping[str, Sequence[Run]]) -> bool:
    """Whether there is more than one card of a model; cards of two models are two anyway."""
    by_card: dict[str, set[str]] = {}
    for runs in groups.values():
        by_card.setdefault(runs[0].card, set()).add(runs[0].facts["specimen"])
    return any(len(found) > 1 for found in by_card.values())


def _value(one: Confounder, runs: Sequence[Run]) -> object:
    """Of one group: settings are equal, numbers are averaged, the rest is joined."""
    values = [run.facts[one.id] for run in runs]
    if one.is_setting:
        return values[0]
    known = [value for value in values if value is not None]
    if one.apart is not None:
        return sum(known) / len(known) if known else None
    return sorted({item for value in known for item in value})


def _differ(one: Confounder, values: Sequence[Any]) -> bool:
    if one.apart is None:
        return any(value != values[0] for value in values)
    known = [value for value in values if value is not None]
    return bool(known) and (len(known) < len(values) or max(known) - min(known) > one.apart)


def _only_differing(groups: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    values = {label: runs[0].recipe for label, runs in groups.items()}
    names = sorted({name for recipe in values.values() for name in recipe})
    apart = [n for n in names if len({repr(recipe.get(n)) for recipe in values.values()}) > 1]
    return {label: {n: recipe.get(n) for n in apart} for label, recipe in values.items()}


def refusal(run: Run, other: Run, measure: str) -> str | None:
    """Why a measure of two runs is not comparable, or None."""
    mine, others = run.facts, other.facts
    apart = {name for name in mine if mine[name] != others[name]}
    if measure in WORK:
        for name in ("unit", "workload"):
            if name in apart:
                return f"{name} {mine[name]} and {others[name]}"
        for name in WHAT_A_UNIT_IS:
            if run.recipe.get(name) != other.recipe.get(name):
                return f"{name} {run.recipe.get(name)} and {other.recipe.get(name)}"
    if measure in ("throughput", "power_w") and "devices" in apart:
        return f"devices {mine['devices']} and {others['devices']}"
    is_known = None not in (mine["watts"], others["watts"])
    if measure in WATTS and is_known and "watts" in apart:
        return f"watts of the {mine['watts']} and of the {others['watts']}"
    return None
