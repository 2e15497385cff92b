"""What `heatsoak fit` prints for people."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from heatsoak.units import BYTES_PER_GIB
from heatsoak_tui.cli.text import printable, table
from heatsoak_tui.format import DASH, gibibytes, number

if TYPE_CHECKING:
    from collections.abc import Sequence

Data = dict[str, Any]
PARTS = ("weights", "gradients", "states", "activations", "logits", "temporaries")
TEXT_WIDTH = 100
RULE = (
    "Recipes stand in the order of what they give up: all weights before adapters, the optimizer\n"
    "on the card before the host, AdamW before Adafactor, more bytes of precision before fewer."
)


def fit_text(report: Data, *, is_detailed: bool) -> str:
    """The plan, its breakdown, a verdict per card, and what fits instead.

    Args:
        report: `fit_report`'s document.
        is_detailed: a paragraph for each card and count, as they were listed; else one line a card.
    """
    training, verdicts = report["training"], report["verdicts"]
    lines = [_headline(report), ""]
    first = verdicts[0]
    on = "one card" if first["n"] == 1 else f"each of {first['n']} cards, {first['shard']}"
    lines += [f"On {on}:", *breakdown_lines(first), ""]
    if is_detailed:
        for entry in verdicts:
            lines += [*_detail(entry, report["cards_needed"][entry["card"]]), ""]
        lines.append(RULE)
    else:
        lines += [_overview(verdicts, report["cards_needed"]), "", _legend(training)]
    for note in report["notes"]:
        lines += ["", f"The article says: {note['says']}"]
        lines += textwrap.wrap(f"What holds: {note['holds']} ({note['evidence']})", TEXT_WIDTH)
    return printable("\n".join(lines))


def _headline(report: Data) -> str:
    model, training = report["model"], report["training"]
    words = [
        f"{model['name']}: {number(model['parameters'] / 1e9, 2)} billion parameters",
        training["method"],
        f"context {training['context']}",
        f"micro-batch {training['micro_batch']}",
        f"checkpointing {'on' if training['checkpointing'] else 'off'}",
    ]
    if training["method"] in ("lora", "qlora"):
        words.append(f"rank {training['lora_rank']}")
    if training["loss_chunks"] > 1:
        words.append(f"loss in {training['loss_chunks']} chunks")
    if training["is_compiled"]:
        words.append("compiled")
    if model["max_context"] and training["context"] > model["max_context"]:
        words.append(f"longer than the {number(model['max_context'], 0)} it was trained for")
    if model["is_estimate"]:
        words.append("its layers are of two kinds: activations estimated")
    return ", ".join(words)


def breakdown_lines(entry: Data) -> list[str]:
    """What is held at each moment of a step in GiB, the worst marked."""
    moments = entry["moments"]
    rows = [("GiB", *(f"*{name}" if name == entry["peak_at"] else name for name in moments))]
    rows += [(part, *(_gib(parts[part]) for parts in moments.values())) for part in PARTS]
    rows.append(("together", *(_gib(sum(parts[p] for p in PARTS)) for parts in moments.values())))
    right = frozenset(range(1, len(moments) + 1))
    lines = [f"  {line}" for line in table(rows, right).splitlines()]
    reserve = gibibytes(entry["breakdown"]["reserve"], 0)
    lines.append(f"  * the peak; {reserve} more are kept for context, NCCL and fragments")
    if entry["host_bytes"]:
        lines.append(f"  and {host_words(entry['host_bytes'])} of the host's memory")
    return lines


def _gib(count: int) -> str:
    return number(count / BYTES_PER_GIB, 2) if count else DASH


def host_words(host: Sequence[int]) -> str:
    """`208 to 351 GB of host memory`."""
    low, high = (number(value / 1e9, 0) for value in host)
    return f"{low} to {high} GB"


def _detail(entry: Data, needed: int | None) -> list[str]:
    count = f"{entry['n']} x " if entry["n"] > 1 else ""
    shard = f", {entry['shard']}" if entry["n"] > 1 else ""
    head = (
        f"{count}{entry['card']}{shard}: {entry['verdict'].upper()}, peak "
        f"{gibibytes(entry['peak_bytes'])} of {gibibytes(entry['usable_bytes'])} usable, "
        f"{_left(entry['headroom_bytes'])}"
    )
    lines = [head]
    if (corrected := entry["with_ecc"]) is not None:
        usable = gibibytes(corrected["usable_bytes"])
        lines.append(f"  with ECC switched on {corrected['verdict']}: {usable} usable")
    if entry["largest_context"] is not None:
        lines.append(
            f"  largest context {number(entry['largest_context'], 0)}, "
            f"or largest micro-batch {number(entry['largest_micro_batch'], 0)}"
            if entry["largest_micro_batch"]
            else f"  largest context {number(entry['largest_context'], 0)}"
        )
    if entry["verdict"] == "no":
        enough = f"{needed} of them, sharded" if needed else "more than 8 of them"
        lines.append(f"  as asked it needs {enough}")
    rows = [
        (
            f"  {one['method']}{_changes(one)}",
            one["verdict"],
            gibibytes(one["peak_bytes"]),
            f"and {host_words(one['host_bytes'])} on the host" if one["host_bytes"] else "",
        )
        for one in entry["recipes"]
    ]
    if rows:
        lines += ["  what fits, least given up first:", *table(rows, frozenset({2})).splitlines()]
    else:
        lines.append("  nothing fits, not even QLoRA")
    return lines


def _changes(recipe: Data) -> str:
    chunks = recipe["loss_chunks"]
    return f", loss in {chunks} chunks" if chunks > 1 else ""


def _left(headroom: int) -> str:
    words = gibibytes(abs(headroom))
    return f"{words} left" if headroom >= 0 else f"{words} too much"


def _overview(verdicts: Sequence[Data], needed: dict[str, int | None]) -> str:
    counts = sorted({entry["n"] for entry in verdicts})
    rows = [
        ("card", "usable", *(f"x{n}" for n in counts), "one of them holds", "context", "needed")
    ]
    for card in dict.fromkeys(entry["card"] for entry in verdicts):
        own = {entry["n"]: entry for entry in verdicts if entry["card"] == card}
        one = own[min(own)]
        best = one["recipes"][0] if one["recipes"] else None
        rows.append(
            (
                card,
                gibibytes(one["usable_bytes"]),
                *(own[n]["verdict"] if n in own else DASH for n in counts),
                f"{best['method']}{_changes(best)}" if best else "nothing",
                number(one["largest_context"], 0),
                str(needed[card] or "more than 8"),
            )
        )
    return table(rows, frozenset({1, 3 + len(counts), 4 + len(counts)}))


def _legend(training: Data) -> str:
    share = "sharded as zero3" if training["shard"] == "none" else training["shard"]
    return (
        f"yes: fits; tight: under 5 % of the usable memory left; above one card {share}.\n"
        "context: the longest that fits one card as asked. needed: cards that hold it as asked.\n"
        f"{RULE}"
    )
