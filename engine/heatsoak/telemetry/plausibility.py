"""Readings that cannot be true: which sensor of a device is suspect, and why.

They are recorded as they came; what is told here is that nobody should build on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.telemetry.sample import READING_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

DRAW_FACTOR = 1.3
"""Cards do exceed their limit by a per cent or two for a moment; never by so much for long."""
DRAW_S = 10.0
CAP_AT_IDLE_S = 60.0
"""A power cap at 0 % utilization may be left over from a moment ago; not for so long."""
FREEZING_S = 10.0
"""So long 0 degrees are not believed of a device that draws power."""
WARM_FRAC = 0.2
"""Share of the power limit from which on a device cannot be at 0 degrees."""
COUNTER_FACTOR = 1.2
"""An energy counter rises by no more than this times limit and time."""
COUNTER_SLACK_S = 1.0
"""Counters move in steps."""
POWER_CAP = "sw_power_cap"


class Plausibility:
    """Looks at the readings of one device in order, and says each suspicion once."""

    def __init__(self, info: DeviceInfo) -> None:
        """Begin without readings."""
        self._info = info
        self._told: set[str] = set()
        self._since_s: dict[str, float] = {}
        """Since when each condition has held without a break."""
        self._energy: tuple[float, float] | None = None

    def look(self, sample: DeviceSample) -> list[str]:
        """What is newly suspect after one more reading, a sentence each."""
        news = []
        for kind, text in self._suspicions(sample):
            if kind not in self._told:
                self._told.add(kind)
                news.append(text)
        return news

    def _suspicions(self, sample: DeviceSample) -> Iterator[tuple[str, str]]:
        for reading, answer in sample.rejected:
            name = READING_NAMES[reading]
            yield f"rejected {reading}", f"its {name} is left out: the driver answers {answer:.0f}"
        power_w, temperature_c = sample.power_w, sample.temperature_c
        limit_w = sample.power_limit_w or self._info.power_limit_w
        draw_frac = None if power_w is None or not limit_w else power_w / limit_w
        if self._has_held(
            "draw", draw_frac is not None and draw_frac > DRAW_FACTOR, DRAW_S, sample
        ):
            yield (
                "draw",
                f"its power sensor is suspect: {power_w:.0f} W for {DRAW_S:.0f} s at a limit of "
                f"{limit_w:.0f} W",
            )
        is_capped = POWER_CAP in (sample.throttle_reasons or ())
        is_odd = is_capped and sample.utilization_pct == 0.0
        if self._has_held("cap", is_odd, CAP_AT_IDLE_S, sample):
            yield (
                "cap",
                "its power sensor is suspect: it says that its power limit holds it down while it "
                "does nothing",
            )
        is_warm = (draw_frac or 0.0) > WARM_FRAC or (sample.utilization_pct or 0.0) > 50.0
        if self._has_held("cold", temperature_c == 0.0 and is_warm, FREEZING_S, sample):
            yield "cold", "its temperature sensor is suspect: 0 °C under load"
        yield from self._look_at_counter(sample, limit_w)

    def _has_held(self, kind: str, is_so: bool, least_s: float, sample: DeviceSample) -> bool:
        """Whether a condition has held for long enough."""
        if not is_so:
            self._since_s.pop(kind, None)
            return False
        return sample.t_s - self._since_s.setdefault(kind, sample.t_s) >= least_s

    def _look_at_counter(
        self, sample: DeviceSample, limit_w: float | None
    ) -> Iterator[tuple[str, str]]:
        if sample.energy_j is None:
            return
        before, self._energy = self._energy, (sample.t_s, sample.energy_j)
        if before is None:
            return
        rise_j, dt_s = sample.energy_j - before[1], sample.t_s - before[0]
        if rise_j < 0.0:
            yield "restart", "its energy counter began anew; what it counted before is left out"
        elif limit_w and rise_j > COUNTER_FACTOR * limit_w * (dt_s + COUNTER_SLACK_S):
            yield (
                "jump",
                f"its energy counter rose by {rise_j:.0f} J within {dt_s:.1f} s, more than its "
                "power limit allows; that is left out",
            )
