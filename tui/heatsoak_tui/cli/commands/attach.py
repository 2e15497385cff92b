"""`heatsoak attach`: the screen on a run that is going on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 11
HELP = "the screen on a run that is going on"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("session", nargs="?", help="id, name or file; default: the only run")
    parser.add_argument("--headless", action="store_true", help="lines instead of the screen")


def run(arguments: argparse.Namespace) -> int:
    """Watch the run."""
    from heatsoak_tui.cli.watch import find_running, follow, has_screen, show

    running = find_running(arguments.session)
    if arguments.headless or not has_screen():
        return follow(running, as_json=False)
    return show(running.path)
