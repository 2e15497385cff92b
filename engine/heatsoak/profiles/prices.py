"""The user's prices on disk, the labelled examples, and what cards cost elsewhere.

The user's own are `prices.yaml` in the settings folder: human-readable, written whole and at once.
A file there that is not ours, or cannot be read, is an error in one line and is left as it is.
"""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.profiles import checks
from heatsoak.profiles.checks import SchemaError, known, listed, mapping
from heatsoak.profiles.files import read_yaml, shipped_folder, user_folder
from heatsoak.profiles.money import (
    TERMS,
    Input,
    Money,
    Rate,
    checked,
    currency_code,
    from_plain,
    iso_date,
    to_plain,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from heatsoak.profiles.cards import CardProfile

SCHEMA = "heatsoak-prices/1"
EXAMPLES_SCHEMA = "heatsoak-examples/1"
HEAD = """\
# Your prices for heatsoak: `heatsoak prices show` explains them, `heatsoak prices set` and the
# prices screen write them. Comments of yours are not kept.
"""


def prices_path() -> Path:
    """Where the user's prices are."""
    return user_folder() / "prices.yaml"


def read_prices(path: Path | None = None) -> Money:
    """The user's own inputs; none where there is no file.

    Args:
        path: the file; None: `prices_path()`.

    Raises:
        UsageError: the file cannot be read, or is not one of prices; it is left as it is.
    """
    path = prices_path() if path is None else path
    if not path.exists():
        return Money()
    if not path.is_file():
        raise UsageError(f"prices file {path} is no file that can be read; move it away")
    try:
        top = mapping(read_yaml(path, "prices file"), "the file")
        checks.schema(top, SCHEMA)
        known(top, ("schema", "all", "cards", "rates"), "the file")
        return from_plain(top, "yours")
    except SchemaError as error:
        raise UsageError(f"prices file {path}: {error}; correct it or move it away") from error


def write_prices(money: Money, path: Path | None = None) -> None:
    """Put the user's own inputs in place of the file, all at once.

    Args:
        money: what to write; only what is `yours` is.
        path: the file; None: `prices_path()`.

    Raises:
        UsageError: it cannot be written; the file that was there is as it was.
    """
    import yaml

    path = (prices_path() if path is None else path).resolve()  # What a link points to stays.
    own = Money(tuple(i for i in money.inputs if i.origin == "yours"), money.rates)
    document = {"schema": SCHEMA} | to_plain(own)
    text = HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    made: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        descriptor, name = tempfile.mkstemp(prefix=".prices.", dir=path.parent)
        made = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        made.chmod(mode)
        made.replace(path)
        made = None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        if made is not None:
            with suppress(OSError):
                made.unlink()


def change_prices(
    *,
    put: Collection[Input] = (),
    rates: Collection[Rate] = (),
    drop: Collection[Input] = (),
    keep_rates: tuple[Rate, ...] | None = None,
) -> Money:
    """Change some of the user's inputs in the file.

    Args:
        put: inputs to set, `yours`.
        rates: exchange rates to set.
        drop: inputs to forget, by name and card.
        keep_rates: the exchange rates that stay of those set before; None: all.

    Returns:
        All of the user's inputs as they are now.

    Raises:
        UsageError: an input cannot be, or the file cannot be read or written; nothing is changed.
    """
    money = read_prices()
    if keep_rates is not None:
        money = Money(money.inputs, keep_rates)
    for entry in drop:
        money = money.without(entry.name, entry.card)
    for entry in put:
        try:
            money = money.with_input(checked(entry))
        except SchemaError as error:
            raise UsageError(str(error)) from None
    for rate in rates:
        money = money.with_rate(rate)
    write_prices(money)
    return money


def known_money(
    cards: Collection[CardProfile] = (), stored: Mapping[str, Any] | None = None
) -> Money:
    """Everything known: the user's, what a session stored, references, examples.

    Args:
        cards: card profiles whose reference prices are wanted.
        stored: the newest `prices` annotation of a session, as `session.annotations` reads it.

    Raises:
        UsageError: the user's file is not one of prices.
    """
    money = read_prices()
    if stored is not None:
        with suppress(SchemaError):  # One that was not written by heatsoak says nothing.
            day = str(stored.get("created_utc", ""))[:10]
            plain = mapping(stored.get("data"), "annotation")
            money = money.over(from_plain(plain, "session", f"stored in the session {day}"))
    references = (reference_price(card) for card in cards)
    found = Money(tuple(entry for entry in references if entry is not None))
    return money.over(found).over(examples())


def price_key(card: str | None, kind: str, name: str, mig_profile: str | None = None) -> str:
    """By what the user's inputs name a device: its card profile, `cpu`, or its whole name.

    Args:
        card: id of its card profile, or None.
        kind: `nvidia`, `cpu`, `synthetic`.
        name: as its driver says it.
        mig_profile: of a MIG slice, which does not cost what the whole card does; else None.
    """
    if mig_profile is not None:
        return f"{card or name} MIG {mig_profile}"
    return card or ("cpu" if kind == "cpu" else name)


def reference_price(card: CardProfile) -> Input | None:
    """What a card cost at its launch, by its profile: never what this user pays."""
    price, launch = card.facts.get("msrp_usd"), card.facts.get("launch")
    if price is None or not isinstance(price.value, float):
        return None
    day = launch.value if launch is not None else None
    is_day = isinstance(day, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", day)
    source = "launch price" + (f"; {price.sources[0]}" if price.sources else "")
    return Input(
        "invoice", price.value, "reference", "USD", str(day) if is_day else None, card.id, source
    )


def examples() -> Money:
    """The labelled examples.

    Raises:
        UsageError: the shipped file is damaged.
    """
    return _shipped(shipped_folder() / "defaults" / "money.yaml")[0]


def references() -> tuple[Input, ...]:
    """Tariffs and rates of others to compare one's own with, dated and sourced."""
    return _shipped(shipped_folder() / "defaults" / "money.yaml")[1]


def parse_entry(
    name: str, words: str, *, card: str | None, currency: str | None, today: str
) -> Input:
    """An input as it is typed: `2899 USD 2026-10-12`, `50%`, `0.187`.

    Args:
        name: one of `TERMS`.
        words: value, currency and date in any order; the last two may be left out.
        card: the card it is for; None: for all.
        currency: taken where none is typed; None: one has to be.
        today: ISO 8601, taken where no date is typed.

    Raises:
        UsageError: what is wrong, and what would be right.
    """
    term = TERMS[name]
    day, coin, amount = today, currency if term.is_money else None, None
    try:
        for word in words.split():
            if re.fullmatch(r"\d{4}-\d\d?-\d\d?", word):
                day = iso_date(word)
            elif re.fullmatch(r"[A-Za-z]{3}", word):
                coin = currency_code(word.upper())
            elif amount is None:
                amount = parse_number(word)
            else:
                raise SchemaError(f"{term.label} is one number, not {words!r}")
        if amount is None:
            raise SchemaError(f"{term.label} must be a number, not {words!r}")
        return checked(Input(name, amount, "yours", coin, day, card))
    except SchemaError as error:
        raise UsageError(str(error)) from None


def parse_number(word: str) -> float:
    """A number as people type it: `2899`, `2,899.00`, `50%`.

    Raises:
        SchemaError: it is none.
    """
    text = word.removesuffix("%")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        raise SchemaError(f"{word!r} is no number; write it like 2899.50") from None
    return value / 100 if word.endswith("%") else value


def parse_rate(words: str, today: str) -> Rate:
    """An exchange rate as it is typed: `EUR:USD=1.08`.

    Raises:
        UsageError: it is none.
    """
    match = re.fullmatch(r"([A-Za-z]{3})[:/]([A-Za-z]{3})=(.+)", words.strip())
    if match is None:
        raise UsageError(f"an exchange rate is like EUR:USD=1.08, not {words!r}")
    one, into = match[1].upper(), match[2].upper()
    plain = {"rates": {f"{one}/{into}": {"value": None, "date": today}}}
    try:
        plain["rates"][f"{one}/{into}"]["value"] = parse_number(match[3])  # type: ignore[assignment]
        return from_plain(plain, "yours").rates[0]
    except SchemaError as error:
        raise UsageError(str(error)) from None


@cache
def _shipped(path: Path) -> tuple[Money, tuple[Input, ...]]:
    try:
        top = mapping(read_yaml(path, "examples file"), "the file")
        checks.schema(top, EXAMPLES_SCHEMA)
        known(top, ("schema", "examples", "references"), "the file")
        found = from_plain({"all": top.get("examples", {})}, "example")
        others: list[Input] = []
        for entry in listed(top.get("references", []), "references"):
            names = dict(mapping(entry, "a reference"))
            name = str(names.pop("name", None))
            others += from_plain({"all": {name: names}}, "reference").inputs
        return found, tuple(others)
    except SchemaError as error:
        raise UsageError(f"examples file {path}: {error}") from error
