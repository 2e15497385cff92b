"""Which model fits which card, by how it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak.profiles.models import SHAPE_EXAMPLE
from heatsoak_tui.panels.fit_detail import FitDetail
from heatsoak_tui.panels.fit_header import FitHeader
from heatsoak_tui.panels.fit_matrix import FitMatrix
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.screens.prompts import Ask
from heatsoak_tui.widgets.fit_choice import FitChoice
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from heatsoak.economics.training import Training
    from heatsoak.profiles.models import ModelShape

DETAIL_HEIGHT = 10
FIRST_MODEL, FIRST_CARD = "llama-2-13b", "rtx-pro-5000-72"
"""The cell that is picked where nothing was said: the question most buyers come with."""


class FitScreen(HeatsoakScreen):
    """Stands over any other screen, or alone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1, 0)", "model", key_display="↑↓", id="up", tooltip="Model above"),
        Binding("down,j", "move(1, 0)", show=False, id="down", tooltip="Model below"),
        Binding("left,h", "move(0, -1)", "card", key_display="←→", id="fit.card.previous",
                tooltip="Card before"),
        Binding("right,l", "move(0, 1)", show=False, id="fit.card.next", tooltip="Next card"),
        Binding("m", "method(1)", "method", id="fit.method", tooltip="Next method"),
        Binding("M", "method(-1)", show=False, id="fit.method.previous",
                tooltip="Method before"),
        Binding("x", "context(1)", "context", id="fit.context", tooltip="Twice the context"),
        Binding("X", "context(-1)", show=False, id="fit.context.shorter",
                tooltip="Half the context"),
        Binding("b", "batch(1)", "batch", id="fit.batch", tooltip="Twice the micro-batch"),
        Binding("B", "batch(-1)", show=False, id="fit.batch.smaller",
                tooltip="Half the micro-batch"),
        Binding("c", "cards(1)", "cards", id="fit.cards", tooltip="1, 2, 4 or 8 of each card"),
        Binding("escape,q,ctrl+c", "close", "close", id="fit.close", tooltip="Back"),
        Binding("r", "checkpointing", "recompute", id="fit.recompute",
                tooltip="Recompute activations, or keep them"),
        Binding("o", "chunks", "loss", id="fit.loss", tooltip="The loss in chunks, or whole"),
        Binding("e", "model", "other model", id="fit.model",
                tooltip="Type a model's name or its shape"),
    ]  # fmt: skip

    def __init__(
        self,
        shape: ModelShape | None = None,
        training: Training | None = None,
        card_id: str = FIRST_CARD,
        choice: FitChoice | None = None,
    ) -> None:
        """Show the matrix.

        Args:
            shape: the model that is picked first; None: a common one.
            training: how it is trained; None: the planner's defaults.
            card_id: the card that is picked first.
            choice: all of it, in place of the rest.
        """
        super().__init__()
        if choice is None:
            choice = FitChoice() if training is None else FitChoice(training)
            if shape is not None:
                choice.pick_shape(shape)
            else:
                choice.type_model(FIRST_MODEL)
            choice.pick_card(card_id)
        self.choice = choice

    @override
    def compose(self) -> ComposeResult:
        """What is asked, the matrix, the picked cell, keys."""
        yield TooSmall(id="too-small")
        yield FitHeader(self.choice, id="fit-header")
        yield FitMatrix(self.choice, id="fit-matrix")
        yield FitDetail(self.choice, id="fit-detail")
        yield KeyLine(id="keys")

    @override
    def arrange_panels(self, width: int, height: int) -> None:
        """The picked cell keeps its lines; the matrix gets the rest."""
        self.query_one("#fit-detail").styles.height = max(3, min(DETAIL_HEIGHT, height // 2 - 3))

    def action_move(self, rows: int, columns: int) -> None:
        """Pick the cell beside."""
        self.choice.move(rows, columns)
        self.repaint_panels()

    def action_method(self, step: int) -> None:
        """Another method."""
        self.choice.step_method(step)
        self.repaint_panels()

    def action_context(self, step: int) -> None:
        """A longer or shorter context."""
        self.choice.step_context(step)
        self.repaint_panels()

    def action_batch(self, step: int) -> None:
        """A larger or smaller micro-batch."""
        self.choice.step_batch(step)
        self.repaint_panels()

    def action_cards(self, step: int) -> None:
        """More cards."""
        self.choice.step_cards(step)
        self.repaint_panels()

    def action_checkpointing(self) -> None:
        """Recompute, or keep."""
        self.choice.toggle_checkpointing()
        self.repaint_panels()

    def action_chunks(self) -> None:
        """Chunk the loss, or not."""
        self.choice.toggle_chunks()
        self.repaint_panels()

    def action_model(self) -> None:
        """Ask for a model."""

        def take(text: str | None) -> None:
            if text:
                self.choice.type_model(text)
                self.repaint_panels()

        hint = f"such as qwen2.5-7b, or {SHAPE_EXAMPLE}"
        self.app.push_screen(Ask("Model, or its shape", "", hint), take)

    def action_close(self) -> None:
        """Back to the screen below; out, where there is none."""
        if len(self.app.screen_stack) > 2:
            self.dismiss()
        else:
            self.app.exit()
