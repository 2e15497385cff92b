"""`heatsoak archetypes`: the kinds of buyers that advice is given to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 63
HELP = "the kinds of buyers, what each needs and what decides"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--json", action="store_true", help="heatsoak-archetypes/1")


def run(arguments: argparse.Namespace) -> int:
    """List them."""
    from dataclasses import asdict

    from heatsoak.profiles.archetypes import SCHEMA, archetypes
    from heatsoak_tui.cli.advice_text import archetypes_text
    from heatsoak_tui.cli.text import print_json

    kinds = archetypes()
    if arguments.json:
        print_json({"schema": SCHEMA} | asdict(kinds))
    else:
        print(archetypes_text(kinds))
    return 0
