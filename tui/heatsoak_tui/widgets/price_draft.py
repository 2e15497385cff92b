"""What the prices screen shows and edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heatsoak.profiles.money import TERMS, Money

if TYPE_CHECKING:
    from heatsoak.profiles.money import Input, Term


@dataclass(slots=True)
class PriceDraft:
    """What the prices screen shows."""

    keys: tuple[str, ...] = ()
    """By what the user's inputs name the cards of the picked job."""
    money: Money = field(default_factory=Money)
    cursor: int = 0
    trouble: str = ""

    @property
    def rows(self) -> list[tuple[Term, str | None]]:
        """Every input, each for a card of the job or for all."""
        found: list[tuple[Term, str | None]] = []
        for term in TERMS.values():
            own = [key for key in self.keys if self._is_own(term, key)]
            if term.scope == "card":
                found += [(term, key) for key in dict.fromkeys(self.keys)]
            else:
                found += [(term, key) for key in dict.fromkeys(own)] or [(term, None)]
        return found

    def _is_own(self, term: Term, key: str) -> bool:
        """Whether an input that may be for all was given for this card."""
        entry = self.money.given(term.name, key)
        return term.scope == "any" and entry is not None and entry.card == key

    def entry(self, term: Term, key: str | None) -> Input | None:
        """What counts now, or None."""
        return self.money.find(term.name, key)
