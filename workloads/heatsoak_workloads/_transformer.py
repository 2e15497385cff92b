"""A decoder-only transformer in current practice.

RMSNorm before each block, rotary position embedding, grouped-query attention through
`scaled_dot_product_attention`, SwiGLU, no biases, tied embeddings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

ROPE_BASE = 10000.0
"""Base of the rotary frequencies (Su et al. 2021, arXiv 2104.09864)."""


@dataclass(frozen=True)
class Shape:
    """The shape of one transformer."""

    layers: int
    width: int
    """Width of the residual stream, h."""
    heads: int
    """Query heads; `width / heads` is the width of a head."""
    kv_heads: int
    """Key and value heads; each serves `heads / kv_heads` query heads."""
    ffn: int
    """Inner width of the SwiGLU block."""
    vocabulary: int

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.width // self.heads


class Attention(nn.Module):
    """Causal grouped-query attention with rotary positions."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        kv_width = shape.kv_heads * shape.head_width
        # One projection for all three: one cast of the input under autocast, one larger product.
        self.qkv = nn.Linear(shape.width, shape.width + 2 * kv_width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    @override
    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Attend; `x` is (batch, time, width), `cos` and `sin` are (time, head width / 2)."""
        batch, time, width = x.shape
        shape = self.shape
        qkv = self.qkv(x).view(batch, time, shape.heads + 2 * shape.kv_heads, shape.head_width)
        q, k, v = qkv.transpose(1, 2).split([shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
        groups = shape.heads // shape.kv_heads
        # Repeated here rather than by `enable_gqa`, which not every kernel takes: one model for
        # all of them, and a forced kernel is the only thing that changes.
        attended = F.scaled_dot_product_attention(
            rotate(q, cos, sin),
            rotate(k, cos, sin).repeat_interleave(groups, dim=1),
            v.repeat_interleave(groups, dim=1),
            is_causal=True,
        )
        joined: Tensor = self.out(attended.transpose(1, 2).reshape(batch, time, width))
        return joined


class SwiGlu(nn.Module):
    """The gated feed-forward block (Shazeer 2020, arXiv 2002.05202)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_up = nn.Linear(shape.width, 2 * shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.width, bias=False)

    @override
    def forward(self, x: Tensor) -> Tensor:
        """`down(silu(gate(x)) * up(x))` for `x` of (batch, time, width)."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        down: Tensor = self.down(F.silu(gate) * up)
        return down


class Block(nn.Module):
    """One layer: attention and feed-forward, each behind its norm and added to the stream."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.attention = Attention(shape)
        self.ffn_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.ffn = SwiGlu(shape)

    @override
    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The stream after this layer, (batch, time, width)."""
        x = x + self.attention(self.attention_norm(x), cos, sin)
        added: Tensor = x + self.ffn(self.ffn_norm(x))
        return added


class Transformer(nn.Module):
    """Tokens in, logits of each next token out."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape, context: int, *, is_checkpointed: bool = False) -> None:
        """Build it with fresh weights.

        Args:
            shape: layers and widths.
            context: longest sequence, in tokens.
            is_checkpointed: recompute each layer in the backward pass instead of keeping it.
        """
        super().__init__()
        self.shape = shape
        self.is_checkpointed = is_checkpointed
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        self.head.weight = self.embedding.weight
        cos, sin = rotary_table(context, shape.head_width)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self._initialize()

    def _initialize(self) -> None:
        """Normal weights of 0.02; those that write to the stream scaled by depth, as in GPT-2."""
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            is_output = name.endswith(("attention.out.weight", "ffn.down.weight"))
            depth = math.sqrt(2 * self.shape.layers) if is_output else 1.0
            nn.init.normal_(parameter, std=0.02 / depth)

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (batch, time, vocabulary) of `tokens` (batch, time)."""
        time = tokens.shape[1]
        cos, sin = self.cos[:time], self.sin[:time]
        x = self.embedding(tokens)
        for block in self.blocks:
            if self.is_checkpointed:
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        logits: Tensor = self.head(self.norm(x))
        return logits


def rotary_table(context: int, head_width: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every position and frequency, each (context, head width / 2)."""
    frequencies = ROPE_BASE ** (-torch.arange(0, head_width, 2).float() / head_width)
    angles = torch.outer(torch.arange(context).float(), frequencies)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `x` (batch, heads, time, head width), computed in 32 bit."""
    first, second = x.float().chunk(2, dim=-1)
    rotated = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return rotated.type_as(x)


def parameter_count(model: nn.Module) -> int:
    """Trained parameters, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def training_flops_per_token(parameters: int, shape: Shape, context: int) -> float:
    """Floating point operations to train on one token, forward and backward.

    `6 P` for the weights (Kaplan et al. 2020, arXiv 2001.08361, section 2.1) plus attention: the
    `12 L h s` of PaLM (Chowdhery et al. 2022, arXiv 2204.02311, appendix B), halved because a
    causal mask leaves half of the scores. Recomputed activations do not count.

    Args:
        parameters: trained parameters P; the tied embedding counts once, as the output product.
        shape: layers L and width h.
        context: tokens a sequence, s.
    """
    return 6.0 * parameters + 6.0 * shape.layers * shape.width * context
