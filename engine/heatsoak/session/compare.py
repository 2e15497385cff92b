"""Sessions held against each other, as the public document `heatsoak-compare/1`.

```
schema         "heatsoak-compare/1"; fields may be added within a version, none is changed
marks          words that must stand wherever the figures do: SYNTHETIC, IMPORTED, SMOKE, NOT STEADY
rule           one sentence: what is held against what
sessions[]     label (A, B ... in the order named), path, id, name, created_utc, host, protocol
differs[]      what else differs, what could explain most first: id, title, explains, values {group:
               value}; null is not known
warnings[]     sentences
groups[]       label, runs[] (A, B/0 ...), sessions[], devices[] (UUIDs), card, name, provenance,
               unit, watts_are (gpu, module, card, package or null), marks[],
               behind_best_frac (share by which it is slower than the best of its model and work; 0
               for the best, null where there is no other), measures {name: measure or null}
  measure      mean, u95 (null: not known), unit, n (runs), within_u95 (what the runs say of
               themselves), between_sd (standard deviation between runs; null for one run)
repeats[]      configurations that were run more than once: runs[], measures {name: measure or null}
comparisons[]  group, reference, how (same device, best of the model, best of the session),
               measures {name: difference}
  difference   by, u95 (null: not known), unit ("frac": share of the reference's), word, basis
               (between, within, none), reason (null unless not comparable or without an interval)
```

Measures: throughput, power_w, joules_per_unit, sm_clock_mhz, mem_clock_mhz, temperature_c,
drop_frac, time_to_steady_s. Words: faster, slower, more, less, higher, lower, hotter, cooler,
later, sooner, `no difference shown`, `not comparable`.

What is held against what: runs of one configuration on one and the same device are repeats and are
pooled, unless the sessions hold nothing but one set of configurations, which are then held against
each other. Each group is held against one of the first session: the one on the same device, else
the best of the same card model, else the best. Within the first session the others are held against
the best of their model: a mean would hide a bad card.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from heatsoak.economics.differences import Repeats, difference, pool, spread
from heatsoak.session.compared_runs import Allowed, read_runs
from heatsoak.session.confounders import START_APART_C, differing, key, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from heatsoak.economics.differences import Difference, Spread
    from heatsoak.session.compared_runs import Run

SCHEMA = "heatsoak-compare/1"
RULE = (
    "Each group is held against the first session: its same device, else its best card of the same "
    "model, else its best; runs of one configuration on one device are repeats"
)
NOT_SHOWN, NOT_COMPARABLE = "no difference shown", "not comparable"


@dataclass(frozen=True, slots=True)
class Measure:
    """One thing that is compared."""

    unit: str
    words: tuple[str, str]
    """When it is more, when it is less."""
    is_ratio: bool = True
    """Differences are shares of the reference; else they are in the unit."""


MEASURES = {
    "throughput": Measure("{unit}/s", ("faster", "slower")),
    "power_w": Measure("W", ("more", "less")),
    "joules_per_unit": Measure("J/{one}", ("more", "less")),
    "sm_clock_mhz": Measure("MHz", ("higher", "lower")),
    "mem_clock_mhz": Measure("MHz", ("higher", "lower")),
    "temperature_c": Measure("°C", ("hotter", "cooler"), is_ratio=False),
    "drop_frac": Measure("frac", ("more", "less"), is_ratio=False),
    "time_to_steady_s": Measure("s", ("later", "sooner"), is_ratio=False),
}


@dataclass(frozen=True, slots=True)
class _Group:
    """Runs that are one side of a comparison."""

    label: str
    runs: tuple[Run, ...]
    measures: Mapping[str, Repeats | None]

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def rate(self) -> float:
        pooled = self.measures["throughput"]
        return pooled.estimate.mean if pooled else 0.0


def compare(
    paths: Sequence[Path], allowed: Allowed | None = None, *, each: bool = False
) -> dict[str, Any]:
    """Hold sessions against each other.

    Args:
        paths: two to eight session files, the reference first.
        allowed: what is taken that is not taken unless asked for.
        each: pool nothing.

    Raises:
        UsageError: they may not be compared, or one is no session.
    """
    runs = read_runs(paths, allowed or Allowed())
    configurations = _by_key(runs)
    is_pooled = not each and not _is_one_set(runs)
    sides = list(configurations) if is_pooled else [(run,) for run in runs]
    groups = [_group(side) for side in sides]
    spreads = {name: _spread(name, groups) for name in MEASURES}
    pairs = [(g, *_reference(g, groups)) for g in groups]
    pairs = [(group, reference, how) for group, reference, how in pairs if reference is not group]
    repeated = [_group(side) for side in configurations if len(side) > 1]
    differs = differing({group.label: group.runs for group in groups})
    sessions = {run.session.id: run.session for run in runs}
    return {
        "schema": SCHEMA,
        "marks": sorted({mark for run in runs for mark in run.marks}),
        "rule": RULE,
        "sessions": [asdict(session) for session in sessions.values()],
        "differs": [
            {"id": one.id, "title": one.title, "explains": one.explains, "values": values}
            for one, values in differs
        ],
        "warnings": list(_warnings(groups, pairs, repeated, is_pooled=is_pooled)),
        "groups": [_group_entry(group, groups) for group in groups],
        "repeats": [
            {
                "runs": [run.label for run in group.runs],
                "measures": _measures_entry(group),
            }
            for group in repeated
        ],
        "comparisons": [
            {
                "group": group.label,
                "reference": reference.label,
                "how": how,
                "measures": {
                    name: _difference_entry(name, group, reference, spreads[name])
                    for name in MEASURES
                },
            }
            for group, reference, how in pairs
        ],
    }


def _by_key(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    found: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return [tuple(side) for side in found.values()]


def _is_one_set(runs: Sequence[Run]) -> bool:
    """Whether every session has the same configurations, so that pooling would leave nothing."""
    sets: dict[str, set[tuple[str, ...]]] = {}
    for run in runs:
        sets.setdefault(run.session.id, set()).add(key(run))
    return len({frozenset(one) for one in sets.values()}) == 1


def _group(runs: Sequence[Run]) -> _Group:
    measures: dict[str, Repeats | None] = {}
    for name in MEASURES:
        known = [run.measures[name] for run in runs]
        kept = [one for one in known if one is not None]
        measures[name] = pool(kept) if kept and len(kept) == len(known) else None
    return _Group("+".join(run.label for run in runs), tuple(runs), measures)


def _spread(name: str, groups: Sequence[_Group]) -> Spread | None:
    known = [one for one in (group.measures[name] for group in groups) if one is not None]
    return spread(known, is_ratio=MEASURES[name].is_ratio)


def _reference(group: _Group, groups: Sequence[_Group]) -> tuple[_Group, str]:
    """What a group is held against, and why that; itself where it is a reference."""
    own = [g for g in groups if any(run.session.label == "A" for run in g.runs)]
    model = [g for g in own if g.first.card == group.first.card]
    if group not in own:
        same = [g for g in own if set(g.first.devices) == set(group.first.devices)]
        if same:
            return same[0], "same device"
    if model:
        return max(model, key=lambda g: g.rate), "best of the model"
    return (group, "") if group in own else (max(own, key=lambda g: g.rate), "best of the session")


def _difference_entry(
    name: str, group: _Group, reference: _Group, shared: Spread | None
) -> dict[str, Any]:
    one, others = group.measures[name], reference.measures[name]
    measure = MEASURES[name]
    unit = "frac" if measure.is_ratio else _unit(measure, group.first.unit)
    found, why = None, refusal(group.first, reference.first, name)
    if why is None:
        missing = [g.label for g in (group, reference) if g.measures[name] is None]
        why = f"not known of {' and '.join(missing)}" if missing else None
    if why is None and one is not None and others is not None:
        found = difference(one, others, shared, is_ratio=measure.is_ratio)
        why = "the reference is 0" if found is None else None
    if found is None:
        return {
            "by": None, "u95": None, "unit": unit, "word": NOT_COMPARABLE, "basis": "none",
            "reason": why,
        }  # fmt: skip
    return {
        "by": found.by.mean,
        "u95": found.by.u95,
        "unit": unit,
        "word": _word(measure, found),
        "basis": found.basis,
        "reason": "no interval is known for it" if found.basis == "none" else None,
    }


def _word(measure: Measure, found: Difference) -> str:
    if found.sign == "not shown":
        return NOT_SHOWN
    return measure.words[0 if found.sign == "more" else 1]


def _unit(measure: Measure, unit: str) -> str:
    return measure.unit.format(unit=unit, one=unit.removesuffix("s"))


def _measures_entry(group: _Group) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for name, measure in MEASURES.items():
        pooled = group.measures[name]
        entries[name] = None if pooled is None else {
            "mean": pooled.estimate.mean,
            "u95": pooled.estimate.u95,
            "unit": _unit(measure, group.first.unit),
            "n": pooled.n,
            "within_u95": pooled.within_u95,
            "between_sd": pooled.between_sd,
        }  # fmt: skip
    return entries


def _group_entry(group: _Group, groups: Sequence[_Group]) -> dict[str, Any]:
    first = group.first
    peers = [
        g for g in groups
        if (g.first.card, g.first.provenance) == (first.card, first.provenance)
        and refusal(first, g.first, "throughput") is None and g.rate
    ]  # fmt: skip
    best = max((g.rate for g in peers), default=0.0)
    return {
        "label": group.label,
        "runs": [run.label for run in group.runs],
        "sessions": list(dict.fromkeys(run.session.label for run in group.runs)),
        "devices": list(first.devices),
        "card": first.card,
        "name": first.name,
        "provenance": first.provenance,
        "unit": first.unit,
        "watts_are": first.facts["watts"],
        "marks": sorted({mark for run in group.runs for mark in run.marks}),
        "behind_best_frac": 1 - group.rate / best if len(peers) > 1 and group.rate else None,
        "measures": _measures_entry(group),
    }


def _warnings(
    groups: Sequence[_Group], pairs: Sequence[tuple[_Group, _Group, str]],
    repeated: Sequence[_Group], *, is_pooled: bool,
) -> Iterator[str]:  # fmt: skip
    kinds = {run.provenance for group in groups for run in group.runs}
    if len(kinds) > 1:
        yield f"{' and '.join(sorted(kinds))} figures side by side, because you asked for it"
    for group in groups:
        for run in group.runs:
            yield from (f"{run.label}: {words}" for words in run.spoiled)
    yield from dict.fromkeys(text for one, other, _ in pairs for text in _order(one, other))
    alike = [
        f"{group.label} and {reference.label}"
        for group, reference, _ in pairs
        if key(group.first) == key(reference.first)
    ]
    if alike:
        yield (
            f"repeats of one configuration: {', '.join(alike)}; what differs between them is one "
            "run from the next"
        )
    yield from _start_temperatures(groups, repeated)
    if is_pooled and repeated:
        freedom = sum(len(group.runs) - 1 for group in repeated)
        runs = ", ".join(f"{group.label} {len(group.runs)} times" for group in repeated)
        words = f"repeated: {runs}; intervals stand on {freedom} degree"
        yield (
            f"{words}s of freedom"
            if freedom > 1
            else (
                f"{words} of freedom, which makes them 12.7 standard errors wide; one more repeat "
                "makes that 4.3"
            )
        )
    else:
        yield (
            "intervals are those within each run; how much a repeat would differ is not in them, "
            "and is usually more: run each again and name all files"
        )
    if len(pairs) > 1:
        yield "each interval is for itself: of twenty, one misses by chance"


def _order(group: _Group, reference: _Group) -> Iterator[str]:
    """Runs on one machine, one side all before the other: time itself may be the difference."""
    sides = [
        (run.session.created_utc, "+".join(dict.fromkeys(r.session.label for r in side.runs)))
        for side in (reference, group)
        for run in side.runs
    ]
    hosts = {run.session.host for side in (reference, group) for run in side.runs}
    ids = {run.session.id for side in (reference, group) for run in side.runs}
    if len(hosts) > 1 or len(ids) < 2:
        return
    order = [label for _, label in sorted(sides)]
    if len({time for time, _ in sides}) < len(ids):
        yield f"{sides[0][1]} and {sides[-1][1]}: the order of the runs is not known"
    elif sum(one != other for one, other in pairwise(order)) == 1:
        first, last = order[0], order[-1]
        yield (
            f"order: {first} ran before {last}; what changed meanwhile looks like a difference. "
            f"Run {first} once more after {last}"
        )


def _start_temperatures(groups: Sequence[_Group], repeated: Sequence[_Group]) -> Iterator[str]:
    """Repeats that did not start alike, and sides that did not."""
    sides = [("all runs", [run for group in groups for run in group.runs])]
    sides = [(group.label, list(group.runs)) for group in repeated] or sides
    for label, runs in sides:
        starts = [run.facts["start_temperature_c"] for run in runs]
        known = [start for start in starts if start is not None]
        if known and max(known) - min(known) > START_APART_C:
            yield (
                f"start temperatures of {label} are {min(known):.0f} to {max(known):.0f} °C: let "
                "cards cool down alike before each run"
            )
