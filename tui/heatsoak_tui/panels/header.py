"""The first two lines of a run: what runs and since when; what is waited for, or what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import (
    card_mark,
    duration,
    number,
    recipe_words,
    span_range,
    wrap,
)
from heatsoak_tui.widgets.canvas import Line, left_right, rule, width_of
from heatsoak_tui.widgets.run_canvas import STATE_ROLES, RunCanvas

if TYPE_CHECKING:
    from heatsoak.steady_state.verdict import Bound, Verdict
    from heatsoak_tui.run_view import RunView

PHASE_WORDS = {
    "start": "starting",
    "compile": "compiling",
    "eval": "evaluating",
    "checkpoint": "writing a checkpoint",
    "teardown": "ending",
}


class Header(RunCanvas):
    """Title line, phase line, rule."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Two lines and a rule."""
        shown = self.shown
        room = max(1, height - 2)
        if shown.note:
            said: list[Line] = [
                [(f" {text}", "warn")] for text in wrap(shown.note, width - 2, room)
            ]
        elif shown.is_paused:
            said = [[(" VIEW PAUSED", "warn/strong"), ("  the run goes on; p resumes", "text")]]
        else:
            said = phase_lines(shown.view, width, room)
        said = said[:room] + [[]] * (room - len(said))
        return [title_line(shown.view, width), *said, rule(width)][:height]


def title_line(view: RunView, width: int) -> Line:
    """` heatsoak  SYNTHETIC  llm_pretrain 1B · 4096   standard   0:14:32   aurora  ● recording`."""
    left: Line = [(" heatsoak ", "accent")]
    for word in view.warnings:
        left += [(" ", "text"), (word, "warn/strong")]
    meta = view.meta
    state = view.session_state
    role = STATE_ROLES.get(state, "text")
    sign = "●" if state == "recording" else "○"
    tail: Line = [(f"{sign} {state} ", role)]
    speed = float(meta.get("speed") or 1.0)
    # Given up from the end when the line is too short.
    optional: list[Line] = [
        [(duration(view.now_s), "strong"), ("   ", "text")],
        [(_workload(view), "text")],
        [(f"{number(speed, 0)}× time   ", "warn")] if speed != 1 else [],  # noqa: RUF001
        [(f"{meta['name']}   ", "text")] if meta.get("name") else [],
        [(f"{meta.get('protocol', '')}   ", "muted")],
        [(f"{meta.get('host', '')}   ", "muted")],
    ]
    kept = [line for line in optional if line]
    while kept and width_of(left) + width_of(tail) + sum(map(width_of, kept)) + 4 > width:
        kept.pop()
    right: Line = []
    for line in kept:
        if line is optional[1]:
            left += [("  ", "text"), *line]
        elif line is optional[0]:
            continue
        else:
            right += line
    if optional[0] in kept:
        right += optional[0]
    return left_right(left, right + tail, width)


def _workload(view: RunView) -> str:
    jobs = view.jobs
    if not jobs:
        return ""
    words = " · ".join(recipe_words(view.recipe(jobs[0].device_ids[0])))
    return f"{jobs[0].workload} {words}".rstrip()


def phase_lines(view: RunView, width: int, room: int) -> list[Line]:
    """`SETTLING  card 0: case still heating; 6 to 25 min left   blocked by power: 0.7 of 0.5 %`."""
    device_id = view.leading_device_id
    if device_id is None:
        return [[(" waiting for the session file", "muted")]]
    verdict = view.verdict(device_id)
    if view.has_ended:
        return _flow(view.session_state, _end_reason(view), [], width, room)
    phase = PHASE_WORDS.get(view.phase(device_id) or "")
    if verdict is None:
        is_read = view.latest(device_id) is not None
        what = phase or ("warming up" if is_read else "waiting for the first reading")
        what = view.silence(device_id) or what
        return [[(" STARTING  ", "accent"), (what, "text")]]
    is_one_of_many = len(view.device_ids) > 1 and not view.is_judged
    who = f"card {card_mark(device_id)}: " if is_one_of_many else ""
    right: Line = []
    if (blocking := _blocking(verdict)) is not None:
        right = [("blocked by ", "muted"), (f"{blocking.channel} ", "warn")]
        if blocking.value > blocking.margin:
            value = f"{number(blocking.value, 1)} of {number(blocking.margin, 1)} {blocking.unit}"
            right.append((f"{value} ", "warn"))
    if view.is_judged:
        right = [("t ", "accent"), ("shows the result ", "muted")]
    silence = view.silence(device_id)
    text = f"{who}{silence or verdict.reason}"
    if verdict.time_left_s is not None and silence is None:
        left = span_range(*verdict.time_left_s)
        text += f"; {left} left" if left not in text else ""
    if phase and phase not in text:
        text = f"{phase}; {text}"
    return _flow(verdict.state, text, right, width, room)


def _flow(state: str, text: str, right: Line, width: int, room: int) -> list[Line]:
    """State and text in up to `room` lines; `right` where it fits."""
    text = text.removeprefix(f"{state}: ")
    head: Line = [(f" {state.upper()}  ", f"{STATE_ROLES.get(state, 'text')}/strong")]
    indent = width_of(head)
    texts = wrap(text, width - indent - 1, room) or [""]
    lines: list[Line] = [[*head, (texts[0], "text")]]
    lines += [[(" " * indent, "text"), (more, "text")] for more in texts[1:]]
    if right and len(lines) < room and width_of(lines[-1]) + width_of(right) + 2 > width:
        lines.append([])
    lines[-1] = left_right(lines[-1], right, width) if right else lines[-1]
    return lines


def _blocking(verdict: Verdict) -> Bound | None:
    if verdict.frozen_at_s is not None:
        return None
    return next((b for b in verdict.bounds if b.channel == verdict.blocked_by), None)


def _end_reason(view: RunView) -> str:
    """Of the device that gave the session its state; of all when they agree."""
    ids = [d for d in view.device_ids if view.state(d) == view.session_state]
    verdict = view.verdict(ids[0]) if ids else None
    if verdict is None:
        return view.meta.get("end_reason", "")
    reason = verdict.reason.removeprefix(f"{verdict.state}: ")
    if len(view.device_ids) == 1:
        return reason
    if len(ids) == len(view.device_ids):
        return f"all {len(ids)} cards; {reason}"
    return f"card {card_mark(ids[0])}: {reason}"
