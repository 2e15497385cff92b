"""The judge's reasons in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from heatsoak.steady_state.bounds import Test
    from heatsoak.steady_state.epoch import Reset
    from heatsoak.steady_state.subject import Subject
    from heatsoak.steady_state.verdict import Channel, Cycling

_NAMES: dict[Channel, str] = {
    "rate": "throughput",
    "power": "power",
    "clock": "clock",
    "temperature": "temperature",
    "fan": "fan",
}
_BEFORE_PROGRESS = {
    None: "no progress yet: waiting for the workload to start",
    "start": "no progress yet: the workload is starting",
    "compile": "compiling",
}


def duration(seconds: float) -> str:
    """Rounded: `40 s`, `6 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def span(left: tuple[float, float] | None) -> str:
    """`; 6 to 25 min`, or nothing where nothing can be said."""
    if left is None:
        return ""
    low, high = duration(left[0]), duration(left[1])
    if low == high:
        return f"; about {high}"
    if low.split()[1] == high.split()[1]:
        low = low.split()[0]
    return f"; {low} to {high}"


def before_progress(phase: str | None, *, counts: bool) -> str:
    """What is waited for before the first unit of work, or the first reading of a bare log."""
    return _BEFORE_PROGRESS.get(phase, "no progress yet") if counts else "no readings yet"


def starved(late_s: float) -> str:
    """Why a workload that lets its device wait is not believed before `late_s`."""
    return (
        "the device waits for data, and a first pass over them may be slower than the next: "
        f"judged after {duration(late_s)}"
    )


def spent(late_s: float) -> str:
    """Why a device whose fan can do no more is not believed before `late_s` without temperature."""
    return (
        "the fan can do no more, and no temperature tells what that leads to: "
        f"judged after {duration(late_s)}"
    )


def after_reset(reset: Reset | None) -> str:
    """Why it is warming again."""
    if reset is None:
        return "waiting for the load to go on for a while"
    if reset.row < 0:
        return "settling again: the card began to slow down for its temperature"
    return f"settling again after a disturbance ({100 * reset.change_frac:+.0f} %)"


def blocked(test: Test) -> str:
    """Why a channel does not pass."""
    bound, to_come = test.bound, test.to_come
    if bound.channel == "temperature":
        if test.why == "limit":
            return "temperature about to reach its limit"
        if abs(to_come) < 0.5 * bound.value:
            return (
                f"temperature not sure yet: up to {bound.value:.1f} °C to come, "
                f"{bound.margin:.1f} °C allowed"
            )
        word = "heating" if to_come > 0 else "cooling"
        return f"case still {word}, about {abs(to_come):.1f} °C to come"
    if bound.channel == "fan":
        if test.why == "headroom":
            return "fan about to run out of headroom"
        if test.why == "slow":
            return f"fan still moving slowly, about {abs(to_come):.0f} points to come"
        return f"fan still moving, {bound.value:.0f} points to come, {bound.margin:.0f} allowed"
    if test.why == "bound" and abs(to_come) < 0.5 * bound.value:
        return (
            f"{bound.channel} unsettled: up to {bound.value:.1f} % may be to come, "
            f"{bound.margin:.1f} % allowed"
        )
    if test.why == "bound":
        return (
            f"{bound.channel} still drifting, {bound.value:.1f} % to come, "
            f"{bound.margin:.1f} % allowed"
        )
    return f"{bound.channel} still drifting slowly, about {abs(to_come):.1f} % to come"


def while_judging(subject: Subject, blocked_by_id: Mapping[str, str], noise: str) -> str:
    """What a device waits for: itself, another device of its job, or noise.

    Args:
        subject: the device.
        blocked_by_id: what blocks each device that does not pass.
        noise: why the interval does not close, or empty.
    """
    own = blocked_by_id.get(subject.info.device_id)
    if own:
        return own
    if not subject.tests:
        return "no readings and no progress to judge"
    for device_id, why in blocked_by_id.items():
        return f"waiting for {device_id}: {why}"
    return noise or "holding still to be sure"


def at_time_out(subject: Subject, noise: str) -> str:
    """What kept it from steady, when the time is up.

    Args:
        subject: the device.
        noise: why the interval did not close at the newest evaluation, or empty.
    """
    if subject.blocking is not None:
        return blocked(subject.blocking)
    if subject.tests:
        return noise or "it had not yet held still for long enough"
    return "nothing could be judged: too little time or too few readings"


def notes(
    channels: tuple[Channel, ...], stuck: Collection[str], cycle: Cycling | None, *, is_bare: bool
) -> str:
    """What the judgement stands on, where that is less than usual, and a cycle; else nothing.

    Args:
        channels: those judged.
        stuck: channels left out because they do not move.
        cycle: the cycle that was found, or None.
        is_bare: whether the device reports no hardware channel at all.
    """
    parts = []
    if stuck:
        verb = "is" if len(stuck) == 1 else "are"
        parts.append(f"{' and '.join(sorted(stuck))} {verb} stuck and left out")
    if channels == ("rate",):
        why = ": this device reports no power, temperature or clock" if is_bare else ""
        parts.append(f"judged on throughput alone{why}")
    elif channels and "rate" not in channels:
        parts.append("judged without throughput")
    elif channels and len(channels) == 2:
        parts.append("judged on " + " and ".join(_NAMES[c] for c in channels) + " alone")
    if cycle is not None:
        parts.append(
            f"cycling every {duration(cycle.period_s)}: {_NAMES[cycle.channel]} swings by "
            f"{cycle.swing:.0f} {cycle.unit}"
        )
    return "; ".join(parts)
