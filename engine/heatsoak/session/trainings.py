"""Trainings that have to fit in memory, as a buyer writes them: `13b-full@4096`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from heatsoak.economics.offers import TrainingNeed
from heatsoak.economics.training import METHODS, Training
from heatsoak.errors import UsageError
from heatsoak.profiles.archetypes import MEASURED
from heatsoak.profiles.models import find_model, model_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heatsoak.economics.training import Method
    from heatsoak.profiles.models import ModelShape

EXAMPLE = "MODEL-METHOD@CONTEXT, such as 13b-full@4096 or llama-3.1-8b-qlora@8192"
SHORT = {"full": "full-adamw"}
"""Methods that may be written shorter."""
MOST_CONTEXT = 1 << 24


def trainings(labels: Iterable[str]) -> dict[str, TrainingNeed]:
    """What each label means, and the other ways to train the same model at the same context.

    Args:
        labels: as the buyer or an archetype wrote them; `measured` is none.

    Raises:
        UsageError: one is not understood.
    """
    found: dict[str, TrainingNeed] = {}
    for label in labels:
        if label == MEASURED:
            continue
        need = parse_training(label)
        found[label] = need
        model = label.partition("@")[0].removesuffix(f"-{_method_word(label)}")
        for method in METHODS:
            other = f"{model}-{method}@{need.training.context}"
            if method != need.training.method:
                training = replace(need.training, method=method)
                found.setdefault(other, TrainingNeed(other, need.shape, training))
    return found


def parse_training(label: str) -> TrainingNeed:
    """The training of `13b-full@4096`; micro-batch 1 and checkpointing, as `heatsoak fit` has it.

    Raises:
        UsageError: it is not written so, or there is no such model or method.
    """
    name, at, context = label.partition("@")
    word = _method_word(label)
    model = name.removesuffix(f"-{word}")
    if not at or not word or not model or not re.fullmatch(r"\d{1,8}", context):
        methods = ", ".join([*SHORT, *METHODS])
        raise UsageError(f"a recipe is {EXAMPLE}, not {label!r}; methods: {methods}")
    method = cast("Method", SHORT.get(word, word))
    if not 1 <= int(context) <= MOST_CONTEXT:
        raise UsageError(f"{label!r}: a context is from 1 to {MOST_CONTEXT} tokens")
    return TrainingNeed(label, _shape(model), Training(method, int(context)))


def _method_word(label: str) -> str:
    """The method at the end of the part before the context; the longest that is one."""
    name = label.partition("@")[0]
    words = [word for word in (*SHORT, *METHODS) if name.endswith(f"-{word}")]
    return max(words, key=len, default="")


def _shape(model: str) -> ModelShape:
    """The model of that name; for a bare size such as `13b` the first of that size listed."""
    if re.fullmatch(r"\d+(\.\d+)?[bm]", model.lower()):
        ending = f"-{model.lower()}"
        named = [shape for name, shape in model_shapes().items() if name.endswith(ending)]
        if not named:
            raise UsageError(f"no model of size {model!r} is known; name one: see `heatsoak fit`")
        return named[0]
    return find_model(model)
