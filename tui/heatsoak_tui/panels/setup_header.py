"""The first lines of Setup: what will run, and whether it can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak_tui.format import fit
from heatsoak_tui.widgets.canvas import Line, left_right, rule, width_of
from heatsoak_tui.widgets.draft_canvas import DraftCanvas

if TYPE_CHECKING:
    from heatsoak_tui.widgets.draft import Draft


class SetupHeader(DraftCanvas):
    """Title, sentence, rule."""

    def __init__(self, draft: Draft, host: str, *, id: str | None = None) -> None:
        super().__init__(draft, id=id)
        self._host = host

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Two lines and a rule."""
        draft = self.draft
        title: Line = [(" heatsoak ", "accent")]
        if any(device.provenance == "synthetic" for device in draft.chosen_devices):
            title += [(" ", "text"), ("SYNTHETIC", "warn/strong")]
        if draft.protocol == "smoke":
            title += [(" ", "text"), ("SMOKE", "warn/strong")]
        host: Line = [(f"{self._host} ", "muted")]
        return [left_right(title, host, width), self._sentence(width), rule(width)]

    def _sentence(self, width: int) -> Line:
        draft = self.draft
        if draft.is_starting:
            text = " Starting: opening the cards and the workload"
            return [(fit(text, width), "accent")]
        if draft.trouble:
            return [(" ", "text"), (fit(draft.trouble, width - 2), "bad")]
        if blocker := draft.blocker():
            return [(" Not ready: ", "warn/strong"), (fit(blocker, width - 13), "text")]
        count = len(draft.chosen_devices)
        what = f"{count} cards" if count > 1 else draft.chosen_devices[0].device_id
        if count == 1 and what.isdigit():
            what = f"card {what}"
        left: Line = [
            (" Ready ", "good/strong"),
            (f"to soak {what} with {draft.workload_name}: ", "text"),
        ]
        right: Line = [("enter starts ", "accent")]
        room = width - width_of(left) - width_of(right) - 1
        left.append((fit(PROTOCOLS[draft.protocol].summary, room), "text"))
        return left_right(left, right, width)
