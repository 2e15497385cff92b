"""The judge's reasons in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heatsoak.steady_state.bounds import Test
    from heatsoak.steady_state.verdict import Channel

NAMES: dict[Channel, str] = {
    "rate": "throughput",
    "power": "power",
    "clock": "clock",
    "temperature": "temperature",
    "fan": "fan",
}


def duration(seconds: float) -> str:
    """Rounded: `40 s`, `6 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def span(left: tuple[float, float] | None) -> str:
    """`6 to 25 min`, or nothing where nothing can be said."""
    if left is None:
        return ""
    low, high = duration(left[0]), duration(left[1])
    if low == high:
        return f"; about {high}"
    if low.split()[1] == high.split()[1]:
        low = low.split()[0]
    return f"; {low} to {high}"


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
        return f"fan still moving, {bound.value:.0f} points to come, {bound.margin:.0f} allowed"
    name = {"rate": "rate", "power": "power", "clock": "clock"}[bound.channel]
    value = bound.value if test.why == "bound" else abs(to_come)
    if test.why == "bound":
        return f"{name} still drifting, {value:.1f} % to come, {bound.margin:.1f} % allowed"
    return f"{name} still drifting slowly, about {value:.1f} % to come"


def stood_on(channels: tuple[Channel, ...], stuck: tuple[str, ...], missing: bool) -> str:
    """What the judgement stands on, where that is less than usual; else nothing.

    Args:
        channels: those judged.
        stuck: channels that are excluded because they do not move.
        missing: whether the device reports no hardware channel at all.
    """
    parts = []
    if stuck:
        verb = "is" if len(stuck) == 1 else "are"
        parts.append(f"{' and '.join(stuck)} {verb} stuck and left out")
    if channels == ("rate",):
        why = ": this device reports no power, temperature or clock" if missing else ""
        parts.append(f"judged on throughput alone{why}")
    elif channels and "rate" not in channels:
        parts.append("judged without throughput: no counter")
    elif channels and len(channels) <= 2:
        parts.append("judged on " + " and ".join(NAMES[c] for c in channels) + " alone")
    return "; ".join(parts)
