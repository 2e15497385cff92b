"""What the memory screen shows and changes: models, cards, a training, a picked cell. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from heatsoak.economics.memory_fit import plan_memory
from heatsoak.economics.recipes import (
    CARD_COUNTS,
    CHUNKS,
    fewest_cards,
    fitting_recipes,
    largest_batch,
    largest_context,
    sharded,
)
from heatsoak.economics.training import METHODS, Training
from heatsoak.errors import HeatsoakError
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.models import find_model, model_shapes, parse_shape
from heatsoak_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from heatsoak.economics.memory_fit import MemoryPlan
    from heatsoak.economics.recipes import FittingRecipe
    from heatsoak.profiles.cards import CardProfile
    from heatsoak.profiles.models import ModelShape

CONTEXTS = tuple(512 * 2**power for power in range(9))
"""Contexts the key steps through: 512 to 131072."""
CLASSES = ((20, "16"), (40, "24 - 32"), (76, "48 - 72"), (float("inf"), "80 and more"))
"""Memory classes by the GB on the box, and their words: below so many, called so."""


def default_shapes() -> list[ModelShape]:
    """Every known model, the smallest first; of equal shapes the first alone."""
    found: dict[tuple[object, ...], ModelShape] = {}
    for shape in sorted(model_shapes().values(), key=lambda one: one.parameters):
        same = (shape.parameters, shape.layers, shape.hidden, shape.vocab)
        found.setdefault(same, shape)
    return list(found.values())


def default_cards() -> list[CardProfile]:
    """Every profile whose memory is known, the smallest memory first."""
    known = [card for card in card_profiles().values() if card.memory_total_bytes is not None]
    return sorted(known, key=lambda card: (card.memory_total_bytes or 0, card.id))


@dataclass(slots=True)
class FitChoice:
    """One matrix of models and cards."""

    training: Training = field(default_factory=Training)
    shapes: list[ModelShape] = field(default_factory=default_shapes)
    cards: list[CardProfile] = field(default_factory=default_cards)
    n: int = 1
    """Cards of each kind; above 1 they share the model by ZeRO-3."""
    row: int = 0
    column: int = 0
    trouble: str = ""
    """Why a typed model was refused."""

    @property
    def shape(self) -> ModelShape:
        """The picked model."""
        return self.shapes[self.row]

    @property
    def card(self) -> CardProfile:
        """The picked card."""
        return self.cards[self.column]

    @property
    def asked(self) -> Training:
        """The training as so many cards run it."""
        return sharded(self.training, self.n)

    def plan(self, shape: ModelShape, card: CardProfile) -> MemoryPlan | None:
        """The plan of a cell; None where the model cannot be trained so."""
        try:
            return plan_memory(shape, self.asked, card, self.n)
        except HeatsoakError:
            return None

    def recipes(self) -> tuple[FittingRecipe, ...]:
        """What fits the picked cell, least given up first."""
        try:
            return fitting_recipes(self.shape, self.asked, self.card, self.n)
        except HeatsoakError:
            return ()

    def limits(self) -> tuple[int | None, int | None, int | None]:
        """Of the picked cell the longest context, the largest batch, and the cards it needs."""
        try:
            needed = fewest_cards(self.shape, self.training, self.card)
            return (
                largest_context(self.shape, self.asked, self.card, self.n),
                largest_batch(self.shape, self.asked, self.card, self.n),
                needed[0] if needed else None,
            )
        except HeatsoakError:
            return None, None, None

    def pick_shape(self, shape: ModelShape) -> None:
        """Go to a model, which joins the list if it is not there."""
        if shape not in self.shapes:
            self.shapes = [*self.shapes, shape]
            self.shapes.sort(key=lambda one: one.parameters)
        self.row = self.shapes.index(shape)

    def type_model(self, words: str) -> None:
        """A model by name, or by its shape; what is wrong with it stands in `trouble`."""
        self.trouble = ""
        try:
            self.pick_shape(parse_shape(words) if "=" in words else find_model(words))
        except HeatsoakError as error:
            self.trouble = str(error)

    def pick_card(self, card_id: str) -> None:
        """Go to a card, if it is in the list."""
        ids = [card.id for card in self.cards]
        if card_id in ids:
            self.column = ids.index(card_id)

    def move(self, rows: int, columns: int) -> None:
        """Pick a cell beside."""
        self.row = min(max(0, self.row + rows), len(self.shapes) - 1)
        self.column = min(max(0, self.column + columns), len(self.cards) - 1)

    def step_method(self, step: int) -> None:
        """The next method, or the one before."""
        at = METHODS.index(self.training.method)
        self.training = replace(self.training, method=METHODS[(at + step) % len(METHODS)])

    def step_context(self, step: int) -> None:
        """Twice the context, or half of it."""
        at = _nearest(CONTEXTS, self.training.context)
        context = CONTEXTS[min(max(0, at + step), len(CONTEXTS) - 1)]
        self.training = replace(self.training, context=context)

    def step_batch(self, step: int) -> None:
        """Twice the micro-batch, or half of it."""
        batch = self.training.micro_batch * 2 if step > 0 else self.training.micro_batch // 2
        self.training = replace(self.training, micro_batch=min(max(1, batch), 1024))

    def step_cards(self, step: int) -> None:
        """More cards, or fewer."""
        at = CARD_COUNTS.index(self.n) if self.n in CARD_COUNTS else 0
        self.n = CARD_COUNTS[(at + step) % len(CARD_COUNTS)]

    def toggle_checkpointing(self) -> None:
        """Recompute activations, or keep them."""
        self.training = replace(self.training, checkpointing=not self.training.checkpointing)

    def toggle_chunks(self) -> None:
        """The loss in pieces, or all logits at once."""
        chunks = CHUNKS if self.training.loss_chunks == 1 else 1
        self.training = replace(self.training, loss_chunks=chunks)


def _nearest(values: tuple[int, ...], wanted: int) -> int:
    return min(range(len(values)), key=lambda index: abs(values[index] - wanted))


class FitCanvas(Canvas):
    """A panel of the memory screen."""

    def __init__(self, choice: FitChoice, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.choice = choice


def memory_class(card: CardProfile) -> str:
    """The words of a card's memory class."""
    nominal = card.memory_nominal_gb or (card.memory_total_bytes or 0) / 1e9
    return next(words for most, words in CLASSES if nominal < most)
