"""`heatsoak fit` and `heatsoak cards`: what they print, and what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from heatsoak.profiles.cards import card_profiles
from heatsoak_tui.cli import main
from heatsoak_tui.cli.commands.cards import stale_prices
from heatsoak_tui.cli.commands.fit import parse_cards


def test_json_has_a_verdict_per_card_and_count(capsys):
    code = main(["fit", "--json", "--cards", "rtx-pro-5000-72x4,rtx-pro-5000-72,rtx-pro-6000-ws"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["schema"] == "heatsoak-fit/1"
    found = [(one["card"], one["n"], one["verdict"]) for one in document["verdicts"]]
    assert found == [
        ("rtx-pro-5000-72", 4, "yes"),
        ("rtx-pro-5000-72", 1, "no"),
        ("rtx-pro-6000-ws", 1, "no"),
    ]
    for one in document["verdicts"]:
        assert one["headroom_bytes"] == one["usable_bytes"] - one["peak_bytes"]
    assert set(document["breakdown"]) == {
        "weights", "gradients", "states", "activations", "logits", "temporaries", "reserve",
    }  # fmt: skip
    assert document["cards_needed"]["rtx-pro-6000-ws"] == 4


def test_every_profile_at_one_two_four_and_eight_by_default(capsys):
    assert main(["fit", "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert {(one["card"], one["n"]) for one in verdicts} == {
        (card, n) for card in card_profiles() for n in (1, 2, 4, 8)
    }
    assert {one["shard"] for one in verdicts if one["n"] > 1} == {"zero3"}


def test_every_option_reaches_the_plan(capsys):
    words = (
        "fit --json --shape layers=40,hidden=5120,ffn=13824,heads=40,kv_heads=40,vocab=32000 "
        "--method qlora --lora-rank 8 --context 8192 --micro-batch 2 --checkpointing off "
        "--loss-chunks 4 --compile --shard zero2 --cards l40sx2"
    )
    assert main(words.split()) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["model"]["parameters"] == 13_015_864_320
    training = document["training"]
    asked = {key: training[key] for key in training if key != "accumulate"}
    assert asked == {
        "method": "qlora", "context": 8192, "micro_batch": 2, "checkpointing": False,
        "loss_chunks": 4, "is_compiled": True, "shard": "zero2", "lora_rank": 8,
        "has_fp32_stream": False, "is_fp32": False,
    }  # fmt: skip
    assert document["verdicts"][0]["shard"] == "zero2"


def test_sharding_none_leaves_each_card_all_of_it(capsys):
    for shard, verdict in (("none", "no"), ("zero3", "yes")):
        assert main(["fit", "--json", "--shard", shard, "--cards", "rtx-pro-5000-72x4"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["verdicts"]
        assert (one["shard"], one["verdict"]) == (shard, verdict)


def test_the_table_names_what_fits_instead(capsys):
    assert main(["fit", "--cards", "rtx-pro-5000-72,rtx-pro-5000-48"]) == 0
    text = capsys.readouterr().out
    assert "rtx-pro-5000-72: NO" in text
    assert "as asked it needs 4 of them, sharded" in text
    assert "full-8bit-fused  yes  53.4 GiB" in text
    assert "full-offload  yes  28.2 GiB  and 208 to 351 GB on the host" in text
    assert main(["fit"]) == 0
    text = capsys.readouterr().out
    (line,) = (line for line in text.splitlines() if line.startswith("rtx-pro-5000-72"))
    assert line.split()[3:] == ["no", "no", "yes", "yes", "full-8bit-fused", "—", "4"]


def test_a_context_beyond_the_models_own_is_said(capsys):
    for context, is_said in (("4096", False), ("8192", True)):
        assert main(["fit", "--context", context, "--cards", "b200"]) == 0
        text = capsys.readouterr().out
        assert ("longer than the 4\u2009096 it was trained for" in text) is is_said


def test_the_article_is_corrected_where_a_user_would_rely_on_it(capsys):
    said = {}
    for words in ("", "--method qlora", "--model llama-2-7b"):
        assert main(["fit", *words.split(), "--cards", "rtx-pro-5000-72"]) == 0
        said[words] = "What holds: AdamW in mixed precision" in capsys.readouterr().out
    assert said == {"": True, "--method qlora": False, "--model llama-2-7b": False}


def test_a_card_whose_ecc_takes_memory_is_judged_with_it_too(capsys):
    words = "--model llama-2-7b --method full-bf16 --context 1024 --cards rtx-6000-ada,l40s"
    assert main(["fit", "--json", *words.split()]) == 0
    ada, l40s = json.loads(capsys.readouterr().out)["verdicts"]
    taken = ada["usable_bytes"] - ada["with_ecc"]["usable_bytes"]
    assert taken / 2**20 == pytest.approx(49140 / 16, abs=1)
    assert ada["with_ecc"]["headroom_bytes"] == ada["headroom_bytes"] - taken
    assert l40s["with_ecc"] is None
    assert main(["fit", *words.split()]) == 0
    assert capsys.readouterr().out.count("with ECC switched on") == 1


def test_an_id_that_ends_like_a_count_is_taken_whole(monkeypatch):
    cards = card_profiles()
    odd = {**cards, "my-gpu-2x4": cards["l40s"]}
    monkeypatch.setattr("heatsoak.profiles.cards.card_profiles", lambda: odd)
    found = parse_cards("rtx-pro-5000-72x4, l40s,my-gpu-2x4,my-gpu-2x4x2")
    assert [(card.id, n) for card, n in found] == [
        ("rtx-pro-5000-72", 4), ("l40s", 1), ("l40s", 1), ("l40s", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--cards rtx-pro-5000-7", "no card 'rtx-pro-5000-7'; did you mean rtx-pro-5000-72"),
        ("--cards rtx-5090x0", "rtx-5090x0: the number of cards must be 1 to 1024"),
        ("--cards ,", "no card ''; there is a100-pcie-80"),
        ("--model lama-2-13b", "did you mean llama-2-13b"),
        ("--shape layers=40", "--shape needs hidden="),
        ("--method full", "no --method 'full'; did you mean full-bf16"),
        ("--shard zero9", "no --shard 'zero9'; did you mean zero3"),
        ("--context 0", "context must be 1 or more"),
        ("--lora-rank 0 --method lora", "lora-rank must be 1 or more"),
        ("--model gpt2 --context 2048", "gpt2 has 1024 positions"),
        ("--screen", "no terminal for the screen"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, told, capsys):
    assert main(["fit", *words.split()]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom heatsoak_tui.cli import main\n"
        "try: main(['fit', '--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('yaml', 'textual', 'heatsoak.economics') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_cards_lists_every_profile(capsys):
    assert main(["cards"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines if line} >= set(card_profiles())
    (line,) = (line for line in lines if line.startswith("rtx-6000-ada"))
    assert "inline, ships off" in line
    assert main(["cards", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["cards"]) == len(card_profiles())
    (card,) = (one for one in document["cards"] if one["id"] == "rtx-5090")
    assert card["facts"]["street_2026_usd"]["as_of"] == "2026-06-25"
    assert card["ecc_kind"] == "on-die"


def test_a_reference_price_is_stale_after_90_days():
    card = card_profiles()["rtx-5090"]
    kinds = [one["kind"] for one in stale_prices(card, "2026-09-23")]
    assert kinds == ["launch price"]
    kinds = [one["kind"] for one in stale_prices(card, "2026-09-24")]
    assert kinds == ["launch price", "street price"]
    # A price of May was seen on its last day at the latest.
    dated = card_profiles()["rtx-4090"]
    assert len(stale_prices(dated, "2026-08-29")) == 1
    assert len(stale_prices(dated, "2026-08-30")) == 2


def test_the_check_prints_what_has_aged(capsys):
    assert main(["cards", "--check"]) == 0
    text = capsys.readouterr().out
    assert "reference prices are older than 90 days" in text
    (line,) = (one for one in text.splitlines() if one.startswith("rtx-5090") and "street" in one)
    assert line.split()[-1] == "2026-06-25"
