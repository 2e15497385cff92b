"""The last line of a screen: its keys, made from its bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.binding import Binding
from typing_extensions import override

from heatsoak_tui.widgets.canvas import Canvas, Line, width_of

if TYPE_CHECKING:
    from textual.screen import Screen

KEY_NAMES = {
    "question_mark": "?",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
    "space": "space",
    "escape": "esc",
    "dollar_sign": "$",
    "ctrl+l": "^l",
    "ctrl+c": "^c",
    "ctrl+z": "^z",
    "f5": "F5",
    "pageup": "PgUp",
    "pagedown": "PgDn",
}


class KeyLine(Canvas):
    """The shown bindings of the screen that fit; the help screen has all of them."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """One line, the help key last and never left out."""
        line: Line = [(" ", "text")]
        help_key: Line = []
        for keys, binding in bound_keys(self.screen):
            if not binding.show:
                continue
            item: Line = [(keys[0], "accent"), (f" {binding.description}  ", "muted")]
            if binding.action == "help":
                help_key = item
            elif width_of(line) + width_of(item) + 8 <= width:
                line += item
        return [line + help_key]


def bound_keys(screen: Screen[Any]) -> list[tuple[list[str], Binding]]:
    """The bindings of a screen in the order of its class, each with its keys as printed."""
    found: dict[str, tuple[list[str], Binding]] = {}
    for node, binding, is_enabled, _ in screen.active_bindings.values():
        # Every binding of ours has an id, so that it can be re-mapped; Textual's own have none.
        if node is screen and is_enabled and binding.id:
            keys, _ = found.setdefault(binding.action, ([], binding))
            keys.append(KEY_NAMES.get(binding.key, binding.key))
    for keys, binding in found.values():
        # A key that every terminal sends is named before a chord.
        keys.sort(key=lambda key: key.startswith("^"))
        if binding.key_display:
            keys[:] = [binding.key_display]
    declared = [
        entry.action
        for cls in type(screen).__mro__
        for entry in cls.__dict__.get("BINDINGS", ())
        if isinstance(entry, Binding)
    ]
    ranked = sorted(found, key=lambda a: declared.index(a) if a in declared else len(declared))
    return [found[action] for action in ranked]
