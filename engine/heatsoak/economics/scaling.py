"""What another card adds. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.economics.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Point:
    """One job: the same recipe on so many equal cards."""

    cards: int
    rate: Estimate
    """Units a second, all cards together."""
    per_watt: Estimate | None = None
    """Units a second per watt of the cards it uses."""
    offloads: bool = False
    """Whether it kept part of its state on the host, which a larger job may not have to."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """One job against a single card."""

    cards: int
    efficiency: Estimate
    """T_N / (N T_1)."""
    marginal: Estimate
    """(T_N - T_M) / ((N - M) T_1) against the next smaller job, of M cards."""
    is_per_watt_rising: bool
    """Whether perf/W is shown to be above that of a smaller job, which wants an explanation."""
    is_single_offloaded: bool
    """Whether the single card had to offload: then the efficiency flatters."""


ARTICLE = (
    ("Blackwell-class", "0.91 to 0.97", None),
    ("RTX 6000 Ada", "0.94 to 0.95", "not verified elsewhere"),
    ("earlier consumer cards", "notably lower", None),
)
"""Efficiency of another card on PCIe in Workstation AI ROI Favors RTX PRO 5000 for 13B Fine-Tunes
and RTX 5090 for Perf-per-Dollar (2026): cards, figure, note. It depends on the workload: 0.66 to
0.97 are published for one and the same box."""


def scaled(points: Sequence[Point]) -> tuple[Scaled, ...]:
    """Efficiency of every job of more than one card; none without a job of a single card.

    The definition of strong or weak scaling efficiency as the article uses it: throughput of N
    cards over N times that of one (weak: each card keeps its micro-batch).

    Args:
        points: jobs of one recipe on one kind of card; of several of a size the first counts.
    """
    by_cards: dict[int, Point] = {}
    for point in points:
        by_cards.setdefault(point.cards, point)
    single = by_cards.get(1)
    if single is None or single.rate.mean <= 0:
        return ()
    found = []
    smaller = [single]
    for cards in sorted(n for n in by_cards if n > 1):
        point, last = by_cards[cards], smaller[-1]
        # A figure and itself are not independent: the single card is divided out first.
        gained = (
            point.rate / single.rate - 1.0
            if last is single
            else ((point.rate - last.rate) / single.rate)
        )
        found.append(
            Scaled(
                cards,
                point.rate / single.rate / float(cards),
                gained / float(cards - last.cards),
                any(_is_above(point.per_watt, other.per_watt) for other in smaller),
                single.offloads,
            )
        )
        smaller.append(point)
    return tuple(found)


def _is_above(one: Estimate | None, other: Estimate | None) -> bool:
    """Whether the intervals of 95 % lie apart; without one nothing is shown."""
    if one is None or other is None or one.u95 is None or other.u95 is None:
        return False
    return one.low > other.high
