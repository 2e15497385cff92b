"""`heatsoak fit`: which cards hold a training, and what would fit the others."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from heatsoak.economics.training import Training
    from heatsoak.profiles.cards import CardProfile
    from heatsoak.profiles.models import ModelShape

ORDER = 65
HELP = "which cards hold a training, and what would fit the others"
DEFAULT_MODEL = "llama-2-13b"
MOST_CARDS = 1024
CORRECTION = "states-of-13b"
"""Of the archetypes' corrections, the one on the memory of a 13B model trained in full."""
MOST_13B = (12e9, 14e9)
MIXED_ADAMW = ("full-adamw", "full-adamw-fp32grad")
EPILOG = """\
methods: full-adamw (16 B a parameter), full-adamw-fp32grad (18), full-bf16 (8), full-8bit (6),
full-8bit-fused (4: fused into the backward pass), full-adafactor (4), full-offload (2, and 16 to 27
on the host), lora, qlora"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", metavar="NAME", help="such as llama-2-13b (default), qwen2.5-7b")
    which.add_argument(
        "--shape", metavar="NUMBERS",
        help="layers=40,hidden=5120,ffn=13824,heads=40,kv_heads=40,vocab=32000",
    )  # fmt: skip
    parser.add_argument("--method", default="full-adamw", help="default: full-adamw; see below")
    parser.add_argument("--lora-rank", type=int, metavar="R", help="default: 64, on every matrix")
    parser.add_argument(
        "--context", type=int, default=4096, metavar="TOKENS", help="tokens a sequence; 4096"
    )
    parser.add_argument(
        "--micro-batch", type=int, default=1, metavar="N", help="sequences a forward pass; 1"
    )
    parser.add_argument(
        "--checkpointing", choices=("on", "off"), default="on",
        help="recompute activations; on",
    )  # fmt: skip
    parser.add_argument(
        "--loss-chunks", type=int, default=1, metavar="N",
        help="pieces the loss is computed in; 1: all logits at once",
    )  # fmt: skip
    parser.add_argument("--compile", action="store_true", help="kernels fused by torch.compile")
    parser.add_argument(
        "--shard", help="none, ddp, zero1, zero2 or zero3 (FSDP); default: zero3 above one card"
    )
    parser.add_argument(
        "--cards", metavar="CARD[xN],...",
        help="such as rtx-pro-5000-72x4,rtx-5090; default: every profile at 1, 2, 4, 8",
    )  # fmt: skip
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="heatsoak-fit/1")
    how.add_argument("--screen", action="store_true", help="the matrix of models and cards")


def run(arguments: argparse.Namespace) -> int:
    """Plan, then print."""
    from heatsoak.economics.fit_report import fit_report
    from heatsoak.profiles.models import find_model, parse_shape
    from heatsoak_tui.cli.fit_text import fit_text
    from heatsoak_tui.cli.text import print_json

    training = training_of(arguments)
    shape: ModelShape
    if arguments.shape is not None:
        shape = parse_shape(arguments.shape)
    else:
        shape = find_model(arguments.model or DEFAULT_MODEL)
    if arguments.screen:
        return _show(shape, training)
    is_listed = arguments.cards is not None
    cards = parse_cards(arguments.cards) if is_listed else every_card()
    report = fit_report(shape, training, cards, is_sharded=arguments.shard is None)
    report["notes"] = corrections(shape, training)
    if arguments.json:
        print_json(report)
    else:
        print(fit_text(report, is_detailed=is_listed))
    return 0


def training_of(arguments: argparse.Namespace) -> Training:
    """The training of the command line.

    Raises:
        UsageError: a method or sharding there is not, or a number below 1.
    """
    from heatsoak.economics.training import DEFAULT_LORA_RANK, METHODS, SHARDS, Training

    return Training(
        method=_one_of("method", arguments.method, METHODS),
        context=arguments.context,
        micro_batch=arguments.micro_batch,
        checkpointing=arguments.checkpointing == "on",
        loss_chunks=arguments.loss_chunks,
        is_compiled=arguments.compile,
        shard=_one_of("shard", arguments.shard or "none", SHARDS),
        lora_rank=DEFAULT_LORA_RANK if arguments.lora_rank is None else arguments.lora_rank,
    )


def corrections(shape: ModelShape, training: Training) -> list[dict[str, str]]:
    """Where the article would be relied on for this training, and the evidence is against it."""
    from heatsoak.profiles.archetypes import archetypes

    if training.method not in MIXED_ADAMW or not MOST_13B[0] <= shape.parameters <= MOST_13B[1]:
        return []
    found = {
        one.id: {"says": one.says, "holds": one.holds, "evidence": one.evidence}
        for kind in archetypes().archetypes
        for one in kind.corrections
        if one.id == CORRECTION
    }
    return list(found.values())


def _one_of(option: str, value: str, allowed: Collection[Any]) -> Any:  # noqa: ANN401
    if value in allowed:
        return value
    raise UsageError(f"no --{option} {value!r}; {_near(value, allowed)}")


def _near(value: str, allowed: Iterable[str]) -> str:
    import difflib

    names = list(allowed)
    near = difflib.get_close_matches(value, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(names)}"


def parse_cards(words: str) -> list[tuple[CardProfile, int]]:
    """The cards of `rtx-pro-5000-72x4,rtx-5090`, each with how many.

    A whole id comes first: one that itself ends in x and digits is no count.

    Raises:
        UsageError: a card there is no profile of, or a number of cards that cannot be.
    """
    from heatsoak.profiles.cards import card_profiles

    profiles = card_profiles()
    found = []
    for word in (part.strip() for part in words.split(",")):
        if word in profiles:
            found.append((profiles[word], 1))
            continue
        match = re.fullmatch(r"(.+)x(\d+)", word)
        name, count = (match[1], int(match[2])) if match else (word, 1)
        if name not in profiles:
            raise UsageError(f"no card {name!r}; {_near(name, profiles)}")
        if not 1 <= count <= MOST_CARDS:
            raise UsageError(f"{word}: the number of cards must be 1 to {MOST_CARDS}")
        found.append((profiles[name], count))
    return found


def every_card() -> list[tuple[CardProfile, int]]:
    """Every profile whose memory is known, smallest memory first, at 1, 2, 4 and 8."""
    from heatsoak.economics.recipes import CARD_COUNTS
    from heatsoak.profiles.cards import card_profiles

    known = [card for card in card_profiles().values() if card.memory_total_bytes is not None]
    known.sort(key=lambda card: (card.memory_total_bytes or 0, card.id))
    return [(card, n) for card in known for n in CARD_COUNTS]


def _show(shape: ModelShape, training: Training) -> int:
    from heatsoak_tui.cli.watch import has_screen

    if not has_screen():
        raise UsageError("no terminal for the screen; `heatsoak fit` without --screen prints it")
    from heatsoak_tui.app import run_app
    from heatsoak_tui.screens.fit import FitScreen

    return run_app(opening=lambda: FitScreen(shape, training))
