"""What `heatsoak compare` prints for people, at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak_tui.cli.text import one_line, printable, table
from heatsoak_tui.format import (
    DASH,
    decimals_of,
    fit,
    number,
    per_unit,
    per_unit_factor,
    percent,
    short_name,
    span,
    uncertainty,
)
from heatsoak_tui.widgets.advice_sections import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WIDTH = 80
LABEL = 20
LABELS = {
    "power_w": "W", "sm_clock_mhz": "clock MHz", "mem_clock_mhz": "memory MHz",
    "temperature_c": "°C", "drop_frac": "drop", "time_to_steady_s": "to steady",
}  # fmt: skip
WATTS_ARE = {
    "gpu": "the card, without its host", "card": "the whole card that the slice is part of",
    "module": "the whole module, its CPU and memory included", "package": "the processor package",
    None: "what, the session does not say",
}  # fmt: skip


def compare_text(document: Mapping[str, Any]) -> str:
    """The sessions, what differs beside them, the warnings, and then the differences."""
    lines = [*_head(document), "", *_differs(document)]
    for text in document["warnings"]:
        lines += _hanging("! ", text)
    groups = {group["label"]: group for group in document["groups"]}
    for one in document["comparisons"]:
        lines += ["", *_comparison(one, groups)]
    lines += ["", *_boundaries(groups), *_best(groups), *_repeats(document)]
    return printable("\n".join(lines))


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    count = len(document["sessions"])
    yield "  ".join(filter(None, [" ".join(document["marks"]), f"{count} sessions"]))
    for session in document["sessions"]:
        cards = dict.fromkeys(
            short_name(group["name"])
            for group in document["groups"]
            if session["label"] in group["sessions"]
        )
        marks = dict.fromkeys(
            mark
            for group in document["groups"]
            if session["label"] in group["sessions"]
            for mark in group["marks"]
        )
        words = [
            session["name"] or session["id"], session["created_utc"][:16].replace("T", " "),
            session["host"], session["protocol"], ", ".join(cards),
        ]  # fmt: skip
        yield _line(f"{session['label']}  {'  '.join([*marks, *words])}")


def _differs(document: Mapping[str, Any]) -> Iterator[str]:
    if not document["differs"]:
        yield "Nothing else differs, of what is known."
        return
    yield "What differs beside the figures, what could explain most first:"
    for one in document["differs"]:
        label = one["title"]
        by_value: dict[str, list[str]] = {}
        for group, value in one["values"].items():
            by_value.setdefault(_value(one["id"], value), []).append(group)
        text = "; ".join(f"{', '.join(names)}: {words}" for words, names in by_value.items())
        yield from _hanging(f"  {label:<{LABEL - 2}}", text)
        yield from _hanging(" " * LABEL, f"could explain: {one['explains']}")


def _value(name: str, value: Any) -> str:  # noqa: ANN401 - whatever a session says
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{key}={_value(key, one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    unit = {"_w": " W", "_mhz": " MHz", "_c": " °C"}.get(f"_{name.rpartition('_')[2]}", "")
    return f"{number(value) if isinstance(value, float) else value}{unit}"


def _comparison(one: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    group, reference = groups[one["group"]], groups[one["reference"]]
    marks = " ".join(sorted({*group["marks"], *reference["marks"]}))
    yield _line(f"{one['group']} against {one['reference']} ({one['how']})  {marks}".rstrip())
    text = ""
    for has_intervals in (True, False):
        rows = [("", one["reference"], one["group"], "difference, 95 %", "")]
        for name, found in one["measures"].items():
            pair = [side["measures"][name] for side in (reference, group)]
            if pair != [None, None]:
                unit = group["unit"]
                cells = [_figure(name, figure, unit, has_intervals) for figure in pair]
                rows.append((_label(name, unit), *cells, _difference(found), found["word"]))
        text = table(rows, frozenset({1, 2, 3}))
        if max(map(len, text.splitlines())) <= WIDTH - 2:
            break
    yield from (_line(f"  {line}") for line in text.splitlines())
    for name, found in one["measures"].items():
        is_told = group["measures"][name] is not None or reference["measures"][name] is not None
        if found["reason"] and is_told:
            yield from _hanging("    ", f"{_label(name, group['unit'])}: {found['reason']}")


def _label(name: str, unit: str) -> str:
    if name == "throughput":
        return f"{unit}/s"
    return f"J/{per_unit(unit)}" if name == "joules_per_unit" else LABELS[name]


def _figure(
    name: str, figure: Mapping[str, Any] | None, unit: str, has_intervals: bool
) -> str:  # fmt: skip
    if figure is None:
        return DASH
    if name == "time_to_steady_s":
        return span(figure["mean"])
    if name == "drop_frac":
        return percent(figure["mean"])
    factor = per_unit_factor(unit) if name == "joules_per_unit" else 1.0
    mean, u95 = figure["mean"] * factor, figure["u95"]
    u95 = None if u95 is None else u95 * factor
    text = number(mean, decimals_of(mean, u95))
    return f"{text} {uncertainty(mean, u95)}".rstrip() if has_intervals else text


def _difference(found: Mapping[str, Any]) -> str:
    """`+2.3 ± 0.6 %`."""
    mean, u95 = found["by"], found["u95"]
    if mean is None:
        return DASH
    factor, unit = (100.0, "%") if found["unit"] == "frac" else (1.0, found["unit"])
    mean, u95 = mean * factor, None if u95 is None else u95 * factor
    decimals = decimals_of(mean, u95) if u95 else 0 if unit == "s" else 1
    text = number(mean, decimals)
    sign = "+" if mean > 0 and any(digit in text for digit in "123456789") else ""
    return " ".join(filter(None, [f"{sign}{text}", uncertainty(mean, u95), unit]))


def _boundaries(groups: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    by_scope: dict[str | None, list[str]] = {}
    for group in groups.values():
        by_scope.setdefault(group["watts_are"], []).append(group["label"])
    for scope, labels in by_scope.items():
        whose = f" for {', '.join(labels)}" if len(by_scope) > 1 else ""
        yield from _hanging("", f"Watts and joules{whose} are of {WATTS_ARE.get(scope, scope)}.")


def _best(groups: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for group in groups.values():
        if group["behind_best_frac"] == 0:
            yield from _hanging("", f"Best {short_name(group['name'])}: {group['label']}.")


def _repeats(document: Mapping[str, Any]) -> Iterator[str]:
    for one in document["repeats"]:
        rate = one["measures"]["throughput"]
        if rate is None or not rate["between_sd"]:
            continue
        within = rate["within_u95"]
        words = f"{', '.join(one['runs'])}: {rate['n']} runs of one configuration differ by " + (
            f"{percent(rate['between_sd'] / rate['mean'], 2)} (standard deviation)"
        )
        if within is not None:
            # What the runs say of themselves, brought back from their mean to one run.
            alone = within * rate["n"] ** 0.5 / rate["mean"]
            words += f"; each says ± {percent(alone, 2)} (95 %) of itself"
        yield from _hanging("", f"{words}.")


def _line(text: str) -> str:
    return fit(one_line(text), WIDTH)


def _hanging(lead: str, text: str) -> Iterator[str]:
    for line in wrapped(one_line(text), WIDTH - len(lead)):
        yield (lead + line).rstrip()
        lead = " " * len(lead)
