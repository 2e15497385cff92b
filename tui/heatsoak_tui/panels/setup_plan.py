"""The plan, field by field, and whether it fits the cards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from heatsoak.units import BYTES_PER_GIB
from heatsoak_tui.format import DASH, card_mark, number
from heatsoak_tui.widgets.canvas import Line, width_of
from heatsoak_tui.widgets.draft_canvas import DraftCanvas, heading

if TYPE_CHECKING:
    from heatsoak_tui.widgets.draft import Draft


class SetupPlan(DraftCanvas):
    """Fields flow over as many lines as they need."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Fields, then memory, then how to change them."""
        draft = self.draft
        is_focused = draft.pane == "plan"
        title = heading("PLAN", is_focused=is_focused)
        if is_focused:
            title.append(("   ←→ field   ↑↓ value   e types one", "muted"))
        lines: list[Line] = [title]
        line: Line = [("    ", "text")]
        for index, one in enumerate(draft.fields()):
            is_picked = is_focused and index == draft.cursor["plan"]
            is_set = one.key in draft.options
            item: Line = [
                (f"{one.label} ", "muted"),
                (f" {_shown(one.value)} ", "picked/accent" if is_picked else
                 "strong" if is_set else "text"),
                ("  ", "text"),
            ]  # fmt: skip
            if width_of(line) + width_of(item) > width and len(line) > 1:
                lines.append(line)
                line = [("    ", "text")]
            line += item
        lines += [line, memory_line(draft)]
        return lines


def memory_line(draft: Draft) -> Line:
    """`memory 9.5 GiB   0: 31.8 GiB ✓`, for the cards that say how much they have."""
    needed = draft.memory_needed_gib()
    line: Line = [("    memory ", "muted")]
    if needed is None:
        has_changes = bool(set(draft.options) - {"size"})
        text = "not known with changed options" if has_changes else DASH
        return [*line, (f" {text}", "muted")]
    line.append((f" about {number(needed, 1)} GiB ", "text"))
    for info in draft.chosen_devices:
        if info.memory_total_bytes is None:
            continue
        has = info.memory_total_bytes / BYTES_PER_GIB
        sign, role = ("✓", "good") if needed <= has else ("too small", "bad")
        mark = card_mark(info.device_id)
        line += [(f"  {mark}: {number(has, 1)} GiB ", "muted"), (sign, role)]
    return line


def _shown(value: Any) -> str:  # noqa: ANN401 - a field's value
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value not in (None, "") else "default" if value is None else "none"
