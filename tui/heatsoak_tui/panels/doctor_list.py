"""Everything that doctor found, with what it spoils and how to mend it; it scrolls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.doctor.finding import fine_words, told
from heatsoak_tui.format import wrap
from heatsoak_tui.widgets.draft_canvas import DraftCanvas

if TYPE_CHECKING:
    from heatsoak.doctor.finding import Told
    from heatsoak_tui.widgets.canvas import Line

MOST_LINES = 20
"""Of one sentence, on the narrowest screen."""
_WORDS = {
    "error": ("\u00d7 error", "bad/strong"),
    "warning": ("! warning", "warn/strong"),
    "info": ("  note", "muted"),
}
_INDENT = 13


class DoctorList(DraftCanvas):
    """The findings, the gravest first; what is fine in one paragraph at the end."""

    first = 0
    """The line at the top."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The lines from `first` on; the last says that there are more."""
        lines = self.lines(width)
        self.first = max(0, min(self.first, len(lines) - height))
        shown = lines[self.first : self.first + height]
        left = len(lines) - self.first - len(shown)
        if left > 0 and shown:
            shown[-1] = [(f"  \u2193 {left + 1} more lines", "muted")]
        return shown

    def lines(self, width: int) -> list[Line]:
        """All of them."""
        found = self.draft.findings()
        lines: list[Line] = []
        for one in told(found):
            lines += [*_lines(one, width), []]
        fine = fine_words(found)
        if fine:
            lines += _flow("  fine", "good", fine, "muted", width)
        return lines


def _lines(one: Told, width: int) -> list[Line]:
    word, role = _WORDS[one.severity]
    lines = _flow(word, role, one.words, "text", width)
    if one.spoils:
        lines += _flow("", "muted", f"spoils: {one.spoils}", "muted", width)
    if one.remedy:
        lines += _flow("", "muted", f"mend: {one.remedy}", "accent", width)
    return lines


def _flow(word: str, role: str, text: str, text_role: str, width: int) -> list[Line]:
    heads: list[Line] = [[(f" {word:<{_INDENT - 1}}", role)]]
    return [
        [*(heads.pop() if heads else [(" " * _INDENT, "text")]), (line, text_role)]
        for line in wrap(text, max(1, width - _INDENT - 1), MOST_LINES)
    ]
