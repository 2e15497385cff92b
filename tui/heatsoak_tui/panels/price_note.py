"""What the prices screen is for, or what was wrong with an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.profiles.prices import prices_path
from heatsoak_tui.format import fit, short_path, wrap
from heatsoak_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from heatsoak_tui.widgets.canvas import Line
    from heatsoak_tui.widgets.price_draft import PriceDraft


class PriceNote(Canvas):
    """Two lines."""

    def __init__(self, draft: PriceDraft, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.draft = draft

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The trouble, or where the prices are kept."""
        if self.draft.trouble:
            return [[(f" {line}", "bad")] for line in wrap(self.draft.trouble, width - 2, height)]
        where = fit(short_path(prices_path()), width - 22)
        return [
            [(" YOUR PRICES  ", "accent"), (f"kept in {where}", "muted")],
            [(" The measurement stays as it is; the figures below follow.", "muted")],
        ]
