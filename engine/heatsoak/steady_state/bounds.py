"""Each channel's bound against its margin, and the vetoes: does this device pass now?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.steady_state.protocols import (
    BOUND_SES,
    FAN_VETO_SHARE,
    GATE_PCT,
    HOLD_MARGIN_FACTOR,
    LIMIT_NEAR_C,
    LIMIT_NEAR_R_C,
    LIMIT_REACH_C,
    LIMIT_ZONE_C,
    RATE_PCT,
    REACH_FACTOR,
    RELAX_FACTOR,
    RELAX_SHARE,
    SENSITIVITY_ALLOWED_PCT,
    SENSITIVITY_MARGIN_FRAC,
    SLOW_RATE_PCT,
    VETO_SES,
    VETOED,
)
from heatsoak.steady_state.verdict import Bound, Channel

if TYPE_CHECKING:
    from heatsoak.steady_state.drift import Drift
    from heatsoak.steady_state.protocols import Protocol


@dataclass(frozen=True, slots=True)
class Test:
    """One channel, tested."""

    bound: Bound
    to_come: float
    """Signed guess of what is still to come at the slow time constant, in the bound's unit."""
    se: float
    """Its standard error."""
    why: str
    """What is wrong, in words; empty when it is not."""

    @property
    def severity(self) -> float:
        """Bound over margin, at least `VETOED` when it fails."""
        ratio = self.bound.value / self.bound.margin
        return ratio if self.bound.is_ok else max(ratio, VETOED)


@dataclass(frozen=True, slots=True)
class Row:
    """A channel among the rows of a fit."""

    channel: Channel
    index: int
    """Its row in the fits."""
    is_curved: bool
    """Whether the second half of the window is also judged alone."""
    now: float
    """Its latest value: °C or points of fan; for the others percent, unused."""


class Rules:
    """The rules of one protocol at one instant."""

    def __init__(
        self,
        protocol: Protocol,
        full: Drift,
        half: Drift | None,
        *,
        is_holding: bool,
        is_late: bool,
    ) -> None:
        """Take the fits of the whole window and of its second half."""
        self._full = full
        self._half = half
        self._factor = HOLD_MARGIN_FACTOR if is_holding else 1.0
        self._is_late = is_late
        self._margins: dict[Channel, tuple[float, str]] = {
            "temperature": (protocol.temperature_c, "°C"),
            "power": (protocol.power_pct, "%"),
            "clock": (protocol.clock_pct, "%"),
            "rate": (protocol.rate_pct, "%"),
            "fan": (protocol.fan_points, "points"),
        }
        self._slow_rate = SLOW_RATE_PCT * protocol.rate_pct / RATE_PCT
        self._heat_pct = SENSITIVITY_ALLOWED_PCT * protocol.gate_pct / GATE_PCT

    def test(
        self,
        row: Row,
        *,
        leads: bool,
        limit_c: float | None = None,
        fan_max_pct: float | None = None,
        per_degree_pct: float | None = None,
    ) -> Test:
        """Test one channel.

        Args:
            row: where its fits are.
            leads: whether the slow mode is held against it, as against temperature.
            limit_c: temperature limit, for temperature.
            fan_max_pct: highest fan speed in percent, for the fan.
            per_degree_pct: what rate or power change per °C, for temperature.
        """
        margin, unit = self._margins[row.channel]
        if per_degree_pct is not None:
            allowed = self._heat_pct / max(per_degree_pct, 1e-9)
            margin = min(margin, max(allowed, SENSITIVITY_MARGIN_FRAC * margin))
        margin *= self._factor
        value, estimate = self._full.bound(row.index, with_slow=leads)
        slow = float(self._full.r[row.index, -1])
        se = float(self._full.se[row.index, -1])
        if row.channel == "rate":
            # A workload may drift for reasons of its own, which no temperature foretells: a slow
            # drift must be excluded, not merely be unseen in the noise of a short window.
            value, estimate = max((value, estimate), (abs(slow) + BOUND_SES * se, abs(slow)))
        ok = value <= margin
        if self._is_late and row.channel != "temperature":
            ok = ok or (estimate <= RELAX_SHARE * margin and value <= RELAX_FACTOR * margin)
        why = "" if ok else "bound"
        if not why:
            why = self._veto(row, *self._slow(row, slow, se), margin, limit_c, fan_max_pct)
        if not why and row.is_curved and self._half is not None:
            r = abs(float(self._half.r[row.index, -1]))
            if r - float(self._half.se[row.index, -1]) > margin:
                why = "curvature"
        bound = Bound(row.channel, value, margin, unit, not why)
        return Test(bound, slow, se, why)

    def _slow(self, row: Row, slow: float, se: float) -> tuple[float, float]:
        """What is held against a channel as its slow drift, and the standard error of it.

        Where the window's own shape rules the slow time constant out - it began with something
        faster - the second half alone says what is slow in it, if that is less.
        """
        is_percent = row.channel in ("rate", "power", "clock")
        if is_percent and self._half is not None and not self._full.is_plausible[row.index, -1]:
            half = float(self._half.r[row.index, -1])
            if abs(half) < abs(slow):
                return half, float(self._half.se[row.index, -1])
        return slow, se

    def _veto(
        self,
        row: Row,
        slow: float,
        se: float,
        margin: float,
        limit_c: float | None,
        fan_max_pct: float | None,
    ) -> str:
        """What speaks against the channel although its bound is within the margin."""
        size, is_sure = abs(slow), abs(slow) > VETO_SES * se
        reach = row.now + REACH_FACTOR * slow + se
        if row.channel in ("power", "clock"):
            return "slow" if is_sure and size > margin else ""
        if row.channel == "rate":
            return "slow" if is_sure and size > self._slow_rate * self._factor else ""
        if row.channel == "fan":
            top = (fan_max_pct if fan_max_pct is not None else 100.0) - 1.0
            if slow > 0 and row.now < top and reach >= top and is_sure:
                return "headroom"
            return "slow" if is_sure and size > FAN_VETO_SHARE * margin else ""
        if limit_c is None:
            return ""
        if row.now >= limit_c - LIMIT_ZONE_C:
            # At its limit and not slowed down yet: slowdown may set in late and deep, and a
            # degree of rounding hides which side of the limit it is on.
            return "limit" if row.now + abs(slow) + se >= limit_c - LIMIT_REACH_C else ""
        if slow > 0 and reach >= limit_c - LIMIT_REACH_C:
            return "limit"
        if row.now >= limit_c - LIMIT_NEAR_C and size > LIMIT_NEAR_R_C:
            return "limit"
        return ""
