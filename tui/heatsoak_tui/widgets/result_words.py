"""What a result says, in lines: the sentence, the numbers, how they were found. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from heatsoak.economics import cost
from heatsoak.economics.estimate import Estimate
from heatsoak_tui.format import (
    DASH,
    card_mark,
    decimals_of,
    duration,
    fit,
    gibibytes,
    number,
    per_unit,
    per_unit_factor,
    percent,
    short_name,
    span,
    uncertainty,
    wrap,
)
from heatsoak_tui.widgets.canvas import width_of
from heatsoak_tui.widgets.run_canvas import STATE_ROLES, flags_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak_tui.run_view import RunView
    from heatsoak_tui.widgets.canvas import Line

LABEL = 20
"""Cells of the name of a row."""
COLUMN = 22
"""Cells of a card's column: a number of 13, its uncertainty of 9."""
Data = dict[str, Any]
Ranked = tuple[int, "Line"]
"""A line and how much it is worth: where not all fit, the least gives way."""


def headline(view: RunView, device_id: str, width: int) -> list[Line]:
    """`9 402 tokens/s ± 0.4 % per RTX 5090 at 561 W and 75 °C.`, and what boost promised."""
    data = view.result(device_id) or {}
    unit = view.unit(device_id)
    numbers = _numbers(data)
    rate = _figure(numbers, "throughput")
    verdict = view.verdict(device_id)
    if rate is None:
        reason = verdict.reason if verdict else "no result yet"
        return [[(f" {line}", "text")] for line in wrap(reason, width - 2, 2)]
    is_frozen = bool(data.get("sustained"))
    relative = rate["u95"] / rate["mean"] if rate.get("u95") and rate["mean"] else None
    line: Line = [(f" {number(rate['mean'])} {unit}/s", "rate/strong")]
    if relative is not None:
        line.append((f" ± {percent(relative)}", "muted"))
    line.append((f" {'on' if len(view.device_ids) == 1 else 'per'} ", "text"))
    line.append((short_name(view.device(device_id).name), "text"))
    for key, text, role in (("power_w", "W", "power"), ("temperature_c", "°C", "temperature")):
        if (figure := _figure(numbers, key)) is not None:
            word = " at " if key == "power_w" else " and "
            line += [(word, "text"), (f"{number(figure['mean'], 0)} {text}", role)]
    if not is_frozen:
        return [[(" NOT FROZEN, last window:", "warn"), *line]]
    boost = data.get("boost")
    if not boost:
        return [line]
    drop = boost.get("drop_frac")
    change = f" ({percent(-drop, signed=True)})" if drop is not None else ""
    promise: Line = [
        (f" The first minutes promised {number(boost['throughput'])}{change}.", "text")
    ]
    line.append((".", "text"))
    is_fitting = width_of(line) + width_of(promise) + 1 <= width
    return [[*line, (" ", "text"), *promise]] if is_fitting else [line, promise]


def head_row(view: RunView, ids: Sequence[str], total: int, picked: int, *, has_sum: bool) -> Line:
    """The names of the cards over their columns."""
    more = f"  {picked + 1} of {total}" if len(ids) < total else "± at 95 %"
    line: Line = [(f"  {more:<{LABEL - 2}}", "muted")]
    for device_id in ids:
        name = f"{card_mark(device_id)} {short_name(view.device(device_id).name)}"
        role = "accent" if device_id == view.device_ids[picked] and total > 1 else "muted"
        line.append((f"{fit(name, COLUMN - 2):>{COLUMN - 9}}{'':9}"[:COLUMN], role))
    if has_sum:
        line.append((f"{'all ' + str(total):>{COLUMN - 9}}", "muted"))
    return line


def number_rows(view: RunView, ids: Sequence[str], summed: Sequence[str]) -> list[Ranked]:
    """The figures of some cards side by side, each line with how much it is worth.

    Args:
        view: the run.
        ids: the cards that are shown.
        summed: the cards whose sum is shown beside them; empty: no sum.
    """
    unit = view.unit(ids[0])
    factor = per_unit_factor(unit)
    datas = [view.result(device_id) or {} for device_id in ids]
    all_numbers = [_numbers(view.result(device_id) or {}) for device_id in summed]
    lines: list[Ranked] = []

    def row(
        worth: int, label: str, role: str, cells: Sequence[tuple[str, str]], total: Line
    ) -> None:
        line: Line = [(f"  {label:<{LABEL - 2}}", role or "text")]
        for value, doubt in cells:
            line.append((f"{value:>{COLUMN - 9}}", "strong" if role else "text"))
            line.append((f" {doubt:<8}", "muted"))
        lines.append((worth, line + total))

    def figures(key: str, scale: float = 1.0) -> list[tuple[str, str]]:
        return [_cell(_figure(_numbers(data), key), scale) for data in datas]

    states = [view.state(device_id) for device_id in ids]
    cells = [(f"{s:>{COLUMN - 9}}{'':9}", f"{STATE_ROLES[s]}/strong") for s in states]
    # The header says it where all are steady.
    lines.append((25 if set(states) == {"steady"} else 94, [(f"  {'state':<18}", "text"), *cells]))
    row(100, f"{unit}/s", "rate", figures("throughput"), _sum(all_numbers, "throughput"))
    if any(_differs(data) for data in datas):
        row(70, "  with pauses", "", figures("all_in_throughput"), [])
    boosts = [data.get("boost") or {} for data in datas]
    row(
        60, "  boost", "",
        [(number(boost.get("throughput")), percent(_minus(boost.get("drop_frac")), signed=True))
         if boost else (DASH, "") for boost in boosts],
        [],
    )  # fmt: skip
    for minutes in (10, 20):
        values = [data.get(f"at_{minutes}_min") for data in datas]
        if any(value is not None for value in values):
            against = [_against(v, d) for v, d in zip(values, datas, strict=True)]
            row(40, f"  at {minutes} min", "", against, [])
    row(90, "W", "power", figures("power_w"), _sum(all_numbers, "power_w"))
    row(85, "°C", "temperature", figures("temperature_c"), [])
    row(50, "MHz", "clock", figures("sm_clock_mhz"), [])
    row(95, f"J per {per_unit(unit)}", "power", figures("joules_per_unit", factor), [])
    row(92, f"{unit}/s per W", "power", [_per_watt(_numbers(data)) for data in datas], [])
    row(20, "load %", "", figures("utilization_pct"), [])
    memory = [_figure(_numbers(data), "memory_used_bytes") for data in datas]
    row(30, "memory", "", [(gibibytes(m["mean"]) if m else DASH, "") for m in memory], [])
    return lines


def context_rows(view: RunView, document: Data | None, device_id: str, width: int) -> list[Ranked]:
    """How the numbers of a card were found, each line with how much it is worth."""
    data = view.result(device_id) or {}
    numbers = _numbers(data)
    lines: list[Ranked] = []

    def row(worth: int, label: str, text: str, role: str = "text") -> None:
        line = [(f"  {label:<{LABEL - 2}}", "muted"), (fit(text, width - LABEL - 1), role)]
        lines.append((worth, line))

    for warning in warnings_for(view, document, device_id):
        row(100, "warning", warning, "warn")
    verdict = view.verdict(device_id)
    if verdict is not None:
        if verdict.flags:
            role = flags_role(verdict.flags)
            row(95 if role == "warn" else 50, "flags", " · ".join(verdict.flags), role)
        if verdict.frozen_at_s is not None and verdict.window_start_s is not None:
            over = span(verdict.window_s)
            at, start = duration(verdict.frozen_at_s), duration(verdict.window_start_s)
            text = f"frozen at {at} over {over} from {start}"
        else:
            text = verdict.reason
        stands = f"; stands on {', '.join(verdict.channels)}" if verdict.channels else ""
        row(80, "judged", text + stands)
    is_reported = view.throttle_frac(device_id) is not None
    if is_reported and data.get("throttle") is None:
        row(60, "throttled", "no window judged yet")
    else:
        row(60, "throttled", _throttle_words(data if is_reported else {}))
    if (job := _job_of(document, device_id)) is not None:
        row(70, "MFU", _mfu_words(job))
        if (integrity := job.get("integrity")) is not None:
            checks, failures = integrity["checks"], integrity["failures"]
            text = f"{number(checks, 0)} checks of the arithmetic, {number(failures, 0)} failed"
            row(98 if failures else 30, "integrity", text, "bad" if failures else "text")
    sample = view.latest(device_id)
    has_power = sample is not None and sample.power_w is not None
    row(55, "energy", _energy_words(data, has_power=has_power))
    if numbers:
        row(40, "intervals", "95 %: how stable the run was, not how exact the sensor is")
    return lines


def most_worth(lines: Sequence[Ranked], room: int) -> list[Line]:
    """So many of the lines as there is room for, those worth most, in their order."""
    by_worth = sorted(range(len(lines)), key=lambda index: (-lines[index][0], index))
    return [lines[index][1] for index in sorted(by_worth[: max(0, room)])]


def _energy_words(data: Data, *, has_power: bool) -> str:
    energy = data.get("energy") or {}
    method = energy.get("method")
    if method is None:
        return DASH if has_power else "power is not reported by this device"
    counter, integral = energy.get("counter_j"), energy.get("integrated_j")
    text = {"counter": "energy counter", "integral": "integral of power"}[method]
    if counter and integral:
        text += f"; integral {percent(integral / counter - 1, signed=True)}"
    if (energy.get("gap_frac") or 0.0) >= 0.0005:
        text += f"; gaps {percent(energy['gap_frac'])}"
    return text


def _throttle_words(data: Data) -> str:
    throttle = data.get("throttle")
    if throttle is None:
        return "not reported by this device"
    parts = [f"{name.replace('_', ' ')} {percent(share, 0)}" for name, share in throttle.items()]
    return ", ".join(parts) + " of the window" if parts else "not in the window"


def _job_of(document: Data | None, device_id: str) -> Data | None:
    jobs: list[Data] = (document or {}).get("jobs", [])
    return next((job for job in jobs if device_id in job["devices"]), None)


def warnings_for(view: RunView, document: Data | None, device_id: str) -> list[str]:
    """Of the picked card and of the session; that it is synthetic the header says already."""
    others = tuple(f"{other}: " for other in view.device_ids if other != device_id)
    return [
        warning.removeprefix(f"{device_id}: ")
        for warning in (document or {}).get("warnings", ())
        if not warning.startswith(others) and "synthetic figures" not in warning
    ]


DOUBTED_MFU = (0.20, 0.85)
"""Below, a model of a billion parameters or more is held up by its software; above, the peak is
doubted. Good code: 66 to 82 % on a 4090 or 5090, 53 to 69 on a PRO 6000, 40 to 60 on an H100."""
BILLION_FLOPS = 6e9
"""Per unit, of a model of a billion parameters: 6 a parameter."""


def _mfu_words(job: Data) -> str:
    mfu = job.get("mfu") or {}
    nominal, measured = mfu.get("nominal_frac"), mfu.get("measured_frac")
    if nominal is None:
        return f"{DASH}  not known for this card and workload"
    text = f"{percent(nominal)} of the nominal peak"
    if measured is not None:
        text += f", {percent(measured)} of the measured one"
    is_large = (job["facts"].get("flops_per_unit") or 0.0) >= BILLION_FLOPS
    if nominal > DOUBTED_MFU[1]:
        text += "; doubt the peak: good code reaches 85 % at most"
    elif nominal < DOUBTED_MFU[0] and is_large:
        text += "; below 20 %: doubt the software before the card"
    return text


def _numbers(data: Data) -> Data:
    numbers: Data = data.get("sustained") or data.get("last_window") or {}
    return numbers


def _figure(numbers: Data, key: str) -> Data | None:
    figure: Data | None = numbers.get(key)
    return figure if figure and figure.get("mean") is not None else None


def _cell(figure: Data | None, scale: float = 1.0) -> tuple[str, str]:
    if figure is None:
        return DASH, ""
    mean = figure["mean"] * scale
    u95 = figure.get("u95")
    u95 = u95 * scale if u95 is not None else None
    return number(mean, decimals_of(mean, u95)), uncertainty(mean, u95)


def _against(value: float | None, data: Data) -> tuple[str, str]:
    rate = _figure(_numbers(data), "throughput")
    if value is None or rate is None or not rate["mean"]:
        return number(value), ""
    return number(value), percent(value / rate["mean"] - 1, signed=True)


def _per_watt(numbers: Data) -> tuple[str, str]:
    rate, power = _figure(numbers, "throughput"), _figure(numbers, "power_w")
    if not rate or not power or not power["mean"]:
        return DASH, ""
    found = cost.per_watt(_estimate(rate), _estimate(power))
    return _cell({"mean": found.mean, "u95": found.u95})


def _estimate(figure: Data) -> Estimate:
    return Estimate(figure["mean"], figure.get("u95"))


def _minus(value: float | None) -> float | None:
    return -value if value is not None else None


def _differs(data: Data) -> bool:
    """Whether pauses cost over half a percent."""
    rate = _figure(_numbers(data), "throughput")
    all_in = _figure(_numbers(data), "all_in_throughput")
    return bool(rate and all_in and rate["mean"] and abs(all_in["mean"] / rate["mean"] - 1) > 0.005)


def is_addable(view: RunView, ids: Sequence[str]) -> bool:
    """Whether the cards are steady, trained apart and counted the same: rates may be added."""
    if not all((view.result(device_id) or {}).get("sustained") for device_id in ids):
        return False
    jobs = {job.job_id for device_id in ids if (job := view.job(device_id)) is not None}
    return len(jobs) == len(ids) and len({view.unit(device_id) for device_id in ids}) == 1


def _sum(all_numbers: Sequence[Data], key: str) -> Line:
    figures = [_figure(numbers, key) for numbers in all_numbers]
    if not figures or any(figure is None for figure in figures):
        return []
    known = [figure for figure in figures if figure is not None]
    mean = sum(figure["mean"] for figure in known)
    doubts = [figure.get("u95") for figure in known]
    u95 = (
        None
        if any(d is None for d in doubts)
        else math.hypot(*(d for d in doubts if d is not None))
    )
    value, doubt = _cell({"mean": mean, "u95": u95})
    return [(f"{value:>{COLUMN - 9}}", "strong"), (f" {doubt:<8}", "muted")]
