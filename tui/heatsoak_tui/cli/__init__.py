"""The `heatsoak` command. A command's code is imported when it runs: `--help` is instant."""

from __future__ import annotations

import errno
import io
import os
import sys

from heatsoak.errors import HeatsoakError
from heatsoak_tui.cli.parser import build_parser


def main(argv: list[str] | None = None) -> int:
    """Run one command line; returns its exit code (see `heatsoak --help`)."""
    _prepare_streams()
    arguments = build_parser().parse_args(argv)
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
        _silence_stdout()
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"heatsoak: the output cannot be written: {error.strerror}", file=sys.stderr)
        _silence_stdout()
        return 2
    return code


def _prepare_streams() -> None:
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:  # The shell closed it (`>&-`); no file of ours may get its number.
            os.open(os.devnull, os.O_RDWR)
    # Python leaves None where it found a stream closed.
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        # A locale without UTF-8 must cost a glyph, not the result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
