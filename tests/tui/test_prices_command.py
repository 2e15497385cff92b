"""`heatsoak prices` as it is typed, and the money in `heatsoak result`."""

from __future__ import annotations

import json

import pytest

from heatsoak.session.result import load_result
from heatsoak_tui.cli import main


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "settings" / "heatsoak" / "prices.yaml"


@pytest.fixture
def prices(capsys):
    """prices("set --kwh 0.2") -> (code, stdout, stderr)."""

    def run(words, *more):
        try:
            code = main(["prices", *words.split(), *more])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def shown(prices):
    code, out, _ = prices("show --json")
    assert code == 0
    document = json.loads(out)
    assert document["schema"] == "heatsoak-prices-shown/1"
    return {(i["card"], i["name"]): i for i in document["inputs"]}, document


def test_a_price_is_set_shown_and_forgotten(prices, own):
    code, out, err = prices("set rtx-5090 --invoice 2899 --currency USD --date 2026-10-12")
    assert (code, out) == (0, "")
    assert "USD 2\u2009899 of 2026-10-12" in err
    assert str(own) in err
    found, _ = shown(prices)
    entry = found["rtx-5090", "invoice"]
    assert (entry["value"], entry["currency"], entry["date"], entry["origin"]) == (
        2899.0, "USD", "2026-10-12", "yours",
    )  # fmt: skip
    prices("set --tariff 0.2 --utilization 0.4")  # Two inputs have two names.
    found, _ = shown(prices)
    assert (found[None, "kwh_price"]["value"], found[None, "utilisation_frac"]["value"]) == (
        0.2, 0.4,
    )  # fmt: skip
    assert prices("unset rtx-5090 --invoice")[0] == 0
    found, _ = shown(prices)
    assert ("rtx-5090", "invoice") not in found


def test_every_input_has_an_option(prices):
    code, _, err = prices(
        "set --kwh 0.187 --pue 1.2 --horizon 4 --utilisation 60% --residual 15% --support 90 "
        "--staff 200 --cloud 1.9 --downtime 80 --mtbf 9000 --detect 1 --restart 0.5 "
        "--checkpoint 45 --currency eur --rate EUR:USD=1.1"
    )
    assert code == 0, err
    found, document = shown(prices)
    values = {name: i["value"] for (card, name), i in found.items() if i["origin"] == "yours"}
    assert values == {
        "kwh_price": 0.187, "pue": 1.2, "horizon_years": 4.0, "utilisation_frac": 0.6,
        "residual_frac": 0.15, "support_per_year": 90.0, "staff_per_year": 200.0,
        "cloud_per_hour": 1.9, "downtime_per_hour": 80.0, "mtbf_h": 9000.0, "detect_h": 1.0,
        "restart_h": 0.5, "checkpoint_s": 45.0,
    }  # fmt: skip
    assert {i["currency"] for i in found.values() if i["origin"] == "yours"} == {None, "EUR"}
    assert [(r["from"], r["into"], r["value"]) for r in document["rates"]] == [("EUR", "USD", 1.1)]
    # A later amount is in the currency of the others.
    assert prices("set rtx-5090 --invoice 2500 --idle-watts 30")[0] == 0
    found, _ = shown(prices)
    assert found["rtx-5090", "invoice"]["currency"] == "EUR"
    assert found["rtx-5090", "idle_w"]["value"] == 30.0
    # What was given for one card stands beside what is for all.
    assert prices("set rtx-5090 --mtbf 4000")[0] == 0
    found, _ = shown(prices)
    assert found[None, "mtbf_h"]["value"] == 9000.0
    assert found["rtx-5090", "mtbf_h"]["value"] == 4000.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("set", "nothing to set"),
        ("set --invoice 2899 --currency USD", "name it"),
        ("set rtx-5090 --invoice 2899", "needs a currency"),
        ("set rtx-5090 --invoice 0 --currency USD", "above 0"),
        ("set rtx-5090 --invoice many --currency USD", "no number"),
        ("set rtx-509 --invoice 1 --currency USD", "no card profile 'rtx-509'"),
        ("set rtx-5090 --kwh 0.2 --currency USD", "same for all cards"),
        ("set rtx-5090 --invoice 1 --currency DOLLARS", "three letters"),
        ("set rtx-5090 --invoice 1 --currency USD --date 12/10/2026", "YYYY-MM-DD"),
        ("set --utilisation 50", "at most 1, or like 50%"),
        ("set --rate EUR=1", "EUR:USD=1.08"),
        ("set --currency USD", "nothing to set"),
        ("set --pue 1.2 --currency USD", "without an amount"),
        ("unset", "name a card"),
        ("unset --kwh", "you have not set electricity"),
        ("unset rtx-5090", "you have not set anything for rtx-5090"),
        ("keep nothing-here", "no file, session id or name"),
        ("frobnicate", "invalid choice"),
        ("", "required"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(prices, own, words, said):
    code, out, err = prices(words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not own.exists()


def test_unset_takes_a_whole_card_or_a_rate(prices):
    prices("set rtx-5090 --invoice 2899 --idle-watts 20 --currency USD --rate EUR:USD=1.1")
    prices("set --kwh 0.2")
    assert prices("unset --rate eur:usd")[0] == 0
    assert shown(prices)[1]["rates"] == []
    assert prices("unset rtx-5090")[0] == 0
    found, _ = shown(prices)
    assert {key for key, i in found.items() if i["origin"] == "yours"} == {(None, "kwh_price")}


def test_examples_and_stale_references_are_called_so(prices):
    code, out, _ = prices("show")
    assert code == 0
    assert "no price of a card yet: heatsoak prices set CARD" in out
    (kwh,) = (line for line in out.splitlines() if line.startswith("all  electricity"))
    assert "example: US residential average" in kwh
    assert "yours" not in out
    prices("set rtx-5090 --idle-watts 20")
    _, out, _ = prices("show")
    (line,) = (line for line in out.splitlines() if "invoiced price" in line)
    assert "2025-01-30" in line
    assert "stale reference: launch price" in line
    prices("set rtx-5090 --invoice 2899 --currency USD")
    _, out, _ = prices("show")
    (line,) = (line for line in out.splitlines() if "invoiced price" in line)
    assert line.endswith("yours")


def test_a_file_that_is_not_ours_is_one_line_and_stays(prices, own):
    own.parent.mkdir(parents=True)
    own.write_text("mine: [")
    for words in ("show", "set --kwh 0.2 --currency USD", "unset --kwh"):
        code, out, err = prices(words)
        assert (code, out) == (2, "")
        assert str(own) in err
        assert err.count("\n") == 1
    assert own.read_text() == "mine: ["


@pytest.fixture
def ended(written, tmp_path):
    return written(1500, is_frozen=True, end="steady").write(tmp_path / "a.heatsoak")


def test_the_result_says_its_money_and_what_it_stands_on(prices, ended, capsys):
    main(["result", str(ended)])
    out = capsys.readouterr().out
    assert "tokens/s per price" in out
    assert out.count("to enter: the invoiced price of rtx-5090: heatsoak prices set rtx-5090 ") == 1
    assert "for reference: rtx-5090 launch price USD 1\u2009999 of 2025-01-30, stale" in out
    assert "TCO 3 years" not in out
    prices("set rtx-5090 --invoice 2899 --currency USD --date 2026-10-12")
    prices("set --kwh 0.187 --date 2026-10-12")
    main(["result", str(ended)])
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "money SYNTHETIC rtx-5090 yours: USD 2 899 (2026-10-12), 0.187 USD/kWh (2026-10-12)" in (
        lines
    )
    assert "tokens/s per USD 3.24 ± 0.01 invoice USD 2 899" in lines
    assert any(line.startswith("TCO 3 years USD 4 430 (3 340 to 5 620)") for line in lines)
    assert any(line.startswith("assumed: horizon 3 years, utilisation 50 %") for line in lines)
    assert "examples" in out


def test_mixed_currencies_are_told_where_a_figure_is_missing(prices, ended, capsys):
    prices("set rtx-5090 --invoice 2500 --currency EUR")
    prices("set --kwh 0.187 --currency USD")
    main(["result", str(ended)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "TCO — your exchange rate USD:EUR, since electricity is in USD, the rest in EUR" in lines
    assert any(line.startswith("energy per 1M tokens 0.01657 ± 0.00008 kWh") for line in lines)
    assert any(line.startswith("tokens/s per EUR 3.76 ± 0.02") for line in lines)
    assert any(line.endswith("heatsoak prices set --rate USD:EUR=RATE") for line in lines)
    assert not any("no power" in line for line in lines)


def test_prices_are_kept_in_a_session(prices, ended):
    assert "you have set no prices" in prices("keep", str(ended))[2]
    prices("set --kwh 0.187 --currency USD")
    code, _, err = prices("keep", str(ended))
    assert code == 0
    assert "1 price is stored in" in err
    stored = load_result(ended)["economics"]["stored"]
    assert stored["data"]["all"]["kwh_price"]["value"] == 0.187
