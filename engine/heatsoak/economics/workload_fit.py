"""The memory of our own workloads: recipe and size as the planner's training and model. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak.economics.memory_fit import peak_memory
from heatsoak.economics.training import Training
from heatsoak.profiles.models import ModelShape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heatsoak.economics.memory_fit import Peak
    from heatsoak.recipe import Recipe

_FIELDS = ("layers", "width", "ffn", "heads", "kv_heads", "vocabulary")
"""What the size of a transformer says."""


def recipe_shape(size: Mapping[str, Any], name: str) -> ModelShape | None:
    """The model of a workload's size; None where it is no transformer.

    Args:
        size: the literal of the workload's file.
        name: the size's name.
    """
    if not all(key in size for key in _FIELDS):
        return None
    # Our transformer ties its embeddings.
    layers, width, ffn, heads, kv_heads, vocabulary = (int(size[key]) for key in _FIELDS)
    return ModelShape(name, layers, width, ffn, heads, kv_heads, vocabulary, tied=True)


def recipe_training(recipe: Recipe) -> Training:
    """How Lightning trains it: weights, gradients and moments in fp32, products under autocast.

    Under autocast that is 18 bytes a parameter, with the cached 16-bit copies of the weights; in
    fp32 and TF32 16. Lightning frees the gradients of a step only after the next forward pass, so
    they live through it as if they were accumulated.
    """
    is_fp32 = recipe.precision in ("fp32", "tf32")
    return Training(
        method="full-adamw" if is_fp32 else "full-adamw-fp32grad",
        context=recipe.context,
        micro_batch=recipe.micro_batch,
        checkpointing=recipe.checkpointing,
        is_compiled=recipe.compile,
        accumulate=max(2, recipe.accumulate),
        has_fp32_stream=True,
        is_fp32=is_fp32,
    )


def recipe_peak(size: Mapping[str, Any], recipe: Recipe, n: int = 1) -> Peak | None:
    """The most a card holds while it trains this recipe; None where nobody can say.

    Args:
        size: the literal of the recipe's size in its workload's file.
        recipe: complete.
        n: cards that hold a copy each.
    """
    shape = recipe_shape(size, recipe.size)
    if shape is None or recipe.context < 1:
        return None
    return peak_memory(shape, recipe_training(recipe), n)
