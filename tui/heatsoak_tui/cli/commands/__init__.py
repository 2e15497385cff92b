"""The commands: one module each, found by itself, named as the user types it.

A module's name ends with `_` where the command's is a word of Python's: `import_`. It offers
`ORDER` (its place in the help), `HELP` (one line), `configure(parser)` and `run(arguments)`, which
returns the exit code. It imports nothing heavy before `run`: `heatsoak --help` imports all of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import argparse


class Command(Protocol):
    """What a module of this package offers."""

    ORDER: int
    HELP: str

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; returns the exit code."""
        ...


def commands() -> dict[str, Command]:
    """All commands by name, in the order of the help."""
    found = {
        module.name.rstrip("_"): cast(
            "Command", importlib.import_module(f"{__name__}.{module.name}")
        )
        for module in pkgutil.iter_modules(__path__)
    }
    return dict(sorted(found.items(), key=lambda item: item[1].ORDER))
