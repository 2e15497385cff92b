"""What is asked of every cell of the memory matrix."""

from __future__ import annotations

from typing_extensions import override

from heatsoak.economics.training import KEEPS
from heatsoak_tui.format import number
from heatsoak_tui.widgets.canvas import WIDE, Line, left_right
from heatsoak_tui.widgets.fit_choice import FitCanvas


class FitHeader(FitCanvas):
    """Two lines: the method, and the numbers."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The training in words, with the keys that change it."""
        choice, training = self.choice, self.choice.training
        cards = f"{choice.n} cards, zero3" if choice.n > 1 else "one card"
        first: Line = [
            (" MEMORY FIT  ", "accent"),
            (f"{training.method}", "strong"),
            (f"  {KEEPS[training.method].words}", "text"),
        ]
        legend: Line = [] if width >= WIDE else [("~ tight", "warn")]
        chunks = training.loss_chunks
        second: Line = [
            (f" context {number(training.context, 0)}", "text"),
            (f" · micro-batch {training.micro_batch}", "text"),
            (f" · checkpointing {'on' if training.checkpointing else 'off'}", "text"),
            (f" · loss in {chunks} chunks" if chunks > 1 else " · loss whole", "text"),
            (f" · {cards}", "text"),
        ]
        if choice.trouble:
            second = [(f" {choice.trouble}", "warn")]
        return [left_right(first, legend, width - 1), second]
