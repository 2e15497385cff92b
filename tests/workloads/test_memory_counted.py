"""The planner's activations against what autograd really keeps of our transformer."""

from __future__ import annotations

import pytest
import torch

from heatsoak.economics.activations import layer_bytes_per_token
from heatsoak.economics.training import Training
from heatsoak.profiles.models import ModelShape
from heatsoak_workloads._transformer import Shape, Transformer

TOKENS = 64


def kept_bytes(layers: int, shape: ModelShape, *, is_autocast: bool) -> int:
    """Bytes of all tensors saved for the backward pass, except the model's own."""
    network = Transformer(
        Shape(layers, shape.hidden, shape.heads, shape.kv_heads, shape.ffn, shape.vocab), TOKENS
    )
    own = {t.untyped_storage().data_ptr() for t in [*network.parameters(), *network.buffers()]}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return tensor

    tokens = torch.randint(shape.vocab, (1, TOKENS))
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=is_autocast),
    ):
        network(tokens)
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.parametrize("is_autocast", [True, False], ids=["bf16", "fp32"])
@pytest.mark.parametrize("kv_heads", [2, 4])
def test_a_layer_keeps_what_the_planner_says(is_autocast, kv_heads):
    shape = ModelShape("tiny", 3, hidden=128, ffn=352, heads=4, kv_heads=kv_heads, vocab=64)
    found = kept_bytes(3, shape, is_autocast=is_autocast)
    found -= kept_bytes(2, shape, is_autocast=is_autocast)
    # The 16-bit copies of the weights, which the planner counts as weights.
    copies = 2 * shape.block_matrices if is_autocast else 0
    training = Training("full-adamw-fp32grad", has_fp32_stream=True, is_fp32=not is_autocast)
    planned = layer_bytes_per_token(shape, training)
    assert (found - copies) / TOKENS == pytest.approx(planned, rel=0.02)
