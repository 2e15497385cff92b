"""The base of every panel of Setup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak_tui.widgets.canvas import Canvas, Line

if TYPE_CHECKING:
    from heatsoak_tui.widgets.draft import Draft


class DraftCanvas(Canvas):
    """A panel that shows the run being set up."""

    def __init__(self, draft: Draft, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.draft = draft


def heading(title: str, *, is_focused: bool) -> Line:
    """The title of a pane, marked when the keys go to it."""
    return [("▸ " if is_focused else "  ", "accent"), (title, "accent" if is_focused else "muted")]


def in_sight(cursor: int, total: int, room: int) -> range:
    """Which of `total` rows to show in `room` so that the cursor is among them."""
    if total <= room:
        return range(total)
    first = min(max(0, cursor - room // 2), total - room)
    return range(first, first + room)
