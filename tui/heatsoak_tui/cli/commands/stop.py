"""`heatsoak stop`: end a run cleanly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 12
HELP = "end a run cleanly"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("session", nargs="?", help="id, name or file; default: the only run")


def run(arguments: argparse.Namespace) -> int:
    """End the run and wait until it has."""
    from heatsoak.recorder import client
    from heatsoak_tui.cli.watch import find_running

    running = find_running(arguments.session)
    client.stop(running)
    client.wait_ended(running)
    print(f"stopped {running.id}; {running.path}")
    return 0
