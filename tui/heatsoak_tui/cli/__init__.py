"""The `heatsoak` command. A command's code is imported when it runs: `--help` is instant."""

from __future__ import annotations

import os
import sys

from heatsoak.errors import HeatsoakError
from heatsoak_tui.cli.parser import build_parser


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns its exit code (see `heatsoak --help`)."""
    arguments = build_parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        # A locale without UTF-8 must cost a glyph, not the result.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except HeatsoakError as error:
        print(f"heatsoak: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader (`head`, a pager) has left; nothing more may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
