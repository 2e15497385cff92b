"""`heatsoak judge`: what the judge says of logs and sessions, as if live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak_tui.cli.commands.import_ import add_log_options, log_options

if TYPE_CHECKING:
    import argparse

ORDER = 42
HELP = "what the judge says of logs and sessions, as if live"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="session, or a log of any tool")
    parser.add_argument("--protocol", help="default: the session's own; standard for a log")
    add_log_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a device and line")


def run(arguments: argparse.Namespace) -> int:
    """Print one line a file and device; a file that cannot be read costs code 2."""
    from heatsoak.errors import UsageError
    from heatsoak.session.rejudge import judge_file
    from heatsoak_tui.cli.narration import say
    from heatsoak_tui.cli.text import verdict_text

    code, options = 0, log_options(arguments)
    for file in arguments.files:
        try:
            for line in judge_file(Path(file), arguments.protocol, options, say):
                print(json.dumps(line) if arguments.json else verdict_text(line), flush=True)
        except UsageError as error:
            say(f"heatsoak: {error}")
            code = error.exit_code
    return code
