"""Reading card profiles: the user's own, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import heatsoak
from heatsoak.errors import UsageError
from heatsoak.profiles.cards import card_for_name, card_profiles, load_card

OWN = """
schema: heatsoak-card/1
id: {id}
name: My Card
nvml:
  names: [NVIDIA My Card]
facts:
  memory_total_mib: 24000
  power_w: 320
  bf16_dense_tflops: [100, 120]
"""


@pytest.fixture
def own_cards(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "heatsoak" / "cards"
    folder.mkdir(parents=True)
    return folder


def test_figures_come_in_the_engines_units_with_their_evidence():
    card = card_profiles()["rtx-5090"]
    assert card.name == "GeForce RTX 5090"
    assert card.provenance == "shipped"
    assert card.memory_total_bytes == 32607 * 1024 * 1024
    assert card.bandwidth_bytes_per_s == 1.792e12
    assert card.power_w == 575
    assert card.bf16_dense_flops == 209.5e12
    assert card.bf16_gemm_measured_flops == (222e12, 242e12)
    assert (card.pcie_gen, card.pcie_width) == (5, 16)
    measured = card.facts["bf16_gemm_measured_tflops"]
    assert measured.value == (222.0, 242.0)
    assert measured.confidence == "measured"
    assert "torch.matmul" in measured.sources[0]


def test_what_is_not_known_is_absent():
    card = card_profiles()["rtx-pro-5000-48"]
    assert card.bf16_gemm_measured_flops is None
    assert "street_2026_usd" not in card.facts
    # A derived range: a share of the peak is taken of its upper end.
    assert card.bf16_dense_flops == 267.7e12
    assert card.facts["bf16_dense_tflops"].value == (258.0, 267.7)


def test_a_users_card_joins_the_shipped_ones(own_cards):
    (own_cards / "mine.yaml").write_text(OWN.format(id="my-card"))
    card = card_profiles()["my-card"]
    assert card.provenance == "user"
    assert card.bf16_dense_flops == 120e12
    assert card.bandwidth_bytes_per_s is None
    assert card_for_name("NVIDIA My Card", 24000 * 1024 * 1024) == card
    assert len(card_profiles()) == 17


def test_a_users_card_wins_over_a_shipped_one_of_its_id_and_of_its_name(own_cards):
    (own_cards / "5090.yaml").write_text(OWN.format(id="rtx-5090"))
    assert card_profiles()["rtx-5090"].power_w == 320
    assert len(card_profiles()) == 16
    text = OWN.format(id="my-4090").replace("My Card", "GeForce RTX 4090")
    (own_cards / "4090.yaml").write_text(text)
    assert load_card(own_cards / "4090.yaml").id == "my-4090"


def test_a_users_card_is_preferred_for_a_name_that_a_shipped_one_has_too(own_cards):
    text = OWN.format(id="my-4090").replace("My Card", "GeForce RTX 4090")
    (own_cards / "4090.yaml").write_text(text.replace("24000", "24564"))
    card = card_for_name("NVIDIA GeForce RTX 4090", 24564 * 1024 * 1024)
    assert card is not None
    assert card.id == "my-4090"


def test_two_cards_of_one_name_are_told_apart_by_memory(own_cards):
    (own_cards / "a.yaml").write_text(OWN.format(id="my-24"))
    (own_cards / "b.yaml").write_text(OWN.format(id="my-12").replace("24000", "12000"))
    assert card_for_name("NVIDIA My Card", 12000 * 1024 * 1024).id == "my-12"
    assert card_for_name("NVIDIA My Card", 24000 * 1024 * 1024).id == "my-24"
    assert card_for_name("NVIDIA My Card", 16000 * 1024 * 1024) is None
    assert card_for_name("NVIDIA My Card", None) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("schema: heatsoak-card/1", "schema: heatsoak-card/2"), "heatsoak-card/2"),
        (("id: my-card", "id: My Card"), "lower-case"),
        (("id: my-card", ""), "id must be text"),
        (("power_w: 320", "power_w: many"), "facts.power_w must be a number"),
        (("power_w: 320", "power_w: -3"), "facts.power_w must be a number"),
        (("power_w: 320", "power_w: true"), "facts.power_w must be a number"),
        (("power_w: 320", "power_w: .nan"), "facts.power_w must be a number"),
        (("power_w: 320", "watts: 320"), "unknown key 'watts'"),
        (("[100, 120]", "[120, 100]"), "from high to low"),
        (("power_w: 320", "power_w: {value: 320, sources: [NOWHERE]}"), "NOWHERE"),
        (("power_w: 320", "pcie: fast"), "facts.pcie"),
        (("power_w: 320", "isv_drivers: maybe"), "true or false"),
        (("power_w: 320", "ecc_kind: good"), "facts.ecc_kind must be one of none, on-die"),
        (
            ("power_w: 320", "street_2026_usd: {value: 3, as_of: May}"),
            "facts.street_2026_usd.as_of",
        ),
        (("names: [NVIDIA My Card]", "names: NVIDIA My Card"), "nvml.names"),
        (("facts:", "facts: ["), "cannot be read"),
        ((OWN.format(id="my-card"), "just words"), "must be a mapping"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_in_one_line(tmp_path, change, words):
    path = tmp_path / "mine.yaml"
    path.write_text(OWN.format(id="my-card").replace(*change))
    with pytest.raises(UsageError) as caught:
        load_card(path)
    text = str(caught.value)
    assert words in text
    assert str(path) in text
    assert "\n" not in text


def test_two_files_of_one_id_are_refused(own_cards):
    (own_cards / "a.yaml").write_text(OWN.format(id="my-card"))
    (own_cards / "b.yaml").write_text(OWN.format(id="my-card"))
    with pytest.raises(UsageError, match=r"my-card is also in .*a\.yaml"):
        card_profiles()


def test_importing_reads_nothing():
    code = "import sys, heatsoak.profiles.cards; print('yaml' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_an_installed_package_reads_its_own_copy(tmp_path):
    # As a wheel lays it out: the data lies inside the package of the same name.
    package = Path(heatsoak.__file__).parent
    shutil.copytree(package, tmp_path / "heatsoak", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        package.parents[1] / "profiles", tmp_path / "heatsoak" / "profiles", dirs_exist_ok=True
    )
    (tmp_path / "heatsoak" / "profiles" / "cards" / "rtx-5090.yaml").unlink()
    code = (
        "import heatsoak.profiles.cards as p; cards = p.card_profiles(); "
        "print(p.__file__, len(cards), 'rtx-5090' in cards)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        str(tmp_path / "heatsoak" / "profiles" / "cards.py"),
        "15",
        "False",
    ]
