"""What does fit: the largest context and batch, and recipes for a card that is too small. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from heatsoak.economics.memory_fit import plan_memory
from heatsoak.economics.training import KEEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heatsoak.economics.memory_fit import MemoryPlan
    from heatsoak.economics.training import Method, Training
    from heatsoak.profiles.cards import CardProfile
    from heatsoak.profiles.models import ModelShape

CARD_COUNTS = (1, 2, 4, 8)
"""Numbers of cards a workstation or a server holds."""
CONTEXT_STEP = 256
"""Contexts are searched in steps of so many tokens."""
LONGEST_CONTEXT = 4096 * CONTEXT_STEP
LARGEST_BATCH = 4096
CHUNKS = 8
"""Pieces of a chunked loss that is proposed."""

LADDER: tuple[Method, ...] = (
    "full-adamw", "full-bf16", "full-8bit", "full-8bit-fused", "full-adafactor", "full-offload",
    "lora", "qlora",
)  # fmt: skip
"""The rule that orders recipes, cheapest first, where cheap means giving up least: training all
weights comes before adapters, the optimizer on the card before the one on the host (which takes
several times as long), AdamW before Adafactor, and among these more bytes of precision before
fewer. Recomputing activations comes first of all, and a chunked loss, which computes the same,
before another method."""


@dataclass(frozen=True, slots=True)
class FittingRecipe:
    """One way that fits, or fits tightly."""

    training: Training
    plan: MemoryPlan
    n: int


def fitting_recipes(
    shape: ModelShape, training: Training, card: CardProfile, n: int = 1
) -> tuple[FittingRecipe, ...]:
    """The recipes that fit `n` such cards at the context and batch asked for, cheapest first.

    Args:
        shape: the model.
        training: what was asked; its context, micro-batch, rank and sharding are kept.
        card: the card.
        n: number of cards; more than one with sharding `none` is read as `zero3`.

    Returns:
        One a method of `LADDER`, from the asked one on; empty where nothing fits.
    """
    found: list[FittingRecipe] = []
    for asked in _ladder(training):
        plan = plan_memory(shape, asked, card, n)
        if plan.verdict != "no" and asked.method not in {one.training.method for one in found}:
            found.append(FittingRecipe(asked, plan, n))
    return tuple(found)


def _ladder(training: Training) -> Iterator[Training]:
    methods = [training.method]
    if training.method in LADDER:
        methods += LADDER[LADDER.index(training.method) + 1 :]
    else:
        methods += [method for method in LADDER if _weighs(method) < _weighs(training.method)]
    for method in methods:
        if method == training.method:
            yield training
        eased = replace(training, method=method, checkpointing=True)
        yield eased
        if training.loss_chunks == 1:
            yield replace(eased, loss_chunks=CHUNKS)


def _weighs(method: Method) -> int:
    keeps = KEEPS[method]
    return keeps.weights + keeps.gradients + keeps.states


def fewest_cards(
    shape: ModelShape, training: Training, card: CardProfile
) -> tuple[int, MemoryPlan] | None:
    """How many such cards the training needs as asked; None above 8.

    Shared as ZeRO-3 where no ZeRO stage was asked for, since copies need no less of each card.
    """
    shard = training.shard if training.shard.startswith("zero") else "zero3"
    for n in CARD_COUNTS:
        plan = plan_memory(shape, replace(training, shard=shard), card, n)
        if plan.verdict != "no":
            return n, plan
    return None


def sharded(training: Training, n: int) -> Training:
    """The training on `n` cards: as it says, ZeRO-3 where it says nothing."""
    if n > 1 and training.shard == "none":
        return replace(training, shard="zero3")
    return training


def largest_context(
    shape: ModelShape, training: Training, card: CardProfile, n: int = 1
) -> int | None:
    """The longest context that fits with the batch asked for, in steps of 256 tokens.

    Ends at the model's learned positions, where it has some; None where not even 256 tokens fit.
    """
    limit = shape.positions or LONGEST_CONTEXT

    def fits(steps: int) -> bool:
        asked = replace(training, context=min(limit, steps * CONTEXT_STEP))
        return plan_memory(shape, asked, card, n).verdict != "no"

    steps = _largest(fits, -(-limit // CONTEXT_STEP))
    return min(limit, steps * CONTEXT_STEP) if steps else None


def largest_batch(
    shape: ModelShape, training: Training, card: CardProfile, n: int = 1
) -> int | None:
    """The largest micro-batch that fits at the context asked for; None where not even 1 does."""

    def fits(batch: int) -> bool:
        asked = replace(training, micro_batch=batch)
        return plan_memory(shape, asked, card, n).verdict != "no"

    return _largest(fits, LARGEST_BATCH) or None


def _largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number from 1 to `limit` that fits, memory growing with it; 0: none."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
