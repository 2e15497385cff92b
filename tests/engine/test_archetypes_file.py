"""The archetypes as data: the shipped file is sound, a user's own is checked in one line."""

from __future__ import annotations

import copy

import pytest
import yaml

from heatsoak.errors import UsageError
from heatsoak.profiles.archetypes import CRITERIA, FILE, MUSTS, archetypes
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.files import shipped_folder

ARTICLE = (
    "Workstation AI ROI Favors RTX PRO 5000 for 13B Fine-Tunes and RTX 5090 for Perf-per-Dollar"
)
OWN = {
    "schema": "heatsoak-archetypes/1",
    "archetypes": [
        {
            "id": "my-lab",
            "name": "My lab",
            "who": "Us.",
            "priority": "quiet",
            "article": {"cards": ["rtx-5090"], "says": "RTX 5090"},
            "require": {"cards_at_most": 2, "holds": "measured", "memory_gb": [24, 96]},
            "rank": ["rate"],
            "why": "The fastest.",
            "corrections": ["ecc-ships-off", "own"],
            "checklist": ["price"],
        }
    ],
    "corrections": [{"id": "own", "says": "a", "holds": "b", "evidence": "c"}],
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """own(document) -> None: puts it where the user's file lies."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "heatsoak").mkdir()

    def put(document):
        text = document if isinstance(document, str) else yaml.safe_dump(document)
        (tmp_path / "heatsoak" / FILE).write_text(text)

    return put


def test_the_articles_five(own):
    kinds = archetypes()
    assert kinds.article == ARTICLE
    assert [kind.id for kind in kinds.archetypes] == [
        "perf-per-dollar", "regulated-it", "full-13b", "strong-scaling", "proven-48",
    ]  # fmt: skip
    cards = card_profiles()
    for kind in kinds.archetypes:
        assert kind.provenance == "shipped"
        assert kind.checklist
        assert kind.corrections
        assert kind.constraints
        assert set(kind.article_cards) <= set(cards)
        for correction in kind.corrections:
            assert set(correction.cards) <= set(cards)
    regulated = kinds.archetypes[1]
    assert all(getattr(regulated.require, must) for must in MUSTS)


def test_every_correction_and_item_is_used_by_somebody(own):
    document = yaml.safe_load((shipped_folder() / FILE).read_text())
    kinds = archetypes().archetypes
    for part in ("corrections", "checklist"):
        used = {entry.id for kind in kinds for entry in getattr(kind, part)}
        assert used == {entry["id"] for entry in document[part]}


def test_the_comment_of_the_file_names_every_criterion(own):
    comment = (shipped_folder() / FILE).read_text().partition("schema:")[0]
    for criterion in CRITERIA:
        assert criterion in comment


def test_a_users_entries_join_the_shipped_ones_and_may_use_theirs(own):
    own(OWN)
    kinds = archetypes()
    assert kinds.article == ARTICLE
    mine = kinds.archetypes[-1]
    assert mine.provenance == "user"
    assert mine.require.memory_gb == (24.0, 96.0)
    assert mine.require.cards_at_most == 2
    assert [correction.id for correction in mine.corrections] == ["ecc-ships-off", "own"]
    assert len(kinds.archetypes) == 6


def test_a_users_entry_replaces_the_shipped_one_of_its_id(own):
    document = copy.deepcopy(OWN)
    document["archetypes"][0]["id"] = "full-13b"
    own(document)
    kinds = archetypes().archetypes
    assert [kind.id for kind in kinds].index("full-13b") == 2
    assert kinds[2].name == "My lab"
    assert kinds[2].provenance == "user"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(schema="x"), "heatsoak-archetypes/1"),
        (lambda d: d.update(more=1), "unknown key 'more'"),
        (lambda d: d["archetypes"][0].update(colour="red"), "my-lab has the unknown key 'colour'"),
        (lambda d: d["archetypes"][0].update(id="My Lab"), "lower-case"),
        (lambda d: d["archetypes"][0].pop("name"), "my-lab.name must be text"),
        (lambda d: d["archetypes"][0].update(rank=[]), "names nothing that could decide"),
        (lambda d: d["archetypes"][0].update(rank=["speed"]), "'speed'; known: units_per_price"),
        (lambda d: d["archetypes"][0].update(needs="cards"), "not in its rank"),
        (lambda d: d["archetypes"][0].update(require=None), "require must be a mapping"),
        (lambda d: d["archetypes"][0]["require"].pop("cards_at_most"), "whole number of cards"),
        (lambda d: d["archetypes"][0]["require"].update(cards_at_most=0), "whole number of cards"),
        (lambda d: d["archetypes"][0]["require"].update(ecc="yes"), "ecc must be true or false"),
        (lambda d: d["archetypes"][0]["require"].update(mig=1.5), "whole number of instances"),
        (lambda d: d["archetypes"][0]["require"].update(nvlink_gb_per_s="a"), "must be a number"),
        (lambda d: d["archetypes"][0]["require"].update(memory_gb=[96, 24]), "[from, to]"),
        (lambda d: d["archetypes"][0]["require"].update(tiers=["gaming"]), "'gaming'; known"),
        (lambda d: d["archetypes"][0].update(corrections=["none"]), "not under corrections"),
        (lambda d: d["archetypes"][0].update(checklist=["none"]), "not under checklist"),
        (lambda d: d["archetypes"].append(d["archetypes"][0]), "the id 'my-lab' twice"),
        (lambda d: d.update(archetypes={}), "archetypes must be a list"),
        (lambda d: d["corrections"][0].pop("evidence"), "own.evidence must be text"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(own, change, words):
    document = copy.deepcopy(OWN)
    change(document)
    own(document)
    with pytest.raises(UsageError) as caught:
        archetypes()
    text = str(caught.value)
    assert words in text
    assert FILE in text
    assert "\n" not in text


def test_a_file_that_is_no_yaml_is_refused(own):
    own("archetypes: [")
    with pytest.raises(UsageError, match=r"archetypes\.yaml cannot be read"):
        archetypes()
