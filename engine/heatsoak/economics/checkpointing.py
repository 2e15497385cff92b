"""Faults: how often to write checkpoints, what is lost, and when error correction pays. Pure.

J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974);
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
Generation Computer Systems 22 (2006). First order: good while a checkpoint is far shorter than the
time between faults. Faults of several cards add: a job of N stops N times as often as one card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Faults:
    """What is known of the faults of one kind of card and of getting going again."""

    mtbf_h: float
    """Hours under load of one card between two faults that end a run."""
    detect_h: float
    """Until a fault is noticed."""
    restart_h: float
    """Until training goes on."""
    checkpoint_s: float
    """Training time one checkpoint costs."""


def interval_h(faults: Faults, cards: int) -> float:
    """The best time between two checkpoints: sqrt(2 C MTBF), hours (Young 1974, Daly 2006).

    Args:
        faults: of one card.
        cards: of the job.
    """
    cost_h = faults.checkpoint_s / SECONDS_PER_HOUR
    return math.sqrt(2 * cost_h * faults.mtbf_h / cards)


def lost_per_fault_h(faults: Faults, cards: int) -> float:
    """Hours one fault costs: detection, restart, and half an interval of work done again."""
    return faults.detect_h + faults.restart_h + interval_h(faults, cards) / 2


def lost_per_year_h(faults: Faults, cards: int, hours: float) -> float:
    """Hours a year that faults cost: rate x N x hours x (detect + restart + interval / 2).

    Args:
        faults: of one card.
        cards: of the job.
        hours: under load in a year.
    """
    return cards * hours / faults.mtbf_h * lost_per_fault_h(faults, cards)


@dataclass(frozen=True, slots=True)
class Premium:
    """How many more faults a cheaper card must have for a dearer one to pay."""

    amount: float
    """More paid for the dearer cards."""
    faults_per_1000_card_hours: float
    """Difference of the fault rates at which both cost the same; 0 where nothing more is paid."""
    mtbf_h: float
    """The same as hours between faults of the cheaper card: at less, the dearer card pays."""


def premium_pays(
    faults: Faults, cards: int, *, hours: float, per_hour: float, premium: float
) -> Premium | None:
    """The fault rate of the cheaper card at which a premium is earned back by fewer faults.

    With rates r a card-hour, N cards, H hours and v money an hour, faults cost
    L(r) = v H (N r d + sqrt(C N r / 2)), where d = detect + restart and each kind of card writes
    checkpoints at its own best interval. Solved for L(r) - L(r0) = premium, which is a quadratic
    in sqrt(N r).

    Args:
        faults: of the dearer card: its rate is r0.
        cards: of the job.
        hours: under load over the horizon, of the job.
        per_hour: what an hour lost costs.
        premium: more paid for the dearer cards, all of them.

    Returns:
        None where lost hours cost nothing: then no rate does.
    """
    rate = 1 / faults.mtbf_h
    if premium <= 0:
        return Premium(premium, 0.0, faults.mtbf_h)
    delay_h = faults.detect_h + faults.restart_h
    root = math.sqrt(faults.checkpoint_s / SECONDS_PER_HOUR / 2)
    if per_hour <= 0 or hours <= 0 or (delay_h <= 0 and root <= 0):
        return None
    lost = delay_h * cards * rate + root * math.sqrt(cards * rate) + premium / (per_hour * hours)
    if delay_h > 0:
        # The root of d x^2 + root x - lost without subtracting what is nearly equal.
        x = 2 * lost / (root + math.sqrt(root**2 + 4 * delay_h * lost))
    else:
        x = lost / root
    needed = x**2 / cards
    return Premium(premium, (needed - rate) * 1000, 1 / needed)
