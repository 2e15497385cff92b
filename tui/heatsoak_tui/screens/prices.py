"""The user's prices, edited; what depends on them follows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak.clock import now_utc
from heatsoak.errors import HeatsoakError
from heatsoak.profiles.cards import card_profiles
from heatsoak.profiles.money import Input
from heatsoak.profiles.prices import change_prices, known_money, parse_entry, price_key
from heatsoak_tui.panels.header import Header
from heatsoak_tui.panels.money import MoneyPanel
from heatsoak_tui.panels.price_list import PriceList
from heatsoak_tui.panels.price_note import PriceNote
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.screens.prompts import Ask
from heatsoak_tui.widgets.key_line import KeyLine
from heatsoak_tui.widgets.price_draft import PriceDraft

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from heatsoak.profiles.money import Term
    from heatsoak_tui.widgets.findings import Findings
    from heatsoak_tui.widgets.run_canvas import Shown


class PricesScreen(HeatsoakScreen):
    """Stands over the Result screen; the measurement is never touched."""

    CSS = """
    #price-note { height: 2; }
    #price-list { height: 1fr; }
    #money-live { height: 6; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False, id="up", tooltip="Up"),
        Binding("down,j", "move(1)", "pick", key_display="↑↓", id="down", tooltip="Down"),
        Binding("enter,e", "edit", "enter a value", id="edit", tooltip="Enter the picked input"),
        Binding("u,delete", "unset", "forget it", id="unset", tooltip="Forget what you entered"),
        Binding("left", "card(-1)", show=False, id="card.previous", tooltip="Previous card"),
        Binding("right", "card(1)", "card", key_display="←→", id="card.next",
                tooltip="Next card"),
        Binding("escape,dollar_sign,q,ctrl+c", "back", "back", id="back",
                tooltip="Back to the result"),
    ]  # fmt: skip

    def __init__(self, shown: Shown, found: Findings, changed: Callable[[], object]) -> None:
        """Show the inputs for the picked card.

        Args:
            shown: The run, and the picked card.
            found: What is known of its result; its document holds the figures.
            changed: Called when a price has changed: reads the document again.
        """
        super().__init__()
        self.shown = shown
        self._found = found
        self._changed = changed
        self.draft = PriceDraft()

    @override
    def compose(self) -> ComposeResult:
        """Header, what this is, inputs, figures, keys."""
        yield TooSmall(id="too-small")
        yield Header(self.shown, id="header")
        yield PriceNote(self.draft, id="price-note")
        yield PriceList(self.draft, id="price-list")
        yield MoneyPanel(self.shown, self._found, id="money-live")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Read the user's file."""
        self._read()

    @override
    def arrange_panels(self, width: int, height: int) -> None:
        """The figures below the list, as far as half the screen goes."""
        money = self.query_one(MoneyPanel)
        money.styles.height = min(money.wanted_height(width), max(2, height // 2 - 4))

    @override
    def repaint_panels(self) -> None:
        """Draw anew, with room for the figures there are."""
        self.arrange_panels(self.size.width, self.size.height)
        super().repaint_panels()

    def _read(self) -> None:
        view, device_id = self.shown.view, self.shown.device_id
        job = view.job(device_id) if device_id is not None else None
        infos = [view.device(d) for d in (job.device_ids if job is not None else ())]
        self.draft.keys = tuple(
            price_key(
                i.card, i.kind, i.name,
                (i.mig_profile or "slice") if i.mig_parent_uuid is not None else None,
            )
            for i in infos
        )  # fmt: skip
        profiles = card_profiles()
        cards = [profiles[key] for key in dict.fromkeys(self.draft.keys) if key in profiles]
        try:
            self.draft.money = known_money(cards, self._stored())
            self.draft.trouble = ""
        except HeatsoakError as error:
            self.draft.trouble = str(error)
        self.repaint_panels()

    def _stored(self) -> dict[str, object] | None:
        """The prices that the session holds, as its document tells them."""
        economics = (self._found.document or {}).get("economics") or {}
        return economics.get("stored")

    def action_move(self, step: int) -> None:
        """Up or down."""
        self.draft.cursor += step
        self.query_one(PriceList).repaint()

    def action_card(self, step: int) -> None:
        """The next or previous card."""
        ids = self.shown.view.device_ids
        at = ids.index(self.shown.device_id) if self.shown.device_id in ids else 0
        self.shown.device_id = ids[(at + step) % len(ids)]
        self._read()

    def _picked(self) -> tuple[Term, str | None] | None:
        rows = self.draft.rows
        return rows[self.draft.cursor] if self.draft.cursor < len(rows) else None

    def action_edit(self) -> None:
        """Ask for the picked input."""
        picked = self._picked()
        if picked is None:
            return
        term, key = picked
        entry = self.draft.money.given(term.name, key)
        currency = self._currency() if term.is_money else None
        unit = term.unit.format(currency or "CURRENCY").replace("frac", "share, such as 50%")
        whose = f" of {key}" if key is not None else ""
        question = f"{term.label}{whose}{f', {unit}' if unit else ''}: {term.help}"
        known = self.draft.money.find(term.name, key)
        hint = "2899 USD 2026-10-12" if term.name == "invoice" else "value, day"
        value = ""
        if entry is not None:
            value = " ".join([f"{entry.value:.12g}", *filter(None, (entry.currency, entry.date))])
        elif known is not None:
            # To be typed, not to be taken by mistake: an example must not become the user's.
            hint = f"{known.origin}: {known.value:.12g} {known.currency or ''}".rstrip()

        def take(text: str | None) -> None:
            if text:
                self._put(term, key, text, currency)

        self.app.push_screen(Ask(question, value, hint), take)

    def _put(self, term: Term, key: str | None, text: str, currency: str | None) -> None:
        today = now_utc()[:10]
        try:
            entry = parse_entry(term.name, text, card=key, currency=currency, today=today)
            change_prices(put=[entry])
        except HeatsoakError as error:
            self.draft.trouble = str(error)
            self.repaint_panels()
        else:
            self._read()
            self._changed()

    def action_unset(self) -> None:
        """Forget what the user entered."""
        picked = self._picked()
        entry = None if picked is None else self.draft.money.given(picked[0].name, picked[1])
        if entry is None or entry.origin != "yours":
            self.draft.trouble = "there is nothing of yours to forget here"
            self.repaint_panels()
            return
        try:
            change_prices(drop=[Input(entry.name, entry.value, "yours", card=entry.card)])
        except HeatsoakError as error:
            self.draft.trouble = str(error)
            self.repaint_panels()
        else:
            self._read()
            self._changed()

    def _currency(self) -> str | None:
        """The currency of what the user entered already, where it is one."""
        coins = {e.currency for e in self.draft.money.users.inputs if e.currency is not None}
        return coins.pop() if len(coins) == 1 else None

    def action_back(self) -> None:
        """Back."""
        self.dismiss()
