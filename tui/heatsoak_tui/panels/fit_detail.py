"""The picked cell: what fills the memory, and what would fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak.units import BYTES_PER_GIB
from heatsoak_tui.format import DASH, fit, number, short_name
from heatsoak_tui.widgets.canvas import WIDE, Line, width_of
from heatsoak_tui.widgets.fit_choice import FitCanvas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.economics.memory_fit import MemoryPlan, Moment
    from heatsoak.economics.recipes import FittingRecipe
    from heatsoak_tui.widgets.fit_choice import FitChoice

LEFT = 45
"""Cells of the breakdown."""
MOMENTS: dict[Moment, str] = {
    "loss": "loss", "first backward layer": "first", "last backward layer": "last",
    "update": "step",
}  # fmt: skip
"""The moments in a word: first and last are layers of the backward pass."""
PARTS = ("weights", "gradients", "states", "activations", "logits", "temporaries")
ROLES = {"yes": "good", "tight": "warn", "no": "bad"}


class FitDetail(FitCanvas):
    """The breakdown on the left, the recipes on the right."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """A sentence, then the two columns."""
        choice = self.choice
        plan = choice.plan(choice.shape, choice.card)
        if plan is None:
            longest = number(choice.shape.positions, 0)
            text = f" {choice.shape.name} has {longest} positions: X halves the context"
            return [[(text, "warn")]]
        left = _breakdown(plan)
        right = [_limits(choice), *_recipes(choice.recipes(), is_wide=width >= WIDE)]
        room = max(0, height - 1)
        if len(right) > room > 0:
            hidden = len(right) - room + 1
            right = [*right[: room - 1], [(f"  and {hidden} more", "muted")]]
        lines = [_sentence(choice, plan)]
        for index in range(min(room, max(len(left), len(right)))):
            start = left[index] if index < len(left) else []
            end = right[index] if index < len(right) else []
            lines.append([*start, (" " * (LEFT - width_of(start)), "text"), *end])
        return lines


def _sentence(choice: FitChoice, plan: MemoryPlan) -> Line:
    count = f"{choice.n} x " if choice.n > 1 else ""
    left = number(abs(plan.headroom_bytes) / BYTES_PER_GIB, 1)
    used, usable = (number(one / BYTES_PER_GIB, 1) for one in (plan.peak_bytes, plan.usable_bytes))
    words = "over" if plan.headroom_bytes < 0 else "left"
    return [
        (f" {choice.shape.name} on {count}{short_name(choice.card.name)}: ", "strong"),
        (plan.verdict, f"{ROLES[plan.verdict]}/strong"),
        (f", {used} of {usable} GiB, {left} {words}", "text"),
    ]


def _breakdown(plan: MemoryPlan) -> list[Line]:
    """What is held in GiB at the moments of a step, the worst of them bright."""
    moments = plan.peak.moments
    worst = plan.peak.moment
    head: Line = [(f"  {'GiB, at the':<13}", "muted")]
    for moment in moments:
        is_worst = moment == worst
        mark = "▼" if is_worst else ""
        head.append((f"{mark + MOMENTS[moment]:>7}", "accent" if is_worst else "muted"))
    lines = [head]
    for part in PARTS:
        line: Line = [(f"  {part:<13}", "muted")]
        for moment, parts in moments.items():
            role = "text" if moment == worst else "muted"
            line.append((f"{_gib(getattr(parts, part)):>7}", role))
        lines.append(line)
    total: Line = [(f"  {'together':<13}", "muted")]
    for moment, parts in moments.items():
        total.append((f"{_gib(parts.total):>7}", "strong" if moment == worst else "muted"))
    lines.append(total)
    if any(plan.host_bytes):
        lines.append([(f"  and {_host(plan)}", "warn")])
    return lines


def _gib(count: int) -> str:
    return number(count / BYTES_PER_GIB, 1) if count else DASH


def _limits(choice: FitChoice) -> Line:
    context, batch, needed = choice.limits()
    if context is not None and batch is not None:
        return [(f"context to {number(context, 0)}, or batch to {number(batch, 0)}", "text")]
    return [(f"as asked: {needed} of them, sharded" if needed else "as asked: more than 8", "text")]


def _recipes(recipes: Sequence[FittingRecipe], *, is_wide: bool) -> list[Line]:
    if not recipes:
        return [[("nothing fits, not even QLoRA", "bad")]]
    lines: list[Line] = [[("what fits, least given up first", "muted")]]
    for one in recipes:
        chunks = one.training.loss_chunks
        method = one.training.method + (f", loss/{chunks}" if chunks > 1 else "")
        line: Line = [
            (f"  {fit(method, 18):<18}", "text"),
            (f"{_gib(one.plan.peak_bytes):>6}", "text"),
            ("  tight" if one.plan.verdict == "tight" else "", "warn"),
        ]
        if is_wide and any(one.plan.host_bytes):
            line.append((f"  and {_host(one.plan)}", "muted"))
        lines.append(line)
    return lines


def _host(plan: MemoryPlan) -> str:
    low, high = (number(one / 1e9, 0) for one in plan.host_bytes)
    return f"{low} to {high} GB on the host"
