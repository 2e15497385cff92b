"""One device as the judge sees it: its bins, its tests, and how its judgement ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.steady_state.readings import Readings

if TYPE_CHECKING:
    from heatsoak.steady_state.bounds import Test
    from heatsoak.steady_state.verdict import Channel, Sustained, Verdict
    from heatsoak.telemetry.device import DeviceInfo


class Subject:
    """A device under judgement."""

    def __init__(self, info: DeviceInfo) -> None:
        """Begin without readings."""
        self.info = info
        self.readings = Readings(info)
        self.tests: list[Test] = []
        """The channels' tests of the newest evaluation, the job's rate first."""
        self.is_throttled = False
        """Whether a thermal slowdown held it down for a good part of the window."""
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
    def to_come_c(self) -> float:
        """Temperature still to come, as a size; 0 without a temperature."""
        for test in self.tests:
            if test.bound.channel == "temperature":
                return abs(test.to_come)
        return 0.0
