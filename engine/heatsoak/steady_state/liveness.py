"""Proof that the sensors are alive: frozen telemetry looks exactly like a perfect steady state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.steady_state.protocols import (
    CLOCK_SLACK_S,
    COLD_STUCK_S,
    FROZEN_S,
    STUCK_COARSE_FRAC,
    STUCK_COARSE_S,
    STUCK_READINGS,
    STUCK_S,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class Repeat:
    """How long a reading has been bit-identical."""

    value: float | None = None
    since_s: float = 0.0
    last_s: float = 0.0
    count: int = 0

    def add(self, readings: Sequence[tuple[float, float]]) -> None:
        """More readings in order, each `(t_s, value)`; only how the last one repeats matters."""
        self.last_s, value = readings[-1]
        same = 0
        since_s = self.last_s
        for t_s, one in reversed(readings):
            if one != value:
                break
            since_s = t_s
            same += 1
        if same == len(readings) and value == self.value:
            self.count += same
        else:
            self.value, self.since_s, self.count = value, since_s, same

    @property
    def length_s(self) -> float:
        """Seconds from the first to the last identical reading."""
        return self.last_s - self.since_s

    def is_stuck(self, least_s: float) -> bool:
        """Identical for at least `least_s` and enough readings."""
        return self.count >= STUCK_READINGS and self.length_s >= least_s


class Liveness:
    """Which channels of one device are stuck."""

    def __init__(self, power_limit_w: float | None) -> None:
        """Begin without readings."""
        self._limit_w = power_limit_w
        self._repeats = {
            name: Repeat() for name in ("power", "energy", "temperature", "clock", "fan")
        }
        self._first_temperature_s: float | None = None

    def add(self, channel: str, readings: Sequence[tuple[float, float]]) -> None:
        """Readings of a channel in order, each `(t_s, value)`, finite; none is allowed."""
        if not readings:
            return
        repeat = self._repeats[channel]
        repeat.add(readings)
        if channel == "temperature" and self._first_temperature_s is None:
            self._first_temperature_s = repeat.since_s

    def power_stuck_since_s(self) -> float | None:
        """Since when power is bit-identical for too long to be real, or None."""
        repeat = self._repeats["power"]
        value = repeat.value
        if value is None:
            return None
        is_coarse = (
            value.is_integer()
            and self._limit_w is not None
            and abs(value - self._limit_w) <= STUCK_COARSE_FRAC * self._limit_w
        )
        if repeat.is_stuck(STUCK_COARSE_S if is_coarse else STUCK_S):
            return repeat.since_s
        return None

    def energy_stuck_since_s(self) -> float | None:
        """Since when the energy counter stands still, or None."""
        repeat = self._repeats["energy"]
        return repeat.since_s if repeat.is_stuck(STUCK_S) else None

    def is_temperature_stuck(self, load_s: float | None) -> bool:
        """It has not moved from before the load at `load_s` until well into it."""
        repeat = self._repeats["temperature"]
        return (
            load_s is not None
            and repeat.count >= STUCK_READINGS
            and repeat.since_s == self._first_temperature_s
            and repeat.since_s <= load_s + CLOCK_SLACK_S
            and repeat.last_s - load_s >= COLD_STUCK_S
        )

    def frozen_since_s(self, t_s: float) -> float | None:
        """Since when every reported channel is identical at once, or None.

        Power must be among them: whole degrees and a locked clock may well stand still alone.
        """
        told = [repeat for repeat in self._repeats.values() if repeat.count]
        if self._repeats["power"].count == 0:
            return None
        since = max(repeat.since_s for repeat in told)
        if t_s - since < FROZEN_S or self._repeats["power"].count < STUCK_READINGS:
            return None
        return since
