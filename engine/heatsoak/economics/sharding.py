"""What each card of several holds, and what gathering and reducing takes besides. Pure.

ZeRO (arXiv 1910.02054, sections 5 and 7): stage 1 shares the optimizer's states, stage 2 also the
gradients, stage 3 also the weights, as FSDP does (arXiv 2304.11277). Of AdamW's 16 bytes a card of
N keeps 4P + 12P/N, 2P + 14P/N and 16P/N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.economics.training import EMBEDDING_8BIT_STATES, NF4_BYTES

if TYPE_CHECKING:
    from heatsoak.economics.training import Training
    from heatsoak.profiles.models import ModelShape

NF4_SCALE_BYTES = NF4_BYTES - 0.5
"""The scales are no parameters of the module: FSDP leaves them whole on every card."""
BUCKET_ELEMENTS = 500_000_000
"""`reduce_bucket_size` and `stage3_prefetch_bucket_size` of DeepSpeed's documentation."""
LIVE_ELEMENTS = 1_000_000_000
"""`stage3_max_live_parameters`: what DeepSpeed keeps gathered before it frees any."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What stands on one card, in bytes."""

    weights: float
    gradients: float
    states: float
    collective: float
    """Buckets that stand all the time."""
    gathered: float
    """Whole weights that live in forward and backward pass."""
    unit_gradient: float
    """The largest gradient that is whole for a moment."""
    unit_share: float
    """The share of it that is not yet in `gradients` then."""


def trained_parameters(shape: ModelShape, training: Training) -> int:
    """Parameters that get gradients."""
    if training.has_adapters:
        return shape.lora_parameters(training.lora_rank)
    return shape.parameters


def shares(shape: ModelShape, training: Training, n: int) -> Shares:
    """What one of `n` cards holds."""
    keeps = training.keeps
    trained = trained_parameters(shape, training)
    weights, scales = _weights(shape, training)
    gradients = float(keeps.gradients * trained)
    states = _states(shape, training)
    shard = training.shard if n > 1 else "none"
    widest = max(shape.block_parameters, shape.embedding_parameters)
    unit = 0.0 if training.has_adapters else 2.0 * widest
    collective = gathered = share = 0.0
    if shard == "ddp":
        # DistributedDataParallel copies gradients into buckets (`gradient_as_bucket_view` is off).
        collective = float(max(keeps.gradients, 2) * trained)
    elif shard in ("zero1", "zero2"):
        states /= n
        gradients /= n if shard == "zero2" else 1
        collective = 2 * 2.0 * min(BUCKET_ELEMENTS, trained)
    elif shard == "zero3":
        weights = (weights - scales) / n + scales
        share = keeps.gradients * unit / 2 / n
        gradients, states = gradients / n, states / n
        gathered = _gathered(shape, training)
        if keeps.has_fp32_master:
            # The reduction sums in fp32: a copy beside the 16-bit gradient.
            unit *= 3
        if keeps.host:
            trained_bytes = 2.0 * shape.parameters
            gathered += min(2.0 * LIVE_ELEMENTS, trained_bytes)
            collective = 3 * min(2.0 * BUCKET_ELEMENTS, trained_bytes)
    return Shares(weights, gradients, states, collective, gathered, unit, share)


def _weights(shape: ModelShape, training: Training) -> tuple[float, float]:
    """All weights, and of them what no sharding divides."""
    if not training.has_adapters:
        return float(training.keeps.weights * shape.parameters), 0.0
    adapters = training.keeps.weights * shape.lora_parameters(training.lora_rank)
    if training.method == "lora":
        return 2.0 * shape.parameters + adapters, 0.0
    matrices = quantised_parameters(shape)
    kept_16bit = 2.0 * (shape.parameters - matrices)
    return NF4_BYTES * matrices + kept_16bit + adapters, NF4_SCALE_BYTES * matrices


def quantised_parameters(shape: ModelShape) -> int:
    """Parameters QLoRA holds in NF4: the matrices of the layers, not embedding, head and norms."""
    if shape.is_hybrid:
        rest = shape.embedding_parameters + shape.head_parameters
        return shape.parameters - rest
    return shape.layers * shape.block_matrices


def _states(shape: ModelShape, training: Training) -> float:
    keeps = training.keeps
    states = float(keeps.states * trained_parameters(shape, training))
    if training.method in ("full-8bit", "full-8bit-fused"):
        states += (EMBEDDING_8BIT_STATES - keeps.states) * shape.embedding_parameters
    if training.method == "full-adafactor":
        # A row and a column sum of each matrix in fp32; of (m, n) that is m + n, as of rank-1 LoRA.
        ends = shape.vocab + shape.hidden
        both = ends * (1 if shape.tied else 2)
        states = 4.0 * (shape.lora_parameters(1) + both)
    return states


def _gathered(shape: ModelShape, training: Training) -> float:
    """Embedding and head, which FSDP's root keeps whole, and the two layers around the cursor."""
    root = 2.0 * (shape.embedding_parameters + shape.head_parameters)
    layer = 2.0 * shape.block_parameters
    if training.has_adapters:
        if training.method == "qlora":
            layer = 0.5 * shape.block_matrices
        layer += training.keeps.weights * shape.lora_parameters(training.lora_rank) / shape.layers
    return root + 2 * layer
