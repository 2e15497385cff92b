"""What the reading commands print for people: plain tables, aligned, no colour."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from heatsoak_tui.cli.environment_text import environment_lines
from heatsoak_tui.cli.money_text import money_lines
from heatsoak_tui.format import (
    DASH,
    THIN,
    decimals_of,
    duration,
    fit,
    gibibytes,
    number,
    per_unit,
    per_unit_factor,
    percent,
    recipe_words,
    to_ascii,
    uncertainty,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def printable(text: str) -> str:
    """The text as it is, or in ASCII where the terminal's encoding lacks a glyph of it."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return to_ascii(text)
    return text


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> str:
    """Rows in columns two spaces apart; the columns in `right` are right-aligned."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def one_line(cell: str) -> str:
    """The cell without control characters: a name in a mailed file may hold an escape sequence."""
    return "".join(char if char.isprintable() or char == THIN else "?" for char in cell)


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, default=str)
    print()


def devices_text(devices: list[dict[str, Any]], problem: str | None) -> str:
    """One line a device with its reading now."""
    rows = [("id", "name", "memory", "W", "°C", "MHz", "load %", "card profile")]
    for device in devices:
        reading = device["reading"] or {}
        rows.append(
            (
                device["device_id"],
                device["name"],
                gibibytes(device["memory_total_bytes"]),
                number(reading.get("power_w"), 0),
                number(reading.get("temperature_c"), 0),
                number(reading.get("sm_clock_mhz"), 0),
                number(reading.get("utilization_pct"), 0),
                device["card"] or DASH,
            )
        )
    lines = [table(rows, frozenset({2, 3, 4, 5, 6}))]
    slices = [device["device_id"] for device in devices if device.get("mig_parent_uuid")]
    if slices:
        lines.append(f"{', '.join(slices)}: MIG slices; W, °C and MHz are those of the whole card")
    if problem is not None:
        lines.append(f"no NVIDIA card: {problem}")
    lines.append("also: synthetic:CARD[xN], a card made of arithmetic, such as synthetic:rtx-5090")
    return printable("\n".join(lines))


def workloads_text(workloads: list[dict[str, Any]], problem: str | None) -> str:
    """One line a workload, its sizes below."""
    rows = [("name", "counts", "runs on", "what")]
    rows += [(w["name"], w["unit"], ", ".join(w["kinds"]), w["title"]) for w in workloads]
    lines = [table(rows), ""]
    for workload in workloads:
        lines.append(f"{workload['name']}  sizes: {', '.join(workload['sizes'])}")
        defaults = workload["defaults"]
        shown = (f"{key} {value}" for key, value in defaults.items() if key != "settings")
        lines.append(f"  defaults: {', '.join(shown)}")
    if problem is not None:
        lines += ["", problem]
    return printable("\n".join(lines))


def sessions_text(sessions: list[dict[str, Any]]) -> str:
    """One line a session, newest first."""
    if not sessions:
        return "no session yet; `heatsoak run` records one"
    rows = [("id", "created (UTC)", "devices", "workload", "protocol", "state", "per s", "name")]
    for session in sessions:
        if session.get("problem"):
            rows.append((session["path"].name, DASH, session["problem"], *[DASH] * 5))
            continue
        rows.append(
            (
                session["id"],
                session["created_utc"],
                _counted(session["devices"]),
                session["workload"] or DASH,
                session["protocol"],
                session["state"],
                number(session["throughput"]),
                session["name"] or "",
            )
        )
    return printable(table(rows, frozenset({6})))


def _counted(names: Sequence[str]) -> str:
    """`8 x SYNTHETIC GeForce RTX 5090`."""
    counts = Counter(names)
    return ", ".join(f"{n} x {name}" if n > 1 else name for name, n in counts.items())


def result_text(document: dict[str, Any], path: Path) -> str:
    """The result of a session: its headline first, then the figures with their evidence."""
    lines = [_headline(document)]
    jobs = {device: job for job in document["jobs"] for device in job["devices"]}
    for device in document["devices"]:
        lines += ["", *_device_lines(device, jobs.get(device["device_id"]))]
    lines += money_lines(document)
    lines += [f"! {warning}" for warning in document["warnings"]]
    lines += ["", *map(one_line, environment_lines(document["session"]["environment"]))]
    lines.append(f"session  {path}")
    return printable("\n".join(lines))


def verdict_text(line: dict[str, Any]) -> str:
    """One line of `heatsoak judge`."""
    words = [line["file"], line["device"], line["state"]]
    if line["provenance"] == "synthetic":
        words.insert(2, "SYNTHETIC")
    if line["state"] == "steady":
        words.append(f"frozen at {duration(line['frozen_at_s'])}")
    for name, unit in (("throughput", f"{line['unit']}/s"), ("power_w", "W")):
        figure = line[name]
        if figure and line["state"] == "steady":
            mean, u95 = figure["mean"], figure["u95"]
            words.append(f"{number(mean, decimals_of(mean, u95))} {uncertainty(mean, u95)} {unit}")
    flags = f" ({', '.join(line['flags'])})" if line["flags"] else ""
    return printable("  ".join(words) + flags + f": {line['reason']}")


def _headline(document: dict[str, Any]) -> str:
    session = document["session"]
    marks = {d["provenance"].upper() for d in document["devices"]} - {"MEASURED"}
    if session["protocol"] == "smoke":
        marks.add("SMOKE")
    words = [f"session {session['id']}", session["protocol"], session["state"].upper()]
    if session["name"]:
        words.insert(1, one_line(session["name"]))
    return "  ".join([*words, *sorted(marks)])


def _device_lines(device: dict[str, Any], job: dict[str, Any] | None) -> list[str]:
    verdict, sustained = device["verdict"], device["sustained"]
    unit = job["unit"] if job else "units"
    words = [device["device_id"], device["name"]]
    if job:
        words += [job["workload"], *recipe_words(job["recipe"])]
    lines = ["  ".join(words)]
    flags = f"  ({', '.join(verdict['flags'])})" if verdict["flags"] else ""
    lines.append(f"  {verdict['state']}{flags}: {verdict['reason']}")
    numbers = sustained or device["last_window"]
    if numbers is None:
        return [*lines, "  no window was judged"]
    if sustained:
        is_smoke = "smoke" in verdict["flags"]
        kind = "smoke figures, not sustained" if is_smoke else "sustained"
        lines.append(
            f"  {kind}, frozen at {duration(verdict['frozen_at_s'])} over "
            f"{duration(verdict['window_s'])}"
        )
    else:
        lines.append("  NOT sustained, the last window only")
    factor = per_unit_factor(unit)
    scope = device["energy"]["scope"] if device["energy"] else None
    whose = f" of the whole {scope}" if scope in ("card", "module") else ""
    heat = whose if scope == "card" else ""
    rows = [
        _figure_row(f"{unit}/s", numbers["throughput"]),
        _figure_row(f"W{whose}", numbers["power_w"]),
        _figure_row(f"°C{heat}", numbers["temperature_c"]),
        _figure_row(f"MHz{heat}", numbers["sm_clock_mhz"]),
        _figure_row(f"J per {per_unit(unit)}", numbers["joules_per_unit"], factor),
    ]
    energy = device["energy"]
    if energy and energy["method"]:
        gap = energy["gap_frac"]
        rows[-1][-1] += f"  by {energy['method']}"
        if gap is not None:
            rows[-1][-1] += f"; counter and integral differ by {percent(gap, signed=True)}"
    lines += [f"  {line}" for line in table(rows, frozenset({1})).splitlines()]
    if boost := device["boost"]:
        drop = boost["drop_frac"]
        lost = "" if drop is None else f"; {percent(-drop, signed=True)} since"
        lines.append(
            f"  boost {number(boost['throughput'])} {unit}/s over {number(boost['window_s'], 0)} s"
            f"{lost}"
        )
    fixed = [
        f"at {minutes} min {number(device[f'at_{minutes}_min'])} {unit}/s"
        for minutes in (10, 20)
        if device[f"at_{minutes}_min"] is not None
    ]
    if fixed:
        lines.append(f"  a fixed soak would have said: {', '.join(fixed)}")
    return [fit(line, 200) for line in lines]


def _figure_row(label: str, figure: dict[str, Any] | None, factor: float = 1.0) -> list[str]:
    if figure is None:
        return [label, DASH, ""]
    mean = figure["mean"] * factor
    u95 = None if figure["u95"] is None else figure["u95"] * factor
    return [label, number(mean, decimals_of(mean, u95)), uncertainty(mean, u95)]
