"""`heatsoak sessions`: the sessions folder, newest first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 40
HELP = "list the recorded sessions"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """List every session."""
    from heatsoak.session.library import list_sessions
    from heatsoak_tui.cli.narration import tell_crashed
    from heatsoak_tui.cli.text import print_json, sessions_text

    tell_crashed()
    rows = [asdict(summary) for summary in list_sessions()]
    if arguments.json:
        print_json({"schema": "heatsoak-sessions/1", "sessions": rows})
    else:
        print(sessions_text(rows))
    return 0
