"""One reading of one card as lines of text: a braille chart with its values left and right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak_tui.format import number
from heatsoak_tui.widgets import raster
from heatsoak_tui.widgets.canvas import HUES, Cell, Line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak_tui.run_view import RunView
    from heatsoak_tui.widgets.time_axis import TimeAxis

LEFT = 18
"""Cells left of a chart: the quantity, and the values at its edge."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One chart."""

    reading: str
    label: str
    least_frac: float
    """The chart spans at least this share of its values, or `least` in its unit."""
    least: float
    is_whole: bool
    """Whether the run-up must be inside."""


QUANTITIES = (
    Quantity("rate", "", 0.06, 0.0, is_whole=False),
    Quantity("temperature_c", "°C", 0.0, 8.0, is_whole=True),
    Quantity("power_w", "W", 0.12, 4.0, is_whole=False),
    Quantity("sm_clock_mhz", "MHz", 0.06, 30.0, is_whole=False),
)
"""In the order in which they are given up when there is no room."""
DRAWN_ORDER = ("rate", "power_w", "temperature_c", "sm_clock_mhz")
"""From top to bottom."""


def chart_lines(
    view: RunView,
    device_id: str,
    quantity: Quantity,
    axis: TimeAxis,
    height: int,
    right: int,
    label: str | None = None,
    limits: tuple[float, float] | None = None,
) -> list[Line]:
    """The chart with its values: `axis.left` cells at the left, `right` at the right.

    Args:
        view: The run.
        device_id: The card.
        quantity: What to draw.
        axis: The time axis.
        height: Lines.
        right: Cells for the current value and the reference's.
        label: What stands at the left of the first line; None: the unit.
        limits: Lowest and highest value; None: of what is drawn.
    """
    reading, hue = quantity.reading, HUES[quantity.reading]
    series = view.series(device_id, reading)
    width = axis.width
    found = _columns(view, device_id, reading, axis)
    reference = _reference(view, device_id, reading)
    frozen = _frozen(view, device_id, reading)
    current = view.rate(device_id) if reading == "rate" else _latest(view, device_id, reading)
    is_silent = view.silent_s(device_id) is not None
    low, high = limits or _limits(view, device_id, quantity, found) or (0.0, 1.0)
    gap = series.gap_s * 2 * width / (axis.t1_s - axis.t0_s)
    grid = raster.plot(found, low, high, width, height, gap)

    rows = [[_cell(dots, hue) for dots in row] for row in grid]
    if reference[0] is not None:
        _line(rows[_row(reference[0], low, high, height)], "┄", "muted", 0, width)
    if frozen[0] is not None:
        start = axis.column_of(frozen[1]) or 0
        _line(rows[_row(frozen[0], low, high, height)], "─", "good", start, width)
    window = axis.window_columns
    if window is not None:
        for row in rows:
            for x in range(*window):
                row[x] = (row[x][0], f"{row[x][1]}/window")

    left_texts = {0: (number(high), "muted"), height - 1: (number(low), "muted")}
    if height == 1:
        left_texts = {0: (number(low), "muted")}
    right_texts = _right_texts(
        [
            (current, number(current), "muted" if is_silent else f"{hue}/strong"),
            (reference[0], f"{number(reference[0])} {reference[1]}", "muted"),
        ],
        low, high, height, right,
    )  # fmt: skip
    if label is None:
        label = quantity.label or f"{view.unit(device_id)}/s"
    lines: list[Line] = []
    for y, row in enumerate(rows):
        value, role = left_texts.get(y, ("", "muted"))
        text, text_role = right_texts.get(y, ("", "muted"))
        lines.append(
            [
                (f"  {label if y == 0 else '':<{axis.left - 9}.{axis.left - 9}}", hue),
                (f"{value:>6} ", role),
                *row,
                (f" {text}", text_role),
            ]
        )
    return lines


def value_limits(
    view: RunView, device_ids: Sequence[str], quantity: Quantity, axis: TimeAxis
) -> tuple[float, float]:
    """Lowest and highest value of a chart that these cards share."""
    found = [
        limits
        for device_id in device_ids
        if (
            limits := _limits(
                view, device_id, quantity, _columns(view, device_id, quantity.reading, axis)
            )
        )
    ]
    if not found:
        return 0.0, 1.0
    return min(low for low, _ in found), max(high for _, high in found)


def _limits(
    view: RunView, device_id: str, quantity: Quantity, found: dict[int, list[float]]
) -> tuple[float, float] | None:
    """Of what is drawn of one card; None when nothing is."""
    reference = _reference(view, device_id, quantity.reading)[0]
    frozen = _frozen(view, device_id, quantity.reading)[0]
    also = [value for value in (reference, frozen) if value is not None]
    if not found and not also:
        return None
    anchor = max((pair[1] for pair in found.values()), default=0.0)
    least = max(quantity.least, quantity.least_frac * abs(anchor))
    return raster.value_range(found, also, least, is_whole=quantity.is_whole)


def _columns(view: RunView, device_id: str, reading: str, axis: TimeAxis) -> dict[int, list[float]]:
    points = view.series(device_id, reading).points(axis.t0_s)
    return raster.columns(points, axis.t0_s, axis.t1_s, 2 * axis.width)


def _cell(dots: int, hue: str) -> Cell:
    return (chr(raster.BRAILLE + dots), hue) if dots else (" ", "text")


def _line(row: list[Cell], glyph: str, role: str, start: int, end: int) -> None:
    for x in range(start, end):
        if row[x][0] == " ":
            row[x] = (glyph, role)


def _row(value: float, low: float, high: float, height: int) -> int:
    return raster.dot_row(value, low, high, height) // 4


def _right_texts(
    wanted: list[tuple[float | None, str, str]], low: float, high: float, height: int, width: int
) -> dict[int, tuple[str, str]]:
    """Texts at the rows of their values, the first wanted first, moved to a free neighbour."""
    placed: dict[int, tuple[str, str]] = {}
    for value, text, role in wanted:
        if value is None or not math.isfinite(value):
            continue
        if len(text) > width - 1:
            text = text.split(" ")[0]
        row = _row(value, low, high, height)
        for candidate in (row, row - 1, row + 1):
            if 0 <= candidate < height and candidate not in placed:
                placed[candidate] = (text, role)
                break
    return placed


def _latest(view: RunView, device_id: str, reading: str) -> float | None:
    sample = view.latest(device_id)
    return getattr(sample, reading) if sample else None


def _reference(view: RunView, device_id: str, reading: str) -> tuple[float | None, str]:
    """The dotted line of a chart and its word: the boost, or a limit once it is near."""
    info = view.device(device_id)
    if reading == "rate":
        boost = view.boost(device_id)
        return (boost.throughput, "boost") if boost else (None, "")
    latest = _latest(view, device_id, reading)
    limit = None
    if reading == "temperature_c":
        limit, near = info.temperature_limit_c, 0.85
    elif reading == "power_w":
        sample = view.latest(device_id)
        limit, near = (sample.power_limit_w if sample else None) or info.power_limit_w, 0.9
    else:
        near = 1.0
    if limit is None or latest is None or latest < near * limit:
        return None, ""
    return limit, "limit"


def _frozen(view: RunView, device_id: str, reading: str) -> tuple[float | None, float]:
    """The frozen mean and where its window starts."""
    data = view.result(device_id)
    verdict = view.verdict(device_id)
    if not data or verdict is None or verdict.frozen_at_s is None or not data.get("sustained"):
        return None, 0.0
    key = "throughput" if reading == "rate" else reading
    figure = data["sustained"].get(key)
    return (figure["mean"] if figure else None), verdict.window_start_s or 0.0
