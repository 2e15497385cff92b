"""Watching a run: is it steady yet, and what is it waiting for?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from typing_extensions import override

from heatsoak.errors import HeatsoakError
from heatsoak_tui.feed import POLL_S, Feed
from heatsoak_tui.format import card_mark
from heatsoak_tui.panels.aside import Aside
from heatsoak_tui.panels.card_table import CardTable
from heatsoak_tui.panels.charts import Charts
from heatsoak_tui.panels.header import Header
from heatsoak_tui.panels.last_event import LastEvent
from heatsoak_tui.panels.multiples import Multiples
from heatsoak_tui.run_view import RunView
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.screens.prompts import Ask, Choice
from heatsoak_tui.screens.result import ResultScreen
from heatsoak_tui.widgets.canvas import WIDE
from heatsoak_tui.widgets.chart import DRAWN_ORDER
from heatsoak_tui.widgets.key_line import KeyLine
from heatsoak_tui.widgets.run_canvas import Shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from heatsoak.session.tail import Tail
    from heatsoak_tui.messages import BatchArrived, FeedTrouble, RecorderGone
    from heatsoak_tui.screens.control import Control

ZOOMS_S = (None, 1800.0, 600.0, 180.0)
"""What z goes through: the whole run, then its last part."""
EXTEND_S = 900.0
"""How much more time x gives."""


class LiveScreen(HeatsoakScreen):
    """Follows one session file; opens the result when the run ends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up,k", "card(-1)", show=False, id="card.previous", tooltip="Previous card"),
        Binding("right,down,j", "card(1)", "card", key_display="←→", id="card.next",
                tooltip="Next card"),
        Binding("0", "pick(0)", show=False, key_display="0-9", id="card.number",
                tooltip="The card of that number"),
        *(Binding(str(n), f"pick({n})", show=False) for n in range(1, 10)),
        Binding("c", "pick('cpu')", show=False, id="card.cpu", tooltip="The CPU"),
        Binding("z", "zoom", "zoom", id="zoom", tooltip="Whole run, last 30, 10 or 3 minutes"),
        Binding("p", "pause", "pause", id="pause", tooltip="Hold the picture; the run goes on"),
        Binding("m", "mark", "mark", id="mark", tooltip="Write a note on the time axis"),
        Binding("x", "extend", "extend", id="extend",
                tooltip="15 more minutes before the time-out"),
        Binding("s", "stop", "stop", id="stop", tooltip="End the run; asks first"),
        Binding("q,ctrl+c", "leave", "leave", id="leave",
                tooltip="Leave; asks what becomes of the run"),
        Binding("d", "detach", "detach", id="detach", tooltip="Leave; the run goes on"),
        Binding("a", "all", "all cards", id="all", tooltip="One reading of all cards, the next"),
        Binding("t,r", "result", "result", id="result", tooltip="The result so far"),
    ]  # fmt: skip

    def __init__(
        self, tail: Tail, control: Control, view: RunView | None = None, poll_s: float = POLL_S
    ) -> None:
        """Follow a run.

        Args:
            tail: Its session file, from the place where `view` ends.
            control: What asks its recorder.
            view: What was read of it already; None: nothing.
            poll_s: Real seconds between two looks at the file.
        """
        super().__init__()
        self.path = tail.path
        self.control = control
        self.shown = Shown(view if view is not None else RunView())
        self.shown.device_id = self.shown.view.leading_device_id
        self._feed = Feed(tail, self.post_message, control.is_alive, poll_s, control.say_quiet)
        self._has_shown_end = False
        self._leaves_at_end = False

    @override
    def compose(self) -> ComposeResult:
        """Header, cards, charts with their aside, newest event, keys."""
        yield TooSmall(id="too-small")
        yield Header(self.shown, id="header")
        yield CardTable(self.shown, id="cards")
        with Horizontal(id="body"):
            yield Charts(self.shown, id="charts")
            yield Multiples(self.shown, id="multiples")
            yield Aside(self.shown, id="aside")
        yield LastEvent(self.shown, id="event")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Start following."""
        self.run_worker(self._feed.run, thread=True, exit_on_error=True, name="feed")
        if self.shown.view.has_ended:
            self.call_after_refresh(self._show_end)

    def on_unmount(self) -> None:
        """Stop following."""
        self._feed.stop()

    # -- what the feed says ------------------------------------------------------------------

    def on_batch_arrived(self, message: BatchArrived) -> None:
        """Take everything new and repaint what changed."""
        message.stop()
        view = self.shown.view
        known = len(view.device_ids)
        view.apply(message.batch)
        if self.shown.device_id is None and view.device_ids:
            self.shown.device_id = view.leading_device_id
        if len(view.device_ids) != known:
            self.arrange_panels(*self.size)
        if view.has_ended:
            self.shown.note = ""
        self._show()
        if view.has_ended:
            self._show_end()

    def _show_end(self) -> None:
        """The result, once; a user who left by stopping the run has what they waited for."""
        if self._has_shown_end:
            return
        self._has_shown_end = True
        if self._leaves_at_end:
            self.app.exit()
        elif self.is_current:
            self.action_result()

    def on_feed_trouble(self, message: FeedTrouble) -> None:
        """Say that the file cannot be read, or no longer."""
        message.stop()
        self.shown.note = message.text
        self._show()

    def on_recorder_gone(self, message: RecorderGone) -> None:
        """The recorder crashed: close its session, which the feed then shows as ended."""
        message.stop()
        self.shown.note = "the recorder has ended without closing its session"
        self._ask(self.control.close_crashed)
        self._show()

    def _show(self) -> None:
        if self.shown.is_paused:
            # Only the header may say something new.
            self.query_one(Header).repaint()
            return
        self.repaint_panels()
        top = self.app.screen
        if top is not self and isinstance(top, HeatsoakScreen):
            top.repaint_panels()

    @override
    def arrange_panels(self, width: int, height: int) -> None:
        """Cards get a line each while ten lines are left for the charts."""
        cards = max(1, len(self.shown.view.device_ids))
        room = (
            height
            - (3 if width >= WIDE or height < 20 else 4)
            - 1
            - (0 if width >= WIDE else 1)
            - 1
            - 11
        )
        self.query_one(CardTable).styles.height = 1 + max(1, min(cards, room))

    # -- keys --------------------------------------------------------------------------------

    def action_card(self, step: int) -> None:
        """Pick the next or previous card."""
        ids = self.shown.view.device_ids
        if ids:
            at = ids.index(self.shown.device_id) if self.shown.device_id in ids else 0
            self._pick(ids[(at + step) % len(ids)])

    def action_pick(self, which: int | str) -> None:
        """Pick the card of that number, as the table shows it."""
        for device_id in self.shown.view.device_ids:
            if card_mark(device_id) == str(which):
                self._pick(device_id)

    def _pick(self, device_id: str) -> None:
        self.shown.device_id = device_id
        self.repaint_panels()

    def action_zoom(self) -> None:
        """Next length of the time axis."""
        at = ZOOMS_S.index(self.shown.zoom_s)
        self.shown.zoom_s = ZOOMS_S[(at + 1) % len(ZOOMS_S)]
        self.repaint_panels()

    def action_pause(self) -> None:
        """Hold the picture, or let it go on."""
        self.shown.is_paused = not self.shown.is_paused
        self.repaint_panels()

    def action_all(self) -> None:
        """One quantity of all cards: rate, power, temperature, clock, then back to one card."""
        multiples = self.query_one(Multiples)
        if not self.has_class("-all"):
            multiples.reading = DRAWN_ORDER[0]
            self.add_class("-all")
        elif multiples.reading == DRAWN_ORDER[-1]:
            self.remove_class("-all")
        else:
            multiples.reading = DRAWN_ORDER[DRAWN_ORDER.index(multiples.reading) + 1]
        self.call_after_refresh(self.repaint_panels)

    def action_mark(self) -> None:
        """Ask for a note and write it."""

        def write(text: str | None) -> None:
            if text:
                self._ask(partial(self.control.mark, text), f"marked: {text}")

        if self._is_going_on():
            self.app.push_screen(Ask("Note for this moment", hint="door opened"), write)

    def action_extend(self) -> None:
        """More time before the time-out."""
        if self._is_going_on():
            self._ask(partial(self.control.extend, EXTEND_S), "15 more minutes")

    def action_stop(self) -> None:
        """Ask, then end the run."""

        def act(answer: str | None) -> None:
            if answer == "stop":
                self._ask(self.control.stop, "stopping; jobs finish their step")

        if self._is_going_on():
            text = "End this run? What is not steady by now ends as interrupted."
            self.app.push_screen(Choice(text, [("s", "stop it", "stop")]), act)

    def action_detach(self) -> None:
        """Leave; the run goes on."""
        self.app.exit()

    def action_leave(self) -> None:
        """Ask what becomes of the run, then leave."""
        if self.shown.view.has_ended:
            self.app.exit()
            return

        def act(answer: str | None) -> None:
            if answer == "stop":
                self._leaves_at_end = True
                self._ask(self.control.stop, "stopping; the screen closes with the run")
            elif answer == "detach":
                self.app.exit()

        answers = [
            ("d", "detach: the run goes on without the screen", "detach"),
            ("s", "stop the run", "stop"),
        ]
        self.app.push_screen(Choice("Leave the screen?", answers), act)

    def action_result(self) -> None:
        """The result, or what there is of it."""
        if self.shown.view.device_ids:
            self.app.push_screen(ResultScreen(self.shown, self.path))

    def _is_going_on(self) -> bool:
        if self.shown.view.has_ended:
            self.notify("the run has ended", timeout=3)
            return False
        return True

    def _ask(self, call: Callable[[], None], done: str = "") -> None:
        """Ask the recorder from a thread, since it may take its time to answer."""

        def work() -> None:
            try:
                call()
            except (HeatsoakError, OSError) as error:
                self.app.call_from_thread(self.notify, str(error), severity="error", timeout=6)
            else:
                if done:
                    self.app.call_from_thread(self.notify, done, timeout=4)

        self.run_worker(work, thread=True, name="ask")
