"""Pre-training of a decoder-only transformer on English text, token by token (a byte is a token).

The text is half a megabyte, so a long soak learns it by heart: the loss falls for real, and keeps
falling, but says nothing about a language model. What is measured is the work, not the model.
"""

# ruff: noqa: E402 - the literal comes first, so that a reader and the catalogue find it at once
from __future__ import annotations

WORKLOAD = {
    "version": 1,
    "unit": "tokens",
    "title": "Pre-training of a decoder-only transformer (Llama-like) on English text",
    "archetype": "llm-pretraining",
    "kinds": ["nvidia", "cpu"],
    # memory_gib, with the recipe of the size: 18 B a parameter (weights, gradients and two AdamW
    # moments in 32 bit, and the 16-bit copy of autocast), 30 width + 8 ffn B a token and layer
    # (what autograd keeps, counted), 5 % for temporaries, and 1 GiB for CUDA and libraries.
    "sizes": {
        # Wide and shallow: fewer points at which the cores wait for each other, so that a process
        # beside it costs what it takes and not a multiple.
        "cpu-tiny": {
            "layers": 2,
            "width": 512,
            "heads": 8,
            "kv_heads": 4,
            "ffn": 1408,
            "vocabulary": 256,
            "memory_gib": 1.2,
            "kinds": ["cpu", "nvidia"],
            "recipe": {"context": 256, "micro_batch": 4, "precision": "bf16"},
        },
        "125M": {
            "layers": 20,
            "width": 768,
            "heads": 12,
            "kv_heads": 4,
            "ffn": 2048,
            "vocabulary": 256,
            "memory_gib": 9.5,
            "kinds": ["nvidia", "cpu"],
            "recipe": {"context": 2048, "micro_batch": 4},
        },
        # The shape of Qwen2.5-0.5B.
        "350M": {
            "layers": 24,
            "width": 896,
            "heads": 14,
            "kv_heads": 2,
            "ffn": 4864,
            "vocabulary": 256,
            "memory_gib": 20.0,
            "kinds": ["nvidia", "cpu"],
            "recipe": {"context": 2048, "micro_batch": 4},
        },
        # The shape of Llama-3.2-1B.
        "1B": {
            "layers": 16,
            "width": 2048,
            "heads": 32,
            "kv_heads": 8,
            "ffn": 8192,
            "vocabulary": 256,
            "memory_gib": 26.3,
            "kinds": ["nvidia"],
            "recipe": {"context": 2048, "micro_batch": 2},
        },
    },
    "defaults": {
        "size": "cpu-tiny",
        "context": 2048,
        "micro_batch": 4,
        "accumulate": 1,
        "precision": "bf16",
        "attention": "auto",
        "compile": False,
        "checkpointing": False,
        "optimizer": "adamw",
        "settings": {},
    },
    "options": {
        "context": "int",
        "micro_batch": "int",
        "accumulate": "int",
        "precision": ["bf16", "fp16", "tf32", "fp32"],
        "attention": ["auto", "flash", "cudnn", "efficient", "math"],
        "compile": [False, True],
        "checkpointing": [False, True],
        "optimizer": ["adamw"],
        "learning_rate": "float",
    },
}

from dataclasses import fields
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows
from lightning.pytorch import LightningModule
from torch.optim.lr_scheduler import LambdaLR
from typing_extensions import override

from heatsoak_workloads._channel import WorkloadError
from heatsoak_workloads._data import RandomWindows, english_tokens, trained_tokens
from heatsoak_workloads._transformer import (
    Shape,
    Transformer,
    parameter_count,
    training_flops_per_token,
)
from heatsoak_workloads._workload import ATTENTION_KERNELS, Training, attention_kernel

if TYPE_CHECKING:
    from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
    from torch import Tensor

    from heatsoak.recipe import Recipe
    from heatsoak_workloads._workload import Job

LEARNING_RATES = {"cpu-tiny": 2e-3, "125M": 6e-4, "350M": 4e-4, "1B": 3e-4}
WARM_UP_STEPS = 50
WEIGHT_DECAY = 0.1
BETAS = (0.9, 0.95)
CLIP_NORM = 1.0


class LanguageModel(LightningModule):
    """Next-token prediction with AdamW."""

    def __init__(self, shape: Shape, recipe: Recipe) -> None:
        """Build the model with fresh weights from torch's global seed."""
        super().__init__()
        self.recipe = recipe
        self.network = Transformer(shape, recipe.context, is_checkpointed=recipe.checkpointing)
        if recipe.compile:
            self.network.compile()

    @override
    def training_step(self, batch: Tensor, batch_idx: int) -> Tensor:
        """Mean cross-entropy of `batch`, (micro batch, context + 1) tokens."""
        logits = self.network(batch[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    @override
    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """AdamW as GPT-3 and Llama use it; weight decay on matrices only."""
        parameters = list(self.parameters())
        groups = [
            {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(
            groups, lr=learning_rate(self.recipe), betas=BETAS, fused=True
        )
        # A soak has no end to anneal towards: a short warm-up, then constant.
        schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP_STEPS))
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    @override
    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the global norm; Lightning's own clipping refuses fused optimizers.

        Not under fp16: there the gradients are still scaled, and reading the scale would wait for
        the GPU in every step.
        """
        if self.recipe.precision != "fp16":
            torch.nn.utils.clip_grad_norm_(self.parameters(), CLIP_NORM)


def build(job: Job) -> Training:
    """The training that `job` asks for."""
    recipe = job.recipe
    size = job.size
    shape = Shape(**{f.name: size[f.name] for f in fields(Shape)})
    module = LanguageModel(shape, recipe)
    parameters = parameter_count(module)
    batches = RandomWindows(
        english_tokens(),
        context=recipe.context,
        micro_batch=recipe.micro_batch,
        seed=job.seed,
        is_pinned=job.is_cuda,
    )
    return Training(
        module=module,
        batches=batches,
        unit="tokens",
        count_units=trained_tokens,
        flops_per_unit=training_flops_per_token(parameters, shape, recipe.context),
        facts={
            "parameters": parameters,
            "attention": attention_in_use(shape, job),
            "optimizer": "fused AdamW",
            "learning_rate": learning_rate(recipe),
        },
    )


def learning_rate(recipe: Recipe) -> float:
    """The recipe's `learning_rate`, or what is usual for the size."""
    return float(recipe.settings.get("learning_rate", LEARNING_RATES[recipe.size]))


def attention_in_use(shape: Shape, job: Job) -> str:
    """The kernel that `scaled_dot_product_attention` takes for this job, by the recipe's words.

    Raises:
        WorkloadError: the recipe forces a kernel that does not take these tensors here.
    """
    recipe = job.recipe
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(recipe.precision, torch.float32)
    head = torch.zeros(
        (1, shape.heads, recipe.context, shape.head_width),
        dtype=dtype,
        device=job.device,
        requires_grad=True,
    )
    with attention_kernel(recipe.attention):
        # What the operator itself asks; there is no public name for it.
        choice = torch._fused_sdp_choice(head, head, head, is_causal=True)  # noqa: SLF001
    for word, kernel in ATTENTION_KERNELS.items():
        if int(choice) == kernel.value:
            return word
    raise WorkloadError(
        f"attention {recipe.attention} does not take {recipe.precision} with heads of "
        f"{shape.head_width} on {job.device}; use auto"
    )
