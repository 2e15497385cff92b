"""Which card for whom: every archetype at a glance, each openable to what it stands on."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from typing_extensions import override

from heatsoak.errors import HeatsoakError
from heatsoak.session.advice import AdviceReport, Wishes, advise_sessions, money_for
from heatsoak_tui.panels.advice_detail import AdviceDetail
from heatsoak_tui.panels.advice_header import AdviceHeader
from heatsoak_tui.panels.advice_table import AdviceTable
from heatsoak_tui.screens.base import HeatsoakScreen, TooSmall
from heatsoak_tui.widgets.advice_canvas import AdviceView
from heatsoak_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import ComposeResult

    from heatsoak.profiles.archetypes import Must
    from heatsoak.profiles.money import Money


class AdviceScreen(HeatsoakScreen):
    """Stands over the Result screen of one session, or over nothing for several."""

    CSS = """
    #advice-header { dock: top; height: 5; }
    #advice-table, #advice-detail { height: 1fr; }
    #advice-detail { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False, id="up", tooltip="Up"),
        Binding("down,j", "move(1)", "pick", key_display="↑↓", id="down", tooltip="Down"),
        Binding("left", "other(-1)", show=False, id="advice.previous", tooltip="Previous buyer"),
        Binding("right", "other(1)", "archetype", key_display="←→", id="advice.next",
                tooltip="Next archetype"),
        Binding("pageup", "page(-1)", show=False, id="page.up", tooltip="A page up"),
        Binding("pagedown", "page(1)", show=False, id="page.down", tooltip="A page down"),
        Binding("enter", "open", "open", id="advice.open",
                tooltip="Rule, evidence, plan and checklist of one archetype"),
        Binding("e", "must('ecc')", "musts", key_display="e i s m", id="must.ecc",
                tooltip="ECC is a must, or not"),
        Binding("i", "must('isv')", show=False, id="must.isv",
                tooltip="ISV-certified drivers are a must, or not"),
        Binding("s", "must('support')", show=False, id="must.support",
                tooltip="Enterprise support is a must, or not"),
        Binding("m", "must('mig')", show=False, id="must.mig", tooltip="MIG is a must, or not"),
        Binding("a", "allow", "allow all", show=False, id="advice.allow",
                tooltip="Take smoke and not-steady results too, marked so; or no longer"),
        Binding("escape,q,ctrl+c", "back", "back", id="back", tooltip="Back to where you were"),
    ]  # fmt: skip

    def __init__(
        self, paths: Sequence[Path], money: Money | None = None, wishes: Wishes | None = None
    ) -> None:
        """Advise on sessions.

        Args:
            paths: session files.
            money: what is known of money; None: the user's prices, and those the sessions hold.
            wishes: what the buyer insists on to begin with.
        """
        super().__init__()
        self._paths = tuple(paths)
        self._money = money
        self._wishes = wishes or Wishes()
        self.view = AdviceView(musts=set(self._wishes.musts))

    @override
    def compose(self) -> ComposeResult:
        """Header, table or details, keys."""
        yield TooSmall(id="too-small")
        yield AdviceHeader(self.view, id="advice-header")
        yield AdviceTable(self.view, id="advice-table")
        yield AdviceDetail(self.view, id="advice-detail")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Make the report."""
        self._ask()

    @override
    def arrange_panels(self, width: int, height: int) -> None:
        """The header as high as it needs, at most a third."""
        header = self.query_one(AdviceHeader)
        header.styles.height = max(3, min(header.wanted_height(width), height // 3))

    def _ask(self) -> None:
        """Read the sessions and ask every rule; not in the thread that draws."""
        self.run_worker(self._read, thread=True, name="advice", exclusive=True)

    def _read(self) -> None:
        wishes = replace(self._wishes, musts=frozenset(cast("set[Must]", self.view.musts)))
        app = self.app  # A screen that was left has none any more.
        report: AdviceReport | None = None
        problem = ""
        try:
            money = self._money if self._money is not None else money_for(self._paths)
            report = advise_sessions(self._paths, wishes, money)
        except HeatsoakError as error:
            problem = _for_keys(str(error))
        except (sqlite3.Error, OSError) as error:
            problem = f"the sessions cannot be read: {error}"
        app.call_from_thread(self._take, report, problem)

    def _take(self, report: AdviceReport | None, problem: str) -> None:
        if not self.is_attached:
            return  # The user was faster than the rules.
        self.view.report, self.view.problem = report, problem
        self.arrange_panels(self.size.width, self.size.height)
        self.repaint_panels()

    def action_move(self, step: int) -> None:
        """Pick an archetype, or scroll its details."""
        if self.view.is_open:
            self.view.scrolled = max(0, self.view.scrolled + step)
        else:
            self.view.move(step)
        self.repaint_panels()

    def action_page(self, step: int) -> None:
        """A page of the details."""
        page = max(1, self.query_one(AdviceDetail).size.height - 3)
        self.action_move(step * page if self.view.is_open else step)

    def action_other(self, step: int) -> None:
        """The next or previous archetype, opened or not."""
        self.view.move(step)
        self.repaint_panels()

    def action_open(self) -> None:
        """Open the picked archetype, or close it."""
        self._show(is_open=not self.view.is_open)

    def action_must(self, name: str) -> None:
        """Insist on something, or no longer."""
        self.view.musts ^= {name}
        self._ask()

    def action_allow(self) -> None:
        """Take smoke results and windows that are not steady too, which nobody ranks unasked."""
        is_allowed = not self._wishes.allow_smoke
        self._wishes = replace(self._wishes, allow_smoke=is_allowed, allow_not_steady=is_allowed)
        self._ask()

    def action_back(self) -> None:
        """From the details to the table, from there to where the user was."""
        if self.view.is_open:
            self._show(is_open=False)
        else:
            self.dismiss()

    def _show(self, *, is_open: bool) -> None:
        self.view.is_open = is_open
        self.view.scrolled = 0
        self.query_one(AdviceTable).display = not is_open
        self.query_one(AdviceDetail).display = is_open
        self.call_after_refresh(self.repaint_panels)


def _for_keys(text: str) -> str:
    """The command's words as the screen's: an option is a key here."""
    for option in ("--allow-smoke", "--allow-not-steady"):
        text = text.replace(f"say {option}", "press a to take it all the same, marked so")
    return text
