"""A fit as one document: breakdown, a verdict per card and count, and what fits instead. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heatsoak.economics.memory_fit import plan_in, plan_memory
from heatsoak.economics.recipes import (
    fewest_cards,
    fitting_recipes,
    largest_batch,
    largest_context,
    sharded,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.economics.memory_fit import MemoryPlan
    from heatsoak.economics.recipes import FittingRecipe
    from heatsoak.economics.training import Training
    from heatsoak.profiles.cards import CardProfile
    from heatsoak.profiles.models import ModelShape

SCHEMA = "heatsoak-fit/1"


def fit_report(
    shape: ModelShape,
    training: Training,
    cards: Sequence[tuple[CardProfile, int]],
    *,
    is_sharded: bool,
) -> dict[str, Any]:
    """What `heatsoak fit --json` prints.

    Args:
        shape: the model.
        training: how it is trained.
        cards: cards and how many of each.
        is_sharded: several cards share by ZeRO-3; else as the training says.

    Raises:
        UsageError: the model cannot be trained so.
    """
    verdicts = [
        _entry(shape, sharded(training, n) if is_sharded else training, card, n)
        for card, n in cards
    ]
    unique = {card.id: card for card, _ in cards}
    enough = {name: fewest_cards(shape, training, card) for name, card in unique.items()}
    return {
        "schema": SCHEMA,
        "model": {
            "name": shape.name,
            "parameters": shape.parameters,
            "max_context": shape.max_context or None,
            "is_estimate": shape.is_hybrid,
            "sources": list(shape.sources),
        },
        "training": asdict(training),
        "breakdown": verdicts[0]["breakdown"] if verdicts else {},
        "verdicts": verdicts,
        "cards_needed": {name: found[0] if found else None for name, found in enough.items()},
    }


def _entry(shape: ModelShape, training: Training, card: CardProfile, n: int) -> dict[str, Any]:
    plan = plan_memory(shape, training, card, n)
    # What fits beside the asked recipe itself comes second where that one fits.
    recipes = fitting_recipes(shape, training, card, n)
    return {
        "card": card.id,
        "name": card.name,
        "n": n,
        "shard": training.shard if n > 1 else "none",
        **plan_entry(plan),
        "with_ecc": _with_ecc(plan, card),
        "largest_context": largest_context(shape, training, card, n),
        "largest_micro_batch": largest_batch(shape, training, card, n),
        "recipes": [_recipe_entry(one) for one in recipes],
    }


def _with_ecc(plan: MemoryPlan, card: CardProfile) -> dict[str, Any] | None:
    """The verdict once ECC is switched on; None where that takes no memory, or is on already."""
    total = card.memory_with_ecc_bytes
    if total is None or total == card.memory_total_bytes:
        return None
    corrected = plan_in(plan.peak, total)
    return {
        "verdict": corrected.verdict,
        "usable_bytes": corrected.usable_bytes,
        "headroom_bytes": corrected.headroom_bytes,
    }


def plan_entry(plan: MemoryPlan) -> dict[str, Any]:
    """A plan as a JSON object."""
    return {
        "verdict": plan.verdict,
        "peak_bytes": plan.peak_bytes,
        "usable_bytes": plan.usable_bytes,
        "headroom_bytes": plan.headroom_bytes,
        "peak_at": plan.peak.moment,
        "host_bytes": list(plan.host_bytes) if any(plan.host_bytes) else None,
        "breakdown": asdict(plan.breakdown),
        "moments": {moment: asdict(parts) for moment, parts in plan.peak.moments.items()},
    }


def _recipe_entry(one: FittingRecipe) -> dict[str, Any]:
    entry = plan_entry(one.plan)
    for name in ("breakdown", "moments", "usable_bytes", "peak_at"):
        del entry[name]
    training = one.training
    return {
        "method": training.method,
        "checkpointing": training.checkpointing,
        "loss_chunks": training.loss_chunks,
        **entry,
    }
