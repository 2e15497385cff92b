"""Which model fits which card: a row a model, a column a card, by memory class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import DASH, fit, number
from heatsoak_tui.widgets.canvas import WIDE, Line
from heatsoak_tui.widgets.draft_canvas import in_sight
from heatsoak_tui.widgets.fit_choice import FitCanvas, memory_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.economics.memory_fit import MemoryPlan
    from heatsoak.profiles.cards import CardProfile

LABEL = 16
ROLES = {"yes": "good", "tight": "warn", "no": "muted"}
SHORT = {"yes": "yes", "tight": "~", "no": "no"}
"""Words for narrow columns; the header says what `~` is."""


class FitMatrix(FitCanvas):
    """The picked cell is always in sight, its row and column are marked."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Classes, memory, the mark of the picked column, the rows."""
        choice = self.choice
        cell = 6 if width >= WIDE else 4
        room = max(1, (width - LABEL) // cell)
        columns = in_sight(choice.column, len(choice.cards), room)
        cards = [choice.cards[index] for index in columns]
        lines = [
            _classes(cards, cell),
            [("  GB", "muted"), (" " * (LABEL - 4), "text"), *_heads(cards, cell, choice.card)],
        ]
        for index in in_sight(choice.row, len(choice.shapes), max(1, height - len(lines))):
            shape = choice.shapes[index]
            is_row = index == choice.row
            name = f"{'▸' if is_row else ' '} {fit(shape.name, LABEL - 3)}"
            line: Line = [(f"{name:<{LABEL}}", "accent" if is_row else "text")]
            for card in cards:
                text, role = _cell(choice.plan(shape, card), cell)
                is_picked = is_row and card is choice.card
                line.append(
                    (f"{text:>{cell - 1}} ", f"{role}/picked/strong" if is_picked else role)
                )
            lines.append(line)
        return lines


def _classes(cards: Sequence[CardProfile], cell: int) -> Line:
    """`24 - 32 ------ 48 - 72 ------`: the classes over their columns."""
    line: Line = [(" " * LABEL, "text")]
    start = 0
    while start < len(cards):
        words = memory_class(cards[start])
        end = start
        while end < len(cards) and memory_class(cards[end]) == words:
            end += 1
        span = (end - start) * cell - 1
        text = fit(f"{words:>{min(span, cell - 1)}}", span)
        line += [(text, "muted"), ("─" * (span - len(text)), "rule"), (" ", "text")]
        start = end
    return line


def _heads(cards: Sequence[CardProfile], cell: int, picked: CardProfile) -> Line:
    line: Line = []
    for card in cards:
        gigabytes = number(card.memory_nominal_gb, 0) if card.memory_nominal_gb else DASH
        is_picked = card is picked
        mark = f"▼{gigabytes}" if is_picked else gigabytes
        line.append((f"{mark:>{cell - 1}} ", "accent" if is_picked else "muted"))
    return line


def _cell(plan: MemoryPlan | None, width: int) -> tuple[str, str]:
    if plan is None:
        return DASH, "muted"
    words = plan.verdict if width > len("tight") else SHORT[plan.verdict]
    return words, ROLES[plan.verdict]
