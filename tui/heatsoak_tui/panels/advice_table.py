"""Every archetype at one glance: what to buy, why, and what would change that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import fit
from heatsoak_tui.widgets.advice_canvas import AdviceCanvas
from heatsoak_tui.widgets.advice_sections import card_name, spaced
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
        head = 1 if width >= WIDE else 2
        room = height // max(1, len(report.advice))
        flips = max(1, room - head - (1 if room > head + 1 else 0))
        blocks = [
            _block(advice, width, flips, is_picked=index == self.view.cursor)
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


def _block(advice: Advice, width: int, most: int, *, is_picked: bool) -> list[Line]:
    role = BASIS_ROLES[advice.choice.basis]
    why = spaced(card_name(advice.glance))
    name: Line = [
        (" ▸ " if is_picked else "   ", "accent"),
        (f"{fit(advice.archetype.name, NAME - 1):<{NAME}}", "accent" if is_picked else "text"),
    ]
    if width >= WIDE:
        card = f"{fit(card_name(advice.card), CARD - 2):<{CARD}}"
        rest = width - NAME - CARD - 4
        indent = NAME + 3
        lines: list[Line] = [[*name, (card, role), (fit(why, rest), "text")]]
    else:
        indent = 5
        lines = [
            [*name, (fit(card_name(advice.card), width - NAME - 4), role)],
            [
                ("     why    ", "muted"),
                (fit(why, width - 13), "text"),
            ],
        ]
    texts = list(advice.flip_texts) or [_without_flips(advice)]
    hidden = len(texts) - most
    label = "flips  "
    for text in texts[:most]:
        more = f"  (+{hidden})" if hidden > 0 and text is texts[most - 1] else ""
        room = width - indent - len(label) - len(more) - 1
        lines.append(
            [
                (f"{'':{indent}}{label}", "muted"),
                (fit(spaced(card_name(text)), room) + more, "muted"),
            ]
        )
        label = " " * len(label)
    return lines


def _without_flips(advice: Advice) -> str:
    if advice.choice.lacking is not None:
        return "what is not entered yet"
    return "no single input within reach"
