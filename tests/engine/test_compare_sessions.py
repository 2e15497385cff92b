"""Comparisons of session files: what is held against what, what is refused, what is said first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.errors import UsageError
from heatsoak.session.compare import MEASURES, compare
from heatsoak.session.compared_runs import Allowed

DIFFERENCE = {"by", "u95", "unit", "word", "basis", "reason"}
MEASURE = {"mean", "u95", "unit", "n", "within_u95", "between_sd"}


def machine(torch="2.9.0", load=0.4, findings=()):
    return {
        "host": {"name": "aurora", "load_1_min": load, "cores": 8},
        "training": {"torch": torch, "cuda": "13.0"},
        "findings": [
            {"id": name, "device_id": "synthetic-0", "title": title} for name, title in findings
        ],
    }  # fmt: skip


@pytest.fixture
def session(write_session, tmp_path):
    """session(name, rate, card, day=1) -> path; all on one and the same card, unless told."""

    def write(name, rate=9190.0, card="rtx-5090", *, day=1, **more):
        more = {"uuid": "x", "start_c": 31.0, "environment": machine()} | more
        created_utc = f"2026-11-{day:02d}T10:00:00Z"
        return write_session(tmp_path, name, card, rate, created_utc=created_utc, **more)

    return write


def only(document):
    (one,) = document["comparisons"]
    return one["measures"]


def test_two_runs_that_differ_by_a_planted_two_per_cent(session):
    document = compare([session("a"), session("b", 9190.0 * 1.02, info={"vbios": "2"})])
    found = only(document)["throughput"]
    assert found["word"] == "faster"
    assert found["by"] == pytest.approx(0.02)
    assert found["u95"] == pytest.approx(1.02 * 0.004 * 2**0.5, rel=1e-6)
    assert (found["unit"], found["basis"], found["reason"]) == ("frac", "within", None)
    assert only(document)["joules_per_unit"]["word"] == "less"
    assert only(document)["power_w"]["word"] == "no difference shown"
    assert only(document)["temperature_c"]["unit"] == "°C"


def test_degrees_are_no_finer_than_the_sensor(session):
    """The runs say 74.6 ± 0.4 of themselves, and their driver whole degrees."""
    document = compare([session("a"), session("b")])
    assert document["groups"][0]["measures"]["temperature_c"]["u95"] == 0.5
    assert only(document)["temperature_c"]["u95"] == pytest.approx(0.5 * 2**0.5)


def test_time_to_steady_and_drop_have_no_interval_in_one_run(session):
    document = compare([session("a"), session("b")])
    (a, _) = document["groups"]
    assert a["measures"]["time_to_steady_s"]["mean"] == 1270.0
    assert a["measures"]["drop_frac"]["mean"] == 0.04
    for name in ("time_to_steady_s", "drop_frac"):
        found = only(document)[name]
        assert (found["word"], found["u95"]) == ("no difference shown", None)
        assert found["reason"] == "no interval is known for it"


def test_the_document_is_as_described(session):
    document = compare([session("a"), session("b", day=2), session("c", 9000.0, day=3,
                       info={"ecc_is_on": True})])  # fmt: skip
    assert set(document) == {
        "schema", "marks", "rule", "sessions", "differs", "warnings", "groups", "repeats",
        "comparisons",
    }  # fmt: skip
    assert document["schema"] == "heatsoak-compare/1"
    assert set(document["sessions"][0]) == {
        "label", "path", "id", "name", "created_utc", "host", "protocol",
    }  # fmt: skip
    for group in document["groups"]:
        assert set(group) == {
            "label", "runs", "sessions", "devices", "card", "name", "provenance", "unit",
            "watts_are", "marks", "behind_best_frac", "measures",
        }  # fmt: skip
    for entry in (*document["groups"], *document["repeats"]):
        assert set(entry["measures"]) == set(MEASURES)
        assert all(one is None or set(one) == MEASURE for one in entry["measures"].values())
    (comparison,) = document["comparisons"]
    assert set(comparison) == {"group", "reference", "how", "measures"}
    assert all(set(one) == DIFFERENCE for one in comparison["measures"].values())
    assert set(document["differs"][0]) == {"id", "title", "explains", "values"}
    assert document["marks"] == ["SYNTHETIC"]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("unit", {"unit": "images"}),
        ("workload", {"version": 2}),
        ("driver", {"info": {"driver_version": "575.51"}}),
        ("torch", {"environment": machine("2.8.0")}),
        ("power_limit_w", {"info": {"power_limit_w": 450.0}}),
        ("application_clock_mhz", {"info": {"application_clock_mhz": 2100.0}}),
        ("clock_is_held", {"info": {"sm_clock_is_held": True}}),
        ("ecc", {"info": {"ecc_is_on": True}}),
        ("specimen", {"uuid": "y"}),
        ("start_temperature_c", {"start_c": 55.0}),
        ("busy", {"environment": machine(findings=[("users", "in use")])}),
        ("load_per_core", {"environment": machine(load=6.0)}),
        ("protocol", {"protocol": "quick"}),
        ("watts", {"info": {"power_scope": "module"}}),
        ("findings", {"environment": machine(findings=[("pcie", "PCIe x8 of x16")])}),
    ],
)
def test_a_planted_confounder_is_named_first_and_alone(session, name, changed):
    document = compare([session("a"), session("b", day=2, **changed)])
    (found,) = document["differs"]
    assert found["id"] == name
    assert set(found["values"]) == {"A", "B"}
    assert found["values"]["A"] != found["values"]["B"]


def test_what_explains_more_comes_first(session):
    changed = {"info": {"driver_version": "575.51", "power_limit_w": 450.0}, "start_c": 60.0}
    document = compare([session("a"), session("b", unit="images", **changed)])
    assert [one["id"] for one in document["differs"]] == [
        "unit", "driver", "power_limit_w", "start_temperature_c",
    ]  # fmt: skip


def test_a_room_a_little_warmer_and_an_idle_host_do_not_differ(session):
    document = compare([session("a"), session("b", start_c=35.0, environment=machine(load=1.9))])
    assert document["differs"] == []


def test_what_is_not_known_of_one_is_told(session):
    document = compare([session("a"), session("b", start_c=None)])
    (found,) = document["differs"]
    assert found["values"] == {"A": 31.0, "B": None}


def test_another_amount_of_work_is_not_compared_and_another_way_is(session, write_session):
    recipe = write_session.__globals__["RECIPE"]
    longer = compare([session("a"), session("b", recipe=replace(recipe, context=8192))])
    assert only(longer)["throughput"]["word"] == "not comparable"
    assert only(longer)["throughput"]["reason"] == "context 8192 and 4096"
    assert only(longer)["throughput"]["by"] is None
    assert only(longer)["power_w"]["word"] == "no difference shown"
    compiled = compare([session("c"), session("d", 9900.0, recipe=replace(recipe, compile=True))])
    assert only(compiled)["throughput"]["word"] == "faster"
    assert compiled["differs"][0]["values"] == {"A": {"compile": False}, "B": {"compile": True}}


def test_a7_watts_of_a_module_are_not_held_against_a_board(session):
    document = compare([session("a"), session("b", info={"power_scope": "module"})])
    for name in ("power_w", "joules_per_unit"):
        assert only(document)[name]["word"] == "not comparable"
        assert "module" in only(document)[name]["reason"]
    assert only(document)["throughput"]["word"] == "no difference shown"


def test_e6_the_boundary_of_the_watts_is_declared(session):
    document = compare([session("a"), session("b", info={"power_scope": "module"})])
    assert [group["watts_are"] for group in document["groups"]] == ["gpu", "module"]


def test_a23_held_clocks_limits_and_firmware_are_warned_of(session):
    info = {"sm_clock_is_held": True, "power_limit_w": 450.0, "vbios": "98.02"}
    document = compare([session("a", info={"vbios": "97.00"}), session("b", info=info)])
    assert [one["id"] for one in document["differs"]] == [
        "power_limit_w", "clock_is_held", "vbios",
    ]  # fmt: skip


def test_repeats_are_pooled_and_their_spread_decides(session):
    """A and C wander by 1.4 %, so 1 % more is not shown, though each run claims 0.1 %."""
    files = [
        session("a", 9100.0, day=1, u95=0.001),
        session("b", 9280.0, day=2, u95=0.001, info={"ecc_is_on": True}),
        session("c", 9280.0, day=3, u95=0.001),
    ]
    document = compare(files)
    assert [group["label"] for group in document["groups"]] == ["A+C", "B"]
    found = only(document)["throughput"]
    assert (found["basis"], found["word"]) == ("between", "no difference shown")
    sd = document["groups"][0]["measures"]["throughput"]["between_sd"]
    assert sd == pytest.approx(180 / 2**0.5)
    assert found["u95"] == pytest.approx(12.706 * sd / 9190 * 1.5**0.5 * 9280 / 9190)
    assert any("1 degree of freedom" in text for text in document["warnings"])
    alone = compare(files, each=True)
    assert [one["group"] for one in alone["comparisons"]] == ["B", "C"]
    assert alone["comparisons"][0]["measures"]["throughput"]["word"] == "faster"


def test_nothing_but_repeats_is_held_run_against_run(session):
    document = compare([session("a", day=1), session("b", 9400.0, day=2)])
    assert [group["label"] for group in document["groups"]] == ["A", "B"]
    assert only(document)["throughput"]["word"] == "faster"
    assert any("repeats of one configuration" in text for text in document["warnings"])
    assert any("how much a repeat would differ" in text for text in document["warnings"])
    (repeats,) = document["repeats"]
    assert repeats["runs"] == ["A", "B"]
    assert repeats["measures"]["throughput"]["between_sd"] == pytest.approx(210 / 2**0.5)


def test_e3_repeats_that_did_not_start_alike_are_warned_of(session):
    apart = compare([session("a", start_c=31.0), session("b", start_c=60.0)])
    assert any("31 to 60 °C" in text for text in apart["warnings"])
    alike = compare([session("c", start_c=31.0), session("d", start_c=33.0)])
    assert not any("start temperatures" in text for text in alike["warnings"])


def test_e5_the_order_of_the_runs_is_told_unless_they_alternate(session):
    a, b = session("a", day=1), session("b", day=2, info={"ecc_is_on": True})
    one_way = compare([a, b])["warnings"]
    assert any("A ran before B" in text and "A once more after B" in text for text in one_way)
    the_other = compare([b, a])["warnings"]
    assert any("B ran before A" in text for text in the_other)
    again = compare([a, b, session("c", day=3)])["warnings"]
    assert not any(text.startswith("order") for text in again)
    unknown = compare([a, session("d", day=1, info={"ecc_is_on": True})])["warnings"]
    assert any("order of the runs is not known" in text for text in unknown)


def test_devices_are_held_against_themselves(session):
    a = session("a", count=2)
    b = session("b", 9000.0, count=2, day=2, info={"ecc_is_on": True})
    document = compare([a, b])
    pairs = [(c["group"], c["reference"], c["how"]) for c in document["comparisons"]]
    assert pairs == [
        ("A/0", "A/1", "best of the model"),
        ("B/0", "A/0", "same device"),
        ("B/1", "A/1", "same device"),
    ]
    assert [c["measures"]["throughput"]["word"] for c in document["comparisons"]] == ["slower"] * 3
    assert sum(text.startswith("order: A ran before B") for text in document["warnings"]) == 1


def test_d9_another_specimen_is_held_against_the_best_of_its_model(session):
    a, b = session("a", count=2), session("b", 9200.0, uuid="y")
    document = compare([a, b])
    last = document["comparisons"][-1]
    assert (last["group"], last["reference"], last["how"]) == ("B", "A/1", "best of the model")
    behind = {group["label"]: group["behind_best_frac"] for group in document["groups"]}
    assert behind["A/1"] == 0.0
    assert behind["A/0"] == pytest.approx(1 - 1 / 1.02)


def test_another_model_is_held_against_the_best_of_the_session(session):
    document = compare([session("a", count=2), session("b", 5000.0, "rtx-pro-5000-72", uuid="z")])
    last = document["comparisons"][-1]
    assert (last["reference"], last["how"]) == ("A/1", "best of the session")
    assert document["groups"][-1]["behind_best_frac"] is None
    assert "specimen" not in {
        one["id"] for one in compare([session("c"), session("d", 1.0, "l40s", uuid="z")])["differs"]
    }


def test_a_set_of_cards_is_no_card(session):
    document = compare([session("a"), session("b", 18000.0, count=2, ddp=True)])
    assert only(document)["throughput"]["word"] == "not comparable"
    assert only(document)["power_w"]["word"] == "not comparable"
    assert only(document)["joules_per_unit"]["word"] != "not comparable"


def test_synthetic_is_held_against_measured_only_when_asked(session):
    a, b = session("a"), session("b", provenance="measured")
    with pytest.raises(UsageError, match="--allow-mixed"):
        compare([a, b])
    document = compare([a, b], Allowed(mixed=True))
    assert document["marks"] == ["SYNTHETIC"]
    assert document["warnings"][0] == (
        "measured and synthetic figures side by side, because you asked for it"
    )
    assert document["differs"][0]["id"] == "provenance"
    assert {group["behind_best_frac"] for group in document["groups"]} == {None}


def test_smoke_and_not_steady_only_when_asked(session):
    a = session("a")
    smoke, moving = session("b", protocol="smoke"), session("c", state="not-steady")
    with pytest.raises(UsageError, match="--allow-smoke"):
        compare([a, smoke])
    with pytest.raises(UsageError, match="--allow-not-steady"):
        compare([a, moving])
    document = compare([a, smoke, moving], Allowed(smoke=True, not_steady=True), each=True)
    assert document["marks"] == ["NOT STEADY", "SMOKE", "SYNTHETIC"]
    assert [group["marks"] for group in document["groups"]] == [
        ["SYNTHETIC"], ["SMOKE", "SYNTHETIC"], ["NOT STEADY", "SYNTHETIC"],
    ]  # fmt: skip
    assert document["groups"][2]["measures"]["time_to_steady_s"] is None


def test_figures_that_are_no_measure_of_the_card_are_told(session):
    document = compare([session("a"), session("b", flags=("unsaturated",))])
    assert any(text.startswith("B: the workload does not load it") for text in document["warnings"])


def test_two_to_eight_sessions(session):
    a = session("a")
    with pytest.raises(UsageError, match="two different"):
        compare([a, a])
    eight = [a, *(session(f"b{n}", day=n + 2) for n in range(7))]
    assert len(compare(eight)["comparisons"]) == 7
    with pytest.raises(UsageError, match="8 sessions at most"):
        compare([*eight, session("z", day=20)])
