"""`heatsoak prices`: the buyer's own money."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak.profiles.money import TERMS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from heatsoak.profiles.money import Input, Money, Rate, Term

ORDER = 71
HELP = "the buyer's own prices: set, show, unset, keep"

_RATE_HELP = "your exchange rate, such as EUR:USD=1.08; nothing is converted without one"
_CARD_HELP = "card profile (see `heatsoak cards`), or cpu"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="what is known, and whose it is", allow_abbrev=False)
    show.add_argument("--json", action="store_true", help="heatsoak-prices-shown/1")
    show.set_defaults(command=_show)
    setting = actions.add_parser(
        "set",
        help="enter prices",
        allow_abbrev=False,
        description="Enter prices; with CARD for that card model, else for all of them.",
    )
    setting.add_argument("card", nargs="?", metavar="CARD", help=_CARD_HELP)
    for term in TERMS.values():
        unit = term.unit.format("money").replace("frac", "share")
        words = f"{term.help} ({unit})" if unit else term.help
        setting.add_argument(
            *_options(term), dest=term.name, metavar="X", help=words.replace("%", "%%")
        )
    setting.add_argument("--currency", metavar="CODE", help="of the amounts given, such as USD")
    setting.add_argument("--date", metavar="DAY", help="of invoice or tariff; default: today")
    setting.add_argument("--rate", action="append", default=[], metavar="A:B=X", help=_RATE_HELP)
    setting.set_defaults(command=_set)
    forget = actions.add_parser("unset", help="forget what was entered", allow_abbrev=False)
    forget.add_argument("card", nargs="?", metavar="CARD", help=_CARD_HELP)
    for term in TERMS.values():
        forget.add_argument(*_options(term), dest=term.name, action="store_true")
    forget.add_argument("--rate", action="append", default=[], metavar="A:B")
    forget.set_defaults(command=_unset)
    keep = actions.add_parser(
        "keep", help="write your prices into a session, with the date", allow_abbrev=False
    )
    keep.add_argument("session", help="session file, id or name")
    keep.set_defaults(command=_keep)


def _options(term: Term) -> list[str]:
    """An input's option, and its other name where people use two."""
    others = {"kwh_price": "--tariff", "utilisation_frac": "--utilization"}
    return [f"--{term.option}", *filter(None, [others.get(term.name)])]


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; each action has set its own function."""
    code: int = arguments.command(arguments)
    return code


def _show(arguments: argparse.Namespace) -> int:
    from heatsoak.clock import now_utc
    from heatsoak.profiles.cards import card_profiles
    from heatsoak.profiles.prices import known_money, prices_path, read_prices, references
    from heatsoak.session.economics import input_entry
    from heatsoak_tui.cli.text import print_json

    own = read_prices()
    cards = {entry.card for entry in own.inputs}
    profiles = [profile for card, profile in card_profiles().items() if card in cards]
    money, today = known_money(profiles), now_utc()[:10]
    shown = _sorted(_best(money))
    if arguments.json:
        print_json(
            {
                "schema": "heatsoak-prices-shown/1",
                "path": str(prices_path()),
                "inputs": [input_entry(entry, today) for entry in shown],
                "rates": [
                    {"from": r.currency, "into": r.into, "value": r.value, "date": r.date}
                    for r in money.rates
                ],
                "references": [input_entry(entry, today) for entry in references()],
            }
        )
    else:
        print(_text(shown, money.rates, references(), today))
    return 0


def _set(arguments: argparse.Namespace) -> int:
    from heatsoak.clock import now_utc
    from heatsoak.errors import UsageError
    from heatsoak.profiles.checks import SchemaError
    from heatsoak.profiles.money import currency_code, iso_date
    from heatsoak.profiles.prices import (
        change_prices,
        parse_entry,
        parse_rate,
        prices_path,
        read_prices,
    )
    from heatsoak_tui.cli.narration import say

    today, card = now_utc()[:10], _card(arguments.card)
    try:
        day = today if arguments.date is None else iso_date(arguments.date)
        coin = None if arguments.currency is None else currency_code(arguments.currency.upper())
    except SchemaError as error:
        raise UsageError(str(error)) from None
    given = {name: getattr(arguments, name) for name in TERMS}
    given = {name: words for name, words in given.items() if words is not None}
    rates = [parse_rate(words, day) for words in arguments.rate]
    if not given and not rates:
        raise UsageError("nothing to set; such as --invoice 2899 --currency USD, or --kwh 0.187")
    if coin is not None and not any(TERMS[name].is_money for name in given):
        raise UsageError("--currency without an amount; give one, such as --invoice 2899")
    coin = coin or _usual_currency(read_prices())
    entries = []
    for name, words in given.items():
        try:
            entries.append(parse_entry(name, words, card=card, currency=coin, today=day))
        except UsageError as error:
            raise UsageError(f"--{TERMS[name].option}: {error}") from None
    change_prices(put=entries, rates=rates)
    for entry in entries:
        say(_said(entry))
    for rate in rates:
        say(f"1 {rate.currency} is {rate.value:g} {rate.into}, on {rate.date}")
    say(f"kept in {prices_path()}")
    return 0


def _unset(arguments: argparse.Namespace) -> int:
    from heatsoak.errors import UsageError
    from heatsoak.profiles.prices import change_prices, read_prices
    from heatsoak_tui.cli.narration import say

    own, card = read_prices(), arguments.card
    names = [name for name in TERMS if getattr(arguments, name)]
    if not names and card is None and not arguments.rate:
        raise UsageError("nothing to unset; name a card, or inputs such as --kwh")
    is_whole_card = card is not None and not names and not arguments.rate
    wanted = list(TERMS) if is_whole_card else names
    gone = [entry for entry in own.inputs if entry.name in wanted and entry.card == card]
    pairs = [set(words.upper().replace("/", ":").split(":")) for words in arguments.rate]
    kept = tuple(rate for rate in own.rates if {rate.currency, rate.into} not in pairs)
    missing = [name for name in names if name not in {entry.name for entry in gone}]
    if missing or (not gone and len(kept) == len(own.rates)):
        what = TERMS[missing[0]].label if missing else "anything"
        where = f" for {card}" if card is not None else ""
        raise UsageError(f"you have not set {what}{where}; see `heatsoak prices show`")
    change_prices(drop=gone, keep_rates=kept)
    for entry in gone:
        say(f"forgotten: {_said(entry)}")
    if len(kept) < len(own.rates):
        say(f"forgotten: {len(own.rates) - len(kept)} exchange rate")
    return 0


def _keep(arguments: argparse.Namespace) -> int:
    from heatsoak.errors import UsageError
    from heatsoak.profiles.money import to_plain
    from heatsoak.profiles.prices import read_prices
    from heatsoak.session.annotations import annotate
    from heatsoak.session.library import find_session
    from heatsoak_tui.cli.narration import say

    path = find_session(arguments.session)
    own = read_prices()
    if not own.inputs:
        raise UsageError("you have set no prices; see `heatsoak prices set --help`")
    annotate(path, "prices", to_plain(own))
    count = len(own.inputs)
    say(f"{count} price{'s are' if count > 1 else ' is'} stored in {path}")
    return 0


def _card(name: str | None) -> str | None:
    """The card, if prices can be those of it: a profile, `cpu`, or a whole name without one."""
    import re

    from heatsoak.errors import UsageError
    from heatsoak.profiles.cards import card_profiles

    if name is None or name == "cpu" or name in card_profiles():
        return name
    if re.fullmatch(r"[a-z0-9-]+", name):
        raise UsageError(f"no card profile {name!r}; `heatsoak cards` lists them")
    return name


def _usual_currency(money: Money) -> str | None:
    """The one of everything entered so far; None: there is none, or several."""
    coins = {entry.currency for entry in money.inputs if entry.currency is not None}
    return coins.pop() if len(coins) == 1 else None


def _best(money: Money) -> list[Input]:
    """Of each kind and card the input that counts."""
    pairs = dict.fromkeys((entry.name, entry.card) for entry in money.inputs)
    found = [money.find(name, card) for name, card in pairs]
    return list(dict.fromkeys(entry for entry in found if entry is not None))


def _sorted(entries: Iterable[Input]) -> list[Input]:
    order = list(TERMS)
    return sorted(entries, key=lambda e: (e.card is None, e.card or "", order.index(e.name)))


def _said(entry: Input) -> str:
    from heatsoak_tui.format import input_words

    day = f" of {entry.date}" if entry.date else ""
    whose = f"{entry.card}: " if entry.card else ""
    return f"{whose}{entry.term.label} {input_words(entry.value, entry.unit)}{day}"


def _text(
    inputs: Sequence[Input], rates: Sequence[Rate], others: Sequence[Input], today: str
) -> str:
    from heatsoak_tui.cli.text import printable, table
    from heatsoak_tui.format import DASH, fit, input_words

    def row(entry: Input) -> tuple[Any, ...]:
        whose = "yours" if entry.origin == "yours" else f"{entry.origin}: {entry.source}"
        if entry.is_stale(today):
            whose = f"stale {whose}"
        value = input_words(entry.value, entry.unit)
        return entry.card or "all", entry.term.label, value, entry.date or DASH, fit(whose, 100)

    head = ("for", "input", "value", "of", "whose")
    lines = [table([head, *map(row, inputs)], frozenset({2}))]
    lines += [f"1 {r.currency} is {r.value:g} {r.into}, on {r.date or DASH}, yours" for r in rates]
    if not any(entry.name == "invoice" and entry.is_users for entry in inputs):
        lines.append(
            "no price of a card yet: heatsoak prices set CARD --invoice PRICE --currency CODE"
        )
    lines += ["", "to compare with:"]
    lines.append(table([row(entry)[1:] for entry in others], frozenset({1})))
    return printable("\n".join(lines))
