"""What a session's figures mean in money, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak_tui.format import significant
from heatsoak_tui.widgets.money_words import (
    Row,
    assumed_words,
    figure_words,
    money_rows,
    price_words,
    reference_words,
    scaling_rows,
    spent_row,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LABEL, VALUE, DOUBT = 26, 14, 20


def money_lines(document: dict[str, Any]) -> list[str]:
    """The lines of the field `economics`; none where a document has it not."""
    economics = document["economics"]
    if economics is None:
        return []
    lines: list[str] = []
    if economics["problem"] is not None:
        lines += ["", f"! {economics['problem']}"]
    for entry in economics["jobs"]:
        labels = "".join(f"{label}  " for label in economics["labels"])
        prices = price_words(entry, has_days=True)
        lines += ["", f"money  {labels}{_cards(entry)}  {prices}", *_of_job(document, entry)]
    lines += _once(economics["jobs"])
    for idle in economics["idle"]:
        power = significant(idle["power_w"])
        lines.append(f"  idle beside it: {idle['name']} at {power} W, charged to none")
    return lines


def _of_job(document: dict[str, Any], entry: dict[str, Any]) -> Iterator[str]:
    if entry["reason"] is not None:
        yield f"  {entry['reason']}"
    else:
        per_watt = entry["units_per_s_per_w"]
        rows = money_rows(entry) + scaling_rows(document, entry)
        if per_watt is not None:
            rows.insert(1, Row(f"{entry['unit']}/s per W", *figure_words(per_watt)))
        for label, name in (("this run", "run"), ("one epoch", "epoch")):
            if entry[name] is not None:
                rows.append(spent_row(label, entry[name], entry["unit"]))
        for row in rows:
            value = (
                f"{row.value:>{VALUE}} {row.doubt:<{DOUBT}}" if row.is_known else f"{row.value} "
            )
            yield f"  {row.label:<{LABEL}}{value} {row.note}".rstrip()
        yield f"  assumed: {assumed_words(entry)}"


def _once(entries: list[dict[str, Any]]) -> list[str]:
    """What is missing of any job: of equal cards it is the same."""
    steady = [entry for entry in entries if entry["reason"] is None]
    unpriced = [entry for entry in steady if entry["units_per_s_per_price"] is None]
    references = (reference_words(entry) for entry in unpriced)
    found = [f"  for reference: {words}" for words in references if words]
    found += [f"  to enter: {needed}" for entry in steady for needed in entry["needed"]]
    return list(dict.fromkeys(found))


def _cards(entry: dict[str, Any]) -> str:
    return ", ".join(f"{n} x {card}" if n > 1 else card for card, n in entry["cards"].items())
