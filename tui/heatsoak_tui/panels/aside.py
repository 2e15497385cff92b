"""Beside the charts: what is still to come against what is allowed, throttling, events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import duration, number, percent, wrap
from heatsoak_tui.widgets.run_canvas import RunCanvas, flags_role

if TYPE_CHECKING:
    from heatsoak.session.rows import EventRow
    from heatsoak_tui.run_view import RunView
    from heatsoak_tui.widgets.canvas import Line

CHANNEL_HUES = {
    "rate": "rate",
    "power": "power",
    "temperature": "temperature",
    "clock": "clock",
    "fan": "fan",
}
GRAVE_KINDS = frozenset({"lost", "silent", "health"})
"""Events of any card that whoever looks at another one must not miss."""
QUIET_KINDS = frozenset({"start"})
"""Events that every run has and nobody reads twice."""
SENSORS = "SENSORS   "


class Aside(RunCanvas):
    """For the picked card."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Bounds first, then throttling, then as many of the newest events as fit."""
        device_id = self.shown.device_id
        if device_id is None:
            return []
        view = self.shown.view
        lines = bounds_lines(view, device_id)
        lines += [[], *throttle_lines(view, device_id)]
        lines += [*reading_lines(view, device_id, width), *training_lines(view, device_id)]
        room = height - len(lines) - 2
        events = event_lines(view, device_id, width, room)
        if events:
            lines += [[], [("EVENTS", "muted")], *events]
        return lines


def bounds_lines(view: RunView, device_id: str) -> list[Line]:
    """The table of what is still to come in each channel."""
    verdict = view.verdict(device_id)
    has_frozen = verdict is not None and verdict.frozen_at_s is not None
    title = "AT THE FREEZE" if has_frozen else "STILL TO COME"
    lines: list[Line] = [[(f"{title:<20}{'allowed':>15}", "muted")]]
    if verdict is None or not verdict.bounds:
        text = "frozen" if has_frozen else "not judged yet: more time is needed"
        return [*lines, [(text, "muted")]]
    for bound in verdict.bounds:
        is_blocking = bound.channel == verdict.blocked_by and not has_frozen
        unit = bound.unit if bound.unit != "points" else "pt"
        sign, role = ("ok", "good") if bound.is_ok else ("‹", "warn")  # noqa: RUF001
        lines.append(
            [
                (f"{bound.channel:<12}", CHANNEL_HUES.get(bound.channel, "text")),
                (f"{number(bound.value, 1):>8} {unit:<3}", "strong" if is_blocking else "text"),
                (f"{number(bound.margin, 1):>7} {unit:<3}", "muted"),
                (f" {sign}", role),
            ]
        )
    flags = [flag for flag in verdict.flags if flag != "smoke"]
    if flags:
        lines.append([(" · ".join(flags), flags_role(flags))])
    return lines


def throttle_lines(view: RunView, device_id: str) -> list[Line]:
    """Share of the readings per reason, the largest first."""
    shares = view.throttle_frac(device_id)
    head: Line = [("THROTTLE", "muted")]
    if shares is None:
        return [[*head, ("  not reported by this device", "muted")]]
    if not shares:
        return [[*head, ("  none", "good")]]
    ranked = sorted(shares.items(), key=lambda item: -item[1])[:3]
    return [head] + [
        [
            (f"{reason.replace('_', ' '):<26}", "text" if reason == "sw_power_cap" else "warn"),
            (f"{percent(share, 1):>8}", "text"),
        ]
        for reason, share in ranked
    ]


def reading_lines(view: RunView, device_id: str, width: int) -> list[Line]:
    """What has no chart of its own, as last read; nothing where nothing of it is reported."""
    sample = view.latest(device_id)
    if sample is None:
        return []
    parts = []
    if sample.power_instant_w is not None:
        parts.append(f"instant {number(sample.power_instant_w, 0)} W")
    if sample.memory_temperature_c is not None:
        parts.append(f"memory {number(sample.memory_temperature_c, 0)} °C")
    if sample.pstate is not None:
        parts.append(f"P{sample.pstate}")
    if sample.pcie_gen is not None and sample.pcie_width is not None:
        parts.append(f"PCIe {sample.pcie_gen} x{sample.pcie_width}")
    rows: list[str] = []
    for part in parts:
        if rows and len(SENSORS) + len(rows[-1]) + 2 + len(part) <= width:
            rows[-1] += f", {part}"
        else:
            rows.append(part)
    lines: list[Line] = [
        [(f"{'' if i else SENSORS:<{len(SENSORS)}}", "muted"), (row, "text")]
        for i, row in enumerate(rows)
    ]
    return [[], *lines] if lines else []


def training_lines(view: RunView, device_id: str) -> list[Line]:
    """What the job itself says; nothing before it spoke."""
    steps, loss = view.steps_done(device_id), view.loss(device_id)
    if loss is None or steps is None:
        return []
    text = f"  loss {number(loss, 3)} at step {number(steps, 0)}"
    return [[], [("TRAINING", "muted"), (text, "text")]]


def event_lines(view: RunView, device_id: str, width: int, room: int) -> list[Line]:
    """The newest events of the card and of the run, oldest of them first."""
    lines: list[Line] = []
    for event in reversed(view.events):
        is_of_all = event.device_id in (None, device_id) or event.kind in GRAVE_KINDS
        if event.kind in QUIET_KINDS or not is_of_all:
            continue
        block = _event_block(event, width)
        if len(lines) + len(block) > room:
            break
        lines = block + lines
    return lines


def _event_block(event: EventRow, width: int) -> list[Line]:
    at = duration(event.t_s)
    texts = wrap(event.text, width - len(at) - 2, 2)
    role = "warn" if event.kind in ("disturbed", "silent", "warning") else "text"
    role = "bad" if event.kind in ("lost", "error", "health") else role
    return [
        [(f"{at if i == 0 else '':<{len(at)}}  ", "muted"), (text, role)]
        for i, text in enumerate(texts)
    ]
