"""One archetype opened: the rule, its evidence, what flips it, what to plan for, the checklist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import fit
from heatsoak_tui.widgets.advice_canvas import AdviceCanvas
from heatsoak_tui.widgets.advice_sections import Item, sections, wrapped

if TYPE_CHECKING:
    from heatsoak.economics.advice import Advice
    from heatsoak_tui.widgets.canvas import Line

LABEL = 12


class AdviceDetail(AdviceCanvas):
    """Scrolled by line; says how much more there is."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Title, then as many lines as fit."""
        advice = self.view.advice
        report = self.view.report
        if advice is None or report is None:
            return []
        lines = detail_lines(advice, width)
        room = max(0, height - 2)
        self.view.scrolled = max(0, min(self.view.scrolled, len(lines) - room))
        seen = lines[self.view.scrolled : self.view.scrolled + room]
        hidden = len(lines) - self.view.scrolled - len(seen)
        if hidden > 0 and seen:
            seen[-1] = [(f"   ↓ {hidden + 1} more lines", "muted")]
        place = f"{self.view.cursor + 1} of {len(report.advice)}"
        head: Line = [
            (f" {place}  ", "muted"),
            (f"{advice.archetype.name}  ", "accent"),
            (fit(advice.card, width - len(advice.archetype.name) - 14), "strong"),
        ]
        who: Line = [(f"   {fit(advice.archetype.who, width - 4)}", "muted")]
        return [head, who, *seen]


def detail_lines(advice: Advice, width: int) -> list[Line]:
    """Every section, its title at the left of its first line."""
    lines: list[Line] = []
    for section in sections(advice):
        label = section.title
        for item in section.items:
            lines += _item(label, item, width)
            label = ""
    return lines


def _item(label: str, item: Item, width: int) -> list[Line]:
    indent = "  " * item.depth
    lead = f"{indent}{item.mark} " if item.mark else indent
    texts = wrapped(item.text, width - LABEL - len(lead) - 1)
    lines: list[Line] = []
    for text in texts:
        lines.append([(f"   {label:<{LABEL - 3}}", "accent"), (lead, item.role), (text, item.role)])
        label, lead = "", " " * len(lead)
    return lines
