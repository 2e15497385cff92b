"""What to know before using the numbers, and how they were found, of the picked card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.widgets.result_words import context_rows, most_worth
from heatsoak_tui.widgets.run_canvas import RunCanvas

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.findings import Findings
    from heatsoak_tui.widgets.result_words import Ranked
    from heatsoak_tui.widgets.run_canvas import Shown

URGENT = 90
"""Worth from which a line has to be seen."""


class Evidence(RunCanvas):
    """Warnings first; what does not fit is counted, and stands with the inputs."""

    def __init__(self, shown: Shown, found: Findings, *, id: str | None = None) -> None:
        super().__init__(shown, id=id)
        self.found = found

    def rows(self, width: int) -> list[Ranked]:
        """All there are."""
        view, device_id = self.shown.view, self.shown.device_id
        if device_id is None or device_id not in view.device_ids:
            return []
        return context_rows(view, self.found.document, device_id, width)

    @property
    def urgent_count(self) -> int:
        """How many lines have to be seen."""
        return sum(worth >= URGENT for worth, _ in self.rows(80))

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The lines worth most."""
        rows = self.rows(width)
        lines = most_worth(rows, height)
        hidden = sum(worth >= URGENT for worth, _ in rows) - height
        if hidden > 0 and lines:
            more = f"  and {hidden} more: i"
            lines[-1] = [*_cut(lines[-1], width - len(more)), (more, "warn")]
        return lines


def _cut(line: Line, width: int) -> Line:
    """The line, as far as it fits."""
    cut: Line = []
    for text, role in line:
        cut.append((text[: max(0, width)], role))
        width -= len(text)
    return cut
