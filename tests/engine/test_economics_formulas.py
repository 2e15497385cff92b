"""Every formula with worked numbers, and what must hold for any numbers."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from heatsoak.economics import checkpointing, cost, scaling, tco
from heatsoak.economics.checkpointing import Faults
from heatsoak.economics.estimate import Estimate, exact
from heatsoak.economics.formulas import FORMULAS
from heatsoak.economics.scaling import Point
from heatsoak.economics.tco import Ownership

SEED = 20261201


def approx(mean, u95):
    return pytest.approx(mean), pytest.approx(u95)


def parts_of(found):
    return found.mean, found.u95


# -- estimates -----------------------------------------------------------------------------------


def test_half_widths_add_in_quadrature():
    one, other = Estimate(100.0, 3.0), Estimate(50.0, 4.0)
    assert one + other == Estimate(150.0, 5.0)
    assert one - other == Estimate(50.0, 5.0)
    assert parts_of(one * other) == approx(5000.0, 5000 * math.hypot(0.03, 0.08))
    assert parts_of(one / other) == approx(2.0, 2 * math.hypot(0.03, 0.08))
    assert parts_of(Estimate(4.0, 0.1).inverse) == approx(0.25, 0.25 * 0.1 / 4)


def test_numbers_are_exact_and_signs_do_not_matter():
    assert Estimate(10.0, 1.0) * -2.0 == Estimate(-20.0, 2.0)
    assert 2.0 * Estimate(10.0, 1.0) + 1.0 == Estimate(21.0, 2.0)
    assert Estimate(10.0, 1.0) / -2.0 == Estimate(-5.0, 0.5)
    assert exact(3.0) / 2 == Estimate(1.5, 0.0)


@pytest.mark.parametrize("combine", [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
])  # fmt: skip
def test_an_interval_that_is_not_known_stays_so(combine):
    unknown, known = Estimate(2.0, None), Estimate(4.0, 0.1)
    assert combine(unknown, known).u95 is None
    assert combine(known, unknown).u95 is None
    assert (unknown.low, unknown.high) == (2.0, 2.0)


def test_propagation_agrees_with_drawing_numbers():
    """Against a Monte Carlo of the quotient; 95 % of a normal is 1.96 sigma."""
    rng = random.Random(SEED)
    rate, power = Estimate(9400.0, 94.0), Estimate(560.0, 11.2)
    drawn = sorted(
        rng.gauss(rate.mean, rate.u95 / 1.96) / rng.gauss(power.mean, power.u95 / 1.96)
        for _ in range(40_000)
    )
    half = (drawn[39_000] - drawn[1_000]) / 2
    assert (rate / power).u95 == pytest.approx(half, rel=0.03)


# -- ratios --------------------------------------------------------------------------------------


def test_perf_per_price_and_per_watt():
    rate = Estimate(9402.0, 38.0)
    assert parts_of(cost.per_price(rate, 2899.0)) == approx(9402 / 2899, 38 / 2899)
    found = cost.per_watt(rate, Estimate(561.0, 2.0))
    assert found.mean == pytest.approx(16.759, abs=0.001)
    assert found.u95 / found.mean == pytest.approx(math.hypot(38 / 9402, 2 / 561))
    joules = Estimate(0.0597, 0.0003)
    assert parts_of(cost.per_joule(joules)) == approx(1 / 0.0597, 3 / 597 / 0.0597)


def test_energy_of_a_million_units():
    """0.0597 J a token: 59 700 J a million, 0.016583 kWh, with PUE 1.54 0.025538 kWh."""
    joules = Estimate(0.0597, 0.0003)
    assert cost.kwh_per_million(joules, 1.0).mean == pytest.approx(0.0597 / 3.6)
    assert cost.kwh_per_million(joules, 1.54).mean == pytest.approx(0.0255383, rel=1e-5)
    paid = cost.energy_per_million(joules, 1.54, 0.187)
    assert parts_of(paid) == approx(0.00477567, 0.00477567 * 3 / 597)


def test_capital_of_a_million_units():
    """1000 a second, one year at half time: 15.768e9 units; (2000 x 0.8 + 100) / that x 1e6."""
    rate = Estimate(1000.0, 10.0)
    assert parts_of(cost.lifetime_units(rate, 1.0, 0.5)) == approx(15.768e9, 15.768e7)
    found = cost.capital_per_million(
        rate, 2000.0, residual_frac=0.2, support_per_year=100.0, years=1.0, utilisation_frac=0.5
    )
    assert parts_of(found) == approx(1700 / 15768, 1700 / 15768 * 0.01)


def test_an_epoch_and_a_run_to_its_target():
    """36 M units at 10 000 a second are an hour; at 0.1 J a unit 1 kWh; at 0.30 that is 0.30."""
    spent = cost.spent_on(36e6, Estimate(10_000.0, 100.0), Estimate(0.1, 0.001), 1.0, 0.30)
    assert parts_of(spent.seconds) == approx(3600.0, 36.0)
    assert parts_of(spent.kwh) == approx(1.0, 0.01)
    assert parts_of(spent.money) == approx(0.30, 0.003)
    run = cost.measured_spent(36e6, 3700.0, 7.2e6, 1.5, 0.2)
    assert (run.seconds.mean, run.kwh.mean) == (3700.0, pytest.approx(3.0))
    assert run.money.mean == pytest.approx(0.6)
    unknown = cost.measured_spent(36e6, 3700.0, None, 1.5, 0.2)
    assert unknown.kwh is unknown.money is None
    assert cost.spent_on(1.0, exact(1.0), exact(1.0), 1.0, None).money is None


# -- ownership -----------------------------------------------------------------------------------

OWNED = Ownership(
    price=3000.0, kwh_price=0.25, years=3.0, utilisation_frac=0.5, residual_frac=0.2, pue=1.5,
    active_w=Estimate(600.0, 6.0), idle_w=40.0, support_per_year=100.0, staff_per_year=50.0,
    downtime_per_load_hour=0.01,
)  # fmt: skip


def test_the_terms_of_a_total():
    """8.76 x (0.5 x 600 + 0.5 x 40) x 1.5 = 3942 + 262.8 kWh a year."""
    active, idle = tco.kwh_per_year(OWNED.active_w, 40.0, 0.5, 1.5)
    assert parts_of(active) == approx(3942.0, 39.42)
    assert parts_of(idle) == approx(262.8, 0.0)
    parts = tco.parts(OWNED)
    assert parts.residual.mean == -600.0
    assert parts.energy_active.mean == pytest.approx(3942 * 0.25 * 3)
    assert parts.energy_idle.mean == pytest.approx(262.8 * 0.75)
    assert (parts.support.mean, parts.staff.mean) == (300.0, 150.0)
    assert parts.downtime.mean == pytest.approx(0.01 * 8760 * 3 * 0.5)
    total = tco.total(OWNED)
    assert total.mean == pytest.approx(3000 - 600 + 2956.5 + 197.1 + 300 + 150 + 131.4)
    assert total.u95 == pytest.approx(39.42 * 0.75)


def test_what_a_million_units_cost_in_all():
    rate = Estimate(1000.0, 10.0)
    units = 1000 * 8760 * 3600 * 3 * 0.5
    assert tco.cost_per_million(OWNED, rate).mean == pytest.approx(
        tco.total(OWNED).mean / units * 1e6
    )


def test_idle_power_that_is_not_known_is_not_counted():
    assert tco.parts(replace(OWNED, idle_w=None)).energy_idle.mean == 0.0


def test_a_tornado_is_one_input_at_a_time_the_widest_first():
    swings = tco.tornado(OWNED)
    assert {swing.input for swing in swings} == set(tco.VARIED)
    assert [s.width for s in swings] == sorted((s.width for s in swings), reverse=True)
    by_name = {swing.input: swing for swing in swings}
    price = by_name["price"]
    assert (price.low_value, price.high_value) == pytest.approx((2400.0, 3600.0))
    assert price.at_high - price.at_low == pytest.approx(1200 * 0.8)
    residual = by_name["residual_frac"]
    assert residual.at_low - residual.at_high == pytest.approx(3000 * 0.08)


def test_shares_end_at_one():
    swings = tco.tornado(replace(OWNED, utilisation_frac=0.95))
    (found,) = (s for s in swings if s.input == "utilisation_frac")
    assert found.high_value == 1.0


def test_a_band_ends_at_corners_and_adds_what_was_measured():
    low = replace(OWNED, price=2400.0, kwh_price=0.2, utilisation_frac=0.4, residual_frac=0.24)
    high = replace(OWNED, price=3600.0, kwh_price=0.3, utilisation_frac=0.6, residual_frac=0.16)
    assert tco.band(OWNED) == pytest.approx((tco.total(low).low, tco.total(high).high))
    assert tco.total(low).u95 > 0


def test_cloud_break_even():
    """F = 3000 - 600 + 300 + 150 + idle 1.5 x 40 W all year; e = 560 W x 1.5 x 0.25."""
    fixed = 2850 + 8.76 * 40 * 1.5 * 0.25 * 3
    found = tco.cloud_break_even(OWNED, 0.71)
    assert found.hours == pytest.approx(fixed / (0.71 - 0.21))
    assert found.utilisation_frac == pytest.approx(found.hours / 26280)
    # At that share of the horizon owning costs what renting does.
    there = replace(OWNED, utilisation_frac=found.utilisation_frac, downtime_per_load_hour=0.0)
    assert tco.total(there).mean == pytest.approx(found.hours * 0.71)
    assert tco.cloud_break_even(OWNED, (600 - 40) / 1000 * 1.5 * 0.25) is None
    assert tco.cloud_break_even(OWNED, 0.1) is None


def _any_ownership(rng):
    return Ownership(
        price=rng.uniform(500, 40_000), kwh_price=rng.uniform(0.02, 0.6),
        years=rng.uniform(1, 6), utilisation_frac=rng.uniform(0.05, 1.0),
        residual_frac=rng.uniform(0, 0.9), pue=rng.uniform(1, 2),
        active_w=Estimate(rng.uniform(100, 700), rng.uniform(0, 20)),
        idle_w=rng.choice([None, rng.uniform(5, 90)]),
        support_per_year=rng.uniform(0, 500), staff_per_year=rng.uniform(0, 500),
        downtime_per_load_hour=rng.uniform(0, 0.2),
    )  # fmt: skip


def test_what_holds_for_any_ownership():
    rng = random.Random(SEED)
    for _ in range(300):
        owned = _any_ownership(rng)
        rate = Estimate(rng.uniform(10, 1e5), rng.uniform(0, 5))
        total, per_million = tco.total(owned), tco.cost_per_million(owned, rate)
        for of, point in ((tco.total, total),
                          (lambda o, r=rate: tco.cost_per_million(o, r), per_million)):  # fmt: skip
            low, high = tco.band(owned, of)
            assert low <= point.low <= point.mean <= point.high <= high
            for _ in range(5):  # Anything within 20 % is inside the band.
                moved = {n: getattr(owned, n) * rng.uniform(0.8, 1.2) for n in tco.VARIED}
                moved = {n: min(v, 1.0) if n.endswith("frac") else v for n, v in moved.items()}
                inside = of(replace(owned, **moved)).mean
                assert low * (1 - 1e-9) <= inside <= high * (1 + 1e-9)
        dearer = replace(owned, price=owned.price * 1.01)
        assert tco.total(dearer).mean > total.mean
        assert tco.cost_per_million(dearer, rate).mean > per_million.mean
        assert tco.total(replace(owned, kwh_price=owned.kwh_price * 1.01)).mean > total.mean
        busier = replace(owned, utilisation_frac=owned.utilisation_frac * 0.99)
        assert tco.cost_per_million(busier, rate).mean > per_million.mean
        k = rng.uniform(0.01, 150)  # Another currency: everything in money by the same factor.
        scaled = replace(
            owned, price=owned.price * k, kwh_price=owned.kwh_price * k,
            support_per_year=owned.support_per_year * k, staff_per_year=owned.staff_per_year * k,
            downtime_per_load_hour=owned.downtime_per_load_hour * k,
        )  # fmt: skip
        assert tco.total(scaled).mean == pytest.approx(total.mean * k)
        assert tco.band(scaled) == pytest.approx([end * k for end in tco.band(owned)])
        hour = rng.uniform(0.05, 4)
        one, other = tco.cloud_break_even(owned, hour), tco.cloud_break_even(scaled, hour * k)
        assert (one is None) == (other is None)
        if one is not None:
            assert other.hours == pytest.approx(one.hours)
            assert tco.cloud_break_even(dearer, hour).hours > one.hours


def test_ratios_are_monotone_in_price():
    rng = random.Random(SEED)
    for _ in range(200):
        rate, price = Estimate(rng.uniform(1, 1e5), rng.uniform(0, 10)), rng.uniform(100, 5e4)
        assert cost.per_price(rate, price * 1.1).mean < cost.per_price(rate, price).mean
        terms = {"residual_frac": rng.uniform(0, 0.9), "support_per_year": rng.uniform(0, 900),
                 "years": rng.uniform(1, 6), "utilisation_frac": rng.uniform(0.01, 1)}  # fmt: skip
        one = cost.capital_per_million(rate, price, **terms)
        assert cost.capital_per_million(rate, price * 1.1, **terms).mean > one.mean
        assert one.u95 / one.mean == pytest.approx(rate.u95 / rate.mean)


# -- faults --------------------------------------------------------------------------------------

FAULTS = Faults(mtbf_h=50_700.0, detect_h=0.5, restart_h=0.25, checkpoint_s=60.0)


def test_checkpoint_interval_of_young_and_daly():
    """sqrt(2 x 60 s x 50 700 h) = 147 988 s for one card; of 16 cards a quarter of it."""
    assert checkpointing.interval_h(FAULTS, 1) * 3600 == pytest.approx(
        math.sqrt(2 * 60 * 50_700 * 3600)
    )
    assert checkpointing.interval_h(FAULTS, 16) == pytest.approx(
        checkpointing.interval_h(FAULTS, 1) / 4
    )


def test_the_interval_is_the_best_one():
    """Overhead C / t + t / (2 M) is least at it."""
    best, cost_h, mtbf_h = checkpointing.interval_h(FAULTS, 8), 60 / 3600, 50_700 / 8

    def overhead(t):
        return cost_h / t + t / (2 * mtbf_h)

    assert all(overhead(best) < overhead(best * factor) for factor in (0.5, 0.9, 1.1, 2.0))


def test_hours_lost_a_year():
    """4 cards, 4380 h: 0.34556 faults, each 0.75 h and half an interval."""
    lost = checkpointing.lost_per_fault_h(FAULTS, 4)
    assert lost == pytest.approx(0.75 + checkpointing.interval_h(FAULTS, 4) / 2)
    assert checkpointing.lost_per_year_h(FAULTS, 4, 4380.0) == pytest.approx(
        4 * 4380 / 50_700 * lost
    )


def test_the_fault_rate_at_which_a_premium_pays():
    found = checkpointing.premium_pays(FAULTS, 4, hours=13_140.0, per_hour=100.0, premium=8000.0)
    assert found.mtbf_h < FAULTS.mtbf_h
    assert found.faults_per_1000_card_hours == pytest.approx(
        1000 / found.mtbf_h - 1000 / FAULTS.mtbf_h
    )
    # With that rate the cheaper card's faults cost exactly the premium more.
    worse = replace(FAULTS, mtbf_h=found.mtbf_h)
    more = checkpointing.lost_per_year_h(worse, 4, 13_140.0) - checkpointing.lost_per_year_h(
        FAULTS, 4, 13_140.0
    )
    assert more * 100.0 == pytest.approx(8000.0)


def test_premiums_at_the_edges():
    terms = {"hours": 13_140.0, "per_hour": 100.0}
    free = checkpointing.premium_pays(FAULTS, 4, premium=0.0, **terms)
    assert (free.faults_per_1000_card_hours, free.mtbf_h) == (0.0, FAULTS.mtbf_h)
    assert checkpointing.premium_pays(FAULTS, 4, hours=1.0, per_hour=0.0, premium=1.0) is None
    nothing = Faults(50_700.0, 0.0, 0.0, 0.0)
    assert checkpointing.premium_pays(nothing, 4, premium=1.0, **terms) is None
    rng = random.Random(SEED)
    for _ in range(200):
        faults = Faults(rng.uniform(100, 1e5), rng.choice([0.0, rng.uniform(0, 3)]),
                        rng.choice([0.0, rng.uniform(0, 3)]), rng.uniform(1, 900))  # fmt: skip
        cards, premium = rng.randint(1, 16), rng.uniform(10, 30_000)
        found = checkpointing.premium_pays(faults, cards, premium=premium, **terms)
        worse = replace(faults, mtbf_h=found.mtbf_h)
        lost = [checkpointing.lost_per_year_h(f, cards, terms["hours"]) for f in (worse, faults)]
        assert (lost[0] - lost[1]) * terms["per_hour"] == pytest.approx(premium)
        more = checkpointing.premium_pays(faults, cards, premium=premium * 1.1, **terms)
        assert more.faults_per_1000_card_hours > found.faults_per_1000_card_hours


# -- scaling -------------------------------------------------------------------------------------


def test_efficiency_and_what_the_last_cards_add():
    points = [Point(4, Estimate(3600.0, 36.0)), Point(1, Estimate(1000.0, 10.0)),
              Point(2, Estimate(1900.0, 19.0))]  # fmt: skip
    two, four = scaling.scaled(points)
    assert (two.cards, four.cards) == (2, 4)
    assert parts_of(two.efficiency) == approx(0.95, 0.95 * math.hypot(0.01, 0.01))
    assert parts_of(two.marginal) == approx(0.9, 1.9 * math.hypot(0.01, 0.01))
    assert four.efficiency.mean == pytest.approx(0.9)
    assert four.marginal.mean == pytest.approx((3600 - 1900) / 2000)
    assert not two.is_per_watt_rising
    assert not two.is_single_offloaded


def test_without_a_single_card_there_is_no_scaling():
    assert scaling.scaled([Point(2, exact(1900.0)), Point(4, exact(3600.0))]) == ()
    assert scaling.scaled([]) == ()


def test_perf_per_watt_that_rises_is_told():
    single = Point(1, exact(1000.0), Estimate(2.0, 0.05), offloads=True)
    for per_watt, is_rising in ((2.2, True), (2.08, False), (1.9, False)):
        (found,) = scaling.scaled([single, Point(2, exact(1900.0), Estimate(per_watt, 0.05))])
        assert found.is_per_watt_rising is is_rising
        assert found.is_single_offloaded
    unknown = Point(2, exact(1900.0), Estimate(9.0, None))
    assert not scaling.scaled([single, unknown])[0].is_per_watt_rising


def test_every_formula_says_where_it_is_from():
    assert all(f.title and f.formula and f.source for f in FORMULAS.values())
