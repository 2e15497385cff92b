"""The shipped card profiles: complete, sourced, and never two for one card."""

from __future__ import annotations

from pathlib import Path

import pytest

from heatsoak.profiles.cards import card_for_name, card_profiles, load_card

FOLDER = Path(__file__).resolve().parents[2] / "profiles" / "cards"
PATHS = sorted(FOLDER.glob("*.yaml"))
CARDS = [load_card(path, "shipped") for path in PATHS]
IDS = [card.id for card in CARDS]


def test_the_sixteen_cards_are_there():
    assert IDS == [
        "a100-pcie-80",
        "a100-sxm-80",
        "b200",
        "h100-pcie",
        "h100-sxm",
        "h200-sxm",
        "l40s",
        "rtx-4090",
        "rtx-5000-ada",
        "rtx-5080",
        "rtx-5090",
        "rtx-6000-ada",
        "rtx-pro-4500",
        "rtx-pro-5000-48",
        "rtx-pro-5000-72",
        "rtx-pro-6000-ws",
    ]


@pytest.mark.parametrize(("path", "card"), zip(PATHS, CARDS, strict=True), ids=IDS)
def test_a_file_is_named_by_its_id_and_every_figure_has_a_source(path, card):
    assert path.stem == card.id
    assert card.nvml_names
    for name, fact in card.facts.items():
        if fact.value is not None:
            assert fact.sources, f"{card.id}: {name} has no source"
        else:
            assert fact.note, f"{card.id}: {name} is not known, and nothing is said of it"
        assert all(len(source) > 10 for source in fact.sources)


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_figures_are_of_the_size_a_training_card_has(card):
    assert 15e9 < card.memory_total_bytes < 200e9
    assert 100 <= card.power_w <= 1000
    assert 500e9 < card.bandwidth_bytes_per_s < 8e12
    assert 100e12 < card.bf16_dense_flops < 2500e12
    if card.bf16_gemm_measured_flops is not None:
        low, high = card.bf16_gemm_measured_flops
        assert 0.5 * card.bf16_dense_flops < low <= high < 1.2 * card.bf16_dense_flops
    if card.fp8_dense_flops is not None:
        assert card.fp8_dense_flops == pytest.approx(2 * card.bf16_dense_flops, rel=0.02)
    assert card.pcie_gen in (4, 5)
    assert card.pcie_width == 16


def test_no_name_and_memory_match_two_cards():
    for card in CARDS:
        for name in card.nvml_names:
            for memory_bytes in {other.memory_total_bytes for other in CARDS} | {None}:
                matching = [
                    other
                    for other in CARDS
                    if name in other.nvml_names
                    and (
                        memory_bytes is None
                        or abs(memory_bytes - other.memory_total_bytes)
                        <= 0.1 * other.memory_total_bytes
                    )
                ]
                assert len(matching) <= 1
            assert card_for_name(name, card.memory_total_bytes) == card_profiles()[card.id]


@pytest.mark.parametrize(
    ("name", "mib"),
    [
        ("NVIDIA RTX PRO 5000 Blackwell Generation Laptop GPU", 24463),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 97887),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887),
        ("NVIDIA GeForce RTX 5090 D", 32607),
        ("NVIDIA GeForce RTX 5090 Laptop GPU", 24463),
        ("GeForce RTX 5090", 32607),
        ("NVIDIA H100", 81559),
        ("NVIDIA A100-PCIE-80GB", 81920),
        ("NVIDIA GeForce RTX 5090", 24463),
        ("", None),
    ],
)
def test_a_sibling_is_not_taken_for_the_card(name, mib):
    assert card_for_name(name, None if mib is None else mib * 1024 * 1024) is None


def test_inline_ecc_takes_memory_and_the_card_is_still_known():
    card = card_for_name("NVIDIA RTX 6000 Ada Generation", 46068 * 1024 * 1024)
    assert card is not None
    assert card.id == "rtx-6000-ada"


@pytest.mark.parametrize("card", CARDS, ids=IDS)
def test_what_a_buyer_asks_of_a_card_is_a_typed_figure(card):
    assert card.memory_nominal_gb * 1e9 == pytest.approx(card.memory_total_bytes, rel=0.08)
    assert card.ecc_kind in ("on-die", "inline", "full")
    # What has no mode to switch cannot ship with it on; data-centre cards do.
    if card.ecc_kind == "on-die":
        assert card.ecc_ships_on is None
    if card.tier.startswith("datacenter"):
        assert card.ecc_ships_on is True
    assert card.mig_max in (0, 2, 4, 7)
    if card.tier == "geforce":
        assert (card.has_isv_drivers, card.nvlink_bytes_per_s) == (False, 0)
    if card.tier == "pro_workstation":
        assert card.has_isv_drivers is True
        assert card.ecc_ships_on in (False, None)
    assert 2020 <= int(card.launch[:4]) <= 2026
    if card.street_price_usd is not None:
        low, high = card.street_price_usd
        assert 500 < low <= high
        assert card.street_as_of.startswith("2026-")


def test_ecc_takes_a_sixteenth_only_where_it_is_inline_and_off():
    mib = {card.id: round(card.memory_with_ecc_bytes / 2**20) for card in CARDS}
    assert mib["rtx-6000-ada"] == pytest.approx(46068, abs=1)
    assert mib["l40s"] == 46068
    assert mib["rtx-pro-6000-ws"] == 97887
    assert mib["rtx-5090"] == 32607
