"""How a model is trained: the method, and what it keeps of every parameter. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from heatsoak.errors import UsageError

Method = Literal[
    "full-adamw", "full-adamw-fp32grad", "full-bf16", "full-8bit", "full-8bit-fused",
    "full-adafactor", "full-offload", "lora", "qlora",
]  # fmt: skip
METHODS: tuple[Method, ...] = get_args(Method)
Shard = Literal["none", "ddp", "zero1", "zero2", "zero3"]
SHARDS: tuple[Shard, ...] = get_args(Shard)

DEFAULT_LORA_RANK = 64
"""The rank QLoRA used, on every linear layer (arXiv 2305.14314, appendix B.2)."""
NF4_BYTES = 0.5 + 4 / 64
"""Bytes of a weight in NF4: four bits, and one fp32 scale per block of 64 (arXiv 2305.14314,
section 3, without double quantization, which would make it 0.516)."""


@dataclass(frozen=True, slots=True)
class Keeps:
    """What a method keeps of each trained parameter, in bytes."""

    weights: int
    gradients: int
    """0: each gradient is used and freed during the backward pass."""
    states: int
    state_element: int
    """Bytes of one element the update computes with."""
    words: str
    """The method in words."""
    host: int = 0
    """Bytes kept in the host's memory instead."""

    @property
    def frees_gradients(self) -> bool:
        """Whether no gradient outlives its layer's backward pass."""
        return self.gradients == 0

    @property
    def has_fp32_master(self) -> bool:
        """Whether gradients are summed in fp32 for fp32 master weights, on the card or the host."""
        return self.states == 12 or self.host > 0


KEEPS: dict[Method, Keeps] = {
    "full-adamw": Keeps(2, 2, 12, 4, "AdamW, mixed precision"),
    "full-adamw-fp32grad": Keeps(2, 4, 12, 4, "AdamW, mixed precision, 32-bit gradients"),
    "full-bf16": Keeps(2, 2, 4, 2, "AdamW, all in BF16"),
    "full-8bit": Keeps(2, 2, 2, 0, "8-bit AdamW on BF16 weights"),
    "full-8bit-fused": Keeps(2, 0, 2, 0, "8-bit AdamW fused into the backward pass"),
    "full-adafactor": Keeps(2, 2, 0, 4, "Adafactor on BF16 weights"),
    "full-offload": Keeps(2, 0, 0, 0, "AdamW on the host, weights on the card", host=16),
    "lora": Keeps(4, 4, 8, 4, "LoRA on BF16 weights"),
    "qlora": Keeps(4, 4, 8, 4, "QLoRA: LoRA on NF4 weights"),
}
"""By method; of `lora` and `qlora` the adapters' parameters are meant, which PEFT keeps in fp32.

Mixed precision: 16-bit weights and gradients, fp32 master weights and two fp32 moments, 16 bytes
(ZeRO, arXiv 1910.02054, section 3.1); with gradients accumulated in fp32, 18. Under autocast, as
Lightning's `bf16-mixed` does it, the same 18 bytes are fp32 weights, gradients and moments with the
cached 16-bit copy of the weights. 8-bit moments: arXiv 2110.02861. Fused into the backward pass:
LOMO, arXiv 2306.09782. Adafactor keeps row and column sums only, arXiv 1804.04235. Offload:
ZeRO-Offload, arXiv 2101.06840."""
EMBEDDING_8BIT_STATES = 8
"""Bytes of moments of an embedding's parameter under an 8-bit optimizer: these stay in 32 bit
(stable embedding layer, arXiv 2110.02861, section 2.3; so do bitsandbytes' users)."""
HOST_LARGE_BYTES = 18 * 1.5
"""Bytes a parameter that an offloaded optimizer may take on the host with its pinned copies."""


@dataclass(frozen=True, slots=True)
class Training:
    """One way to train a model, complete."""

    method: Method = "full-adamw"
    context: int = 4096
    """Tokens a sequence."""
    micro_batch: int = 1
    """Sequences a forward pass and card."""
    checkpointing: bool = True
    """Whether each layer is recomputed in the backward pass."""
    loss_chunks: int = 1
    """Pieces in which the loss is computed; 1: all logits exist at once."""
    is_compiled: bool = False
    """Whether kernels are fused by `torch.compile` or by hand (Liger)."""
    shard: Shard = "none"
    lora_rank: int = DEFAULT_LORA_RANK
    accumulate: int = 1
    """Forward passes a step: above 1 gradients live through the forward pass."""
    has_fp32_stream: bool = False
    """Whether the residual stream is fp32, as autocast leaves it."""
    is_fp32: bool = False
    """Whether everything is computed in fp32."""

    def __post_init__(self) -> None:
        for name, value in (("method", self.method), ("shard", self.shard)):
            allowed: tuple[str, ...] = METHODS if name == "method" else SHARDS
            if value not in allowed:
                raise UsageError(f"no {name} {value!r}; there is {', '.join(allowed)}")
        for name in ("context", "micro_batch", "loss_chunks", "lora_rank", "accumulate"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name.replace('_', '-')} must be 1 or more")

    @property
    def keeps(self) -> Keeps:
        """What it keeps of each trained parameter."""
        return KEEPS[self.method]

    @property
    def has_adapters(self) -> bool:
        """Whether only adapters are trained."""
        return self.method in ("lora", "qlora")

    @property
    def tokens(self) -> int:
        """Tokens a forward pass and card."""
        return self.context * self.micro_batch
