"""The planner's sums by hand, and what must hold of any plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.economics.activations import (
    kept_bytes,
    layer_bytes_per_token,
    logit_bytes,
    recomputed_bytes,
)
from heatsoak.economics.memory_fit import (
    RESERVE_BYTES,
    peak_memory,
    plan_in,
    plan_memory,
)
from heatsoak.economics.sharding import shares
from heatsoak.economics.training import METHODS, SHARDS, Training
from heatsoak.errors import UsageError
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.models import ModelShape, find_model

LLAMA_13B = find_model("llama-2-13b")
P_13B = 13_015_864_320
TINY = ModelShape("tiny", layers=2, hidden=64, ffn=128, heads=4, kv_heads=2, vocab=1000)


@pytest.mark.parametrize(
    ("method", "per_parameter"),
    [
        ("full-adamw", (2, 2, 12)),
        ("full-adamw-fp32grad", (2, 4, 12)),
        ("full-bf16", (2, 2, 4)),
        ("full-8bit-fused", (2, 0, 2)),
        ("full-offload", (2, 0, 0)),
    ],
)
def test_bytes_of_a_parameter(method, per_parameter):
    held = shares(LLAMA_13B, Training(method=method), 1)
    found = (held.weights / P_13B, held.gradients / P_13B, held.states / P_13B)
    # Moments of the embedding (32000 x 5120) stay in 32 bit under an 8-bit optimizer: 6 more bytes.
    extra = 6 * 32000 * 5120 / P_13B if "8bit" in method else 0
    assert found == pytest.approx((*per_parameter[:2], per_parameter[2] + extra))


def test_states_of_13b_are_208_and_234_gigabytes():
    for method, gigabytes in (("full-adamw", 208), ("full-adamw-fp32grad", 234)):
        held = shares(LLAMA_13B, Training(method=method), 1)
        total = held.weights + held.gradients + held.states
        assert total / 1e9 == pytest.approx(gigabytes, abs=0.5)


def test_adafactor_keeps_rows_and_columns():
    held = shares(TINY, Training(method="full-adafactor"), 1)
    layer = 2 * (64 + 64) + 2 * (64 + 32) + 3 * (64 + 128)
    assert held.states == 4 * (2 * layer + 2 * (1000 + 64))


def test_lora_and_qlora_of_a_tiny_model():
    # r * (m + n) a matrix: 2 of 64x64, 2 of 64x32, 3 of 64x128, in 2 layers.
    trained = 2 * 8 * (2 * 128 + 2 * 96 + 3 * 192)
    assert TINY.lora_parameters(8) == trained
    lora = shares(TINY, Training(method="lora", lora_rank=8), 1)
    assert lora.weights == 2 * TINY.parameters + 4 * trained
    assert (lora.gradients, lora.states) == (4 * trained, 8 * trained)
    quantised = shares(TINY, Training(method="qlora", lora_rank=8), 1)
    matrices = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128)
    rest = TINY.parameters - matrices
    assert quantised.weights == 0.5625 * matrices + 2 * rest + 4 * trained


@pytest.mark.parametrize(
    ("shard", "weights", "gradients", "states"),
    [("none", 2, 2, 12), ("ddp", 2, 2, 12), ("zero1", 2, 2, 3), ("zero2", 2, 0.5, 3),
     ("zero3", 0.5, 0.5, 3)],
)  # fmt: skip
def test_zero_divides_by_the_cards(shard, weights, gradients, states):
    held = shares(LLAMA_13B, Training(shard=shard), 4)
    found = (held.weights / P_13B, held.gradients / P_13B, held.states / P_13B)
    assert found == pytest.approx((weights, gradients, states))


def test_one_card_shares_nothing():
    plain = peak_memory(LLAMA_13B, Training(), 1)
    for shard in SHARDS:
        assert peak_memory(LLAMA_13B, Training(shard=shard), 1) == plain


def test_data_parallel_copies_gradients_into_buckets():
    alone = peak_memory(LLAMA_13B, Training(), 1)
    ddp = peak_memory(LLAMA_13B, Training(shard="ddp"), 2)
    assert ddp.peak_bytes - alone.peak_bytes == 2 * P_13B


def test_zero3_gathers_the_root_and_two_layers():
    held = shares(LLAMA_13B, Training(shard="zero3"), 4)
    block = 4 * 5120 * 5120 + 3 * 5120 * 13824 + 2 * 5120
    assert held.gathered == 2 * 2 * 32000 * 5120 + 2 * 2 * block
    # The largest gradient in 16 bit, and its fp32 copy for the reduction.
    assert held.unit_gradient == 6 * block
    assert shares(LLAMA_13B, Training("full-bf16", shard="zero3"), 4).unit_gradient == 2 * block


def test_zero3_leaves_the_scales_of_nf4_whole():
    matrices = LLAMA_13B.layers * LLAMA_13B.block_matrices
    training = Training("qlora", shard="zero3")
    whole = shares(LLAMA_13B, training, 1).weights
    scales = matrices / 16
    assert shares(LLAMA_13B, training, 4).weights == pytest.approx((whole - scales) / 4 + scales)


def test_sharded_states_are_updated_in_their_share():
    moments = peak_memory(LLAMA_13B, Training(shard="zero3"), 4).moments
    assert moments["update"].temporaries == 2 * 4 * 32000 * 5120 / 4


def test_activations_of_a_llama_layer():
    # 24h + 8f with h = a (arXiv 2205.05198's way of counting).
    per_token = layer_bytes_per_token(LLAMA_13B, Training())
    assert per_token == 24 * 5120 + 8 * 13824
    assert layer_bytes_per_token(LLAMA_13B, Training("lora")) == 20 * 5120 + 8 * 13824
    assert layer_bytes_per_token(LLAMA_13B, Training("qlora")) == 26 * 5120 + 10 * 13824
    assert layer_bytes_per_token(LLAMA_13B, Training(is_compiled=True)) == 0.8 * per_token
    stream = layer_bytes_per_token(LLAMA_13B, Training(has_fp32_stream=True))
    assert stream == 30 * 5120 + 8 * 13824


def test_activations_of_gpt2_are_34_bytes_a_hidden_unit():
    # arXiv 2205.05198, equation 2: 34 sbh without the attention scores.
    assert layer_bytes_per_token(find_model("gpt2"), Training(context=1024)) == 34 * 768


def test_checkpointing_keeps_each_layers_input_and_one_layer():
    training = Training(context=1000, micro_batch=3)
    assert kept_bytes(LLAMA_13B, training) == pytest.approx(1.06 * 40 * 2 * 5120 * 3000)
    one = layer_bytes_per_token(LLAMA_13B, training)
    assert recomputed_bytes(LLAMA_13B, training) == pytest.approx(1.06 * one * 3000)
    without = replace(training, checkpointing=False)
    assert kept_bytes(LLAMA_13B, without) == pytest.approx(1.06 * 40 * one * 3000)
    assert recomputed_bytes(LLAMA_13B, without) == 0


def test_logits():
    training = Training(context=1000)
    assert logit_bytes(TINY, training) == pytest.approx(1.06 * 18 * 1000 * 1000)
    chunked = replace(training, loss_chunks=4)
    assert logit_bytes(TINY, chunked) == pytest.approx(1.06 * 8 * 1000 * 1000 / 4)
    # There are never more pieces than tokens.
    assert logit_bytes(TINY, replace(training, context=2, loss_chunks=9)) == pytest.approx(
        1.06 * 8 * 1000
    )


def test_the_peak_is_the_worst_moment_and_the_sum_of_its_parts():
    for method in METHODS:
        for checkpointing in (True, False):
            training = Training(method, context=512, checkpointing=checkpointing)
            peak = peak_memory(LLAMA_13B, training)
            totals = {moment: parts.total for moment, parts in peak.moments.items()}
            assert peak.peak_bytes == max(totals.values()) == totals[peak.moment]
            assert peak.breakdown == peak.moments[peak.moment]
            assert peak.breakdown.reserve == RESERVE_BYTES


def test_moments_of_a_step_hold_what_they_should():
    moments = peak_memory(LLAMA_13B, Training()).moments
    # Gradients come into being in the backward pass, logits are gone by then.
    assert moments["loss"].gradients == 0
    assert moments["loss"].logits > 0
    assert moments["last backward layer"].gradients == 2 * P_13B
    assert moments["update"].activations == 0
    # AdamW, tensor by tensor: two fp32 temporaries of the largest (32000 x 5120).
    assert moments["update"].temporaries == 2 * 4 * 32000 * 5120
    accumulated = peak_memory(LLAMA_13B, Training(accumulate=8)).moments
    assert accumulated["loss"].gradients == 2 * P_13B


def test_a_fused_optimizer_holds_no_gradients_but_the_largest():
    moments = peak_memory(LLAMA_13B, Training("full-8bit-fused")).moments
    block = 4 * 5120 * 5120 + 3 * 5120 * 13824 + 2 * 5120
    assert moments["update"].gradients == 0
    assert moments["last backward layer"].temporaries == 2 * block


def test_the_host_holds_an_offloaded_optimizer():
    low, high = peak_memory(LLAMA_13B, Training("full-offload")).host_bytes
    assert low / 1e9 == pytest.approx(208, abs=0.5)
    assert high / 1e9 == pytest.approx(351, abs=1)
    assert peak_memory(LLAMA_13B, Training()).host_bytes == (0, 0)


GROWING = [
    ("context", (256, 1024, 4096)),
    ("micro_batch", (1, 2, 7)),
    ("lora_rank", (1, 16, 64)),
    ("accumulate", (1, 4)),
]


@pytest.mark.parametrize(("name", "values"), GROWING, ids=[name for name, _ in GROWING])
def test_more_of_it_never_takes_less(name, values):
    for method in METHODS:
        for shard in SHARDS:
            peaks = [
                peak_memory(LLAMA_13B, Training(method, shard=shard, **{name: value}), 4).peak_bytes
                for value in values
            ]
            assert peaks == sorted(peaks)


def test_easing_never_takes_more():
    for method in METHODS:
        asked = Training(method, context=8192, checkpointing=False)
        whole = peak_memory(LLAMA_13B, asked).peak_bytes
        assert peak_memory(LLAMA_13B, replace(asked, checkpointing=True)).peak_bytes <= whole
        assert peak_memory(LLAMA_13B, replace(asked, is_compiled=True)).peak_bytes <= whole


def test_more_cards_never_take_more_of_each():
    for method in METHODS:
        peaks = [
            peak_memory(LLAMA_13B, Training(method, shard="zero3"), n).peak_bytes
            for n in (2, 4, 8, 16)
        ]
        assert peaks == sorted(peaks, reverse=True)


def test_the_verdict_by_what_is_left():
    peak = peak_memory(TINY, Training(context=64))
    usable = peak.peak_bytes / 0.95
    for factor, verdict in ((1.001, "yes"), (0.999, "tight"), (0.951, "tight"), (0.949, "no")):
        plan = plan_in(peak, RESERVE_BYTES + round(usable * factor))
        assert plan.verdict == verdict, factor
        assert plan.headroom_bytes == plan.usable_bytes - peak.peak_bytes
    assert plan_in(peak, 1000).usable_bytes == 0


@pytest.mark.parametrize(
    ("card", "n", "verdict"),
    [
        ("rtx-pro-5000-48", 1, "no"),
        ("rtx-6000-ada", 1, "no"),
        ("l40s", 1, "no"),
        ("rtx-pro-5000-72", 1, "no"),
        ("rtx-pro-6000-ws", 1, "no"),
        ("rtx-pro-5000-72", 2, "no"),
        ("rtx-pro-5000-48", 4, "no"),
        ("rtx-pro-5000-72", 4, "yes"),
    ],
)
def test_13b_in_full_with_the_defaults(card, n, verdict):
    training = Training(shard="zero3" if n > 1 else "none")
    assert plan_memory(LLAMA_13B, training, card_profiles()[card], n).verdict == verdict


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "full"}, "no method 'full'"),
        ({"shard": "zero9"}, "no shard 'zero9'"),
        ({"context": 0}, "context must be 1 or more"),
        ({"micro_batch": 0}, "micro-batch must be 1 or more"),
        ({"loss_chunks": -1}, "loss-chunks"),
        ({"lora_rank": 0}, "lora-rank"),
    ],
)
def test_a_training_that_cannot_be_is_refused(options, words):
    with pytest.raises(UsageError, match=words):
        Training(**options)


def test_a_context_beyond_learned_positions_is_refused():
    with pytest.raises(UsageError, match="gpt2 has 1024 positions; a context of 2048 is longer"):
        peak_memory(find_model("gpt2"), Training(context=2048))


def test_a_card_of_unknown_memory_is_told(tmp_path, monkeypatch):
    card = replace(card_profiles()["rtx-5090"], memory_total_bytes=None)
    with pytest.raises(UsageError, match="the memory of rtx-5090 is not known"):
        plan_memory(TINY, Training(), card)
