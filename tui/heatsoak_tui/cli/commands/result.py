"""`heatsoak result`: what one session found."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 41
HELP = "what a session found"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("session", help="session file, id or name")
    parser.add_argument("--json", action="store_true", help="heatsoak-result/1")


def run(arguments: argparse.Namespace) -> int:
    """Print one session's result."""
    from heatsoak.session.library import find_session
    from heatsoak.session.result import load_result
    from heatsoak_tui.cli.narration import tell_crashed
    from heatsoak_tui.cli.text import print_json, result_text

    tell_crashed()
    path = find_session(arguments.session)
    document = load_result(path)
    if arguments.json:
        print_json(document)
    else:
        print(result_text(document, path))
    return 0
