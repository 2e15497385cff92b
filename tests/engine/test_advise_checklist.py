"""The checklist before an order: what was seen or is known is told, the rest stays a question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.economics.checklist import ERRATIC_BRANCHES, checklist
from heatsoak.economics.estimate import Estimate
from heatsoak.economics.offers import CardSet, HostSeen, Measured, Offer, Price
from heatsoak.profiles.archetypes import archetypes
from heatsoak.profiles.cards import card_profiles
from heatsoak.session.measurements import load_measurements
from heatsoak.units import BYTES_PER_GIB

CARDS = card_profiles()
KINDS = {kind.id: kind for kind in archetypes().archetypes}
ITEMS = {item.id: item for kind in KINDS.values() for item in kind.checklist}
EVERYTHING = replace(KINDS["full-13b"], checklist=tuple(ITEMS.values()))
SEEN = Measured(
    "measured", 1, ("s:0",), "tokens", Estimate(9402.0, 38.0), Estimate(561.0, 2.0), None,
    20.0 * BYTES_PER_GIB, temperature_c=74.0, driver_version="580.159", power_limit_w=575.0,
    throttle_frac={"sw_power_cap": 1.0}, pcie=(5, 16), pcie_most=(5, 16),
    host=HostSeen("AMD Ryzen 9 9950X", 16, 128 * BYTES_PER_GIB, 1),
)  # fmt: skip


def rows(measured, card="rtx-5090", n=1, price=None):
    offer = Offer(card, CARDS[card].name, CARDS[card], measured, price)
    return {row.id: row for row in checklist(EVERYTHING, CardSet(offer, n))}


def test_every_item_is_answered_or_a_question():
    found = rows(SEEN, price=Price(2899.0, "USD", "2026-10-12"))
    assert list(found) == list(ITEMS)
    marks = {item: row.mark for item, row in found.items()}
    assert {item for item, mark in marks.items() if mark == "ask"} == {
        "warranty", "availability", "support", "topology",
    }  # fmt: skip
    for row in found.values():
        assert (row.provenance is None) == (row.mark == "ask")
        assert row.ask == ITEMS[row.id].ask
        assert row.text
    assert found["price"].text == "USD 2,899 a card, invoice of 2026-10-12"
    assert found["host"].text.startswith("AMD Ryzen 9 9950X, 16 cores, 128.0 GiB of memory")
    assert found["slot"].text == "PCIe 5 x16 under load"
    assert found["cooling"].text == "steady at 74 °C in this case, not slowed down by heat"


def test_without_a_card_everything_is_a_question():
    assert {row.mark for row in checklist(EVERYTHING, None)} == {"ask"}


def test_of_a_card_that_was_not_measured_only_its_profile_speaks():
    found = rows(None, "rtx-pro-5000-72")
    assert found["power"].provenance == "reference"
    assert found["ecc"].mark == "attention"  # It ships off.
    assert found["mig"].mark == "attention"  # Its guide lists another card.
    assert {found[item].mark for item in ("driver", "cooling", "slot", "host", "memory")} == {"ask"}


@pytest.mark.parametrize(
    ("item", "change", "words"),
    [
        ("driver", {"driver_version": f"{ERRATIC_BRANCHES[0]}.96"}, "erratic"),
        ("cooling", {"throttle_frac": {"hw_thermal_slowdown": 0.4}}, "slowed down by heat for 40%"),
        ("slot", {"pcie": (5, 8)}, "PCIe 5 x8 under load, of PCIe 5 x16"),
        ("host", {"flags": ("unsaturated",)}, "did not load the card fully"),
        ("ecc", {"ecc_is_on": False}, "off while it was measured"),
        (
            "topology",
            {"host": HostSeen(problems=(("peers", "no peer-to-peer"), ("ecc", "ECC is off")))},
            "doctor: no peer-to-peer",
        ),
        ("power", {"host": HostSeen(problems=(("power-limit", "below its default"),))}, "default"),
    ],
)
def test_what_is_not_as_it_should_be_asks_for_attention(item, change, words):
    row = rows(replace(SEEN, **change))[item]
    assert row.mark == "attention"
    assert words in row.text


def test_what_one_card_showed_says_little_of_four():
    found = rows(SEEN, n=4)
    assert "not measured together" in found["power"].text
    assert "2,244 W" in found["power"].text
    assert "4 warm each other" in found["cooling"].text
    assert "4 cards need 4 such slots" in found["slot"].text
    assert {found[item].mark for item in ("power", "cooling", "slot")} == {"attention"}
    together = replace(SEEN, n=4, power_w=Estimate(2200.0, 5.0), host=replace(SEEN.host, devices=4))
    found = rows(together, n=4)
    assert found["power"].mark == "seen"
    assert found["topology"].text == "doctor saw no fault between the 4 cards of this host"


def test_the_host_of_a_synthetic_card_is_no_evidence(write_session, tmp_path):
    environment = {
        "host": {"cpu": "AMD EPYC", "cores": 16, "memory_bytes": 2**37},
        "devices": [{}],
        "findings": [
            {"id": "pcie", "title": "x8 of x16", "device_id": "synthetic-0"},
            {"id": "pcie", "title": "another card", "device_id": "synthetic-9"},
            {"id": "host-load", "title": "load 5.8", "device_id": None},
        ],
    }
    one = write_session(tmp_path, "a", "rtx-5090", 9402.0, environment=environment)
    assert load_measurements([one]).by_card["rtx-5090"].host is None
    two = write_session(
        tmp_path, "b", "rtx-5090", 9402.0, environment=environment, provenance="measured"
    )
    host = load_measurements([two]).by_card["rtx-5090"].host
    assert (host.cpu, host.cores, host.devices) == ("AMD EPYC", 16, 1)
    assert host.problems == (("pcie", "x8 of x16"), ("host-load", "load 5.8"))
