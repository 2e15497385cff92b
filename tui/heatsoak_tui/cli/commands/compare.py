"""`heatsoak compare`: is there a difference between sessions, and may one believe it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 45
HELP = "whether sessions differ, by how much, and what else could explain it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument(
        "sessions", nargs="+", metavar="FILE",
        help="two to eight session files, ids or names; the first is what the others are held "
        "against",
    )  # fmt: skip
    parser.add_argument(
        "--each", action="store_true", help="hold every run alone, instead of pooling repeats"
    )
    parser.add_argument(
        "--allow-smoke", action="store_true", help="take results of protocol smoke, marked SMOKE"
    )
    parser.add_argument(
        "--allow-not-steady", action="store_true",
        help="take the last window where nothing was frozen, marked NOT STEADY",
    )  # fmt: skip
    parser.add_argument(
        "--allow-mixed", action="store_true",
        help="hold synthetic or imported figures against measured ones, marked so",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="heatsoak-compare/1")


def run(arguments: argparse.Namespace) -> int:
    """Compare sessions."""
    from heatsoak.session.compare import compare
    from heatsoak.session.compared_runs import Allowed
    from heatsoak.session.library import find_session
    from heatsoak_tui.cli.compare_text import compare_text
    from heatsoak_tui.cli.narration import tell_crashed
    from heatsoak_tui.cli.text import print_json

    tell_crashed()
    paths = [find_session(reference) for reference in arguments.sessions]
    allowed = Allowed(
        smoke=arguments.allow_smoke,
        not_steady=arguments.allow_not_steady,
        mixed=arguments.allow_mixed,
    )
    document = compare(paths, allowed, each=arguments.each)
    if arguments.json:
        print_json(document)
    else:
        print(compare_text(document))
    return 0
