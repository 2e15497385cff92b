"""The model: nothing leaks from the future, positions rotate, groups share keys."""

from __future__ import annotations

import pytest
import torch

from heatsoak_workloads._transformer import (
    Attention,
    Shape,
    Transformer,
    parameter_count,
    rotary_table,
    rotate,
    training_flops_per_token,
)

MICRO = Shape(layers=2, width=32, heads=4, kv_heads=2, ffn=48, vocabulary=64)


@pytest.fixture
def tokens():
    return torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(3))


def test_a_later_token_does_not_change_earlier_logits(tokens):
    torch.manual_seed(1)
    model = Transformer(MICRO, context=16)
    changed = tokens.clone()
    changed[:, 9] = (changed[:, 9] + 1) % 64
    with torch.no_grad():
        before, after = model(tokens), model(changed)
    assert before.shape == (2, 16, 64)
    torch.testing.assert_close(before[:, :9], after[:, :9], rtol=0, atol=0)
    for position in (9, 15):
        assert not torch.allclose(before[:, position], after[:, position])


def test_rotation_keeps_lengths_and_scores_depend_on_distance_only():
    cos, sin = rotary_table(32, 8)
    q, k = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(5))

    def at(x, position):
        return rotate(x, cos[position : position + 1], sin[position : position + 1])

    torch.testing.assert_close(at(q, 7).norm(), q.norm())
    near = (at(q, 9) * at(k, 4)).sum()
    torch.testing.assert_close((at(q, 30) * at(k, 25)).sum(), near)
    assert not torch.isclose((at(q, 30) * at(k, 24)).sum(), near)


def test_rotation_keeps_the_type():
    cos, sin = rotary_table(4, 8)
    assert rotate(torch.zeros(1, 1, 4, 8, dtype=torch.bfloat16), cos, sin).dtype == torch.bfloat16


def test_grouped_queries_share_their_head_of_keys():
    """The same as plain attention over keys and values repeated by hand."""
    torch.manual_seed(2)
    attention = Attention(MICRO)
    x = torch.randn(1, 6, 32)
    cos, sin = rotary_table(6, 8)
    assert attention.qkv.out_features == 32 + 2 * 2 * 8
    q, k, v = attention.qkv(x).split([32, 16, 16], dim=-1)
    heads = []
    for head in range(4):
        group = head // 2
        q_head = rotate(q[..., 8 * head : 8 * head + 8], cos, sin)
        k_head = rotate(k[..., 8 * group : 8 * group + 8], cos, sin)
        scores = q_head @ k_head.transpose(-1, -2) / 8**0.5
        scores = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), float("-inf"))
        heads.append(scores.softmax(-1) @ v[..., 8 * group : 8 * group + 8])
    expected = attention.out(torch.cat(heads, dim=-1))
    torch.testing.assert_close(attention(x, cos, sin), expected)


def test_checkpointing_changes_memory_and_not_gradients(tokens):
    gradients = []
    for is_checkpointed in (False, True):
        torch.manual_seed(1)
        model = Transformer(MICRO, context=16, is_checkpointed=is_checkpointed)
        model(tokens).logsumexp(-1).sum().backward()
        gradients.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_parameters_are_counted_once_and_flops_follow_the_formula():
    model = Transformer(MICRO, context=16)
    layer = 32 * (32 + 2 * 16) + 32 * 32 + 3 * 32 * 48 + 2 * 32
    parameters = parameter_count(model)
    assert parameters == 2 * layer + 32 + 64 * 32
    assert training_flops_per_token(parameters, MICRO, 16) == 6 * parameters + 6 * 2 * 32 * 16
