"""Which card for whom, a line for each kind of buyer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import THIN, fit
from heatsoak_tui.widgets.canvas import WIDE
from heatsoak_tui.widgets.run_canvas import RunCanvas

if TYPE_CHECKING:
    from heatsoak.economics.advice import Advice
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.findings import Findings
    from heatsoak_tui.widgets.run_canvas import Shown


class ForWhom(RunCanvas):
    """The archetypes at a glance; reasons, evidence and flips stand behind w."""

    def __init__(self, shown: Shown, found: Findings, *, id: str | None = None) -> None:
        super().__init__(shown, id=id)
        self.found = found

    def wanted_height(self) -> int:
        """A title and a line for each; without advice the title says why."""
        return 1 + len(self.found.advice)

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Archetype, card, why."""
        title: Line = [("  FOR WHOM  ", "accent")]
        note = self.found.advice_note
        if not self.found.advice:
            title.append((fit(note, width - 13), "muted"))
        return [title] + [_line(advice, width) for advice in self.found.advice]


def _line(advice: Advice, width: int) -> Line:
    name, card = (30, 36) if width >= WIDE else (25, 28)
    basis = advice.choice.basis
    label = advice.card
    for word in ("GeForce ", " Blackwell", " Generation"):
        label = label.replace(word, "")
    words = "not measured here" if basis == "reference" else advice.glance.replace(THIN, " ")
    if width >= WIDE and advice.flip_texts:
        words += f" · flips: {advice.flip_texts[0]}"
    return [
        (f"  {fit(advice.archetype.name, name - 1):<{name}}", "text"),
        (f"{fit(label, card - 1):<{card}}", _ROLES[basis]),
        (fit(words, width - name - card - 3), "muted"),
    ]


_ROLES = {"measured": "strong", "reference": "text", "none": "warn"}
