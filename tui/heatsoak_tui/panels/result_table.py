"""What came out: the sustained numbers with their intervals, beside what a quick look promised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from heatsoak_tui.widgets.findings import Findings
from heatsoak_tui.widgets.result_words import (
    COLUMN,
    LABEL,
    head_row,
    headline,
    is_addable,
    most_worth,
    number_rows,
)
from heatsoak_tui.widgets.run_canvas import RunCanvas, Shown

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.result_words import Ranked

LEAST = 7
"""Lines that say how fast, how sure, at what power: the sentence and the rows worth most."""
TELLING = 35
"""Worth of a row from which it comes before white space."""


class ResultTable(RunCanvas):
    """One column per card; the picked one always in sight."""

    def __init__(
        self, shown: Shown, found: Findings | None = None, *, id: str | None = None
    ) -> None:
        super().__init__(shown, id=id)
        self.found = found if found is not None else Findings()

    @property
    def document(self) -> dict[str, Any] | None:
        """The session as `heatsoak-result/1`, once it was read."""
        return self.found.document

    def wanted_height(self, width: int, least_worth: int = 0) -> int:
        """Lines that everything there is to say takes, but for rows worth less."""
        head, rows = self._parts(width)
        return len(head) + sum(worth >= least_worth for worth, _ in rows)

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The sentence, then the numbers that fit, those worth least left out."""
        head, rows = self._parts(width)
        telling = sum(worth >= TELLING for worth, _ in rows)
        gap = 1 if height > len(head) + telling and len(head) > 1 else 0
        lines = [*head[:-1], *([[]] * gap), *head[-1:]]
        return lines + most_worth(rows, height - len(lines))

    def _parts(self, width: int) -> tuple[list[Line], list[Ranked]]:
        """The sentence with the names of the cards, and the rows."""
        view = self.shown.view
        ids = view.device_ids
        if not ids:
            return [], []
        count = max(1, (width - LABEL) // COLUMN)
        has_sum = count >= 3 and len(ids) > 1 and is_addable(view, ids)
        count = min(len(ids), count - 1 if has_sum else count)
        picked = ids.index(self.shown.device_id) if self.shown.device_id in ids else 0
        first = min(max(0, picked - count // 2), len(ids) - count)
        seen = ids[first : first + count]
        names = head_row(view, seen, len(ids), picked, has_sum=has_sum)
        rows = number_rows(view, seen, ids if has_sum else [])
        return [*headline(view, ids[picked], width), names], rows
