"""Questions asked over a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static
from typing_extensions import override

from heatsoak_tui.format import to_ascii
from heatsoak_tui.frugal import make_frugal
from heatsoak_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult


def _plain(text: str) -> str:
    return to_ascii(text) if Canvas.is_ascii else text


class Choice(ModalScreen[str | None]):
    """A question with one key per answer; enter takes the first, escape none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "stay", show=False),
        Binding("enter", "first", "default", show=False),
    ]

    def __init__(self, question: str, answers: Sequence[tuple[str, str, str]]) -> None:
        """Ask.

        Args:
            question: One or two sentences.
            answers: (key, what it does, value); the first is the default.
        """
        super().__init__()
        make_frugal(self)
        self._question = question
        self._answers = answers

    @override
    def compose(self) -> ComposeResult:
        """A box with a line per answer."""
        with Vertical(classes="box"):
            yield Static(_plain(self._question), classes="question", markup=False)
            for index, (key, text, _) in enumerate(self._answers):
                default = "  (enter)" if index == 0 else ""
                yield Static(f"  {key}    {_plain(text)}{default}", markup=False)
            yield Static("  esc  stay", markup=False, classes="quiet")

    def on_key(self, event: events.Key) -> None:
        """A key of an answer."""
        for key, _, value in self._answers:
            if event.key == key:
                event.stop()
                self.dismiss(value)
                return

    def action_first(self) -> None:
        """The default."""
        self.dismiss(self._answers[0][2])


class Ask(ModalScreen[str | None]):
    """A question answered by typing; escape answers None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "stay", show=False)]

    def __init__(
        self, question: str, value: str = "", hint: str = "", *, is_appended: bool = False
    ) -> None:
        """Ask.

        Args:
            question: One sentence.
            value: What stands there at first.
            hint: What stands there while it is empty.
            is_appended: Typing goes on after `value` instead of replacing it.
        """
        super().__init__()
        make_frugal(self)
        self._is_appended = is_appended
        self._question = question
        self._value = value
        self._hint = hint

    @override
    def compose(self) -> ComposeResult:
        """A box with an input."""
        with Vertical(classes="box"):
            yield Static(_plain(self._question), classes="question", markup=False)
            yield Input(
                self._value,
                placeholder=self._hint,
                compact=True,
                select_on_focus=not self._is_appended,
            )
            yield Static("  enter takes it   esc stays", markup=False, classes="quiet")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """What was typed."""
        self.dismiss(event.value.strip())
