"""What workload files say of themselves can be read without importing them."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

import heatsoak_workloads
from heatsoak.recipe import Recipe
from heatsoak.units import COUNTED_UNITS

FILES = sorted(
    path
    for path in Path(heatsoak_workloads.__file__).parent.glob("*.py")
    if not path.stem.startswith("_")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_workload_opens_with_a_complete_literal(path):
    docstring, future, first, *_ = ast.parse(path.read_bytes()).body
    assert ast.unparse(docstring.value)
    assert ast.unparse(future) == "from __future__ import annotations"
    assert [ast.unparse(target) for target in first.targets] == ["WORKLOAD"]
    literal = ast.literal_eval(first.value)
    assert literal["unit"] in COUNTED_UNITS
    assert set(literal["kinds"]) <= {"nvidia", "cpu", "synthetic"}
    for size in literal["sizes"].values():
        assert size["memory_gib"] > 0
        assert set(size["kinds"]) <= set(literal["kinds"])
        recipe = Recipe(workload=path.stem, **{**literal["defaults"], **size.get("recipe", {})})
        for field in fields(recipe):
            allowed = literal["options"].get(field.name)
            if isinstance(allowed, list):
                assert getattr(recipe, field.name) in allowed
