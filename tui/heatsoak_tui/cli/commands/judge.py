"""`heatsoak judge`: what the judge says of logs and sessions, as if live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 42
HELP = "what the judge says of logs and sessions, as if live"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="session, or CSV log with t_s")
    parser.add_argument("--protocol", help="default: the session's own; standard for a log")
    parser.add_argument("--json", action="store_true", help="one JSON object a device and line")


def run(arguments: argparse.Namespace) -> int:
    """Print one line a file and device; a file that cannot be read costs code 2."""
    from heatsoak.errors import UsageError
    from heatsoak.session.rejudge import judge_file
    from heatsoak_tui.cli.narration import say
    from heatsoak_tui.cli.text import verdict_text

    code = 0
    for file in arguments.files:
        try:
            for line in judge_file(Path(file), arguments.protocol):
                print(json.dumps(line) if arguments.json else verdict_text(line), flush=True)
        except UsageError as error:
            say(f"heatsoak: {error}")
            code = error.exit_code
    return code
