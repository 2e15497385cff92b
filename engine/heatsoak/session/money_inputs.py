"""The inputs of one job's economics: looked up, remembered once used, asked for where missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.profiles.money import Input, Money


class Ledger:
    """The inputs for the cards of one job, all in one currency."""

    def __init__(self, money: Money, keys: Sequence[str]) -> None:
        """Nothing was used yet.

        Args:
            money: everything known.
            keys: by what the user's inputs name each card of the job (`prices.price_key`).
        """
        self.money = money
        self.keys = tuple(keys)
        self.used: list[Input] = []
        """Inputs in the order of their first use."""
        self.needed: list[str] = []
        """What to enter, a sentence each."""
        first = [money.given("invoice", key) for key in self.keys] + [money.given("kwh_price")]
        given = [entry.currency for entry in first if entry is not None]
        others = [i.currency for i in money.inputs if i.is_users and i.card in (None, *self.keys)]
        self.currency = next((coin for coin in given + others if coin is not None), None)
        """Of every amount computed: the invoice's, else the tariff's; None: no amount is given."""

    def need(self, sentence: str) -> None:
        """Say once what to enter."""
        if sentence not in self.needed:
            self.needed.append(sentence)

    def price(self) -> float | None:
        """Invoiced price of all cards; None unless a user gave that of each.

        Raises:
            MixedCurrenciesError: they are in several currencies, without a rate.
        """
        for key in dict.fromkeys(self.keys):
            if self.money.given("invoice", key) is None:
                self.need(
                    f"the invoiced price of {key}: heatsoak prices set {_quoted(key)} "
                    "--invoice PRICE --currency CODE --date YYYY-MM-DD"
                )
        entries = [self.money.given("invoice", key) for key in self.keys]
        if not entries or any(entry is None for entry in entries):
            return None
        return sum(self._taken(entry) for entry in entries if entry is not None)

    def kwh_price(self) -> float | None:
        """What a kWh costs; None unless a user said so.

        Raises:
            MixedCurrenciesError: it is in another currency, without a rate.
        """
        entry = self.money.given("kwh_price")
        if entry is None:
            self.need("what a kWh costs: heatsoak prices set --kwh PRICE --currency CODE")
            return None
        return self._taken(entry)

    def value(self, name: str) -> float:
        """An input for all cards that has an example at least."""
        entry = self.money.find(name)
        if entry is None:
            raise LookupError(f"no example of {name} is shipped")
        return self._taken(entry)

    def optional(self, name: str) -> float | None:
        """An input for all cards that only counts where a user gave it."""
        entry = self.money.given(name)
        return None if entry is None else self._taken(entry)

    def summed(self, name: str) -> float:
        """The sum of an input over all cards; it has an example at least."""
        entries = [self.money.find(name, key) for key in self.keys]
        return sum(self._taken(entry) for entry in entries if entry is not None)

    def summed_given(self, name: str) -> float | None:
        """The same, None unless a user gave it for each card."""
        entries = [self.money.given(name, key) for key in self.keys]
        if not entries or any(entry is None for entry in entries):
            return None
        return sum(self._taken(entry) for entry in entries if entry is not None)

    def residual_frac(self) -> float:
        """The share of the price of all cards that comes back, each weighted with its price."""
        shares, prices = [], []
        for key in self.keys:
            share, price = self.money.find("residual_frac", key), self.money.given("invoice", key)
            shares.append(0.0 if share is None else self._taken(share))
            prices.append(1.0 if price is None else self._taken(price))
        total = sum(prices)
        return sum(s * p for s, p in zip(shares, prices, strict=True)) / total if total else 0.0

    def mtbf_h(self) -> float:
        """Hours under load of one card between faults: of unlike cards by their mean rate."""
        entries = [self.money.find("mtbf_h", key) for key in self.keys]
        rates = [1 / self._taken(entry) for entry in entries if entry is not None]
        return len(rates) / sum(rates)

    def of_card(self, name: str, key: str) -> float | None:
        """An input for a card, also one that is not of this job; None: not known."""
        entry = self.money.find(name, key)
        return None if entry is None else self._taken(entry)

    def _taken(self, entry: Input) -> float:
        if entry not in self.used:
            self.used.append(entry)
        return self.money.amount(entry, self.currency or entry.currency or "")


def _quoted(key: str) -> str:
    return f"'{key}'" if " " in key else key
