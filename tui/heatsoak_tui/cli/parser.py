"""The command line as a whole; each command's own words are in `commands/`."""

from __future__ import annotations

import argparse
from typing import NoReturn

from typing_extensions import override

from heatsoak import __version__
from heatsoak_tui.cli.commands import commands
from heatsoak_tui.cli.exit_codes import EXIT_CODES


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of printing the whole usage."""

    @override
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser; each command leaves its function in `command`."""
    parser = _Parser(
        prog="heatsoak",
        description="Load training cards with a real workload until they are in thermal steady "
        "state, and freeze what they sustain. Without a command: the screen.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"heatsoak {__version__}")
    parser.set_defaults(command=_open_screen)
    subparsers = parser.add_subparsers(metavar="COMMAND")
    for name, command in commands().items():
        subparser = subparsers.add_parser(name, help=command.HELP, allow_abbrev=False)
        command.configure(subparser)
        subparser.set_defaults(command=command.run)
    return parser


def _open_screen(_: argparse.Namespace) -> int:
    from heatsoak_tui.cli.watch import open_screen

    return open_screen()
