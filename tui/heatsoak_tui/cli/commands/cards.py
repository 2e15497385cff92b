"""`heatsoak cards`: what is known of card models before measuring."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from heatsoak.profiles.cards import CardProfile

ORDER = 62
HELP = "what is known of card models: memory, peaks, power, ECC, prices"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--json", action="store_true", help="every figure with its sources")
    parser.add_argument(
        "--check", action="store_true", help="only the reference prices older than 90 days"
    )


def run(arguments: argparse.Namespace) -> int:
    """List every profile, or the prices that have aged."""
    from heatsoak.clock import now_utc
    from heatsoak.profiles.cards import card_profiles
    from heatsoak_tui.cli.cards_text import cards_text, stale_text
    from heatsoak_tui.cli.text import print_json

    cards = sorted(card_profiles().values(), key=lambda c: (c.memory_total_bytes or 0, c.id))
    today = now_utc()[:10]
    stale = [price for card in cards for price in stale_prices(card, today)]
    if arguments.json:
        print_json(
            {
                "schema": "heatsoak-cards/1",
                "cards": [asdict(card) for card in cards],
                "stale_prices": stale,
            }
        )
    elif arguments.check:
        print(stale_text(stale, len(cards)))
    else:
        print(cards_text(cards))
    return 0


def stale_prices(card: CardProfile, today: str) -> list[dict[str, Any]]:
    """The reference prices of a card that are too old to say what it costs now.

    Args:
        card: the card.
        today: ISO 8601.
    """
    from heatsoak.profiles.money import is_stale

    prices = [
        ("launch price", card.launch_price_usd, card.launch),
        ("street price", card.street_price_usd, card.street_as_of),
    ]
    found = []
    for kind, price, day in prices:
        # Of a month or a year its last day is meant: the price is at most so young.
        if price is not None and is_stale(_last_day(day), today):
            found.append({"card": card.id, "kind": kind, "price_usd": price, "as_of": day})
    return found


def _last_day(day: str | None) -> str | None:
    from calendar import monthrange

    if day is None or len(day) == len("2026-05-31"):
        return day
    year, _, month = day.partition("-")
    number = int(month or 12)
    return f"{year}-{number:02d}-{monthrange(int(year), number)[1]}"
