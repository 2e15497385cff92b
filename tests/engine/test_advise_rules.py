"""The rules of advice, on numbers: who is recommended what, and on which evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.economics.advice import advise, document
from heatsoak.economics.archetypes import choose
from heatsoak.economics.estimate import Estimate
from heatsoak.economics.offers import Energy, Measured, Needs, Offer, Price
from heatsoak.economics.rules import MUST_WORDS, ecc_of, is_shown_better
from heatsoak.profiles.archetypes import CRITERIA, MUSTS, archetypes
from heatsoak.profiles.cards import card_profiles
from heatsoak.session.trainings import trainings
from heatsoak.units import BYTES_PER_GIB

CARDS = card_profiles()
KINDS = {kind.id: kind for kind in archetypes().archetypes}
LABELS = [kind.require.holds for kind in KINDS.values() if kind.require.holds]
NEEDS = Needs(trainings=trainings(LABELS))
ENERGY = Energy(0.187, "USD", 1.0, 3.0, 0.5)


def offer(card, rate=None, price=None, *, u95=0.004, power_w=500.0, n=1, **more):
    """A card: measured where it has a rate (`u95` relative to it), priced where it has a price."""
    measured = None
    if rate is not None:
        measured = Measured(
            "measured", n, (f"s-{card}:0",), "tokens", Estimate(rate, rate * u95),
            Estimate(power_w, 1.0), Estimate(power_w / rate, power_w / rate * 0.001),
            more.pop("memory_used_bytes", 20 * BYTES_PER_GIB), **more,
        )  # fmt: skip
    invoice = None if price is None else Price(price, "USD", "2026-10-12")
    return Offer(card, CARDS[card].name, CARDS[card], measured, invoice)


def market(*offers):
    """These cards, and every other one unmeasured."""
    named = {one.card for one in offers}
    return (*offers, *(offer(card) for card in CARDS if card not in named))


ARTICLE = market(
    offer("rtx-5090", 9402.0, 2899.0, power_w=561.0),
    offer("rtx-pro-5000-72", 8100.0, 6500.0, power_w=299.0),
)
"""The two cards of the article, with invoices."""


def labels(choice):
    return [cards.label for cards in choice.recommended]


def test_the_articles_answers_for_its_first_three_buyers():
    first = choose(KINDS["perf-per-dollar"], ARTICLE, NEEDS)
    assert (first.basis, labels(first)) == ("measured", ["GeForce RTX 5090"])
    second = choose(KINDS["regulated-it"], ARTICLE, NEEDS)
    assert (second.basis, labels(second)) == ("measured", ["RTX PRO 5000 72GB Blackwell"])
    third = choose(KINDS["full-13b"], ARTICLE, NEEDS)
    assert (third.basis, labels(third)) == ("measured", ["4 x RTX PRO 5000 72GB Blackwell"])


def test_who_was_not_measured_is_a_reference_and_never_ranked():
    fourth = choose(KINDS["strong-scaling"], ARTICLE, NEEDS)
    assert fourth.basis == "reference"
    assert labels(fourth) == ["H100 SXM5 80GB", "H200 SXM 141GB"]
    assert fourth.steps == ()
    fifth = choose(KINDS["proven-48"], ARTICLE, NEEDS)
    assert (fifth.basis, labels(fifth)) == ("reference", ["RTX 6000 Ada Generation"])
    assert "RTX PRO 5000 Blackwell (48 GB)" in [cards.label for cards in fifth.also]


def test_a_measured_card_outranks_a_reference():
    offers = market(offer("rtx-pro-5000-48", 8000.0, 4500.0))
    fifth = choose(KINDS["proven-48"], offers, NEEDS)
    assert (fifth.basis, labels(fifth)) == ("measured", ["RTX PRO 5000 Blackwell (48 GB)"])


def test_intervals_that_overlap_show_no_difference_and_the_next_criterion_decides():
    near = market(
        offer("rtx-5090", 9400.0, 3000.0, power_w=560.0, u95=0.01),
        offer("rtx-4090", 6200.0, 1990.0, power_w=430.0, u95=0.01),
    )
    choice = choose(KINDS["perf-per-dollar"], near, NEEDS)
    assert [step.outcome for step in choice.steps] == ["no difference shown", "decides"]
    assert choice.steps[1].criterion == "units_per_joule"
    assert labels(choice) == ["GeForce RTX 5090"]
    sure = market(*(replace_u95(one, 0.0001) for one in near if one.measured))
    assert [s.outcome for s in choose(KINDS["perf-per-dollar"], sure, NEEDS).steps] == ["decides"]


def replace_u95(one, relative):
    rate = one.measured.rate_per_s.mean
    measured = replace(one.measured, rate_per_s=Estimate(rate, rate * relative))
    return replace(one, measured=measured)


def test_without_any_difference_all_of_them_are_recommended():
    twins = market(
        offer("rtx-5090", 6000.0, 3000.0, power_w=400.0),
        offer("rtx-4090", 6000.0, 3000.0, power_w=400.0),
    )
    choice = choose(KINDS["perf-per-dollar"], twins, NEEDS)
    assert {step.outcome for step in choice.steps} == {"no difference shown"}
    assert labels(choice) == ["GeForce RTX 5090", "GeForce RTX 4090"]


@pytest.mark.parametrize(
    ("one", "other", "criterion", "is_better"),
    [
        (Estimate(10, 1), Estimate(7, 1), "rate", True),
        (Estimate(10, 1), Estimate(8, 1), "rate", False),
        (Estimate(10, None), Estimate(1, 0), "rate", False),
        (Estimate(10, 0), Estimate(1, None), "rate", False),
        (Estimate(7, 0), Estimate(10, 0), "set_price", True),
        (Estimate(10, 0), Estimate(7, 0), "set_price", False),
        (Estimate(7, 0), Estimate(7, 0), "set_price", False),
    ],
)
def test_shown_better_means_intervals_apart(one, other, criterion, is_better):
    assert is_shown_better(one, other, criterion) is is_better


def test_without_prices_nothing_is_ranked_per_price_and_it_says_what_to_enter():
    offers = market(offer("rtx-5090", 9402.0), offer("rtx-pro-5000-72", 8100.0))
    first, second, third, *_ = advise(list(KINDS.values()), offers, NEEDS)
    assert first.card == "none"
    assert "heatsoak prices set rtx-5090 --invoice" in first.why
    assert "heatsoak prices set rtx-pro-5000-72 --invoice" in first.why
    assert first.choice.lacking == "units_per_price"
    # What needs no price is answered all the same.
    assert second.card == "RTX PRO 5000 72GB Blackwell"
    assert third.card == "4 x RTX PRO 5000 72GB Blackwell"
    assert "USD" not in first.glance


def test_a_must_of_the_buyer_counts_for_everybody():
    needs = replace(NEEDS, musts=frozenset({"ecc"}))
    first = choose(KINDS["perf-per-dollar"], ARTICLE, needs)
    assert labels(first) == ["RTX PRO 5000 72GB Blackwell"]
    failed = first.candidates[0].missed
    assert [(clause.name, clause.is_yours) for clause in failed] == [("ecc", True)]
    assert failed[0].evidence[0].provenance == "reference"
    assert "notebookcheck" in failed[0].evidence[0].source.lower()


def test_what_is_not_known_is_a_question_and_no_yes():
    offers = market(offer("l40s", 5000.0, 8500.0))
    choice = choose(KINDS["perf-per-dollar"], offers, replace(NEEDS, musts=frozenset({"isv"})))
    assert choice.candidates[0].is_fit is None
    assert [clause.name for clause in choice.candidates[0].unknown] == ["isv"]
    assert choice.recommended == ()


def test_a_card_without_a_profile_can_be_ranked_but_meets_no_must():
    unknown = replace(offer("rtx-5090", 9000.0, 2000.0), card="Odd Card", name="Odd", profile=None)
    offers = market(unknown)
    assert labels(choose(KINDS["perf-per-dollar"], offers, NEEDS)) == ["Odd"]
    assert choose(KINDS["regulated-it"], offers, NEEDS).basis == "reference"


def test_a_spoiled_measurement_is_shown_and_not_ranked():
    offers = market(
        offer("rtx-5090", 9402.0, 2899.0, spoiled="the workload does not load it fully"),
        offer("rtx-pro-5000-72", 8100.0, 6500.0),
    )
    choice = choose(KINDS["perf-per-dollar"], offers, NEEDS)
    assert labels(choice) == ["RTX PRO 5000 72GB Blackwell"]
    assert choice.candidates[0].cards.offer.card == "rtx-5090"


def test_one_card_says_nothing_of_four():
    needs = replace(NEEDS, recipe="13b-full@4096")
    second = choose(KINDS["regulated-it"], ARTICLE, needs)
    (cards,) = second.recommended
    assert cards.n == 4
    assert cards.measured is None  # So no rate of four is made up.
    assert cards.price == 4 * 6500.0


def test_a_job_of_several_cards_is_ranked_by_all_of_them():
    offers = market(
        offer("rtx-5090", 36000.0, 2899.0, power_w=2200.0, n=4),
        offer("rtx-pro-5000-72", 31000.0, 6500.0, power_w=1190.0, n=4),
    )
    kind = replace(
        KINDS["perf-per-dollar"], require=replace(KINDS["perf-per-dollar"].require, cards_at_most=4)
    )
    choice = choose(kind, offers, NEEDS)
    assert labels(choice) == ["4 x GeForce RTX 5090"]
    assert choice.steps[0].values[0][1].mean == pytest.approx(36000.0 / (4 * 2899.0))
    # The shipped rule takes one card, and four together do not say what one does.
    (first,) = advise([KINDS["perf-per-dollar"]], offers, NEEDS)
    assert first.choice.recommended == ()
    assert "4 GeForce RTX 5090 were measured together, which says little of 1" in first.why


def test_a_budget_and_a_power_envelope_are_held_against_all_cards():
    third = KINDS["full-13b"]
    assert labels(choose(third, ARTICLE, replace(NEEDS, budget=26000.0)))
    assert choose(third, ARTICLE, replace(NEEDS, budget=25999.0)).recommended == ()
    assert labels(choose(third, ARTICLE, replace(NEEDS, power_w=1196.0)))
    changed = choose(third, ARTICLE, replace(NEEDS, power_w=1195.0))
    assert "rtx-pro-5000-72" not in {cards.offer.card for cards in changed.recommended}


def test_thirteen_billion_parameters_in_full_on_no_single_card_of_the_article():
    choice = choose(KINDS["full-13b"], ARTICLE, NEEDS)
    by_card = {c.cards.offer.card: c for c in choice.candidates}
    assert by_card["rtx-pro-5000-48"].is_fit is False
    assert by_card["rtx-6000-ada"].is_fit is False
    assert by_card["rtx-pro-6000-ws"].cards.n == 4
    (clause,) = [c for c in by_card["rtx-6000-ada"].clauses if c.name == "holds"]
    assert clause.evidence[0].provenance == "planned"
    assert "does not fit" in clause.text


def test_a_reference_holds_the_measured_workload_if_its_memory_does():
    offers = market(offer("rtx-5090", 9402.0, 2899.0, memory_used_bytes=25 * BYTES_PER_GIB))
    choice = choose(KINDS["perf-per-dollar"], offers, NEEDS)
    fit = {c.cards.offer.card: c.is_fit for c in choice.candidates}
    assert fit["rtx-4090"] is False
    assert fit["rtx-pro-4500"] is True


def test_inline_ecc_that_must_be_on_takes_its_part_of_the_memory():
    most = CARDS["rtx-6000-ada"].memory_total_bytes
    measured = offer("rtx-pro-6000-ws", 9000.0, 8565.0, memory_used_bytes=most - BYTES_PER_GIB)
    fifth = KINDS["proven-48"]
    assert labels(choose(fifth, market(measured), NEEDS)) == ["RTX 6000 Ada Generation"]
    with_ecc = choose(fifth, market(measured), replace(NEEDS, musts=frozenset({"ecc"})))
    assert labels(with_ecc) == ["RTX PRO 5000 Blackwell (48 GB)"]  # Its ECC takes no memory.


def test_a_training_is_planned_in_the_memory_that_ecc_leaves():
    def usable(needs):
        choice = choose(KINDS["full-13b"], ARTICLE, needs)
        return {c.cards.offer.card: c.cards.plan.usable_bytes for c in choice.candidates}

    off, on = usable(NEEDS), usable(replace(NEEDS, musts=frozenset({"ecc"})))
    ada, pro = CARDS["rtx-6000-ada"], "rtx-pro-5000-48"
    assert off["rtx-6000-ada"] - on["rtx-6000-ada"] == pytest.approx(ada.memory_total_bytes / 16)
    assert off[pro] == on[pro]


def test_what_was_not_measured_would_have_to_be_shown_better_at_its_reference_price():
    (first,) = advise([KINDS["perf-per-dollar"]], ARTICLE, NEEDS)
    others = {one.cards.offer.card: one for one in first.others}
    assert "rtx-5090" not in others
    pro = others["rtx-pro-6000-ws"]
    assert pro.price == CARDS["rtx-pro-6000-ws"].street_price_usd
    assert pro.price_words == "street price of 2026-04-06"
    most = 9402 * 1.004 / 2899  # The upper end of what is to be beaten.
    assert pro.rate_needed == pytest.approx((most * pro.price[0], most * pro.price[1]))
    assert others["rtx-5000-ada"].price is None
    prices = [one.price[0] for one in first.others if one.price]
    assert prices == sorted(prices)
    euro = tuple(
        replace(o, price=replace(o.price, currency="EUR")) if o.price else o for o in ARTICLE
    )
    (first,) = advise([KINDS["perf-per-dollar"]], euro, NEEDS)
    assert all(one.price is None for one in first.others)  # References are in USD.


def test_energy_is_counted_only_when_all_of_it_was_entered():
    far = market(
        offer("rtx-5090", 5000.0, 1000.0, power_w=575.0),
        offer("rtx-pro-4500", 4700.0, 1010.0, power_w=200.0),
    )
    (without, *_) = advise([KINDS["perf-per-dollar"]], far, NEEDS)
    assert without.card == "GeForce RTX 5090"
    assert not any("energy counted" in text for text in without.constraints)
    (counted, *_) = advise([KINDS["perf-per-dollar"]], far, replace(NEEDS, energy=ENERGY))
    assert counted.card == "GeForce RTX 5090"
    assert "the answer would be RTX PRO 4500 Blackwell" in counted.constraints[0]


def test_what_was_measured_with_ecc_off_is_said():
    offers = market(offer("rtx-pro-5000-72", 8100.0, 6500.0, ecc_is_on=False))
    (second,) = advise([KINDS["regulated-it"]], offers, NEEDS)
    assert second.card == "RTX PRO 5000 72GB Blackwell"
    assert any("ECC off; switch it on and soak again" in text for text in second.constraints)
    (row,) = [row for row in second.checklist if row.id == "ecc"]
    assert row.mark == "attention"
    on = market(offer("rtx-pro-5000-72", 8100.0, 6500.0, ecc_is_on=True))
    (second,) = advise([KINDS["regulated-it"]], on, NEEDS)
    assert not any("ECC off;" in text for text in second.constraints)
    (row,) = [row for row in second.checklist if row.id == "ecc"]
    assert (row.mark, row.provenance) == ("seen", "measured")


@pytest.mark.parametrize(
    ("card", "can", "ships_on"),
    [
        ("rtx-4090", True, False), ("rtx-5080", False, None), ("rtx-5090", False, None),
        ("rtx-5000-ada", True, False), ("rtx-6000-ada", True, False), ("rtx-pro-4500", True, None),
        ("rtx-pro-5000-48", True, False), ("rtx-pro-5000-72", True, False),
        ("rtx-pro-6000-ws", True, False), ("l40s", True, True), ("a100-pcie-80", True, True),
        ("a100-sxm-80", True, True), ("h100-pcie", True, True), ("h100-sxm", True, True),
        ("h200-sxm", True, True), ("b200", True, True),
    ],
)  # fmt: skip
def test_ecc_of_every_shipped_card(card, can, ships_on):
    assert ecc_of(CARDS[card]) == (can, ships_on)


def test_every_must_and_criterion_has_words():
    from heatsoak.economics.words import CRITERION_WORDS, criterion_unit

    assert set(MUST_WORDS) == set(MUSTS)
    assert set(CRITERION_WORDS) == set(CRITERIA)
    assert all(criterion_unit(name, "tokens", "USD") for name in CRITERIA)


def test_the_document_says_on_what_it_stands():
    advice = advise(list(KINDS.values()), ARTICLE, replace(NEEDS, energy=ENERGY))
    first, second, third, fourth, _ = (document(one) for one in advice)
    assert first["recommended"][0]["provenance"] == "measured"
    assert first["ranking"][0]["outcome"] == "decides"
    assert first["ranking"][0]["values"][0]["mean"] == pytest.approx(9402 / 2899)
    assert first["article"]["text"].endswith("The same here, by your measurement.")
    assert [c["card"] for c in first["candidates"]] == ["rtx-5090", "rtx-pro-5000-72"]
    for entry in (first, second, third):
        assert entry["because"] is None
        for candidate in entry["candidates"]:
            for clause in candidate["clauses"]:
                assert clause["evidence"] or clause["is_met"] is None, clause
    assert {"id": "states-of-13b"}.items() <= third["corrections"][0].items()
    assert fourth["provenance"] == "reference"
    assert first["provenance"] == "measured"
    assert "not measured here" in fourth["why"]


def test_corrections_follow_the_cards_that_matter():
    (first,) = advise([KINDS["perf-per-dollar"]], market(offer("h100-sxm", 9e4, 3e4)), NEEDS)
    ids = {correction.id for correction in first.corrections}
    assert "fixed-soak" in ids
    kind = replace(KINDS["perf-per-dollar"], article_cards=())
    (first,) = advise([kind], market(offer("h100-sxm", 9e4, 3e4)), NEEDS)
    assert "price-of-5090" not in {correction.id for correction in first.corrections}


def test_every_checklist_item_is_a_row_and_only_the_unseen_are_questions():
    (first, *_) = advise(list(KINDS.values()), ARTICLE, NEEDS)
    marks = {row.id: row.mark for row in first.checklist}
    assert list(marks) == [item.id for item in KINDS["perf-per-dollar"].checklist]
    assert marks["warranty"] == marks["availability"] == "ask"
    assert marks["price"] == "known"
    assert marks["power"] == "seen"
    nothing = choose(KINDS["perf-per-dollar"], market(), NEEDS)
    assert nothing.recommended == ()
    (empty,) = advise([KINDS["perf-per-dollar"]], market(), NEEDS)
    assert {row.mark for row in empty.checklist} == {"ask"}
