"""Flip values are where the rule changes its mind: it is asked again on both sides of each."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from heatsoak.economics.archetypes import choose, without
from heatsoak.economics.estimate import Estimate
from heatsoak.economics.flip import (
    ENERGY_INPUTS,
    boundary,
    counting_energy,
    flips,
    last_whole,
    named_training,
    with_price,
)
from heatsoak.economics.offers import Energy, Measured, Needs, Offer, Price
from heatsoak.economics.reasons import flip_text
from heatsoak.profiles.archetypes import archetypes
from heatsoak.profiles.cards import card_profiles
from heatsoak.session.trainings import trainings
from heatsoak.units import BYTES_PER_GIB

CARDS = card_profiles()
KINDS = {kind.id: kind for kind in archetypes().archetypes}
LABELS = [kind.require.holds for kind in KINDS.values() if kind.require.holds]
NEEDS = Needs(trainings=trainings(LABELS))
ENERGY = Energy(0.187, "USD", 1.0, 3.0, 0.5)
STEP = 1e-6
"""How far beside a flip value the rule is asked, relative."""


def offer(card, rate, price, power_w=500.0, u95=0.002):
    measured = Measured(
        "measured", 1, (f"s:{card}",), "tokens", Estimate(rate, rate * u95), Estimate(power_w, 1.0),
        Estimate(power_w / rate, power_w / rate * 0.001), 20 * BYTES_PER_GIB,
    )  # fmt: skip
    invoice = None if price is None else Price(price, "USD", "2026-10-12")
    return Offer(card, CARDS[card].name, CARDS[card], measured, invoice)


def market(*offers):
    named = {one.card for one in offers}
    rest = (Offer(card, CARDS[card].name, CARDS[card]) for card in CARDS if card not in named)
    return (*offers, *rest)


def names(sets):
    return tuple(cards.label for cards in sets)


def asked_again(kind, offers, needs, flip, amount):
    """The rule with one input at another value, written out apart from the code under test."""
    name, _, card = flip.input.partition(":")
    if flip.counts_energy:
        kind = counting_energy(kind)
    if name == "price":
        return choose(kind, with_price(offers, card, amount), needs)
    if name in ENERGY_INPUTS:
        return choose(kind, offers, replace(needs, energy=replace(needs.energy, **{name: amount})))
    if name == "context":
        need = named_training(kind, needs)
        longer = replace(need, training=replace(need.training, context=round(amount)))
        return choose(
            kind, offers, replace(needs, trainings={**needs.trainings, need.label: longer})
        )
    return choose(kind, offers, replace(needs, **{name: amount}))


def check_both_sides(kind, offers, needs):
    """Every number among the flips of one rule; how many there were."""
    choice = choose(kind, offers, needs)
    counted = 0
    for flip in flips(kind, offers, needs, choice):
        if flip.value is None:
            continue
        now = choice
        if flip.counts_energy:
            now = choose(counting_energy(kind), offers, needs)
        if flip.input == "context":
            sides = flip.value, flip.value + 1
        else:
            sign = 1 if flip.side == "above" else -1
            sides = flip.value * (1 - sign * STEP), flip.value * (1 + sign * STEP)
        before, beyond = (asked_again(kind, offers, needs, flip, amount) for amount in sides)
        if flip.now is not None:
            assert before.key == now.key, flip
        assert beyond.key != now.key, flip
        assert names(beyond.recommended) == names(flip.then), flip
        counted += 1
    return counted


def test_every_flip_holds_on_both_sides_whatever_the_numbers():
    rng = random.Random(20261201)
    cards = ("rtx-5090", "rtx-4090", "rtx-pro-5000-72", "rtx-pro-6000-ws", "rtx-pro-5000-48")
    counted = 0
    for _ in range(40):
        picked = rng.sample(cards, rng.choice((2, 2, 3)))
        offers = market(
            *(
                offer(
                    card, math.exp(rng.uniform(8, 9.7)), math.exp(rng.uniform(7.3, 9.3)),
                    rng.uniform(200, 600), rng.choice((0.0, 0.001, 0.02)),
                )
                for card in picked
            )
        )  # fmt: skip
        needs = replace(
            NEEDS,
            energy=rng.choice((None, ENERGY)),
            musts=frozenset(rng.sample(("ecc", "isv", "support", "mig"), rng.choice((0, 0, 1)))),
        )
        for kind in ("perf-per-dollar", "regulated-it", "proven-48"):
            counted += check_both_sides(KINDS[kind], offers, needs)
    assert counted > 100


def test_budget_power_and_context_flip_where_they_say():
    offers = market(
        offer("rtx-5090", 9402.0, 2899.0, 561.0), offer("rtx-pro-5000-72", 8100.0, 6500.0, 299.0)
    )
    third = KINDS["full-13b"]
    needs = replace(NEEDS, budget=30000.0, power_w=2000.0)
    assert check_both_sides(third, offers, needs) >= 3
    found = {flip.input: flip for flip in flips(third, offers, needs, choose(third, offers, needs))}
    assert found["budget"].value == pytest.approx(4 * 6500.0, rel=1e-6)
    assert found["power_w"].value == pytest.approx(4 * 299.0, rel=1e-6)
    assert found["context"].value >= 4096


def test_the_price_at_which_a_card_loses_is_that_of_equal_units_per_price():
    exact = market(
        offer("rtx-5090", 9402.0, 2899.0, u95=0.0),
        offer("rtx-pro-6000-ws", 11000.0, 8565.0, u95=0.0),
    )
    kind = KINDS["perf-per-dollar"]
    found = flips(kind, exact, NEEDS, choose(kind, exact, NEEDS))
    by_card = {(flip.input, flip.side): flip for flip in found}
    above = by_card["price:rtx-5090", "above"]
    equal = 8565.0 * 9402.0 / 11000.0
    assert above.value == pytest.approx(equal, rel=1e-6)
    assert above.equal_at == pytest.approx(equal, rel=1e-6)
    assert names(above.then) == ("RTX PRO 6000 Blackwell Workstation Edition",)
    below = by_card["price:rtx-pro-6000-ws", "below"]
    assert below.value == pytest.approx(2899.0 * 11000.0 / 9402.0, rel=1e-6)
    text = flip_text(above, exact, "USD")
    assert text.startswith("GeForce RTX 5090 loses to RTX PRO 6000 Blackwell Workstation Edition")
    assert text.endswith(f" above USD {equal:,.0f} (now USD 2,899)")
    assert " wins below USD " in flip_text(below, exact, "USD")


def test_with_intervals_the_answer_changes_where_a_difference_is_no_longer_shown():
    kind = KINDS["perf-per-dollar"]
    offers = market(
        offer("rtx-5090", 9402.0, 2899.0, 561.0, u95=0.01),
        offer("rtx-pro-6000-ws", 11000.0, 8565.0, 560.0, u95=0.01),
    )
    found = flips(kind, offers, NEEDS, choose(kind, offers, NEEDS))
    (above,) = [f for f in found if (f.input, f.side) == ("price:rtx-5090", "above")]
    equal = 8565.0 * 9402.0 / 11000.0
    # Both intervals are 1 % wide: they touch where one mean is 0.99/1.01 of the other; between that
    # and the point of equality the joules decide, for the other card.
    assert above.value == pytest.approx(equal * 0.99 / 1.01, rel=1e-6)
    assert above.equal_at == pytest.approx(equal, rel=1e-6)
    assert "; equal at USD " in flip_text(above, offers, "USD")


def test_with_energy_counted_the_price_flips_where_the_cost_of_a_unit_is_equal():
    kind = KINDS["perf-per-dollar"]
    rates, powers, prices = (9402.0, 8100.0), (561.0, 299.0), (2899.0, 6500.0)
    offers = market(
        offer("rtx-5090", rates[0], prices[0], powers[0], u95=0.0),
        offer("rtx-pro-5000-72", rates[1], prices[1], powers[1], u95=0.0),
    )
    offers = tuple(
        replace(o, measured=replace(o.measured, joules_per_unit=Estimate(p / r, 0.0)))
        if o.measured else o
        for o, r, p in zip(offers, (*rates, *[0] * 99), (*powers, *[0] * 99), strict=False)
    )  # fmt: skip
    needs = replace(NEEDS, energy=ENERGY)
    found = flips(kind, offers, needs, choose(kind, offers, needs))
    (above,) = [
        f for f in found if f.counts_energy and (f.input, f.side) == ("price:rtx-5090", "above")
    ]
    # Written out: cost of a unit = price / units of three years at half time + J x $/J.
    seconds = 3 * 8760 * 0.5 * 3600
    per_joule = 0.187 / 3.6e6
    other = prices[1] / (rates[1] * seconds) + powers[1] / rates[1] * per_joule
    equal = (other - powers[0] / rates[0] * per_joule) * rates[0] * seconds
    assert above.value == pytest.approx(equal, rel=1e-6)
    assert equal < prices[1] * rates[0] / rates[1]  # The thirstier card may cost less.
    assert "with the energy at your price" in flip_text(above, offers, "USD")


def test_a_missing_price_says_below_which_it_would_win():
    kind = KINDS["perf-per-dollar"]
    offers = market(
        offer("rtx-5090", 9402.0, 2899.0, u95=0.0), offer("rtx-pro-6000-ws", 11000.0, None, u95=0.0)
    )
    choice = choose(kind, offers, NEEDS)
    assert choice.recommended == ()
    (flip,) = [f for f in flips(kind, offers, NEEDS, choice) if f.input.startswith("price:")]
    assert (flip.input, flip.side, flip.now) == ("price:rtx-pro-6000-ws", "below", None)
    assert flip.value == pytest.approx(2899.0 * 11000.0 / 9402.0, rel=1e-6)
    assert "(not entered)" in flip_text(flip, offers, "USD")
    won = choose(kind, with_price(offers, "rtx-pro-6000-ws", flip.value * (1 - STEP)), NEEDS)
    assert names(won.recommended) == names(flip.then)
    lost = choose(kind, with_price(offers, "rtx-pro-6000-ws", flip.value * (1 + STEP)), NEEDS)
    assert names(lost.recommended) == ("GeForce RTX 5090",)


def test_musts_flip_with_and_without():
    offers = market(
        offer("rtx-5090", 9402.0, 2899.0, 561.0), offer("rtx-pro-5000-72", 8100.0, 6500.0, 299.0)
    )
    first = KINDS["perf-per-dollar"]
    found = flips(first, offers, NEEDS, choose(first, offers, NEEDS))
    (flip,) = [f for f in found if f.input.startswith("must:")]
    assert (flip.input, flip.side) == ("must:ecc,isv,support,mig", "with")
    assert names(flip.then) == ("RTX PRO 5000 72GB Blackwell",)
    for must in ("ecc", "isv", "support", "mig"):
        changed = choose(first, offers, replace(NEEDS, musts=frozenset({must})))
        assert names(changed.recommended) == names(flip.then)
    second = KINDS["regulated-it"]
    found = flips(second, offers, NEEDS, choose(second, offers, NEEDS))
    (flip,) = [f for f in found if f.input.startswith("must:")]
    assert flip.side == "without"
    assert names(flip.then) == ("GeForce RTX 5090",)
    looser, needs = without(second, NEEDS, flip.input.removeprefix("must:").split(","))
    assert names(choose(looser, offers, needs).recommended) == names(flip.then)
    assert flip_text(flip, offers, "USD").startswith("without ECC, ISV-certified drivers")


def test_a_thriftier_way_to_train_flips_the_number_of_cards():
    offers = market(offer("rtx-pro-5000-72", 8100.0, 6500.0, 299.0))
    third = KINDS["full-13b"]
    choice = choose(third, offers, NEEDS)
    assert names(choice.recommended) == ("4 x RTX PRO 5000 72GB Blackwell",)
    found = [f for f in flips(third, offers, NEEDS, choice) if f.input.startswith("recipe:")]
    by_then = {names(flip.then): flip for flip in found}
    single = by_then["RTX PRO 5000 72GB Blackwell",]
    changed = choose(third, offers, replace(NEEDS, recipe=single.input.removeprefix("recipe:")))
    assert names(changed.recommended) == names(single.then)


@pytest.mark.parametrize("edge", [3.0, 17.7, 99.0])
def test_boundary_closes_in_on_an_edge_from_either_side(edge):
    up = boundary(lambda x: x >= edge, 1.0, 100.0)
    assert up[0] < edge <= up[1]
    assert up[1] - up[0] <= 2e-9 * edge
    down = boundary(lambda x: x > edge, 100.0, 1.0)
    assert down[1] <= edge < down[0]
    assert boundary(lambda _: 0, 1.0, 100.0) is None
    assert boundary(lambda x: x > 100.0, 1.0, 100.0) is None


def test_last_whole():
    assert last_whole(lambda n: n <= 5000, 4096, 1 << 20) == 5000
    assert last_whole(lambda n: n <= 4096, 4096, 1 << 20) == 4096
    assert last_whole(lambda _: True, 4096, 1 << 20) is None
    assert last_whole(lambda _: False, 4096, 1 << 20) is None
