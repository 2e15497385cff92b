"""Advice on session files: what is read of them, what is refused, and the command itself."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from heatsoak.errors import UsageError
from heatsoak.profiles.money import Input, Money
from heatsoak.session.advice import Wishes, advise_sessions, document, money_for
from heatsoak.session.annotations import annotate
from heatsoak.session.measurements import load_measurements
from heatsoak_tui.cli import main

PRICES = Money(
    (
        Input("invoice", 2899.0, "yours", "USD", "2026-10-12", "rtx-5090"),
        Input("invoice", 6500.0, "yours", "USD", "2026-10-12", "rtx-pro-5000-72"),
    )
)
ENERGY = Money(
    (
        Input("kwh_price", 0.187, "yours", "USD", "2026-10-12"),
        Input("pue", 1.0, "yours"),
        Input("horizon_years", 3.0, "yours"),
        Input("utilisation_frac", 0.5, "yours"),
    )
)


@pytest.fixture
def session(write_session, tmp_path, monkeypatch):
    """session(name, card, rate) -> path of a finished session with one result a device."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    return lambda *arguments, **more: write_session(tmp_path, *arguments, **more)


def test_what_a_session_says_of_a_card(session):
    path = session("a", "rtx-5090", 9402.0, power_w=561.0, info={"ecc_is_on": False})
    found = load_measurements([path])
    assert found.provenance == "synthetic"
    assert found.marks == ("SYNTHETIC",)
    one = found.by_card["rtx-5090"]
    assert one.rate_per_s.mean == 9402.0
    assert one.rate_per_s.u95 == pytest.approx(37.608)
    assert one.power_w.mean == 561.0
    assert one.joules_per_unit.mean == pytest.approx(561 / 9402)
    assert one.memory_used_bytes == 23 * 1024**3
    assert one.devices == ("a:synthetic-0",)
    assert one.driver_version == "580.159"
    assert one.ecc_is_on is False
    assert one.pcie == (5, 8)  # Of the window, not of the idle start.
    assert one.throttle_frac["sw_thermal_slowdown"] == 0.02


def test_several_cards_of_a_kind_are_one_estimate_as_wide_as_they_differ(session):
    found = load_measurements([session("a", "rtx-5090", 9400.0, count=2)])
    one = found.by_card["rtx-5090"]
    assert one.rate_per_s.mean == pytest.approx(9400 * 1.01)
    assert one.rate_per_s.u95 == pytest.approx(94.0)  # Half of the 2 % between them.
    assert len(one.devices) == 2


def test_a_job_of_two_cards_counts_once_and_draws_twice(session):
    found = load_measurements([session("a", "rtx-5090", 18000.0, power_w=560.0, count=2, ddp=True)])
    one = found.by_card["rtx-5090"]
    assert (one.n, one.rate_per_s.mean) == (2, 18000.0)
    assert one.power_w.mean == 1120.0
    assert one.joules_per_unit.mean == pytest.approx(1120 / 18000)


def test_a_session_named_twice_counts_once(session):
    path = session("a", "rtx-5090", 9400.0)
    found = load_measurements([path, path])
    assert found.by_card["rtx-5090"].devices == ("a:synthetic-0",)


def test_a_spoiled_result_is_kept_apart(session):
    found = load_measurements([session("a", "rtx-5090", 9400.0, flags=("unsaturated",))])
    assert "does not load it fully" in found.by_card["rtx-5090"].spoiled
    failed = {"integrity": {"checks": 9, "failures": 1}}
    found = load_measurements([session("b", "rtx-5090", 9400.0, facts=failed)])
    assert "arithmetic" in found.by_card["rtx-5090"].spoiled


def refused(*paths, **options):
    with pytest.raises(UsageError) as caught:
        load_measurements(paths, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_synthetic_and_measured_are_never_mixed(session):
    text = refused(
        session("a", "rtx-5090", 9400.0),
        session("b", "rtx-pro-5000-72", 8100.0, provenance="measured", mode="replica"),
    )
    assert "a.heatsoak is synthetic and" in text
    assert "b.heatsoak is measured" in text


def test_smoke_is_refused_unless_asked_for(session):
    path = session("a", "rtx-5090", 9400.0, protocol="smoke", flags=("smoke",))
    assert "--allow-smoke" in refused(path)
    assert load_measurements([path], allow_smoke=True).marks == ("SMOKE", "SYNTHETIC")


def test_not_steady_is_refused_unless_asked_for(session):
    path = session("a", "rtx-5090", 9400.0, state="not-steady")
    text = refused(path)
    assert "synthetic-0 is not-steady" in text
    assert "--allow-not-steady" in text
    found = load_measurements([path], allow_not_steady=True)
    assert found.marks == ("NOT STEADY", "SYNTHETIC")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unit": "samples"}, "unit tokens and samples"),
        ({"version": 2}, "version 1 and 2"),
        ({"context": 2048, "micro_batch": 8}, "context 4096 and 2048; micro_batch 4 and 8"),
    ],
)  # fmt: skip
def test_what_is_not_the_same_work_is_not_compared(session, sessions, change, words):
    if "context" in change:
        change = {"recipe": replace(sessions.RECIPE, **change)}
    text = refused(session("a", "rtx-5090", 9400.0), session("b", "rtx-4090", 7000.0, **change))
    assert "cannot be compared" in text
    assert words in text


def test_a_session_without_a_counter_has_nothing_to_advise_on(session, sessions, tmp_path):
    path = tmp_path / "empty.heatsoak"
    sessions.create(path).close("failed")
    assert "nothing was frozen" in refused(path)
    assert "there is no file" in refused(tmp_path / "none.heatsoak")


def test_the_report_joins_measurements_prices_and_profiles(session):
    paths = [
        session("a", "rtx-5090", 9402.0, power_w=561.0),
        session("b", "rtx-pro-5000-72", 8100.0, power_w=299.0),
    ]
    report = advise_sessions(paths, Wishes(), PRICES.over(ENERGY))
    assert [one.card for one in report.advice[:3]] == [
        "GeForce RTX 5090", "RTX PRO 5000 72GB Blackwell", "4 x RTX PRO 5000 72GB Blackwell",
    ]  # fmt: skip
    assert report.missing == ()
    assert report.currency == "USD"
    found = document(report)
    assert found["schema"] == "heatsoak-advice/1"
    assert found["measured"][0]["units_per_price"]["mean"] == pytest.approx(9402 / 2899)
    assert json.loads(json.dumps(found, allow_nan=False))["currency"] == "USD"
    first = found["archetypes"][0]
    assert {c["provenance"] for c in first["candidates"]} == {first["provenance"]} == {"synthetic"}
    assert first["article"]["text"].endswith("The same here, by synthetic figures.")


def test_an_example_or_a_reference_is_no_price(session):
    path = session("a", "rtx-5090", 9402.0)
    example = Money((Input("invoice", 1999.0, "reference", "USD", "2025-01-30", "rtx-5090"),))
    report = advise_sessions([path], Wishes(), example)
    assert report.advice[0].card == "none"
    assert document(report)["measured"][0]["price"] is None
    assert "heatsoak prices set rtx-5090" in report.missing[0]
    report = advise_sessions([path], Wishes(), PRICES)
    assert "--kwh" in report.missing[0]


def test_prices_in_two_currencies_need_a_rate(session):
    paths = [session("a", "rtx-5090", 9402.0), session("b", "rtx-pro-5000-72", 8100.0)]
    card = "rtx-pro-5000-72"
    euro = PRICES.with_input(Input("invoice", 6000.0, "yours", "EUR", "2026-10-12", card))
    with pytest.raises(UsageError, match="exchange rate"):
        advise_sessions(paths, Wishes(), euro)


def test_prices_stored_in_a_session_are_used_where_the_user_has_none(session):
    path = session("a", "rtx-5090", 9402.0)
    stored = {"cards": {"rtx-5090": {"invoice": {"value": 2500.0, "currency": "USD"}}}}
    annotate(path, "prices", stored)
    assert money_for([path]).given("invoice", "rtx-5090").value == 2500.0


def test_a_recipe_that_cannot_be_read_is_refused_in_one_line(session):
    path = session("a", "rtx-5090", 9402.0)
    for wrong in ("13b", "13b-full", "13b-full@", "13b-magic@4096", "999b-full@4096", "13b-full@0"):
        with pytest.raises(UsageError) as caught:
            advise_sessions([path], Wishes(recipe=wrong), PRICES)
        assert "\n" not in str(caught.value)


def test_the_command_answers_in_text_and_json(session, capsys):
    paths = [
        str(session("a", "rtx-5090", 9402.0, power_w=561.0)),
        str(session("b", "rtx-pro-5000-72", 8100.0, power_w=299.0)),
    ]
    assert main(["advise", *paths]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    blocks = [line for line in text.splitlines() if line[:1].isdigit() and "  " in line[:4]]
    assert all("SYNTHETIC" in line for line in blocks if not line.startswith("2 sessions"))
    assert len(blocks) >= 5
    assert "heatsoak prices set rtx-5090 --invoice" in " ".join(text.split())
    assert "per USD" not in text
    assert main(["prices", "set", "rtx-5090", "--invoice", "2899", "--currency", "USD",
                 "--date", "2026-10-12"]) == 0  # fmt: skip
    assert main(["prices", "set", "rtx-pro-5000-72", "--invoice", "6500", "--currency", "USD",
                 "--date", "2026-10-12"]) == 0  # fmt: skip
    capsys.readouterr()
    assert main(["advise", *paths, "--must", "ecc", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["needs"]["musts"] == ["ecc"]
    assert found["archetypes"][0]["recommended"][0]["card"] == "rtx-pro-5000-72"
    assert main(["advise", *paths, "--must", "style"]) == 2
    assert "--must takes ecc, isv, support, mig" in capsys.readouterr().err


def test_the_command_refuses_in_one_line(session, capsys):
    synthetic = session("a", "rtx-5090", 9402.0)
    measured = session("b", "rtx-pro-5000-72", 8100.0, provenance="measured", mode="replica")
    smoke = session("c", "rtx-5090", 9402.0, protocol="smoke", flags=("smoke",))
    for files in ([synthetic, measured], [smoke], [synthetic.with_name("none.heatsoak")]):
        assert main(["advise", *map(str, files)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert said.err.startswith("heatsoak: ")


def test_archetypes_are_listed(session, capsys):
    assert main(["archetypes"]) == 0
    text = capsys.readouterr().out
    assert "Perf/$ maximizer" in text
    assert max(map(len, text.splitlines())) <= 80
    assert main(["archetypes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "heatsoak-archetypes/1"
    assert len(found["archetypes"]) == 5
