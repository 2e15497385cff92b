"""Every archetype at one glance: what to buy, why, and what would change that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import fit
from heatsoak_tui.widgets.advice_canvas import AdviceCanvas
from heatsoak_tui.widgets.advice_sections import spaced
from heatsoak_tui.widgets.canvas import WIDE

if TYPE_CHECKING:
    from heatsoak.economics.advice import Advice
    from heatsoak_tui.widgets.canvas import Line

NAME = 28
CARD = 34
BASIS_ROLES = {"measured": "strong", "reference": "text", "none": "warn"}


class AdviceTable(AdviceCanvas):
    """Two lines for each archetype where there is width, else three."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The picked one always in sight."""
        report = self.view.report
        if report is None:
            return []
        is_wide = width >= WIDE
        blocks = [
            _block(advice, width, is_wide=is_wide, is_picked=index == self.view.cursor)
            for index, advice in enumerate(report.advice)
        ]
        tall = max((len(block) for block in blocks), default=1)
        gap = 1 if (tall + 1) * len(blocks) <= height else 0
        room = max(1, height // (tall + gap))
        first = min(max(0, self.view.cursor - room + 1), max(0, len(blocks) - room))
        lines: list[Line] = []
        for block in blocks[first : first + room]:
            lines += [*block, *([[]] * gap)]
        return lines


def _block(advice: Advice, width: int, *, is_wide: bool, is_picked: bool) -> list[Line]:
    role = BASIS_ROLES[advice.choice.basis]
    name: Line = [
        (" ▸ " if is_picked else "   ", "accent"),
        (f"{fit(advice.archetype.name, NAME - 1):<{NAME}}", "accent" if is_picked else "text"),
    ]
    flips = advice.flip_texts
    more = f"  (+{len(flips) - 1})" if len(flips) > 1 else ""
    flip = f"{flips[0]}{more}" if flips else _without_flips(advice)
    indent = " " * (NAME + 3)
    if is_wide:
        card = f"{fit(advice.card, CARD - 2):<{CARD}}"
        rest = width - NAME - CARD - 4
        return [
            [*name, (card, role), (fit(spaced(advice.glance), rest), "text")],
            [(f"{indent}flips: ", "muted"), (fit(spaced(flip), width - NAME - 11), "muted")],
        ]
    return [
        [*name, (fit(advice.card, width - NAME - 4), role)],
        [("     why    ", "muted"), (fit(spaced(advice.glance), width - 13), "text")],
        [("     flips  ", "muted"), (fit(spaced(flip), width - 13), "muted")],
    ]


def _without_flips(advice: Advice) -> str:
    if advice.choice.lacking is not None:
        return "what is not entered yet"
    return "no single input within reach"
