"""The first lines of Setup: what will run, and whether it can."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak_tui.format import wrap
from heatsoak_tui.widgets.canvas import Line, left_right, rule, width_of
from heatsoak_tui.widgets.draft_canvas import DraftCanvas

if TYPE_CHECKING:
    from heatsoak.doctor.finding import Severity
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
        room = max(1, height - 2)
        said = self._sentence(width, room)[:room]
        said += [[]] * (room - len(said))
        return [left_right(title, host, width), *said, rule(width)][:height]

    def _sentence(self, width: int, room: int) -> list[Line]:
        draft = self.draft
        if draft.is_starting:
            return _flow("Starting", "accent", "opening the cards and the workload", width, room)
        if draft.trouble:
            return _flow("Refused", "bad/strong", draft.trouble, width, room)
        if blocker := draft.blocker():
            return _flow("Not ready", "warn/strong", blocker, width, room)
        count = len(draft.chosen_devices)
        what = f"{count} cards" if count > 1 else draft.chosen_devices[0].device_id
        if count == 1 and what.isdigit():
            what = f"card {what}"
        summary = PROTOCOLS[draft.protocol].summary
        text = f"to soak {what} with {draft.workload_name}: {summary}"
        enter: Line = [("enter starts ", "accent")]
        doctor = self._doctor()
        if room > 1:
            lines = _flow("Ready", "good/strong", text, width - width_of(enter), room)
            lines += [[]] * (2 - len(lines))
            second = left_right(lines[1], [*doctor, (" ", "text")], width)
            return [left_right(lines[0], enter, width), second, *lines[2:]]
        right = [*doctor, ("   ", "text"), *enter]
        lines = _flow("Ready", "good/strong", text, width - width_of(right), room)
        return [left_right(lines[0], right, width)]

    def _doctor(self) -> Line:
        """`doctor: 2 warnings`; empty when there are none."""
        number = Counter(one.severity for one in self.draft.problems())
        if not number:
            return []
        worst: Severity = "error" if number["error"] else "warning"
        many = "s" if number[worst] > 1 else ""
        role = "bad" if worst == "error" else "warn"
        return [("doctor: ", "muted"), (f"{number[worst]} {worst}{many}", role)]


def _flow(word: str, role: str, text: str, width: int, room: int) -> list[Line]:
    head: Line = [(f" {word}  ", role)]
    indent = width_of(head)
    texts = wrap(text, width - indent - 1, room) or [""]
    lines: list[Line] = [[*head, (texts[0], "text")]]
    return lines + [[(" " * indent, "text"), (more, "text")] for more in texts[1:]]
