"""Where the session file is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import short_path
from heatsoak_tui.widgets.run_canvas import RunCanvas, Shown

if TYPE_CHECKING:
    from pathlib import Path

    from heatsoak_tui.widgets.canvas import Line


class SessionLine(RunCanvas):
    """One line; the folder is cut before the name is."""

    def __init__(self, shown: Shown, path: Path, *, id: str | None = None) -> None:
        super().__init__(shown, id=id)
        self._path = path

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """The path, `~` for the home folder."""
        text = short_path(self._path)
        if len(text) > width - 12:
            text = "…" + text[-(width - 13) :]
        return [[("  session   ", "muted"), (text, "text")]]
