"""What a forward pass leaves on the card for the backward pass, in bytes. Pure.

Counted tensor by tensor as Korthikanti et al. do (arXiv 2205.05198, section 4), in 16 bit, with an
attention kernel that keeps no scores (FlashAttention, arXiv 2205.14135), for the eager code that
most people run. h: hidden, f: inner width, a: width of all query heads, V: vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heatsoak.economics.training import Training
    from heatsoak.profiles.models import ModelShape

ALLOCATOR_SLACK = 1.06
"""Factor on everything that comes and goes within a step: the caching allocator rounds up, and what
a backward kernel holds for a moment is not counted one by one."""
COMPILED_FRAC = 0.8
"""Of the activations, what fused code keeps (torchtune's Llama 3.2 3B: from 60.0 to 51.0 GiB)."""
LOGIT_BYTES = 18
"""Bytes of each of the V logits of a token: the 16-bit ones, their fp32 copy, the log-softmax, its
gradient from the loss and the gradient of the fp32 logits: 2 + 4 * 4, all alive in the backward
pass of `cross_entropy`."""
LOGIT_BYTES_FUSED = 8
"""The same where the loss is compiled or chunked: 16-bit logits and gradient, one fp32 piece."""


def layer_bytes_per_token(shape: ModelShape, training: Training) -> float:
    """Bytes one layer keeps of each token when nothing is recomputed.

    A gated layer (Llama) keeps, in full training, 16h + 8a + 8f: of two RMS norms the fp32 input 4h
    and the 16-bit normed one 2h each, the inputs of the attention and of the feed-forward block 2h
    each; queries, keys and values 2a each, K and V repeated to all heads, and the attention's
    output 2a; gate, its SiLU, up, and their product 2f each. With h = a this is 24h + 8f.
    A layer of GPT-2's kind keeps 18h + 4f, which is 34h at f = 4h (arXiv 2205.05198, equation 2
    without the scores).
    Frozen norms keep no normed copy: LoRA saves 4h. NF4 products keep inputs of their own beside
    the adapters' (bitsandbytes `MatMul4Bit`): 4h + 2a + 2f. An fp32 residual stream adds 6h; all of
    it in fp32 is 28h + 16a + 16f, as autograd has been seen to keep it.
    """
    hidden, attention, ffn = shape.hidden, shape.attention_width, shape.ffn
    kept = 16.0 * hidden + 8 * attention + 8 * ffn if shape.gated else 18.0 * hidden + 4 * ffn
    if training.is_fp32:
        kept = (28.0 * hidden + 16 * attention + 16 * ffn) if shape.gated else 2 * kept
    elif training.has_fp32_stream:
        kept += 6 * hidden
    if training.has_adapters:
        kept -= 4 * hidden
    if training.method == "qlora":
        kept += 4 * hidden + 2 * attention + 2 * ffn
    return kept * (COMPILED_FRAC if training.is_compiled else 1.0)


def kept_bytes(shape: ModelShape, training: Training) -> float:
    """Activations of the whole forward pass, when the loss is reached.

    With checkpointing only each layer's input is kept, 2h (arXiv 2205.05198, section 5; the idea:
    arXiv 1604.06174).
    """
    if training.checkpointing:
        per_layer = (4.0 if training.has_fp32_stream else 2.0) * shape.hidden
    else:
        per_layer = layer_bytes_per_token(shape, training)
    return ALLOCATOR_SLACK * shape.layers * per_layer * training.tokens


def recomputed_bytes(shape: ModelShape, training: Training) -> float:
    """The one layer that lives again in the backward pass; 0 without checkpointing."""
    if not training.checkpointing:
        return 0.0
    return ALLOCATOR_SLACK * layer_bytes_per_token(shape, training) * training.tokens


def logit_bytes(shape: ModelShape, training: Training) -> float:
    """The logits and what the loss makes of them, at their worst."""
    is_fused = training.is_compiled or training.loss_chunks > 1
    per_logit = LOGIT_BYTES_FUSED if is_fused else LOGIT_BYTES
    pieces = min(training.loss_chunks, training.tokens)
    return ALLOCATOR_SLACK * per_logit * shape.vocab * training.tokens / pieces
