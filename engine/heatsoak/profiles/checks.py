"""Small checks of what a YAML file says; each failure is one sentence without the file's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class SchemaError(Exception):
    """What is wrong in a profile file; whoever reads the file adds its name."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number from 0 up, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9


def mapping(value: object, where: str) -> dict[str, Any]:
    """The value, if it maps names to values."""
    if not isinstance(value, dict):
        raise SchemaError(f"{where} must be a mapping of names to values")
    return value


def listed(value: object, where: str) -> list[Any]:
    """The value, if it is a list."""
    if not isinstance(value, list):
        raise SchemaError(f"{where} must be a list")
    return value


def known(names: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Refuse names that nobody reads."""
    for key in names:
        if key not in keys:
            raise SchemaError(f"{where} has the unknown key {key!r}; known: {', '.join(keys)}")


def text(value: object, where: str) -> str:
    """The value, if it is text that says something."""
    if not isinstance(value, str) or not value:
        raise SchemaError(f"{where} must be text in quotes, not {value!r}")
    return value


def optional_text(value: object, where: str) -> str | None:
    """The same, or None."""
    return None if value is None else text(value, where)


def schema(top: Mapping[str, Any], wanted: str) -> None:
    """Refuse a file of another schema or version."""
    if top.get("schema") != wanted:
        raise SchemaError(f"schema is {top.get('schema')!r}, this version reads {wanted!r}")
