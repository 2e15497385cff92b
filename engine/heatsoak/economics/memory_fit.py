"""Whether a training fits a card: what it holds at each of its worst moments. Pure.

The peak on a card is the largest of four moments of a step (all but the first step, since moments
appear at its end): the *loss*, when all activations and the logits exist; the *first layer of the
backward pass*, recomputed while all activations still exist; the *end of the backward pass*, when
all gradients exist; and the *update*. Fitted to nothing but the constants that `activations.py` and
`sharding.py` name with their sources; the published measurements it is held against are in the
tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from heatsoak.economics.activations import kept_bytes, logit_bytes, recomputed_bytes
from heatsoak.economics.sharding import shares
from heatsoak.economics.training import HOST_LARGE_BYTES, Training
from heatsoak.errors import UsageError
from heatsoak.profiles.models import ModelShape
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heatsoak.profiles.cards import CardProfile

__all__ = ["MemoryPlan", "ModelShape", "Peak", "Training", "peak_memory", "plan_memory"]

RESERVE_BYTES = 2 * BYTES_PER_GIB
"""What of a card's memory no tensor gets: the CUDA context (0.5 to 0.9 GiB), NCCL, the desktop, and
fragments. Kept apart from the peak."""
TIGHT_FRAC = 0.05
"""A plan with less than this share of the usable memory left is tight."""

Verdict = Literal["yes", "tight", "no"]
Moment = Literal["loss", "first backward layer", "last backward layer", "update"]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """What is held at one moment, in bytes on one card."""

    weights: int
    gradients: int
    states: int
    """The optimizer's moments, and its fp32 master weights."""
    activations: int
    """Kept for the backward pass, and the layer that is being recomputed."""
    logits: int
    temporaries: int
    """Gathered weights, buckets, gradients on their way, what the update computes with."""
    reserve: int
    """Not part of the peak: what the card keeps for context, NCCL and fragments."""

    @property
    def total(self) -> int:
        """All tensors: everything but the reserve."""
        return (
            self.weights + self.gradients + self.states + self.activations + self.logits
            + self.temporaries
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that one card holds."""

    breakdown: Breakdown
    peak_bytes: int
    """Tensors at the worst moment, as `max_memory_allocated` counts them; without the reserve."""
    moment: Moment
    moments: Mapping[Moment, Breakdown]
    """What is held at each of the four moments."""
    host_bytes: tuple[int, int]
    """Least and most that the host holds for all cards; (0, 0) without offload."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A training on a card."""

    peak: Peak
    usable_bytes: int
    """The card's memory without the reserve."""
    headroom_bytes: int
    """What is left; negative when it does not fit."""
    verdict: Verdict

    @property
    def breakdown(self) -> Breakdown:
        """What is held at the peak."""
        return self.peak.breakdown

    @property
    def peak_bytes(self) -> int:
        """The most that one card holds, without the reserve."""
        return self.peak.peak_bytes

    @property
    def host_bytes(self) -> tuple[int, int]:
        """Least and most that the host holds."""
        return self.peak.host_bytes


def peak_memory(shape: ModelShape, training: Training, n: int = 1) -> Peak:
    """The most that each of `n` cards holds.

    Raises:
        UsageError: the model cannot be trained so.
    """
    if shape.positions and training.context > shape.positions:
        raise UsageError(
            f"{shape.name} has {shape.positions} positions; a context of {training.context} "
            "is longer"
        )
    moments = _moments(shape, training, n)
    worst = max(moments, key=lambda moment: moments[moment].total)
    host = training.keeps.host * shape.parameters
    host_most = round(HOST_LARGE_BYTES * shape.parameters) if host else 0
    return Peak(moments[worst], moments[worst].total, worst, moments, (host, host_most))


def _moments(shape: ModelShape, training: Training, n: int) -> dict[Moment, Breakdown]:
    held = shares(shape, training, n)
    kept, layer = kept_bytes(shape, training), recomputed_bytes(shape, training)
    # Gradients of earlier passes stay while they accumulate.
    standing = held.gradients if training.accumulate > 1 else 0.0
    passing = held.collective + held.gathered + _dequantised(shape, training)
    unit = held.unit_gradient
    head = 0.0 if training.has_adapters else 2.0 * shape.embedding_parameters
    # A chunked loss adds each chunk's gradient of the head to the sum of those before. Of the whole
    # loss the head's gradient comes when its fp32 copies are gone.
    chunked = 2 * head if training.loss_chunks > 1 else 0.0
    is_whole = held.gathered > 0 or training.keeps.frees_gradients

    def parts(gradients: float, activations: float, logits: float, temporaries: float) -> Breakdown:
        return Breakdown(
            weights=round(held.weights),
            gradients=round(gradients),
            states=round(held.states),
            activations=round(activations),
            logits=round(logits),
            temporaries=round(temporaries),
            reserve=RESERVE_BYTES,
        )

    return {
        "loss": parts(
            standing, kept, logit_bytes(shape, training), passing + chunked
        ),
        "first backward layer": parts(standing, kept + layer, 0.0, passing + unit),
        "last backward layer": parts(
            max(0.0, held.gradients - held.unit_share), layer + kept / shape.layers, 0.0,
            passing + (unit if is_whole else 0.0),
        ),
        "update": parts(
            held.gradients, 0.0, 0.0, held.collective + _update(shape, training, n)
        ),
    }  # fmt: skip


def _dequantised(shape: ModelShape, training: Training) -> float:
    """The one matrix of NF4 weights that is in 16 bit while it is multiplied."""
    return 2.0 * shape.hidden * shape.ffn if training.method == "qlora" else 0.0


def _update(shape: ModelShape, training: Training, n: int) -> float:
    """What the optimizer computes with beside its states, for its largest tensor.

    AdamW tensor by tensor holds the root of the second moment and the denominator at once: 2
    copies in the states' precision (`torch.optim.adam`, `foreach=False`; fused kernels hold none,
    `foreach=True` one copy of all parameters). Adafactor makes the update, its square and a 32-bit
    gradient: 3. Moments in 8 bit are updated block by block in one kernel.
    """
    if training.has_adapters:
        return 0.0
    copies = 3 if training.method == "full-adafactor" else 2
    whole = float(copies * training.keeps.state_element * shape.largest_matrix)
    return whole / n if training.shard in ("zero1", "zero2", "zero3") else whole


def plan_memory(shape: ModelShape, training: Training, card: CardProfile, n: int = 1) -> MemoryPlan:
    """Whether each of `n` such cards holds its part.

    Args:
        shape: the model.
        training: how it is trained; `shard` says how `n` cards divide it, `none` that each holds
            all of it.
        card: the card, by the memory NVML reports of it.
        n: number of cards.

    Raises:
        UsageError: the card's memory is not known, or the model cannot be trained so.
    """
    if card.memory_total_bytes is None:
        raise UsageError(f"the memory of {card.id} is not known; say memory_total_mib in its file")
    return plan_in(peak_memory(shape, training, n), card.memory_total_bytes)


def plan_in(peak: Peak, total_bytes: int) -> MemoryPlan:
    """The verdict for a card of `total_bytes`, as NVML reports its memory."""
    usable = max(0, total_bytes - RESERVE_BYTES)
    headroom = usable - peak.peak_bytes
    verdict: Verdict = "yes"
    if headroom < 0:
        verdict = "no"
    elif headroom < TIGHT_FRAC * usable:
        verdict = "tight"
    return MemoryPlan(peak, usable, headroom, verdict)
