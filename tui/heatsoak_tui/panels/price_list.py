"""The user's inputs for the picked card, one a line, each with whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import DASH, fit, input_words
from heatsoak_tui.widgets.canvas import WIDE, Canvas
from heatsoak_tui.widgets.draft_canvas import in_sight

if TYPE_CHECKING:
    from heatsoak.profiles.money import Input, Term
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.price_draft import PriceDraft

LABEL = 20
VALUE = 16


class PriceList(Canvas):
    """A cursor goes over the inputs."""

    def __init__(self, draft: PriceDraft, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.draft = draft

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Heading, then as many inputs as fit, the cursor among them."""
        draft = self.draft
        rows = draft.rows
        draft.cursor = max(0, min(draft.cursor, len(rows) - 1))
        wide = _for(width)
        head = f"    {'':{LABEL}}{'value':>{VALUE}}  {'for':<{wide}}whose"
        lines: list[Line] = [[(head, "muted")]]
        for index in in_sight(draft.cursor, len(rows), height - 1):
            term, key = rows[index]
            lines.append(self._line(term, key, width, is_picked=index == draft.cursor))
        return lines

    def _line(self, term: Term, key: str | None, width: int, *, is_picked: bool) -> Line:
        entry = self.draft.entry(term, key)
        value = DASH if entry is None else input_words(entry.value, entry.unit)
        whose, role = _whose(entry)
        mark = "▸" if is_picked else " "
        wide = _for(width)
        line: Line = [
            (f"  {mark} ", "accent"),
            (f"{term.label:<{LABEL}}", "accent" if is_picked else "text"),
            (f"{value:>{VALUE}}  ", "strong" if entry is not None and entry.is_users else "muted"),
            (f"{fit(key or 'all cards', wide - 1):<{wide}}", "muted"),
            (fit(whose, width - LABEL - VALUE - wide - 7), role),
        ]
        return line


def _whose(entry: Input | None) -> tuple[str, str]:
    if entry is None:
        return "not entered", "muted"
    day = f" of {entry.date}" if entry.date else ""
    if entry.origin == "yours":
        return f"yours{day}", "text"
    if entry.origin == "session":
        return str(entry.source), "text"
    unused = " (not used)" if entry.name in ("invoice", "kwh_price") else ""
    return f"{entry.origin}{unused}{day}: {entry.source}", "warn"


def _for(width: int) -> int:
    """Cells of the column that says for which card."""
    return 20 if width >= WIDE else 13
