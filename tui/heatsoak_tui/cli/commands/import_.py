"""`heatsoak import`: a log of another tool as a session, judged as if it had been recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from heatsoak.session.importing import Options

ORDER = 43
HELP = "make a session of another tool's log"
TELL_AFTER_S = 1.0
"""From then on the progress is told, and so often."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("log", metavar="LOG", help="nvidia-smi, GPU-Z, HWiNFO or gpu-burn log")
    add_log_options(parser)
    parser.add_argument("--out", metavar="FILE", help="session file (default: the library)")
    parser.add_argument("--force", action="store_true", help="replace the session file")
    parser.add_argument("--json", action="store_true", help="one JSON object a session and line")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add what a user may say of a log."""
    parser.add_argument("--format", help="default: told from the content")
    parser.add_argument(
        "--columns", metavar="C,...", help="the columns' names, for a log without a header"
    )
    parser.add_argument(
        "--period", type=float, metavar="S", help="seconds between rows, for a log without times"
    )


def run(arguments: argparse.Namespace) -> int:
    """Import a log; says on stderr what was understood and left out."""
    import json
    import secrets

    from heatsoak.clock import monotonic_s
    from heatsoak.errors import UsageError
    from heatsoak.session.imported import import_judged
    from heatsoak.session.library import SUFFIX, sessions_dir
    from heatsoak.session.result import load_result
    from heatsoak_tui.cli.narration import say
    from heatsoak_tui.cli.text import printable, result_text

    path = Path(arguments.log)
    out = sessions_dir() / f"import-{path.stem[:80]}-{secrets.token_hex(4)}{SUFFIX}"
    if arguments.out:
        out = Path(arguments.out)
    else:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write to {out.parent}: {error.strerror}") from None
    told_s = monotonic_s()

    def tell(share: float) -> None:
        nonlocal told_s
        if monotonic_s() >= told_s + TELL_AFTER_S:
            told_s = monotonic_s()
            say(f"importing: {share:.0%}")

    options = log_options(arguments)
    found, sessions = import_judged(path, options, out, force=arguments.force, progress=tell)
    for words in found.words():
        say(printable(words))
    for session in sessions:
        document = load_result(session)
        if arguments.json:
            print(json.dumps({"file": str(session)} | document))
        else:
            print(result_text(document, session))
    return 0


def log_options(arguments: argparse.Namespace) -> Options:
    """The `Options` of `add_log_options`."""
    from heatsoak.session.importing import Options

    columns = arguments.columns
    named = None if columns is None else tuple(name.strip() for name in columns.split(","))
    return Options(arguments.format, named, arguments.period)
