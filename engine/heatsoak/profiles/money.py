"""What the buyer pays, as data: every input knows its value, currency, date and whose it is.

Amounts are kept in the currency they were given in. Nothing is converted without an exchange rate
of the user's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.errors import UsageError
from heatsoak.profiles.checks import SchemaError, is_number, known, mapping, optional_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Origin = Literal["yours", "session", "reference", "example"]
"""Whose an input is: the user's own; the user's who stored it in the session; a dated, sourced
figure of somebody else; an example to begin with."""
ORIGINS: tuple[Origin, ...] = ("yours", "session", "reference", "example")
"""Best first."""
STALE_AFTER_DAYS = 90
"""A reference price older than this says little of today."""


@dataclass(frozen=True, slots=True)
class Term:
    """One kind of input."""

    name: str
    """Key in files and JSON."""
    option: str
    """On the command line, without dashes."""
    label: str
    unit: str
    """As printed; `{}` stands for the currency. `frac`: a share, printed in per cent."""
    scope: Literal["card", "any", "all"]
    """Given for one card model; for one or for all; or only for all."""
    least: float
    most: float
    help: str

    @property
    def is_money(self) -> bool:
        """Whether it has a currency."""
        return "{}" in self.unit


TERMS: dict[str, Term] = {
    term.name: term
    for term in (
        Term("invoice", "invoice", "invoiced price", "{}", "card", 1e-9, 1e9,
             "what one card costs, by its invoice"),
        Term("kwh_price", "kwh", "electricity", "{}/kWh", "all", 0.0, 1e9,
             "what a kWh costs"),
        Term("pue", "pue", "PUE", "", "all", 1.0, 5.0,
             "power of the site over power of its computers; 1.0 at a desk"),
        Term("horizon_years", "horizon", "horizon", "years", "all", 0.1, 20.0,
             "years the card is kept"),
        Term("utilisation_frac", "utilisation", "utilisation", "frac", "all", 1e-6, 1.0,
             "share of that time under load: 0.5 or 50%"),
        Term("residual_frac", "residual", "residual value", "frac", "any", 0.0, 1.0,
             "share of the price it sells for at the end: 0.2 or 20%"),
        Term("support_per_year", "support", "support", "{}/year", "any", 0.0, 1e9,
             "support contract, a card and year"),
        Term("staff_per_year", "staff", "staff", "{}/year", "any", 0.0, 1e9,
             "looking after it, a card and year"),
        Term("idle_w", "idle-watts", "idle power", "W", "card", 0.0, 1e4,
             "what it draws idle; default: read before the load"),
        Term("cloud_per_hour", "cloud", "cloud rate", "{}/h", "any", 1e-9, 1e9,
             "an hour of a rented card of this kind"),
        Term("downtime_per_hour", "downtime", "downtime", "{}/h", "all", 0.0, 1e9,
             "what an hour lost to a fault costs"),
        Term("mtbf_h", "mtbf", "card-hours per fault", "h", "any", 1e-3, 1e9,
             "hours under load of one card between two faults that end a run"),
        Term("detect_h", "detect", "detection", "h", "all", 0.0, 1e6,
             "hours until a fault is noticed"),
        Term("restart_h", "restart", "restart", "h", "all", 0.0, 1e6,
             "hours until training goes on"),
        Term("checkpoint_s", "checkpoint", "checkpoint", "s", "all", 0.0, 1e6,
             "seconds of training one checkpoint costs"),
    )
}  # fmt: skip
"""Every input by name."""


class MixedCurrenciesError(UsageError):
    """Amounts in several currencies, and no rate of the user's between them."""

    def __init__(self, label: str, currency: str, into: str) -> None:
        """Say what is needed.

        Args:
            label: what is in another currency.
            currency: the one it is in.
            into: the one of the rest.
        """
        where = f"{label} is in {currency}, the rest in {into}"
        command = f"heatsoak prices set --rate {currency}:{into}=RATE"
        super().__init__(f"{where}; your exchange rate is needed: {command}")
        self.needed = f"your exchange rate {currency}:{into}, since {where}: {command}"
        """The same as a thing to enter."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input as it was given."""

    name: str
    """One of `TERMS`."""
    value: float
    origin: Origin
    currency: str | None = None
    """ISO 4217, such as USD; None where it is no amount of money."""
    date: str | None = None
    """ISO 8601: of the invoice, the tariff or the source."""
    card: str | None = None
    """Id of the card profile it is for; None: for all."""
    source: str | None = None
    """Where a reference or example is from; when it was stored, for one from a session."""

    @property
    def term(self) -> Term:
        """What kind of input it is."""
        return TERMS[self.name]

    @property
    def unit(self) -> str:
        """`USD/kWh`, `years`; `frac` for a share."""
        return self.term.unit.format(self.currency)

    @property
    def is_users(self) -> bool:
        """Whether a user gave it: this one, or who stored prices in the session."""
        return self.origin in ("yours", "session")

    def is_stale(self, today: str) -> bool:
        """Whether it is somebody else's price and too old, or of unknown age.

        Args:
            today: ISO 8601.
        """
        return self.origin == "reference" and self.term.is_money and is_stale(self.date, today)


@dataclass(frozen=True, slots=True)
class Rate:
    """The user's own exchange rate."""

    currency: str
    """One unit of this ..."""
    into: str
    """... is so many of this."""
    value: float
    date: str | None = None


@dataclass(frozen=True, slots=True)
class Money:
    """Everything that is known of money, frozen."""

    inputs: tuple[Input, ...] = ()
    rates: tuple[Rate, ...] = ()

    def find(self, name: str, card: str | None = None) -> Input | None:
        """The best input of a kind: the user's own first, one for this card before one for all.

        Args:
            name: one of `TERMS`.
            card: id of a card profile; None: only what is for all cards.
        """
        found = [i for i in self.inputs if i.name == name and i.card in (None, card)]
        return min(found, key=lambda i: (ORIGINS.index(i.origin), i.card is None), default=None)

    def given(self, name: str, card: str | None = None) -> Input | None:
        """The same, if a user gave it."""
        found = self.find(name, card)
        return found if found is not None and found.is_users else None

    def amount(self, entry: Input, currency: str) -> float:
        """The value of an input in a currency.

        Raises:
            MixedCurrenciesError: it is in another one, and there is no rate of the user's.
        """
        if entry.currency in (None, currency) or entry.value == 0:
            return entry.value  # Nothing is nothing in every currency.
        for rate in self.rates:
            if (rate.currency, rate.into) == (entry.currency, currency):
                return entry.value * rate.value
            if (rate.into, rate.currency) == (entry.currency, currency):
                return entry.value / rate.value
        raise MixedCurrenciesError(entry.term.label, entry.currency or "", currency)

    def with_input(self, entry: Input) -> Money:
        """The same with this input in place of the one of its kind, card and origin."""
        kept = [i for i in self.inputs if _key(i) != _key(entry)]
        return Money((*kept, entry), self.rates)

    def without(self, name: str, card: str | None = None) -> Money:
        """The same without the user's own input of this kind, given for this card or for all."""
        gone = ("yours", name, card)
        return Money(tuple(i for i in self.inputs if _key(i) != gone), self.rates)

    def with_rate(self, rate: Rate) -> Money:
        """The same with this exchange rate in place of the one between its currencies."""
        pair = {rate.currency, rate.into}
        kept = [r for r in self.rates if {r.currency, r.into} != pair]
        return Money(self.inputs, (*kept, rate))

    def over(self, other: Money) -> Money:
        """Both together; of what is in both of one origin, this one's."""
        own = {_key(i) for i in self.inputs}
        pairs = {frozenset((r.currency, r.into)) for r in self.rates}
        return Money(
            self.inputs + tuple(i for i in other.inputs if _key(i) not in own),
            self.rates
            + tuple(r for r in other.rates if frozenset((r.currency, r.into)) not in pairs),
        )

    @property
    def users(self) -> Money:
        """Only what users gave."""
        return Money(tuple(i for i in self.inputs if i.is_users), self.rates)


def is_stale(day: str | None, today: str) -> bool:
    """Whether a reference price of this day is too old to say much; one without a day is.

    Args:
        day: ISO 8601.
        today: ISO 8601.
    """
    if day is None:
        return True
    return (date.fromisoformat(today) - date.fromisoformat(day)).days > STALE_AFTER_DAYS


def to_plain(money: Money) -> dict[str, Any]:
    """What users gave, as the document of a file or an annotation."""
    document: dict[str, Any] = {}
    for entry in money.inputs:
        if not entry.is_users:
            continue
        where = (
            document.setdefault("all", {})
            if entry.card is None
            else document.setdefault("cards", {}).setdefault(entry.card, {})
        )
        value = int(entry.value) if float(entry.value).is_integer() else entry.value
        plain = {"value": value, "currency": entry.currency, "date": entry.date}
        where.setdefault(entry.name, {k: v for k, v in plain.items() if v is not None})
    for rate in money.rates:
        plain = {"value": rate.value, "date": rate.date}
        pair = f"{rate.currency}/{rate.into}"
        document.setdefault("rates", {})[pair] = {k: v for k, v in plain.items() if v is not None}
    return document


def from_plain(document: Mapping[str, Any], origin: Origin, source: str | None = None) -> Money:
    """The money of such a document.

    Args:
        document: with `all`, `cards` and `rates`, each of which may be absent.
        origin: whose its inputs are.
        source: where it comes from, in words.

    Raises:
        SchemaError: what is wrong in it.
    """
    inputs = [*_inputs(document.get("all", {}), None, origin, source)]
    for card, names in mapping(document.get("cards", {}), "cards").items():
        inputs += _inputs(names, text(card, "a card under cards"), origin, source)
    rates = [
        _rate(pair, entry) for pair, entry in mapping(document.get("rates", {}), "rates").items()
    ]
    return Money(tuple(inputs), tuple(rates))


def checked(entry: Input) -> Input:
    """The input, if it can be.

    Raises:
        SchemaError: its value, currency, date or card is not what this kind of input has.
    """
    term = entry.term
    if not is_number(entry.value) or not term.least <= entry.value <= term.most:
        least = "above 0" if 0 < term.least < 1e-2 else f"{term.least:g} or more"
        what = f"{least}, at most {term.most:g}" if term.most < 1e9 else least
        if term.unit == "frac":
            what += ", or like 50%"
        raise SchemaError(f"{term.label} must be a number {what}, not {entry.value!r}")
    if term.is_money and entry.currency is None:
        raise SchemaError(f"{term.label} needs a currency, such as USD")
    if not term.is_money and entry.currency is not None:
        raise SchemaError(f"{term.label} has no currency")
    if entry.currency is not None:
        currency_code(entry.currency)
    if entry.date is not None:
        iso_date(entry.date)
    if term.scope == "all" and entry.card is not None:
        raise SchemaError(f"{term.label} is the same for all cards; leave {entry.card} out")
    if term.scope == "card" and entry.card is None:
        raise SchemaError(f"{term.label} is that of one card; name it")
    return entry


def currency_code(value: object) -> str:
    """The currency, if it has the shape of ISO 4217."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Z]{3}", value):
        raise SchemaError(f"a currency is three letters, such as USD, not {value!r}")
    return value


def iso_date(value: object) -> str:
    """The day as YYYY-MM-DD; YAML makes a date of an unquoted one."""
    if type(value) is date:
        return value.isoformat()
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            pass
    raise SchemaError(f"a date is YYYY-MM-DD, not {value!s}")


def _key(entry: Input) -> tuple[str, str, str | None]:
    return entry.origin, entry.name, entry.card


def _inputs(names: object, card: str | None, origin: Origin, source: str | None) -> Iterable[Input]:
    where = "all" if card is None else f"cards.{card}"
    for name, entry in mapping(names, where).items():
        if name not in TERMS:
            raise SchemaError(f"{where} has the unknown key {name!r}; known: {', '.join(TERMS)}")
        fields = mapping(entry, f"{where}.{name}")
        known(fields, ("value", "currency", "date", "source"), f"{where}.{name}")
        day = fields.get("date")
        value = fields.get("value")
        yield checked(
            Input(
                name,
                float(value) if is_number(value) else value,  # type: ignore[arg-type]
                origin,
                currency=optional_text(fields.get("currency"), f"{where}.{name}.currency"),
                date=None if day is None else iso_date(day),
                card=card,
                source=optional_text(fields.get("source"), f"{where}.{name}.source") or source,
            )
        )


def _rate(pair: object, entry: object) -> Rate:
    currencies = str(pair).split("/")
    fields = mapping(entry, f"rates.{pair}")
    known(fields, ("value", "date"), f"rates.{pair}")
    value, day = fields.get("value"), fields.get("date")
    if len(currencies) != 2 or not is_number(value) or value <= 0:
        raise SchemaError(f"rates.{pair} must be like EUR/USD with a value above 0")
    one, other = map(currency_code, currencies)
    if one == other:
        raise SchemaError(f"rates.{pair} is between a currency and itself")
    return Rate(one, other, float(value), None if day is None else iso_date(day))
