"""The field `economics`: what is computed of a session, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import heatsoak.session.result as result_module
from heatsoak.profiles.money import Input, Rate
from heatsoak.profiles.prices import change_prices, prices_path
from heatsoak.session.annotations import annotate
from heatsoak.session.result import load_result, result_entry
from heatsoak.session.rows import Batch, JobRow, PhaseRow, ResultRow, StepsRow
from heatsoak.session.store import SessionWriter
from heatsoak.steady_state.verdict import Figure, Result, Sustained
from heatsoak.telemetry.device import DeviceInfo

SCHEMA = json.loads(
    Path(result_module.__file__).with_name("heatsoak-result-1.schema.json").read_text()
)
DAY = "2026-10-12"
FIGURES = (
    "units_per_s_per_price", "units_per_s_per_w", "units_per_joule", "kwh_per_million",
    "energy_per_million", "capital_per_million", "total_per_million",
)  # fmt: skip


def money(name, value, currency=None, card=None):
    return Input(name, value, "yours", currency, DAY, card)


INVOICE = money("invoice", 2899.0, "USD", "rtx-5090")
KWH = money("kwh_price", 0.2, "USD")


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


@pytest.fixture
def soaked(sessions, tmp_path):
    """soaked(...) -> the document of a session whose figures are round numbers.

    Ten seconds idle at 45 W or so, then the load; 10 000 units a second and 560 W a card.
    """

    def make(
        jobs=(("job-0", 1, 10_000.0),), state="steady", protocol="standard", provenance="measured",
        power=560.0, unit="tokens", facts=None, spare=0, before=None,
    ):  # fmt: skip
        path = tmp_path / f"{len(list(tmp_path.glob('*.heatsoak')))}.heatsoak"
        count = sum(cards for _, cards, _ in jobs)
        devices = [replace(d, provenance=provenance) for d in sessions.devices(count + spare)]
        if before is not None:
            devices = before(devices)
        ids = iter(devices)
        rows = []
        for job_id, cards, _ in jobs:
            own = tuple(next(ids).device_id for _ in range(cards))
            mode = "replica" if cards == 1 else "ddp"
            rows.append(JobRow(job_id, "llm", 1, sessions.RECIPE, mode, unit, own, facts or {}))
        meta = sessions.meta(protocol=protocol)
        writer = SessionWriter.create(path, meta=meta, devices=devices, jobs=rows)
        used = {device_id for row in rows for device_id in row.device_ids}
        samples = tuple(
            replace(sample, power_w=45.0 + t) if t < 10 and sample.device_id in used else sample
            for t in range(40)
            for sample in (sessions.sample(float(t), d.device_id) for d in devices)
        )
        phases = tuple(PhaseRow(10.0, row.job_id, "train") for row in rows)
        steps = tuple(
            StepsRow(float(t), job_id, rate * (t - 10), t, None)
            for t in range(10, 40)
            for job_id, _, rate in jobs
        )
        writer.write(Batch({}, samples=samples, phases=phases, steps=steps))
        by_id = {d.device_id: d for d in devices}
        for row, (_, _, rate) in zip(rows, jobs, strict=True):
            for device_id in row.device_ids:
                entry = result_entry(_result(sessions, device_id, state, rate, power),
                                     by_id[device_id], unit)  # fmt: skip
                writer.write(Batch({}, results=(ResultRow(30.0, device_id, row.job_id, entry),)))
        writer.close(state)
        make.path = path
        document = load_result(path)
        jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
        assert json.loads(json.dumps(document, allow_nan=False)) == document
        return document

    return make


def _result(sessions, device_id, state, rate, power):
    figure = Figure(1.0, 0.0, 20.0, "")
    watts = None if power is None else Figure(power, 5.6, 20.0, "W")
    joules = None if power is None else Figure(power / rate, power / rate / 100, 20.0, "J/unit")
    speed = Figure(rate, rate / 100, 20.0, "units/s")
    sustained = Sustained(
        10.0, 20.0, speed, speed, watts, figure, figure, figure, figure, figure, joules,
        None if power is None else "counter", None if power is None else 100.0, None, {},
    )  # fmt: skip
    verdict = replace(sessions.verdict(30.0, device_id, state), flags=())
    return Result(device_id, verdict, sustained, None, None, None)


def one(document):
    (entry,) = document["economics"]["jobs"]
    return entry


def test_without_prices_there_is_no_money_and_it_says_what_to_enter(soaked):
    entry = one(soaked())
    assert entry["units_per_s_per_w"]["mean"] == pytest.approx(10_000 / 560)
    assert entry["units_per_joule"]["mean"] == pytest.approx(10_000 / 560)
    assert entry["kwh_per_million"]["mean"] == pytest.approx(0.056 / 3.6)
    for name in ("units_per_s_per_price", "energy_per_million", "capital_per_million",
                 "total_per_million", "tco", "cloud", "faults", "currency"):  # fmt: skip
        assert entry[name] is None, name
    assert entry["run"]["cost"] is None
    needed = " ".join(entry["needed"])
    assert "heatsoak prices set rtx-5090 --invoice" in needed
    assert "heatsoak prices set --kwh" in needed
    assert [i["name"] for i in entry["inputs"]] == ["pue"]
    (reference,) = entry["references"]
    assert (reference["value"], reference["origin"], reference["is_stale"]) == (
        1999.0, "reference", True,
    )  # fmt: skip


def test_one_price_alone_is_no_headline(soaked):
    change_prices(put=[INVOICE])
    entry = one(soaked())
    assert entry["units_per_s_per_price"]["mean"] == pytest.approx(10_000 / 2899)
    assert entry["units_per_s_per_price"]["unit"] == "tokens/s/USD"
    assert entry["capital_per_million"] is not None
    assert entry["tco"] is entry["energy_per_million"] is entry["total_per_million"] is None
    change_prices(drop=[INVOICE], put=[KWH])
    entry = one(load_result(soaked.path))
    assert entry["energy_per_million"]["mean"] == pytest.approx(0.056 / 3.6 * 0.2)
    assert entry["tco"] is entry["units_per_s_per_price"] is entry["capital_per_million"] is None


def test_with_both_everything_follows(soaked):
    """The idle power is the lowest reading before the load: 45.0 W."""
    change_prices(put=[INVOICE, KWH, money("pue", 1.5), money("horizon_years", 2.0),
                       money("utilisation_frac", 0.25), money("residual_frac", 0.3),
                       money("support_per_year", 100.0, "USD", "rtx-5090"),
                       money("cloud_per_hour", 0.9, "USD")])  # fmt: skip
    entry = one(soaked())
    tco = entry["tco"]
    active, idle = 8.76 * 0.25 * 560 * 1.5 * 0.2 * 2, 8.76 * 0.75 * 45 * 1.5 * 0.2 * 2
    assert tco["parts"] == pytest.approx(
        {"price": 2899.0, "residual": -869.7, "energy_active": active, "energy_idle": idle,
         "support": 200.0, "staff": 0.0, "downtime": 0.0}
    )  # fmt: skip
    assert tco["mean"] == pytest.approx(sum(tco["parts"].values()))
    assert tco["low"] < tco["mean"] - tco["u95"] < tco["mean"] + tco["u95"] < tco["high"]
    assert (tco["unit"], tco["years"], tco["is_idle_read"]) == ("USD", 2.0, True)
    assert {s["input"] for s in tco["tornado"]} == {
        "price", "kwh_price", "utilisation_frac", "residual_frac",
    }  # fmt: skip
    units = 10_000 * 8760 * 3600 * 2 * 0.25 / 1e6
    assert entry["capital_per_million"]["mean"] == pytest.approx((2899 * 0.7 + 200) / units)
    assert entry["total_per_million"]["mean"] == pytest.approx(tco["mean"] / units)
    assert entry["cloud"]["hours"] > 0
    assert not entry["needed"]
    assert all(entry[name] is not None for name in FIGURES)
    # Every ratio carries the uncertainty of what was measured: 1 % each.
    assert entry["units_per_s_per_price"]["u95"] == pytest.approx(100 / 2899)
    assert entry["energy_per_million"]["u95"] / entry["energy_per_million"]["mean"] == (
        pytest.approx(0.01)
    )
    assert entry["units_per_s_per_w"]["u95"] / entry["units_per_s_per_w"]["mean"] == (
        pytest.approx(0.01 * 2**0.5)
    )


def test_idle_power_of_the_user_comes_before_what_was_read(soaked):
    change_prices(put=[INVOICE, KWH, money("idle_w", 20.0, card="rtx-5090")])
    tco = one(soaked())["tco"]
    assert (tco["idle_w"], tco["is_idle_read"]) == (20.0, False)


@pytest.mark.parametrize("state", ["not-steady", "interrupted", "lost", "failed"])
def test_nothing_is_computed_of_what_is_not_steady(soaked, state):
    change_prices(put=[INVOICE, KWH])
    entry = one(soaked(state=state))
    assert all(entry[name] is None for name in (*FIGURES, "tco", "cloud", "faults", "epoch"))
    assert entry["reason"] == f"nothing is computed: 0 is {state}, not steady"
    assert entry["run"]["kwh"] is not None  # What was spent was spent.


def test_smoke_and_synthetic_figures_say_so(soaked):
    change_prices(put=[INVOICE, KWH])
    assert soaked()["economics"]["labels"] == []
    document = soaked(protocol="smoke", provenance="synthetic")
    assert document["economics"]["labels"] == ["SYNTHETIC", "SMOKE"]


def test_a_card_without_power_has_no_energy(soaked):
    change_prices(put=[INVOICE, KWH])
    entry = one(soaked(power=None))
    assert entry["units_per_s_per_price"] is not None
    for name in ("units_per_s_per_w", "units_per_joule", "kwh_per_million", "energy_per_million",
                 "tco", "total_per_million"):  # fmt: skip
        assert entry[name] is None, name


def test_mixed_currencies_are_refused_in_words(soaked):
    change_prices(put=[money("invoice", 2500.0, "EUR", "rtx-5090"), KWH])
    entry = one(soaked())
    assert entry["currency"] == "EUR"
    assert entry["units_per_s_per_price"]["unit"] == "tokens/s/EUR"
    assert entry["energy_per_million"] is entry["tco"] is None
    assert entry["kwh_per_million"]["mean"] == pytest.approx(0.056 / 3.6)
    assert any("--rate USD:EUR=RATE" in words for words in entry["needed"])
    change_prices(rates=[Rate("EUR", "USD", 1.25, DAY)])
    entry = one(load_result(soaked.path))
    assert entry["energy_per_million"]["mean"] == pytest.approx(0.056 / 3.6 * 0.16)
    assert entry["tco"]["unit"] == "EUR"


def test_a_job_of_two_cards_is_charged_with_both(soaked):
    change_prices(put=[INVOICE, KWH])
    entry = one(soaked(jobs=(("job-0", 2, 18_000.0),)))
    assert entry["cards"] == {"rtx-5090": 2}
    assert entry["units_per_s_per_price"]["mean"] == pytest.approx(18_000 / 5798)
    assert entry["units_per_s_per_w"]["mean"] == pytest.approx(18_000 / 1120)
    assert entry["units_per_s_per_w"]["u95"] == pytest.approx(
        18_000 / 1120 * (0.01**2 + 2 * (5.6 / 1120) ** 2) ** 0.5
    )
    assert entry["tco"]["parts"]["price"] == 5798.0
    assert entry["tco"]["idle_w"] == pytest.approx(90.0)


def test_cards_that_no_job_uses_stand_apart(soaked):
    document = soaked(spare=1)
    (idle,) = document["economics"]["idle"]
    assert idle["device_id"] == "1"
    assert idle["power_w"] == pytest.approx(450.3, abs=0.1)
    assert one(document)["units_per_s_per_w"]["mean"] == pytest.approx(10_000 / 560)


def test_scaling_of_one_recipe(soaked):
    jobs = (("job-0", 1, 10_000.0), ("job-1", 2, 19_000.0), ("job-2", 4, 36_000.0))
    two, four = soaked(jobs=jobs)["economics"]["scaling"]
    assert (two["cards"], four["cards"]) == (2, 4)
    assert two["efficiency"]["mean"] == pytest.approx(0.95)
    assert four["efficiency"]["mean"] == pytest.approx(0.9)
    assert four["marginal"]["mean"] == pytest.approx(0.85)
    assert not two["is_per_w_rising"]


def test_an_epoch_where_the_workload_says_how_long_it_is(soaked):
    change_prices(put=[KWH])
    assert one(soaked())["epoch"] is None
    epoch = one(soaked(facts={"units_per_epoch": 36e6}))["epoch"]
    assert epoch["seconds"]["mean"] == pytest.approx(3600.0)
    assert epoch["kwh"]["mean"] == pytest.approx(0.56)
    assert epoch["cost"]["mean"] == pytest.approx(0.112)


def test_what_the_run_itself_took(soaked):
    """The counter of the fixture goes up by 450 J a second for 39 s; the load lasts 29 s."""
    change_prices(put=[KWH, money("pue", 2.0)])
    run = one(soaked())["run"]
    assert run["units"] == 290_000.0
    assert run["seconds"]["mean"] == pytest.approx(29.0)
    assert run["kwh"]["mean"] == pytest.approx(450 * 39 / 3.6e6 * 2)
    assert run["cost"]["mean"] == pytest.approx(450 * 39 / 3.6e6 * 2 * 0.2)


def test_faults_and_when_error_correction_pays(soaked):
    assert one(soaked())["faults"] is None
    change_prices(put=[INVOICE, KWH, money("downtime_per_hour", 200.0, "USD"),
                       money("invoice", 5000.0, "USD", "rtx-pro-5000-72")])  # fmt: skip
    entry = one(load_result(soaked.path))
    faults = entry["faults"]
    assert faults["cost_per_year"] == pytest.approx(faults["lost_h_per_year"] * 200)
    assert entry["tco"]["parts"]["downtime"] == pytest.approx(faults["cost_per_year"] * 3)
    (premium,) = faults["ecc_premiums"]
    assert (premium["card"], premium["premium"]) == ("rtx-pro-5000-72", 2101.0)
    assert premium["faults_per_1000_card_hours"] == pytest.approx(
        1000 / premium["mtbf_h"] - 1000 / 50_700
    )
    assert "mtbf_h" in {i["name"] for i in entry["inputs"] if i["origin"] == "example"}


def test_a_prices_file_that_is_not_one_does_not_hide_the_result(soaked):
    soaked()
    prices_path().parent.mkdir(parents=True, exist_ok=True)
    prices_path().write_text("mine")
    document = load_result(soaked.path)
    assert "prices" in document["economics"]["problem"]
    assert one(document)["units_per_s_per_w"] is not None
    assert one(document)["units_per_s_per_price"] is None


def test_prices_that_the_session_holds_count_where_the_user_has_none(soaked):
    soaked()
    data = {"all": {"kwh_price": {"value": 0.4, "currency": "EUR", "date": DAY}},
            "cards": {"rtx-5090": {"invoice": {"value": 2500, "currency": "EUR"}}}}  # fmt: skip
    annotate(soaked.path, "prices", data)
    entry = one(load_result(soaked.path))
    assert entry["tco"]["unit"] == "EUR"
    assert {i["origin"] for i in entry["inputs"] if i["name"] in ("invoice", "kwh_price")} == {
        "session"
    }
    change_prices(put=[money("invoice", 2000.0, "EUR", "rtx-5090")])
    entry = one(load_result(soaked.path))
    assert entry["units_per_s_per_price"]["mean"] == pytest.approx(5.0)


def test_the_host_cpu_has_a_price_too(soaked):
    def cpu(devices):
        return [DeviceInfo("cpu", "cpu-aurora", "Some CPU", "cpu", "measured")]

    change_prices(put=[money("invoice", 500.0, "USD", "cpu")])
    assert one(soaked(before=cpu))["units_per_s_per_price"]["mean"] == pytest.approx(20.0)


def test_a_slice_does_not_cost_what_its_card_does(soaked, monkeypatch):
    change_prices(put=[INVOICE, KWH])
    mig = {"parent_uuid": "GPU-0", "profile": "1g.8gb", "soaked_with": [], "busy_siblings": []}
    plain = result_module.result_entry
    monkeypatch.setitem(globals(), "result_entry", lambda *a: plain(*a, {"mig": mig}))
    entry = one(soaked())
    assert entry["cards"] == {"rtx-5090 MIG 1g.8gb": 1}
    assert entry["units_per_s_per_price"] is entry["tco"] is None
    assert any("'rtx-5090 MIG 1g.8gb'" in words for words in entry["needed"])
    mig["busy_siblings"] = ["MIG-1"]
    entry = one(soaked())
    assert entry["units_per_s_per_w"] is entry["units_per_joule"] is None
