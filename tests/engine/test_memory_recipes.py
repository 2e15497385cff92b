"""What fits instead, in the order of what is given up; the longest context and largest batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.economics.fit_report import fit_report
from heatsoak.economics.memory_fit import plan_memory
from heatsoak.economics.recipes import (
    LADDER,
    fewest_cards,
    fitting_recipes,
    largest_batch,
    largest_context,
    sharded,
)
from heatsoak.economics.training import METHODS, Training
from heatsoak.economics.workload_fit import recipe_peak, recipe_training
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.models import find_model
from heatsoak.recipe import Recipe

CARDS = card_profiles()
LLAMA_13B = find_model("llama-2-13b")


@pytest.mark.parametrize(
    ("card", "n", "methods"),
    [
        ("rtx-pro-5000-48", 1, ["full-offload", "lora", "qlora"]),
        (
            "rtx-pro-5000-72", 1,
            ["full-8bit-fused", "full-adafactor", "full-offload", "lora", "qlora"],
        ),
        (
            "rtx-pro-6000-ws", 1,
            ["full-8bit", "full-8bit-fused", "full-adafactor", "full-offload", "lora", "qlora"],
        ),
        ("rtx-pro-5000-72", 4, list(LADDER)),
        ("rtx-5080", 1, ["qlora"]),
    ],
)  # fmt: skip
def test_what_fits_13b_in_full(card, n, methods):
    training = sharded(Training(), n)
    found = fitting_recipes(LLAMA_13B, training, CARDS[card], n)
    assert [one.training.method for one in found] == methods
    for one in found:
        assert one.plan.verdict != "no"
        assert one.plan == plan_memory(LLAMA_13B, one.training, CARDS[card], n)
        assert (one.training.context, one.training.micro_batch) == (4096, 1)


def test_the_optimizer_on_the_host_takes_28_gib_of_a_48_gb_card():
    (offload, *_) = fitting_recipes(LLAMA_13B, Training(), CARDS["rtx-pro-5000-48"])
    assert offload.plan.peak_bytes / 2**30 == pytest.approx(28, abs=0.5)
    low, high = offload.plan.host_bytes
    assert (round(low / 1e9), round(high / 1e9)) == (208, 351)


def test_checkpointing_and_a_chunked_loss_come_before_another_method():
    # 8B, BF16, at 16k: whole activations do not fit 80 GB, recomputed ones do.
    shape = find_model("llama-3-8b")
    asked = Training("full-bf16", context=8192, checkpointing=False)
    first = fitting_recipes(shape, asked, CARDS["h100-sxm"])[0].training
    assert (first.method, first.checkpointing, first.loss_chunks) == ("full-bf16", True, 1)
    longer = replace(asked, context=16384, checkpointing=True)
    first = fitting_recipes(shape, longer, CARDS["h100-sxm"])[0].training
    assert (first.method, first.loss_chunks) == ("full-bf16", 8)


def test_a_method_beside_the_ladder_goes_on_with_what_weighs_less():
    asked = Training("full-adamw-fp32grad")
    found = fitting_recipes(LLAMA_13B, asked, CARDS["b200"])
    assert found[0].training.method == "full-bf16"
    assert "full-adamw" not in {one.training.method for one in found}


def test_how_many_cards_it_takes():
    assert fewest_cards(LLAMA_13B, Training(), CARDS["rtx-pro-5000-72"])[0] == 4
    assert fewest_cards(LLAMA_13B, Training(shard="ddp"), CARDS["rtx-pro-5000-72"])[0] == 4
    assert fewest_cards(LLAMA_13B, Training(shard="zero1"), CARDS["l40s"]) is None
    assert fewest_cards(LLAMA_13B, Training(), CARDS["h200-sxm"])[0] == 2
    assert fewest_cards(LLAMA_13B, Training("qlora"), CARDS["rtx-5090"])[0] == 1
    assert fewest_cards(find_model("llama-2-70b"), Training(), CARDS["rtx-5090"]) is None


@pytest.mark.parametrize("method", METHODS)
def test_the_longest_context_and_the_largest_batch_are_the_last_that_fit(method):
    shape, card = find_model("llama-3.2-1b"), CARDS["rtx-5090"]
    training = Training(method)
    context = largest_context(shape, training, card)
    assert context % 256 == 0
    assert plan_memory(shape, replace(training, context=context), card).verdict != "no"
    assert plan_memory(shape, replace(training, context=context + 256), card).verdict == "no"
    batch = largest_batch(shape, training, card)
    assert plan_memory(shape, replace(training, micro_batch=batch), card).verdict != "no"
    assert plan_memory(shape, replace(training, micro_batch=batch + 1), card).verdict == "no"


def test_what_never_fits_has_no_longest_context():
    assert largest_context(LLAMA_13B, Training(), CARDS["rtx-5090"]) is None
    assert largest_batch(LLAMA_13B, Training(), CARDS["rtx-5090"]) is None


def test_learned_positions_end_the_context():
    shape = replace(find_model("gpt2"), positions=1000)
    assert largest_context(shape, Training(context=512), CARDS["b200"]) == 1000


def test_the_report_is_a_document_of_plain_values():
    cards = [(CARDS["rtx-pro-5000-72"], 1), (CARDS["rtx-pro-5000-72"], 4)]
    report = fit_report(LLAMA_13B, Training(), cards, is_sharded=True)
    one, four = report["verdicts"]
    assert (one["verdict"], one["shard"], four["verdict"], four["shard"]) == (
        "no", "none", "yes", "zero3",
    )  # fmt: skip
    assert report["breakdown"] == one["breakdown"]
    assert sum(one["breakdown"].values()) == one["peak_bytes"] + one["breakdown"]["reserve"]
    assert one["headroom_bytes"] == one["usable_bytes"] - one["peak_bytes"]
    assert report["cards_needed"] == {"rtx-pro-5000-72": 4}
    assert one["recipes"][0]["method"] == "full-8bit-fused"
    asked = fit_report(LLAMA_13B, Training(), cards, is_sharded=False)["verdicts"][1]
    assert (asked["verdict"], asked["shard"]) == ("no", "none")


SIZE = {"layers": 16, "width": 2048, "heads": 32, "kv_heads": 8, "ffn": 8192, "vocabulary": 256}
RECIPE = Recipe(
    "llm_pretrain", "1B", 2048, 2, 1, "bf16", "auto", False, False, "adamw"
)  # fmt: skip


def test_a_workloads_recipe_takes_18_bytes_a_parameter():
    peak = recipe_peak(SIZE, RECIPE)
    parameters = 16 * (2048 * (2 * 2048 + 2 * 512) + 3 * 2048 * 8192 + 2 * 2048) + 257 * 2048
    held = peak.breakdown
    assert held.weights + held.gradients + held.states == 18 * parameters
    fp32 = recipe_peak(SIZE, replace(RECIPE, precision="fp32")).breakdown
    assert fp32.weights + fp32.gradients + fp32.states == 16 * parameters
    assert fp32.activations > 1.5 * held.activations


def test_a_recipes_options_reach_the_plan():
    recipe = replace(RECIPE, checkpointing=True, compile=True, context=1024, accumulate=4)
    training = recipe_training(recipe)
    assert (training.checkpointing, training.is_compiled, training.context) == (True, True, 1024)
    assert training.accumulate == 4
    whole = recipe_peak(SIZE, RECIPE).peak_bytes
    assert recipe_peak(SIZE, replace(RECIPE, checkpointing=True)).peak_bytes < whole


def test_a_workload_that_is_no_transformer_has_no_plan():
    assert recipe_peak({"memory_gib": 3.0}, RECIPE) is None
    assert recipe_peak(SIZE, replace(RECIPE, context=0)) is None
