"""`heatsoak advise`: which card for whom, by what was measured and what is paid."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heatsoak.session.advice import Wishes

ORDER = 44
HELP = "which card for whom, why, and what would change that"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("sessions", nargs="+", metavar="FILE", help="session files, ids or names")
    parser.add_argument(
        "--must", action="append", default=[], metavar="WHAT",
        help="what every card must have: ecc, isv, support or mig; may be said again",
    )  # fmt: skip
    parser.add_argument(
        "--recipe", metavar="MODEL-METHOD@CONTEXT",
        help="what must fit in memory, such as 13b-full@4096; default: what each archetype has",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=_amount, help="most to pay for all cards, in the currency of your prices"
    )
    parser.add_argument(
        "--power", type=_amount, metavar="W", help="most watts all cards may draw together"
    )
    parser.add_argument(
        "--allow-smoke", action="store_true", help="take results of protocol smoke, marked SMOKE"
    )
    parser.add_argument(
        "--allow-not-steady", action="store_true",
        help="take the last window where nothing was frozen, marked NOT STEADY",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="heatsoak-advice/1")


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount above 0")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Advise on sessions."""
    from heatsoak.session.advice import advise_sessions, document, money_for
    from heatsoak.session.library import find_session
    from heatsoak_tui.cli.advice_text import advice_text
    from heatsoak_tui.cli.narration import tell_crashed
    from heatsoak_tui.cli.text import print_json

    tell_crashed()
    paths = [find_session(reference) for reference in arguments.sessions]
    report = advise_sessions(paths, wishes_of(arguments), money_for(paths))
    if arguments.json:
        print_json(document(report))
    else:
        print(advice_text(report))
    return 0


def wishes_of(arguments: argparse.Namespace) -> Wishes:
    """What the command line says the buyer insists on."""
    from heatsoak.errors import UsageError
    from heatsoak.profiles.archetypes import MUSTS
    from heatsoak.session.advice import Wishes

    for must in arguments.must:
        if must not in MUSTS:
            raise UsageError(f"--must takes {', '.join(MUSTS)}; not {must!r}")
    return Wishes(
        musts=frozenset(arguments.must),
        recipe=arguments.recipe,
        budget=arguments.budget,
        power_w=arguments.power,
        allow_smoke=arguments.allow_smoke,
        allow_not_steady=arguments.allow_not_steady,
    )
