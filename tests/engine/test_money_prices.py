"""The user's prices: kept as given, in one file, never mistaken for anybody else's."""

from __future__ import annotations

import os
import stat

import pytest
import yaml

from heatsoak.errors import UsageError
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.checks import SchemaError
from heatsoak.profiles.money import (
    TERMS,
    Input,
    MixedCurrenciesError,
    Money,
    Rate,
    checked,
    from_plain,
    is_stale,
    to_plain,
)
from heatsoak.profiles.prices import (
    change_prices,
    examples,
    known_money,
    parse_entry,
    parse_rate,
    price_key,
    prices_path,
    read_prices,
    reference_price,
    references,
    write_prices,
)

TODAY = "2026-12-01"
INVOICE = Input("invoice", 2899.0, "yours", "USD", "2026-10-12", "rtx-5090")
KWH = Input("kwh_price", 0.187, "yours", "USD", TODAY)


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A settings folder of the test's own; returns where the prices will be."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "heatsoak" / "prices.yaml"


def test_nothing_is_known_before_anything_was_set(own):
    assert prices_path() == own
    assert read_prices() == Money()
    assert not own.exists()
    assert known_money().given("kwh_price") is None
    assert known_money().find("kwh_price").origin == "example"


def test_what_is_set_is_read_again_and_can_be_read_by_people(own):
    rate = Rate("EUR", "USD", 1.08, TODAY)
    money = change_prices(put=[INVOICE, KWH], rates=[rate])
    assert set(read_prices().inputs) == set(money.inputs) == {INVOICE, KWH}
    assert money.rates == (rate,)
    text = own.read_text()
    assert text.startswith("# Your prices for heatsoak")
    assert yaml.safe_load(text)["cards"]["rtx-5090"]["invoice"] == {
        "value": 2899, "currency": "USD", "date": "2026-10-12",
    }  # fmt: skip
    assert [path.name for path in own.parent.iterdir()] == ["prices.yaml"]


def test_setting_again_replaces_and_forgetting_forgets(own):
    change_prices(put=[INVOICE, KWH])
    dearer = Input("invoice", 3100.0, "yours", "USD", TODAY, "rtx-5090")
    other = Input("invoice", 9000.0, "yours", "USD", TODAY, "rtx-pro-6000-ws")
    money = change_prices(put=[dearer, other])
    assert money.given("invoice", "rtx-5090") == dearer
    assert money.given("invoice", "rtx-pro-6000-ws") == other
    money = change_prices(drop=[dearer])
    assert money.given("invoice", "rtx-5090") is None
    assert money.given("invoice", "rtx-pro-6000-ws") == other
    assert read_prices() == money


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mine: 1\n", "schema is None"),
        ("schema: heatsoak-prices/2\n", "this version reads"),
        ("- a list\n", "must be a mapping"),
        ("schema: heatsoak-prices/1\nall: {kwh_price: {value: x, currency: USD}}\n", "electricity"),
        ("schema: heatsoak-prices/1\nall: {kwh_price: {value: 0.2}}\n", "needs a currency"),
        ("schema: heatsoak-prices/1\nall: {watts: {value: 0.2}}\n", "unknown key 'watts'"),
        ("schema: heatsoak-prices/1\nall: {pue: {value: .nan}}\n", "PUE must be a number"),
        ("schema: heatsoak-prices/1\nrates: {EUR: {value: 1}}\n", "EUR/USD"),
        ("key: [unclosed\n", "cannot be read"),
        ("\x00\x01", "cannot be read"),
    ],
)
def test_a_file_that_is_not_ours_is_left_as_it_is(own, text, said):
    own.parent.mkdir()
    own.write_text(text)
    with pytest.raises(UsageError, match="prices") as caught:
        read_prices()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError):
        change_prices(put=[KWH])
    assert own.read_text() == text


def test_a_folder_in_its_place_is_an_error(own):
    own.mkdir(parents=True)
    with pytest.raises(UsageError, match="no file"):
        read_prices()


def test_a_write_that_fails_leaves_the_old_file(own, monkeypatch):
    change_prices(put=[KWH])
    before = own.read_text()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        change_prices(put=[INVOICE])
    assert own.read_text() == before
    assert [path.name for path in own.parent.iterdir()] == ["prices.yaml"]


def test_a_link_stays_a_link_and_permissions_stay(own, tmp_path):
    target = tmp_path / "dotfiles.yaml"
    own.parent.mkdir()
    own.symlink_to(target)  # To where there is nothing yet.
    change_prices(put=[KWH])
    target.chmod(0o600)
    change_prices(put=[INVOICE])
    assert own.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(read_prices().inputs) == 2


def test_only_what_is_the_users_is_written(own):
    write_prices(known_money().with_input(KWH))
    assert read_prices().inputs == (KWH,)


@pytest.mark.parametrize(
    ("name", "words", "value", "currency", "day"),
    [
        ("invoice", "2899 USD 2026-10-12", 2899.0, "USD", "2026-10-12"),
        ("invoice", "2026-10-12 eur 2,899.50", 2899.5, "EUR", "2026-10-12"),
        ("invoice", "2899", 2899.0, "CHF", TODAY),
        ("utilisation_frac", "50%", 0.5, None, TODAY),
        ("residual_frac", "0.2", 0.2, None, TODAY),
        ("horizon_years", "3", 3.0, None, TODAY),
    ],
)
def test_inputs_as_they_are_typed(name, words, value, currency, day):
    card = "rtx-5090" if name == "invoice" else None
    found = parse_entry(name, words, card=card, currency="CHF", today=TODAY)
    assert found == Input(name, value, "yours", currency, day, card)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("invoice", "abc1 USD", "no number"),
        ("invoice", "1 2 USD", "one number"),
        ("invoice", "USD", "must be a number"),
        ("invoice", "2899", "needs a currency"),
        ("invoice", "-5 USD", "above 0"),
        ("invoice", "0 USD", "above 0"),
        ("invoice", "1e12 USD", "above 0"),
        ("invoice", "2899 USD 2026-13-01", "YYYY-MM-DD"),
        ("utilisation_frac", "50", "at most 1, or like 50%"),
        ("utilisation_frac", "0", "above 0"),
        ("pue", "0.9", "1 or more, at most 5"),
        ("pue", "1.2 USD", "no currency"),
        ("kwh_price", "nan USD", "must be a number"),
        ("kwh_price", "1,87 EUR", "write it like"),
    ],
)
def test_inputs_that_cannot_be(name, words, said):
    card = "rtx-5090" if name == "invoice" else None
    with pytest.raises(UsageError) as caught:
        parse_entry(name, words, card=card, currency=None, today=TODAY)
    assert said in str(caught.value)


def test_inputs_for_the_wrong_card():
    with pytest.raises(SchemaError, match="name it"):
        checked(Input("invoice", 1.0, "yours", "USD"))
    with pytest.raises(SchemaError, match="same for all"):
        checked(Input("kwh_price", 1.0, "yours", "USD", card="rtx-5090"))


def test_exchange_rates_as_they_are_typed():
    assert parse_rate("eur:usd=1.08", TODAY) == Rate("EUR", "USD", 1.08, TODAY)
    for words in ("EUR=1.08", "EUR:USD", "EUR:USD=x", "EUR:EUR=1", "EUR:USD=0", "EUR:USD=-1"):
        with pytest.raises(UsageError):
            parse_rate(words, TODAY)


def test_nothing_is_converted_without_a_rate_of_the_users():
    price = Input("invoice", 2500.0, "yours", "EUR", TODAY, "rtx-5090")
    money = Money((price, KWH))
    assert money.amount(price, "EUR") == 2500.0
    with pytest.raises(MixedCurrenciesError, match="EUR:USD=RATE"):
        money.amount(price, "USD")
    both = money.with_rate(Rate("EUR", "USD", 1.25))
    assert both.amount(price, "USD") == 3125.0
    assert both.amount(KWH, "EUR") == pytest.approx(0.1496)
    assert both.with_rate(Rate("USD", "EUR", 0.5)).amount(price, "USD") == 5000.0
    assert money.amount(Input("staff_per_year", 0.0, "example", "USD"), "EUR") == 0.0


def test_the_users_own_comes_first_and_that_of_the_card_before_that_of_all():
    for_all = Input("mtbf_h", 1000.0, "yours")
    for_card = Input("mtbf_h", 2000.0, "yours", card="a")
    stored = Input("mtbf_h", 3000.0, "session", card="b")
    money = Money((stored, for_all, for_card)).over(examples())
    assert money.find("mtbf_h", "a") == for_card
    assert money.find("mtbf_h", "b") == for_all
    assert money.find("mtbf_h") == for_all
    assert money.without("mtbf_h").find("mtbf_h", "b") == stored
    assert money.without("mtbf_h").find("mtbf_h", "c").origin == "example"
    assert money.without("mtbf_h").given("mtbf_h", "c") is None


def test_prices_of_a_session_are_known_where_the_user_has_none(own):
    data = to_plain(Money((INVOICE, Input("kwh_price", 0.3, "yours", "USD", "2026-01-01"))))
    change_prices(put=[KWH])
    money = known_money(stored={"created_utc": "2026-10-13T10:00:00Z", "data": data})
    found = money.given("invoice", "rtx-5090")
    assert (found.value, found.origin) == (2899.0, "session")
    assert found.source == "stored in the session 2026-10-13"
    assert money.given("kwh_price") == KWH
    known_money(stored={"created_utc": "", "data": {"all": 5}})  # Not written by heatsoak.


def test_plain_and_back():
    money = Money((INVOICE, KWH), (Rate("EUR", "USD", 1.08, TODAY),))
    assert from_plain(to_plain(money), "yours") == Money((KWH, INVOICE), money.rates)


def test_yaml_dates_need_no_quotes(own):
    own.parent.mkdir()
    own.write_text(
        "schema: heatsoak-prices/1\nall:\n  kwh_price: {value: 0.2, currency: EUR, "
        "date: 2026-10-12}\n"
    )
    assert read_prices().inputs == (Input("kwh_price", 0.2, "yours", "EUR", "2026-10-12"),)


def test_a_launch_price_is_a_reference_and_after_90_days_stale():
    card = card_profiles()["rtx-5090"]
    found = reference_price(card)
    assert (found.value, found.currency, found.date) == (1999.0, "USD", "2025-01-30")
    assert found.origin == "reference"
    assert "launch price" in found.source
    assert not found.is_stale("2025-04-30")
    assert found.is_stale("2025-05-01")
    assert known_money([card]).given("invoice", "rtx-5090") is None
    assert is_stale(None, TODAY)
    assert not INVOICE.is_stale("2030-01-01")  # The user's own is what it is.


def test_every_example_and_reference_has_a_source():
    shipped = (*examples().inputs, *references())
    assert all(entry.source for entry in shipped)
    assert {entry.name for entry in examples().inputs} <= set(TERMS)
    assert not any(entry.is_users for entry in shipped)
    assert not examples().find("invoice", "rtx-5090")


def test_what_prices_are_entered_for():
    assert price_key("rtx-5090", "nvidia", "NVIDIA GeForce RTX 5090") == "rtx-5090"
    assert price_key(None, "cpu", "Some CPU") == "cpu"
    assert price_key(None, "nvidia", "NVIDIA Something") == "NVIDIA Something"
