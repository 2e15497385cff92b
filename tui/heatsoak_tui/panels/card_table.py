"""One line per card: what it does now, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import DASH, card_mark, fit, number, percent, short_name
from heatsoak_tui.widgets.canvas import WIDE, width_of
from heatsoak_tui.widgets.run_canvas import STATE_ROLES, RunCanvas

if TYPE_CHECKING:
    from heatsoak_tui.run_view import RunView
    from heatsoak_tui.widgets.canvas import Line

REASON_WORDS = {
    "sw_power_cap": "power cap",
    "hw_slowdown": "hardware slowdown",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "thermal (hardware)",
    "hw_power_brake_slowdown": "power brake",
    "sync_boost": "sync boost",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells of each column; a number stands right-aligned and its column never changes."""

    name: int
    rate: int
    power: int
    temperature: int
    clock: int
    fan: int
    drop: int
    boost: str
    """Head of the last numeric column."""
    has_throttle: bool

    def row(self, *texts: str) -> str:
        """The head of the table."""
        name, *others = texts
        widths = (self.rate, self.power, self.temperature, self.clock, self.fan)
        cells = [f"{text:>{width}}" for text, width in zip(others, widths, strict=True)]
        return f"{name:<{self.name}}{''.join(cells)}"


COMFORTABLE = Columns(26, 12, 8, 6, 8, 6, 10, "from boost", has_throttle=True)
COMPACT = Columns(15, 10, 6, 5, 7, 5, 7, "boost", has_throttle=False)


class CardTable(RunCanvas):
    """All cards; a list longer than its place scrolls to keep the picked one in sight."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The head of the table and as many cards as fit."""
        shown = self.shown
        view = shown.view
        ids = view.device_ids
        if not ids or height < 2:
            return []
        units = {view.unit(device_id) for device_id in ids}
        unit = f"{units.pop()}/s" if len(units) == 1 else "units/s"
        columns = COMFORTABLE if width >= WIDE else COMPACT
        room = height - 1
        picked = ids.index(shown.device_id) if shown.device_id in ids else 0
        first = 0 if len(ids) <= room else min(max(0, picked - room // 2), len(ids) - room)
        more = f"{first + 1}-{first + room} of {len(ids)}" if len(ids) > room else "state"
        head = "    " + columns.row("card", unit, "W", "°C", "MHz", "fan")
        head += f"  {more:<12}{columns.boost:>{columns.drop}}"
        head += "   throttled" if columns.has_throttle else ""
        lines: list[Line] = [[(head, "muted")]]
        for device_id in ids[first : first + room]:
            is_picked = device_id == shown.device_id and len(ids) > 1
            line = card_line(view, device_id, columns, is_picked=is_picked)
            last, role = line[-1]
            line[-1] = (fit(last, width - width_of(line[:-1])), role)
            lines.append(line)
        return lines


def card_line(view: RunView, device_id: str, columns: Columns, *, is_picked: bool) -> Line:
    """`▸ 0 RTX 5090   9 431   561   74   2 437   68   settling`."""
    info = view.device(device_id)
    sample = view.latest(device_id)
    name = short_name(info.name)
    if info.mig_profile is not None:
        # What tells slices apart must not be cut off; that they are slices is in the title.
        name = f"{info.mig_profile} {name.partition(' MIG ')[0]}"
    name = fit(f"{card_mark(device_id)} {name}", columns.name - 1)
    power = sample.power_w if sample else None
    temperature = sample.temperature_c if sample else None
    clock = sample.sm_clock_mhz if sample else None
    fan = sample.fan_pct if sample else None
    state = view.state(device_id)
    silence = view.silence(device_id)
    is_past = silence is not None or state == "lost"

    def role(hue: str) -> str:
        # The last answer of a card that is silent or lost still stands there, but not as news.
        return "muted" if is_past else hue

    line: Line = [
        ("  ▸ " if is_picked else "    ", "accent"),
        (f"{name:<{columns.name}}", "strong" if is_picked else "text"),
        (f"{number(view.rate(device_id)):>{columns.rate}}", "rate"),
        (f"{number(power, 0):>{columns.power}}", role("power")),
        (f"{number(temperature, 0):>{columns.temperature}}", role("temperature")),
        (f"{number(clock, 0):>{columns.clock}}", role("clock")),
        (f"{number(fan, 0):>{columns.fan}}", role("fan")),
    ]
    if silence is not None and not columns.has_throttle:
        return [*line, (f"  {silence}", "bad")]  # Where there is no room for both.
    line.append((f"  {state:<12}", STATE_ROLES[state]))
    if silence is not None:
        return [*line, (silence, "bad")]
    return line + _notes(view, device_id, columns)


def _notes(view: RunView, device_id: str, columns: Columns) -> Line:
    notes: Line = []
    sample = view.latest(device_id)
    verdict = view.verdict(device_id)
    if verdict is not None and verdict.state == "lost" and columns.has_throttle:
        return [(verdict.reason.removeprefix(f"{device_id} is lost: "), "bad")]
    boost = view.boost(device_id)
    rate = view.rate(device_id)
    drop = DASH
    if boost is not None and rate is not None and boost.throughput > 0:
        drop = percent(rate / boost.throughput - 1, signed=True)
    notes.append((f"{drop:>{columns.drop}}   ", "text"))
    shares = view.throttle_frac(device_id)
    if shares and columns.has_throttle:
        reason, share = max(shares.items(), key=lambda item: item[1])
        if share >= 0.005:
            role = "muted" if reason == "sw_power_cap" else "warn"
            word = REASON_WORDS.get(reason, reason)
            notes.append((f"{word} {percent(share, 0)}", role))
    return notes if sample else [("waiting for the first reading", "muted")]
