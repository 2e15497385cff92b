"""The base of every panel that shows a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from heatsoak_tui.run_view import RunView
from heatsoak_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.telemetry.device import DeviceInfo


@dataclass(slots=True)
class Shown:
    """What all panels of a screen show: one run, and what the user picked in it."""

    view: RunView = field(default_factory=RunView)
    device_id: str | None = None
    """The picked device; None before there is one."""
    zoom_s: float | None = None
    """Length of the time axis; None: the whole run."""
    is_paused: bool = False
    """Whether the picture stands still while the run goes on."""
    note: str = ""
    """What the screen has to say of itself in one line, such as a recorder that is gone."""

    @property
    def device(self) -> DeviceInfo | None:
        """The picked device."""
        return self.view.device(self.device_id) if self.device_id is not None else None


class RunCanvas(Canvas):
    """A panel: a canvas that knows what is shown."""

    def __init__(self, shown: Shown, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.shown = shown


STATE_ROLES = {
    "warming": "muted",
    "settling": "accent",
    "holding": "accent",
    "steady": "good",
    "not-steady": "warn",
    "stuck": "bad",
    "idle": "warn",
    "lost": "bad",
    "failed": "bad",
    "interrupted": "warn",
    "recording": "good",
}
"""The role of each state of a device or session."""


def flags_role(flags: Sequence[str]) -> str:
    """Many cards run at their power limit by design; every other flag is a warning."""
    return "muted" if set(flags) <= {"power-capped"} else "warn"
