"""The cards of this machine, and synthetic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import DASH, card_mark, fit, number, wrap
from heatsoak_tui.widgets.draft_canvas import DraftCanvas, heading, in_sight

if TYPE_CHECKING:
    from heatsoak.doctor.machine import Card
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample
    from heatsoak_tui.widgets.canvas import Line

ADD_SYNTHETIC = "add a synthetic card"


class SetupCards(DraftCanvas):
    """One line per card; the last one adds a synthetic card."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Name, memory, temperature, what it does now."""
        draft = self.draft
        is_focused = draft.pane == "cards"
        lines = [heading("CARDS", is_focused=is_focused)]
        if not draft.is_found:
            return [*lines, [("    looking for cards", "muted")]]
        rows = [self._row(info, width) for info in draft.devices]
        rows.append([("    +   ", "muted"), (ADD_SYNTHETIC, "muted")])
        cursor = draft.cursor["cards"]
        problem = wrap(draft.problem, width - 6, 2)
        room = height - 1 - len(problem)
        for index in in_sight(cursor, len(rows), room):
            row = rows[index]
            if is_focused and index == cursor:
                row = [("  ▸ ", "accent"), (row[0][0][4:], row[0][1]), *row[1:]]
            lines.append(row)
        return lines + [[("    ", "text"), (line, "muted")] for line in problem]

    def _row(self, info: DeviceInfo, width: int) -> Line:
        draft = self.draft
        is_chosen = info.device_id in draft.chosen
        sample = draft.samples.get(info.device_id)
        mark = card_mark(info.device_id)
        label = f"{mark:<4}{info.name.removeprefix('NVIDIA ')}"
        has_load = width >= 56
        room = max(10, width - 8 - (27 if has_load else 18))
        memory = info.memory_total_bytes
        size = f"{number(memory / 1024**3, 0)} GiB" if memory else DASH
        temperature = sample.temperature_c if sample else None
        degrees = f"{number(temperature, 0)} °C" if temperature is not None else DASH
        return [
            (f"    {'[x]' if is_chosen else '[ ]'} ", "accent" if is_chosen else "muted"),
            (f"{fit(label, room):<{room}}", "text" if is_chosen else "muted"),
            (f"{size:>9}", "muted"),
            (f"{degrees:>7}  ", "temperature" if temperature is not None else "muted"),
            (_doing(sample, draft.card(info.device_id)) if has_load else "", "muted"),
        ]


def _doing(sample: DeviceSample | None, card: Card | None) -> str:
    if card is not None and card.soaked_by:
        return "being soaked"
    if card is not None and any(user.kind == "compute" for user in card.users or ()):
        return "in use"
    load = sample.utilization_pct if sample else None
    if card is not None and card.users == () and not load:
        return "free"
    return f"load {number(load, 0)} %" if load is not None else ""
