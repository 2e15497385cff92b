"""Where profile files lie, and reading one. A user's file wins over a shipped one of its name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def shipped_folder() -> Path:
    """The folder of the shipped files.

    In a checkout its `profiles/`, which an editable install's copy lags behind; else the package.
    """
    package = Path(__file__).resolve().parent
    checkout = package.parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "profiles" / "cards").is_dir():
        return checkout / "profiles"
    return package


def user_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's own files and settings: `$XDG_CONFIG_HOME/heatsoak`.

    A relative `XDG_CONFIG_HOME` is ignored, as its specification demands.
    """
    base = environment.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "heatsoak"


def read_yaml(path: Path, what: str) -> object:
    """The document in a YAML file.

    Args:
        path: the file.
        what: what it should be, for the error: `card profile`.

    Raises:
        UsageError: it cannot be read, or is no YAML.
    """
    import yaml  # here: it costs 20 ms, and most commands need no profile

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document: object = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        text = str(error).replace("\n", " ")
        raise UsageError(f"{what} {path} cannot be read: {text}") from error
    return document
