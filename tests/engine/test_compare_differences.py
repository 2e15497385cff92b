"""Intervals of differences: numbers worked by hand, and how often they hold what they promise."""

from __future__ import annotations

import math
import random

import pytest

from heatsoak.economics.differences import Spread, difference, pool, spread, t95
from heatsoak.economics.estimate import Estimate


def t_below(t, df, steps=20_000):
    """Student's distribution function by Simpson's rule."""
    scale = math.gamma((df + 1) / 2) / (math.sqrt(df * math.pi) * math.gamma(df / 2))
    h = t / steps
    weights = (1 if i in (0, steps) else 4 if i % 2 else 2 for i in range(steps + 1))
    total = sum(
        w * (1 + (i * h) ** 2 / df) ** (-(df + 1) / 2) for i, w in enumerate(weights)
    )  # fmt: skip
    return 0.5 + scale * total * h / 3


@pytest.mark.parametrize("df", [1, 2, 3, 7, 14, 29, 30, 31, 50, 200])
def test_the_factor_leaves_a_fortieth_on_either_side(df):
    assert t_below(t95(df), df) == pytest.approx(0.975, abs=2e-5)


def test_no_freedom_no_factor():
    with pytest.raises(ValueError, match="one degree"):
        t95(0)


def test_one_run_says_only_what_it_says_of_itself():
    one = pool([Estimate(9402.0, 38.0)])
    assert (one.estimate, one.n, one.within_u95, one.between_sd) == (
        Estimate(9402.0, 38.0), 1, 38.0, None,
    )  # fmt: skip


def test_two_repeats_have_one_degree_of_freedom():
    """Means 100 and 102: sd 1.414, error of the mean 1, times 12.706."""
    both = pool([Estimate(100.0, 0.3), Estimate(102.0, 0.4)])
    assert both.between_sd == pytest.approx(math.sqrt(2))
    assert both.within_u95 == pytest.approx(0.25)
    assert both.estimate.mean == 101.0
    assert both.estimate.u95 == pytest.approx(12.706)


def test_repeats_that_agree_by_chance_are_no_better_than_they_say():
    both = pool([Estimate(100.0, 3.0), Estimate(100.001, 4.0)])
    assert both.estimate.u95 == pytest.approx(2.5)


def test_repeats_that_agree_to_the_digit_without_an_interval_have_none():
    both = pool([Estimate(600.0, None), Estimate(600.0, None)])
    other = pool([Estimate(610.0, None), Estimate(610.0, None)])
    shared = spread([both, other], is_ratio=False)
    found = difference(other, both, shared, is_ratio=False)
    assert both.estimate.u95 is None
    assert (found.by, found.sign, found.basis) == (Estimate(10.0, None), "not shown", "none")


def test_single_runs_are_held_apart_by_their_own_intervals():
    """1.023069 times 0.4353 % and 0.4042 % in quadrature."""
    found = difference(
        pool([Estimate(9402.0, 38.0)]), pool([Estimate(9190.0, 40.0)]), None, is_ratio=True
    )
    assert found.by.mean == pytest.approx(0.023069, abs=1e-6)
    assert found.by.u95 == pytest.approx(0.0060767, abs=1e-6)
    assert (found.sign, found.basis) == ("more", "within")


def test_with_repeats_the_spread_between_runs_counts():
    """Both sides wander by 1 % (sd): t of 2 df, 4.303 x 0.01 x sqrt(1/2 + 1/2) x 1.05."""
    step = 1 / math.sqrt(2)
    a = pool([Estimate(100 - step, 0.1), Estimate(100 + step, 0.1)])
    b = pool([Estimate(105 - 1.05 * step, 0.1), Estimate(105 + 1.05 * step, 0.1)])
    shared = spread([a, b], is_ratio=True)
    assert (shared.sd, shared.df) == (pytest.approx(0.01), 2)
    found = difference(b, a, shared, is_ratio=True)
    assert found.by.u95 == pytest.approx(4.303 * 0.01 * 1.05)
    assert (found.by.mean, found.basis) == (pytest.approx(0.05), "between")
    assert found.sign == "more"
    assert difference(a, b, shared, is_ratio=True).sign == "less"


def test_a_single_run_borrows_the_spread_of_what_was_repeated():
    a = pool([Estimate(x, 0.01) for x in (99.0, 100.0, 101.0)])
    found = difference(
        pool([Estimate(102.0, 0.01)]), a, spread([a], is_ratio=True), is_ratio=True
    )  # fmt: skip
    assert found.by.u95 == pytest.approx(4.303 * 0.01 * math.sqrt(4 / 3) * 1.02)
    assert found.sign == "not shown"  # The runs' own word alone would have called it faster.


def test_degrees_are_held_apart_in_degrees():
    found = difference(
        pool([Estimate(74.0, 0.3)]), pool([Estimate(70.0, 0.4)]), None, is_ratio=False
    )
    assert found.by == Estimate(4.0, 0.5)


def test_a_difference_from_nothing_is_no_share():
    zero, one = pool([Estimate(0.0, 0.0)]), pool([Estimate(1.0, 0.1)])
    assert difference(one, zero, None, is_ratio=True) is None


def simulated(seed, *, repeats, true, between, within):
    rng = random.Random(seed)

    def side(mean):
        runs = []
        for _ in range(repeats):
            own = rng.gauss(mean, between * mean)
            runs.append(Estimate(rng.gauss(own, within * mean), 1.96 * within * mean))
        return pool(runs)

    a, b = side(100.0), side(100.0 * (1 + true))
    return difference(b, a, spread([a, b], is_ratio=True), is_ratio=True)


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_intervals_of_repeats_hold_the_truth_in_95_of_100(repeats):
    tries = 2000
    found = [
        simulated(seed, repeats=repeats, true=0.02, between=0.01, within=0.002)
        for seed in range(tries)
    ]
    held = sum(one.by.low <= 0.02 <= one.by.high for one in found) / tries
    assert 0.94 <= held <= 0.965


def test_the_runs_own_word_would_not_hold_it():
    """Why repeats count: by the intervals within runs alone most differences would be wrong."""
    tries, held = 1000, 0
    for seed in range(tries):
        one = simulated(seed, repeats=1, true=0.0, between=0.01, within=0.002)
        assert one.basis == "within"
        held += one.sign == "not shown"
    assert held / tries < 0.5


def test_no_spread_between_runs_two_alike_and_a_planted_difference():
    """Single runs that wander no more than they say: 2 % is found, alike is alike."""
    alike = [simulated(s, repeats=1, true=0.0, between=0.0, within=0.002) for s in range(1000)]
    apart = [simulated(s, repeats=1, true=0.02, between=0.0, within=0.002) for s in range(1000)]
    assert 0.93 <= sum(one.sign == "not shown" for one in alike) / 1000 <= 0.97
    assert sum(one.sign == "more" for one in apart) / 1000 >= 0.99


def test_the_wider_interval_stands():
    """A lucky spread does not make a difference finer than the runs say they know themselves."""
    one, other = pool([Estimate(101.0, 1.0)]), pool([Estimate(100.0, 1.0)])
    found = difference(one, other, Spread(1e-6, 2), is_ratio=True)
    assert found.basis == "within"
    assert found.by.u95 > 0.01
