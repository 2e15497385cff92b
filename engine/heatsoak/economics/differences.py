"""Whether two sets of runs differ, and by how much. Pure.

A run says of itself how well it knows its own mean (the interval within the run). What it cannot
say is how much the next run of the same thing would differ: only repeats show that, and it is
usually more. So where there are repeats, the interval of a difference comes from the spread between
runs, by Student's t with the degrees of freedom there are, and is never narrower than what the runs
say of themselves. Where nothing was repeated, only the intervals within the runs are known.

The spread between runs is pooled over all configurations that were repeated (as in a two-sample t
test with equal variances; NIST/SEMATECH e-Handbook 1.3.5.3), relative to each mean where the
measure is a ratio scale: a card twice as fast may wander by twice as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Literal

from heatsoak.economics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""97.5 % quantile of Student's t for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook of
Statistical Methods, 1.3.6.7.2)."""

Sign = Literal["more", "less", "not shown"]


@dataclass(frozen=True, slots=True)
class Spread:
    """How much runs of one and the same configuration differ from each other."""

    sd: float
    """Standard deviation; a fraction of the mean where the measure is a ratio scale."""
    df: int
    """Degrees of freedom: repeats beyond the first, over all configurations."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """One measure of one configuration, over its runs."""

    estimate: Estimate
    """Mean of the runs; its interval is the wider of what follows from the two below."""
    n: int
    """Runs that have the measure."""
    within_u95: float | None
    """Half-width that follows from what the runs say of themselves; None: one of them does not."""
    between_sd: float | None
    """Standard deviation between the runs, in the unit of the measure; None for one run."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One configuration less another."""

    by: Estimate
    """A fraction of the other's mean on a ratio scale, else in the unit of the measure."""
    sign: Sign
    """`not shown`: 0 lies in the interval, or there is none."""
    basis: Literal["between", "within", "none"]
    """What the interval stands on: the spread between runs, or the runs' own word, or nothing."""


def t95(df: int) -> float:
    """Factor of a 95 % interval, two-sided.

    Args:
        df: degrees of freedom, at least 1. Between 30 and infinity the series of Cornish and Fisher
            is used, whose error is below 0.0001 there (Abramowitz and Stegun 26.7.5).

    Raises:
        ValueError: there are none.
    """
    if df < 1:
        raise ValueError("an interval needs one degree of freedom at least")
    if df <= len(_T95):
        return _T95[df - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)


def pool(runs: Sequence[Estimate]) -> Repeats:
    """The runs of one configuration as one.

    Raises:
        ValueError: there are none.
    """
    if not runs:
        raise ValueError("nothing to pool")
    n = len(runs)
    total = reduce(add, runs)
    mean = total.mean / n
    within = None if total.u95 is None else total.u95 / n
    if n == 1:
        return Repeats(runs[0], 1, within, None)
    sd = math.sqrt(sum((run.mean - mean) ** 2 for run in runs) / (n - 1))
    between = t95(n - 1) * sd / math.sqrt(n)
    # Runs that agree to the last digit say that it is too coarse, not that nothing varies.
    u95 = max(between, within or 0.0) or None
    return Repeats(Estimate(mean, u95), n, within, sd)


def spread(groups: Sequence[Repeats], *, is_ratio: bool) -> Spread | None:
    """The spread between runs, pooled over the configurations that have repeats; None: none has.

    Args:
        groups: one measure of each configuration.
        is_ratio: whether it is a ratio scale, on which spreads are relative.
    """
    squares, df = 0.0, 0
    for group in groups:
        scale = group.estimate.mean if is_ratio else 1.0
        if group.between_sd is not None and scale:
            squares += (group.n - 1) * (group.between_sd / scale) ** 2
            df += group.n - 1
    return Spread(math.sqrt(squares / df), df) if df else None


def difference(
    one: Repeats, other: Repeats, shared: Spread | None, *, is_ratio: bool
) -> Difference | None:
    """One configuration less another; None where the other's mean is 0 on a ratio scale.

    Args:
        one: what is held against the other.
        other: the reference.
        shared: the spread between runs of all configurations in the comparison.
        is_ratio: whether the measure is a ratio scale, on which the difference is a fraction.
    """
    if is_ratio and other.estimate.mean == 0:
        return None
    first, second = _own_word(one), _own_word(other)
    by = first / second - 1.0 if is_ratio else first - second
    basis: Literal["between", "within", "none"] = "none" if by.u95 is None else "within"
    if shared is not None and shared.sd > 0:
        factor = abs(first.mean / second.mean) if is_ratio else 1.0
        between = t95(shared.df) * shared.sd * math.sqrt(1 / one.n + 1 / other.n) * factor
        if by.u95 is None or between >= by.u95:
            by, basis = Estimate(by.mean, between), "between"
    return Difference(by, _sign(by), basis)


def _own_word(group: Repeats) -> Estimate:
    return Estimate(group.estimate.mean, group.within_u95)


def _sign(by: Estimate) -> Sign:
    if by.u95 is None or by.low <= 0 <= by.high:
        return "not shown"
    return "more" if by.mean > 0 else "less"
