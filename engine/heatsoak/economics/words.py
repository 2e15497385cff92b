"""Amounts and criteria in words, for the sentences of advice. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.economics.estimate import Estimate
    from heatsoak.profiles.archetypes import Criterion


def money(amount: float, currency: str, decimals: int | None = None) -> str:
    """`USD 3,790`, `USD 0.187`; digits after the point only below 100."""
    if decimals is None:
        decimals = 0 if abs(amount) >= 100 else 2 if abs(amount) >= 1 else 4
    return f"{currency} {amount:,.{decimals}f}"


def gib(count: float) -> str:
    """Bytes as `26.3 GiB`."""
    return f"{count / BYTES_PER_GIB:.1f} GiB"


def figure(estimate: Estimate) -> str:
    """`3.24 ± 0.01`; the interval to one significant digit, the figure to the same place."""
    mean, u95 = estimate.mean, estimate.u95
    if u95 is None or u95 == 0 or not math.isfinite(u95):
        return amount(mean) + (" (no interval)" if u95 is None else "")
    decimals = min(9, max(0, -math.floor(math.log10(u95))))
    return f"{mean:,.{decimals}f} ± {u95:,.{decimals}f}"


def amount(value: float) -> str:
    """Three significant digits below 100, whole above."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.{min(9, max(0, 2 - math.floor(math.log10(abs(value)))))}f}"


def criterion_unit(criterion: Criterion, unit: str | None, currency: str | None) -> str:
    """What a criterion is counted in: `tokens/s per USD`.

    Args:
        criterion: the criterion.
        unit: what the workload counts; None without a measurement.
        currency: of the prices; None without any.
    """
    units = unit or "units"
    coin = currency or "unit of money"
    return {
        "units_per_price": f"{units}/s per {coin}",
        "units_per_total": f"{units} per {coin} of price and energy",
        "units_per_joule": f"{units} per J",
        "rate": f"{units}/s",
        "set_price": "for all cards",
        "cards": "cards",
        "headroom_bytes": "GiB to spare a card",
        "memory_bytes": "GiB of memory",
    }[criterion]


CRITERION_WORDS: dict[Criterion, str] = {
    "units_per_price": "most sustained units per price",
    "units_per_total": "most units per price and energy",
    "units_per_joule": "most units per joule",
    "rate": "most units a second",
    "set_price": "lowest price of all cards",
    "cards": "fewest cards",
    "headroom_bytes": "most memory to spare",
    "memory_bytes": "most memory",
}
"""What a criterion looks for."""


def criterion_figure(criterion: Criterion, estimate: Estimate, currency: str | None) -> str:
    """The value of a criterion, without its unit."""
    if criterion in ("headroom_bytes", "memory_bytes"):
        return f"{estimate.mean / BYTES_PER_GIB:,.1f}"
    if criterion == "set_price":
        return money(estimate.mean, currency or "")
    return figure(estimate)


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
