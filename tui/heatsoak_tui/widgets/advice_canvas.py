"""What all panels of the advice screen show, and their base."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heatsoak_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from heatsoak.economics.advice import Advice
    from heatsoak.session.advice import AdviceReport


@dataclass(slots=True)
class AdviceView:
    """One report, and what the user picked in it."""

    report: AdviceReport | None = None
    """None while it is being made, and where it cannot be."""
    problem: str = ""
    """Why there is no report, in a sentence."""
    cursor: int = 0
    """The picked archetype."""
    is_open: bool = False
    """Whether its details are shown instead of the table."""
    scrolled: int = 0
    """Lines of the details above the first one in sight."""
    musts: set[str] = field(default_factory=set)
    """What the user insists on, here on the screen."""

    @property
    def advice(self) -> Advice | None:
        """That of the picked archetype."""
        if self.report is None or not self.report.advice:
            return None
        return self.report.advice[min(self.cursor, len(self.report.advice) - 1)]

    def move(self, step: int) -> None:
        """Pick the next or previous archetype."""
        if self.report is not None and self.report.advice:
            self.cursor = (self.cursor + step) % len(self.report.advice)
            self.scrolled = 0


class AdviceCanvas(Canvas):
    """A panel that shows advice."""

    def __init__(self, view: AdviceView, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = view
