"""The first lines of the Doctor screen: how bad it is, or what is being measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.doctor.finding import counts, summary
from heatsoak_tui.format import fit
from heatsoak_tui.widgets.canvas import Line, left_right, rule
from heatsoak_tui.widgets.draft_canvas import DraftCanvas

if TYPE_CHECKING:
    from heatsoak_tui.widgets.draft import Draft


class DoctorHeader(DraftCanvas):
    """Title, sentence, rule."""

    def __init__(self, draft: Draft, host: str, *, id: str | None = None) -> None:
        super().__init__(draft, id=id)
        self._host = host

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Two lines and a rule."""
        title: Line = [(" heatsoak ", "accent"), ("  doctor", "text")]
        head = left_right(title, [(f"{self._host} ", "muted")], width)
        blank: list[Line] = [[] for _ in range(height - 3)]
        return [head, self._sentence(width), *blank, rule(width)][:height]

    def _sentence(self, width: int) -> Line:
        draft = self.draft
        if draft.doctor_is_busy:
            return [(" Measuring  ", "accent"), (fit(draft.doctor_is_busy, width - 13), "text")]
        if draft.machine is None:
            return [(" Looking", "accent")]
        number = counts(draft.relevant_findings())
        word, role = ("Fit to measure", "good/strong")
        if number["warning"]:
            word, role = "Measures with care", "warn/strong"
        if number["error"]:
            word, role = "Cannot measure", "bad/strong"
        return [
            (f" {word}  ", role),
            (fit(summary(draft.findings()), width - len(word) - 4), "text"),
        ]
