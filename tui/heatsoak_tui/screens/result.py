"""What came out: how fast, how sure, what it costs, which card for whom, and what was assumed."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak.errors import HeatsoakError
from heatsoak.session.advice import Wishes, advise_sessions, money_for
from heatsoak.session.kept_prices import keep_prices
from heatsoak.session.result import load_result
from heatsoak_tui.messages import NewSoak
from heatsoak_tui.panels.evidence import Evidence
from heatsoak_tui.panels.for_whom import ForWhom
from heatsoak_tui.panels.header import Header
from heatsoak_tui.panels.money import MoneyPanel
from heatsoak_tui.panels.result_table import LEAST, TELLING, ResultTable
from heatsoak_tui.panels.session_line import SessionLine
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.screens.inputs import InputsScreen
from heatsoak_tui.screens.prices import PricesScreen
from heatsoak_tui.widgets.findings import Findings
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult

    from heatsoak_tui.widgets.run_canvas import RunCanvas, Shown

    Heights = dict[RunCanvas, int]


FEW = 2
"""Lines of what has to be seen that come before white space."""


class ResultScreen(HeatsoakScreen):
    """Stands over the Live screen of the same run."""

    CSS = """
    #result, #evidence, #money, #whom { height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up,k", "card(-1)", show=False, id="card.previous", tooltip="Previous card"),
        Binding("right,down,j", "card(1)", "card", key_display="←→", id="card.next",
                tooltip="Next card"),
        Binding("dollar_sign", "prices", "prices", id="prices",
                tooltip="Your prices; what depends on them follows"),
        Binding("i", "inputs", "inputs", id="inputs",
                tooltip="Every figure with its formula and inputs"),
        Binding("w", "why", "why", id="why", tooltip="Which card for whom, and what flips it"),
        Binding("f", "fit", "fit", id="fit", tooltip="Which models fit which cards' memory"),
        Binding("t,escape", "charts", "charts", id="charts", tooltip="The charts of this run"),
        Binding("n", "new", "new soak", id="new", tooltip="Set up another run; this one goes on"),
        Binding("d", "detach", show=False, id="detach", tooltip="Leave; a run goes on"),
        Binding("q,ctrl+c", "leave", "leave", id="leave", tooltip="Leave the screen"),
    ]  # fmt: skip

    def __init__(self, shown: Shown, path: Path) -> None:
        super().__init__()
        self.shown = shown
        self.found = Findings()
        self._path = path
        self._known: tuple[str, ...] = ()
        self._turn = 0
        """Counts the readings: one that was overtaken by a later one is not taken."""

    @override
    def compose(self) -> ComposeResult:
        """Header, numbers, money, buyers, what to know, file, keys."""
        yield TooSmall(id="too-small")
        yield Header(self.shown, id="header")
        yield ResultTable(self.shown, self.found, id="result")
        yield MoneyPanel(self.shown, self.found, id="money")
        yield ForWhom(self.shown, self.found, id="whom")
        yield Evidence(self.shown, self.found, id="evidence")
        yield SessionLine(self.shown, self._path, id="session")
        yield KeyLine(id="keys")

    @override
    def repaint_panels(self) -> None:
        """Draw anew; the document is read again when a result has come."""
        view = self.shown.view
        known = (view.session_state, *(str(view.result(d)) for d in view.device_ids))
        if known != self._known:
            self._known = known
            self.read_again()
        super().repaint_panels()

    def on_mount(self) -> None:
        """Read the document."""
        self.repaint_panels()

    @override
    def arrange_panels(self, width: int, height: int) -> None:
        """Numbers, money and buyers first; what is left shows how the numbers were found."""
        table, money = self.query_one(ResultTable), self.query_one(MoneyPanel)
        whom, evidence = self.query_one(ForWhom), self.query_one(Evidence)
        has_session = height >= 30
        self.query_one(SessionLine).display = has_session
        header = self.query_one(Header)
        is_tall = self.has_class("-tall-header") and bool(header.draw(width, 4)[2])
        header.styles.height = 4 if is_tall else 3
        room = height - (4 if is_tall else 3) - 1 - has_session
        wants: Heights = {
            table: table.wanted_height(width), money: money.wanted_height(width),
            whom: whom.wanted_height(), evidence: len(evidence.rows(width)),
        }  # fmt: skip
        least = wants | {table: LEAST, evidence: min(1, evidence.urgent_count)}
        telling = table.wanted_height(width, TELLING)
        grown = {evidence: max(1, min(FEW, evidence.urgent_count)), table: telling}
        heights = _shared(room, least, grown, shrinking=(whom, money, evidence, table))
        spare = room - sum(heights.values())
        panel: RunCanvas
        for panel in (money, whom, evidence):
            # White space between the parts, as far as there is any to spare.
            above = 1 if spare > 0 and heights[panel] else 0
            spare -= above
            panel.styles.margin = (above, 0, 0, 0)
        most = wants[evidence]
        for panel, lines in ((evidence, min(3, most)), (table, wants[table] + 1), (evidence, most)):
            more = max(0, min(spare, lines - heights[panel]))
            heights[panel] += more
            spare -= more
        for panel, lines in heights.items():
            panel.styles.height = lines
            panel.display = lines > 0

    def read_again(self) -> None:
        """Read the document, and with it the prices, in a thread."""
        self._turn += 1
        read = partial(self._read, self._turn)
        self.run_worker(read, thread=True, name="document", exclusive=True)

    def _read(self, turn: int) -> None:
        found = Findings()
        try:
            found.document = load_result(self._path)
            trouble = self._keep_prices(found) if turn == self._turn else ""
        except (HeatsoakError, sqlite3.Error, OSError):
            # What the feed has brought is shown all the same.
            return
        try:
            report = advise_sessions([self._path], Wishes(), money_for([self._path]))
            found.advice = report.advice
        except (HeatsoakError, sqlite3.Error, OSError) as error:
            found.advice_note = _without_name(str(error), self._path)
        self.app.call_from_thread(self._take, found, trouble, turn)

    def _keep_prices(self, found: Findings) -> str:
        """Store the prices that were used in the session, once it has ended; what went wrong."""
        if found.document is None or not self.shown.view.has_ended:
            return ""
        try:
            if keep_prices(self._path, found.document["economics"]):
                found.document = load_result(self._path)
        except HeatsoakError as error:
            return f"the prices could not be stored: {error}"
        return ""

    def _take(self, found: Findings, trouble: str, turn: int) -> None:
        if turn != self._turn:
            return
        self.found.document = found.document
        self.found.advice, self.found.advice_note = found.advice, found.advice_note
        if trouble:
            self.notify(trouble, timeout=6, severity="warning")
        self.arrange_panels(self.size.width, self.size.height)
        super().repaint_panels()
        top = self.app.screen
        if top is not self and isinstance(top, HeatsoakScreen):
            top.repaint_panels()

    def action_card(self, step: int) -> None:
        """Pick the next or previous card."""
        ids = self.shown.view.device_ids
        at = ids.index(self.shown.device_id) if self.shown.device_id in ids else 0
        self.shown.device_id = ids[(at + step) % len(ids)]
        self.arrange_panels(self.size.width, self.size.height)
        self.repaint_panels()

    def action_prices(self) -> None:
        """The user's prices; what they change is read again at once."""
        self.app.push_screen(PricesScreen(self.shown, self.found, self.read_again))

    def action_inputs(self) -> None:
        """Formulas and inputs."""
        self.app.push_screen(InputsScreen(self.shown, self.found))

    def action_why(self) -> None:
        """The advice with its reasons."""
        from heatsoak_tui.screens.advice import AdviceScreen  # Only when it is asked for.

        self.app.push_screen(AdviceScreen([self._path]))

    def action_fit(self) -> None:
        """The memory planner."""
        from heatsoak_tui.screens.fit import FitScreen  # Only when it is asked for.

        device = self.shown.device
        card = device.card if device is not None else None
        self.app.push_screen(FitScreen(card_id=card) if card is not None else FitScreen())

    def action_charts(self) -> None:
        """Back to the Live screen."""
        self.dismiss()

    def action_new(self) -> None:
        """Another run."""
        self.app.post_message(NewSoak())

    def action_detach(self) -> None:
        """Leave; the run goes on if it has not ended."""
        self.app.exit()

    async def action_leave(self) -> None:
        """As the Live screen leaves: it asks while the run goes on."""
        if self.shown.view.has_ended:
            self.app.exit()
        else:
            live = self.app.screen_stack[-2]
            self.dismiss()
            live.call_later(live.run_action, "leave")


def _shared(room: int, least: Heights, grown: Heights, shrinking: tuple[RunCanvas, ...]) -> Heights:
    """So many lines for each panel.

    Args:
        room: lines there are.
        least: what each needs; where that is too much, the first of `shrinking` give way.
        grown: what each may have beyond that, the first served first.
        shrinking: all panels.
    """
    heights = dict(least)
    for panel in shrinking:
        over = max(0, sum(heights.values()) - room)
        heights[panel] -= min(over, heights[panel])
    for panel, most in grown.items():
        spare = max(0, room - sum(heights.values()))
        heights[panel] += min(spare, max(0, most - heights[panel]))
    return heights


def _without_name(text: str, path: Path) -> str:
    """What is wrong with a session, where there is no doubt which; how to ask is on a screen."""
    words = text.partition(", or say --")[0].removeprefix(str(path)).lstrip(": ")
    return f"this {words}" if words.startswith("is ") else words
