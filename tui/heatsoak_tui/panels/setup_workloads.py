"""What can be trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import fit
from heatsoak_tui.widgets.draft_canvas import DraftCanvas, heading, in_sight

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line


class SetupWorkloads(DraftCanvas):
    """One line per workload; those that do not run on the chosen cards are last and dim."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Name, unit, title."""
        draft = self.draft
        is_focused = draft.pane == "workloads"
        lines = [heading("WORKLOAD", is_focused=is_focused)]
        rows: list[Line] = []
        chosen = draft.workload_name
        for info in draft.workloads:
            is_chosen, is_fit = info.name == chosen, draft.runs_here(info)
            rows.append(
                [
                    (f"    {'(•)' if is_chosen else '( )'} ", "accent" if is_chosen else "muted"),
                    (f"{info.name:<15} ", "text" if is_fit else "muted"),
                    (f"{info.unit}/s  ", "rate" if is_fit else "muted"),
                    (fit(info.title, width - 36) if width >= 48 else "", "muted"),
                ]
            )
        cursor = draft.cursor["workloads"]
        for index in in_sight(cursor, len(rows), height - 1):
            row = rows[index]
            if is_focused and index == cursor:
                row = [("  ▸ ", "accent"), (row[0][0][4:], row[0][1]), *row[1:]]
            lines.append(row)
        return lines
