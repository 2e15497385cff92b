"""All keys of a screen, made from its bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static
from typing_extensions import override

from heatsoak_tui.format import to_ascii
from heatsoak_tui.frugal import make_frugal
from heatsoak_tui.widgets.canvas import Canvas
from heatsoak_tui.widgets.key_line import bound_keys

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen

WORDS = """\
W power   °C temperature   MHz SM clock
boost   the best half minute before the heat
judged  the window the verdict stands on
frozen  the window behind the sustained numbers
still to come: how much may yet change, against what is allowed
"""
IDS_FROM = 100
"""Width of a screen from which each key's id is shown beside it."""
REMAP = "Keys can be changed: lines of `id: key` in keys.yaml in the settings folder"


class Help(ModalScreen[None]):
    """The keys of the screen below, and the words of the screens."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "close", id="close"),
    ]

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__()
        make_frugal(self)
        self._text = _text(screen, has_ids=screen.size.width >= IDS_FROM)

    @override
    def compose(self) -> ComposeResult:
        """A box that scrolls."""
        text = to_ascii(self._text) if Canvas.is_ascii else self._text
        with VerticalScroll(classes="box"):
            yield Static(text, markup=False)

    def on_mount(self) -> None:
        """Arrow keys scroll at once."""
        self.query_one(VerticalScroll).focus()


def _text(screen: Screen[None], *, has_ids: bool) -> str:
    lines = [f"KEYS OF {type(screen).__name__.removesuffix('Screen').upper()}", ""]
    for keys, binding in bound_keys(screen):
        what = binding.tooltip or binding.description
        name = f"  {binding.id}" if has_ids else ""
        lines.append(f"{' '.join(keys):<11}{what:<46}{name}".rstrip())
    lines += ["", *WORDS.splitlines(), *([REMAP] if has_ids else []), "", "esc closes"]
    return "\n".join(lines)
