"""The shapes of open models: their counts, their names, and shapes that are typed."""

from __future__ import annotations

import pytest

from heatsoak.errors import UsageError
from heatsoak.profiles.models import find_model, model_shapes, parse_shape

MODELS = model_shapes()


@pytest.mark.parametrize("name", MODELS)
def test_the_count_of_the_shape_is_the_stated_one(name):
    shape = MODELS[name]
    assert shape.parameters_stated > 0
    assert shape.max_context >= 1024
    if shape.is_hybrid:
        assert shape.parameters == shape.parameters_stated
    else:
        assert shape.parameters_counted == shape.parameters_stated


@pytest.mark.parametrize("name", MODELS)
def test_every_shape_names_its_configuration(name):
    assert any("config.json" in source for source in MODELS[name].sources)


def test_the_common_open_models_are_there():
    wanted = (
        "llama-2-7b llama-2-13b llama-2-70b llama-3-8b llama-3-70b llama-3.1-8b llama-3.2-1b "
        "llama-3.2-3b qwen2.5-0.5b qwen2.5-1.5b qwen2.5-3b qwen2.5-7b qwen2.5-14b qwen2.5-32b "
        "mistral-7b tinyllama-1.1b gpt2 gpt2-medium gpt2-large gpt2-xl yi-34b qwen3.5-0.8b"
    )
    assert set(wanted.split()) <= set(MODELS)


@pytest.mark.parametrize(
    "name", ["llama-2-13b", "Llama-2-13B", "meta-llama/Llama-2-13b-hf", "llama_2_13b-chat"]
)
def test_a_model_is_found_as_people_write_it(name):
    assert find_model(name) == MODELS["llama-2-13b"]


def test_an_unknown_model_is_told_with_the_nearest():
    with pytest.raises(UsageError, match="no model 'lama-2-13'; did you mean llama-2-13b"):
        find_model("lama-2-13")
    with pytest.raises(UsageError, match="known: llama-2-7b") as caught:
        find_model("?")
    assert "\n" not in str(caught.value)


def test_a_typed_shape_is_the_model_it_describes():
    words = "layers=40,hidden=5120,ffn=13824,heads=40,kv_heads=40,vocab=32000"
    shape = parse_shape(words)
    assert shape.name == words
    assert shape.parameters == MODELS["llama-2-13b"].parameters
    gpt2 = parse_shape(
        "layers=12, hidden=768, ffn=3072, heads=12, kv-heads=12, vocab=50257, tied=true,"
        "gated=no, biases=all, positions=1024"
    )
    assert gpt2.parameters == MODELS["gpt2"].parameters
    stated = parse_shape(words + ",parameters=13000000000")
    assert stated.parameters == 13_000_000_000


GOOD = "layers=2,hidden=64,ffn=128,heads=4,kv_heads=2,vocab=100"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("layers=2", "needs hidden="),
        (GOOD.replace("layers=2", "layers=two"), "whole number for layers, not 'two'"),
        (GOOD.replace("layers=2", "layers=0"), "layers from 1 up"),
        (GOOD.replace("kv_heads=2", "kv_heads=3"), "multiple of kv_heads 3"),
        (GOOD.replace("heads=4", "heads=5").replace("kv_heads=2", "kv_heads=5"), "head_width="),
        (GOOD + ",width=3", "unknown key 'width'"),
        (GOOD + ",tied=2", "true or false for tied"),
        (GOOD + ",biases=some", "none, qkv or all"),
        ("40 layers", "name=number pairs"),
        ("", "name=number pairs"),
    ],
)
def test_a_shape_that_cannot_be_is_told_in_one_line(words, told):
    with pytest.raises(UsageError) as caught:
        parse_shape(words)
    assert told in str(caught.value)
    assert "layers=40,hidden=5120" in str(caught.value)
    assert "\n" not in str(caught.value)


OWN = """
schema: heatsoak-models/1
models:
  llama-2-13b: {layers: 2, hidden: 64, ffn: 128, heads: 4, kv_heads: 2, vocab: 100}
  mine: {layers: 2, hidden: 64, ffn: 128, heads: 4, kv_heads: 2, vocab: 100, tied: true}
"""


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "heatsoak" / "models.yaml"
    path.parent.mkdir()
    return path


def test_a_users_models_join_and_win(own_file):
    own_file.write_text(OWN)
    assert find_model("mine").tied
    assert find_model("llama-2-13b").layers == 2
    assert len(model_shapes()) == len(MODELS) + 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("heatsoak-models/1", "heatsoak-models/9"), "heatsoak-models/9"),
        (("layers: 2, ", ""), "needs layers="),
        (("vocab: 100", "vocab: many"), "whole number for vocab"),
        (("models:", "model:"), "unknown key 'model'"),
        ((OWN, "[]"), "must be a mapping"),
    ],
)
def test_a_users_file_that_is_no_list_of_models_is_told(own_file, change, told):
    own_file.write_text(OWN.replace(*change))
    with pytest.raises(UsageError) as caught:
        model_shapes()
    assert told in str(caught.value)
    assert str(own_file) in str(caught.value)
    assert "\n" not in str(caught.value)
