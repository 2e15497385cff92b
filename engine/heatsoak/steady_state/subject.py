"""One device as the judge sees it: its bins, its tests, and how its judgement ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.steady_state.protocols import (
    HEAT_FACTOR,
    SENSITIVITY_U95_LEAST,
    U95_PCT_PER_C,
)
from heatsoak.steady_state.readings import Readings

if TYPE_CHECKING:
    from heatsoak.steady_state.bounds import Test
    from heatsoak.steady_state.verdict import Channel, Sustained, Verdict
    from heatsoak.telemetry.device import DeviceInfo


class Subject:
    """A device under judgement."""

    def __init__(self, info: DeviceInfo, origin_s: float) -> None:
        """Begin without readings, at `origin_s`."""
        self.info = info
        self.readings = Readings(info, origin_s)
        self.tests: list[Test] = []
        """The channels' tests of the newest evaluation, the job's rate first."""
        self.is_throttled = False
        """Whether a thermal slowdown held it down for a good part of the window."""
        self.per_degree_pct: float | None = None
        """What rate or power change per °C on this card, None where that cannot be told."""
        self.final: Verdict | None = None
        """Its last word, once there is one."""
        self.frozen: Sustained | None = None
        """Its sustained numbers, once steady."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels the newest evaluation stood on."""
        return tuple(test.bound.channel for test in self.tests)

    @property
    def worst(self) -> Test | None:
        """The test that is furthest from passing, None without any."""
        return max(self.tests, key=lambda test: test.severity, default=None)

    @property
    def blocking(self) -> Test | None:
        """The worst test if it does not pass."""
        worst = self.worst
        return worst if worst is not None and not worst.bound.is_ok else None

    @property
    def heat_pct(self) -> float:
        """What is still to come may cost rate or power, in percent."""
        by_channel = {test.bound.channel: test for test in self.tests}
        heat = by_channel.get("temperature")
        if heat is not None and not self.is_throttled:
            per_degree = U95_PCT_PER_C
            if self.per_degree_pct is not None:
                per_degree = max(self.per_degree_pct, SENSITIVITY_U95_LEAST)
            return HEAT_FACTOR * per_degree * (abs(heat.to_come) + heat.se)
        # No temperature, or one that a limit holds still: power and clock tell what heat does.
        told = [by_channel[name] for name in ("power", "clock") if name in by_channel]
        return max((abs(test.to_come) + test.se for test in told), default=0.0)
