"""What would spoil the measurement, in place; the Doctor screen has all of it, with remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.doctor.finding import summary
from heatsoak_tui.format import fit
from heatsoak_tui.widgets.canvas import left_right
from heatsoak_tui.widgets.draft_canvas import DraftCanvas

if TYPE_CHECKING:
    from heatsoak.doctor.finding import Told
    from heatsoak_tui.widgets.canvas import Line

SIGNS = {"error": ("\u00d7", "bad"), "warning": ("!", "warn")}


class SetupDoctor(DraftCanvas):
    """A heading with the summary, then a line for each warning."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The gravest first; the last line says how many more there are."""
        draft = self.draft
        heading: Line = [("  DOCTOR", "muted")]
        if draft.machine is None:
            text = draft.doctor_is_busy or ("looking" if not draft.is_found else "has not looked")
            return [[*heading, (f"   {text}", "muted")]]
        words = summary(draft.relevant_findings())
        lines = [left_right(heading, [(f"{words}   ", "muted")], width)]
        warnings = draft.problems()
        if not warnings:
            return [*lines, [("    nothing would spoil the measurement", "good")]][:height]
        room = max(0, height - 1)
        shown = warnings if len(warnings) <= room else warnings[: max(0, room - 1)]
        lines += [_line(one, width) for one in shown]
        if len(shown) < len(warnings):
            left = len(warnings) - len(shown)
            more = f"{left} more" if shown else f"{left} warnings"
            lines.append([("      ", "text"), (f"{more}: d shows them", "muted")])
        return lines[:height]


def _line(one: Told, width: int) -> Line:
    sign, role = SIGNS[one.severity]
    spoils = f"; spoils: {one.spoils}" if one.spoils else ""
    return [(f"    {sign} ", f"{role}/strong"), (fit(f"{one.words}{spoils}", width - 7), "text")]
