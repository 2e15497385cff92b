"""What `heatsoak cards` prints for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak_tui.cli.text import printable, table
from heatsoak_tui.format import DASH, gibibytes, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.profiles.cards import CardProfile

NOTES = """\
memory: as NVML reports it. TFLOPS: dense BF16, fp32 accumulate, nominal; measured: the largest
matrix products somebody measured. ECC: its kind, and how it ships; inline takes 1/16 of the memory
once it is on. launch $: what the vendor asked then. street $: what was seen in that month, never
what you pay: `heatsoak prices set`. `heatsoak cards --json` has every figure with its sources,
`heatsoak cards --check` the prices that have aged."""


def cards_text(cards: Sequence[CardProfile]) -> str:
    """One line a card, and what the columns mean."""
    rows: list[tuple[str, ...]] = [
        (
            "id", "memory", "GB/s", "W", "TFLOPS", "measured", "ECC", "MIG", "NVLink", "ISV",
            "launch $", "street $",
        )
    ]  # fmt: skip
    rows += [_row(card) for card in cards]
    return printable(f"{table(rows, frozenset({1, 2, 3, 4, 5, 7, 8, 10}))}\n\n{NOTES}")


def _row(card: CardProfile) -> tuple[str, ...]:
    own = "*" if card.provenance == "user" else ""
    return (
        card.id + own,
        gibibytes(card.memory_total_bytes),
        _scaled(card.bandwidth_bytes_per_s, 1e9),
        number(card.power_w, 0),
        _scaled(card.bf16_dense_flops, 1e12),
        _range(card.bf16_gemm_measured_flops, 1e12),
        _ecc(card),
        number(card.mig_max, 0),
        _scaled(card.nvlink_bytes_per_s, 1e9),
        {True: "yes", False: "no", None: DASH}[card.has_isv_drivers],
        number(card.launch_price_usd, 0),
        f"{_range(card.street_price_usd, 1.0)} {card.street_as_of or ''}".strip(),
    )


def _scaled(value: float | None, unit: float) -> str:
    return DASH if value is None else number(value / unit, 0)


def _range(pair: tuple[float, float] | None, unit: float) -> str:
    if pair is None:
        return DASH
    low, high = (number(end / unit, 0) for end in pair)
    return low if low == high else f"{low} to {high}"


def _ecc(card: CardProfile) -> str:
    ships = {True: ", ships on", False: ", ships off", None: ""}[card.ecc_ships_on]
    return f"{card.ecc_kind or DASH}{ships}"


def stale_text(stale: Sequence[dict[str, Any]], count: int) -> str:
    """A line for each reference price that has aged."""
    if not stale:
        return f"the reference prices of {count} cards are at most 90 days old"
    rows = [("card", "what", "US $", "as of")]
    for one in stale:
        price = one["price_usd"]
        low, high = price if isinstance(price, tuple) else (price, price)
        shown = _range((low, high), 1.0)
        rows.append((one["card"], one["kind"], shown, one["as_of"] or "not dated"))
    head = f"{len(stale)} reference prices are older than 90 days: enter your own invoice"
    return printable(f"{head}\n{table(rows, frozenset({2}))}")
