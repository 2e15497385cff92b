"""One device's readings in bins: plain means, and the un-stalled view that drift is judged on."""

from __future__ import annotations

from collections import deque
from math import ceil, inf, nan
from operator import attrgetter
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from heatsoak.steady_state.bins import Table
from heatsoak.steady_state.liveness import Liveness
from heatsoak.steady_state.protocols import (
    CYCLE_READINGS,
    ENERGY_GAP_FACTOR,
    HISTORY_BINS,
    LONG_GAP_S,
    MOST_J,
    SANE,
    SECONDS_PER_BIN,
    SILENT_PERIODS,
)
from heatsoak.steady_state.times import Times

if TYPE_CHECKING:
    from collections.abc import Callable

    from heatsoak.steady_state.bins import Array
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

_FIELDS = tuple(SANE)
_WATCHED = _FIELDS[:4]
"""What drift is judged on: power, clock, temperature, fan."""
_READ: dict[str, Callable[[DeviceSample], float | None]] = {
    "power": attrgetter("power_w"),
    "clock": attrgetter("sm_clock_mhz"),
    "temperature": attrgetter("temperature_c"),
    "fan": attrgetter("fan_pct"),
    "mem_clock": attrgetter("mem_clock_mhz"),
    "utilization": attrgetter("utilization_pct"),
    "memory": attrgetter("memory_used_bytes"),
}
THERMAL_REASONS = frozenset(
    {"sw_thermal_slowdown", "hw_thermal_slowdown", "hw_slowdown", "hw_power_brake_slowdown"}
)
POWER_REASONS = frozenset({"sw_power_cap", "hw_power_brake_slowdown"})


def _sane(name: str, batch: list[DeviceSample]) -> list[float | None]:
    """A reading of each sample, None where there is none or none that can be."""
    low, high = SANE[name]
    values = map(_READ[name], batch)
    return [v if v is not None and low <= v <= high else None for v in values]


def _is_energy(joules: float | None) -> TypeGuard[float]:
    return joules is not None and abs(joules) <= MOST_J


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else nan


class Readings:
    """The bins of one device."""

    def __init__(self, info: DeviceInfo, origin_s: float) -> None:
        """Begin without readings, at `origin_s`."""
        self.info = info
        self.liveness = Liveness(info.power_limit_w)
        self.bins = Table(
            (
                *_FIELDS,
                *(f"{name}_flow" for name in _WATCHED),
                "power_outlier",
                "clock_outlier",
                "count",
                "counter_j",
                "counter_s",
                "integral_j",
                "integral_s",
                "thermal",
                "capped",
            ),
            HISTORY_BINS,
        )
        self.reasons: dict[int, dict[str, float]] = {}
        """Per bin: share of the readings that named each throttle reason."""
        self.has_reasons = False
        self._pending: deque[DeviceSample] = deque()
        self._times = Times(origin_s)
        self._last_t_s = -np.inf
        self._energy: tuple[float, float] | None = None
        self._power: tuple[float, float] | None = None
        self.power_limit_w = info.power_limit_w
        """Enforced limit as last read."""
        self.temperature_limit_c = info.temperature_limit_c
        """Where it slows itself down: as it says, or as its margin tells."""
        self.clocks: deque[tuple[float, float]] = deque(maxlen=CYCLE_READINGS)
        """The newest clocks, one by one: (t_s, MHz)."""
        self.stuck: set[str] = set()
        """Channels that are stuck now."""
        self._taken = (0, 0.0, 0.0)
        """How many readings were reduced, the first and the last instant."""

    def add(self, sample: DeviceSample) -> None:
        """Queue one reading; one that goes back in time is ignored."""
        if self._times.accept(sample.t_s) and sample.t_s > self._last_t_s:
            self._last_t_s = sample.t_s
            self._pending.append(sample)

    def is_silent(self, t_s: float, least_s: float) -> bool:
        """Whether it has not answered for `least_s` at `t_s`, and for longer than it usually takes.

        A CPU without sensors does answer.
        """
        count, first_s, last_s = self._taken
        usual_s = (last_s - first_s) / max(1, count - 1)
        return t_s - last_s > max(least_s, SILENT_PERIODS * usual_s)

    def close_bin(self, k: int, origin_s: float, quiet: tuple[Array, Array]) -> None:
        """Reduce the queued readings of bin `k`.

        Args:
            k: number of the bin.
            origin_s: session time at which bin 0 begins.
            quiet: per second of the bin, whether it is un-paused, and whether un-stalled too.
        """
        self.bins.grow(k + 1)
        start_s = origin_s + k * SECONDS_PER_BIN
        end_s = start_s + SECONDS_PER_BIN
        pending = self._pending
        batch: list[DeviceSample] = []
        while pending and pending[0].t_s <= end_s:
            sample = pending.popleft()
            if sample.t_s >= start_s:  # One that hung for minutes belongs to no bin any more.
                batch.append(sample)
        if not batch:
            return
        t = [s.t_s for s in batch]
        count, first_s, _ = self._taken
        self._taken = (count + len(t), first_s if count else t[0], t[-1])
        energy = [s.energy_j for s in batch]
        known = {name: _sane(name, batch) for name in _FIELDS}
        self._reduce(k, t, known, origin_s, quiet)
        self._add_energy(k, t, energy, known["power"])
        self._add_reasons(k, batch)
        for s in reversed(batch):
            if s.power_limit_w is not None and 0 < s.power_limit_w < inf:
                self.power_limit_w = s.power_limit_w
                break
        if self.info.temperature_limit_c is None:
            self._learn_limit(batch)
        add = self.liveness.add
        for name in _WATCHED:
            told = [(t_s, v) for t_s, v in zip(t, known[name], strict=True) if v is not None]
            add(name, told)
            if name == "clock":
                self.clocks.extend(told)
        add("energy", [(t_s, v) for t_s, v in zip(t, energy, strict=True) if _is_energy(v)])

    def _learn_limit(self, batch: list[DeviceSample]) -> None:
        """The temperature limit of a device that tells only how far it is from it."""
        for s in reversed(batch):
            if s.temperature_margin_c is not None and s.temperature_c is not None:
                self.temperature_limit_c = s.temperature_c + s.temperature_margin_c
                return

    def _reduce(
        self,
        k: int,
        t: list[float],
        known: dict[str, list[float | None]],
        origin_s: float,
        quiet: tuple[Array, Array],
    ) -> None:
        """Means over un-paused seconds, and over un-stalled ones (`_flow`)."""
        plain, flow = (mask.tolist() for mask in quiet)
        is_calm = all(flow)
        begin_s, last = origin_s + 1e-9, SECONDS_PER_BIN - 1
        first = k * SECONDS_PER_BIN + 1
        seconds = [min(max(ceil(t_s - begin_s) - first, 0), last) for t_s in t]
        row = []
        flows = []
        for name in _FIELDS:
            values = known[name]
            if is_calm:
                mean = flow_mean = _mean([v for v in values if v is not None])
            else:
                both = [(v, s) for v, s in zip(values, seconds, strict=True) if v is not None]
                mean = _mean([v for v, s in both if plain[s]])
                flow_mean = _mean([v for v, s in both if flow[s]])
            row.append(mean)
            if name in _WATCHED:
                flows.append(flow_mean)
        self.bins.set_row(k, (*row, *flows))
        self.bins.set("count", k, len(t))

    def _add_energy(
        self,
        k: int,
        t: list[float],
        energy: list[float | None],
        power: list[float | None],
    ) -> None:
        counter_j = counter_s = integral_j = integral_s = 0.0
        limit_w = self.power_limit_w if self.power_limit_w is not None else inf
        last, last_power = self._energy, self._power
        for t_s, joules, watts in zip(t, energy, power, strict=True):
            if _is_energy(joules):
                if last is not None:
                    dt, delta = t_s - last[0], joules - last[1]
                    # A step back is a restarted counter, one too large a glitch: both re-base.
                    if 0.0 <= delta <= ENERGY_GAP_FACTOR * limit_w * (dt + 1.0):
                        counter_j += delta
                        counter_s += dt
                last = (t_s, joules)
            if watts is not None:
                if last_power is not None and t_s - last_power[0] <= LONG_GAP_S:
                    dt = t_s - last_power[0]
                    integral_j += 0.5 * (watts + last_power[1]) * dt
                    integral_s += dt
                last_power = (t_s, watts)
        self._energy, self._power = last, last_power
        for name, value in (
            ("counter_j", counter_j),
            ("counter_s", counter_s),
            ("integral_j", integral_j),
            ("integral_s", integral_s),
        ):
            self.bins.set(name, k, value)

    def _add_reasons(self, k: int, batch: list[DeviceSample]) -> None:
        told = [s.throttle_reasons for s in batch if s.throttle_reasons is not None]
        if not told:
            return
        self.has_reasons = True
        share = 1.0 / len(told)
        duty: dict[str, float] = {}
        thermal = capped = 0.0
        for reasons in told:
            for reason in reasons:
                duty[reason] = duty.get(reason, 0.0) + share
            thermal += share * (not THERMAL_REASONS.isdisjoint(reasons))
            capped += share * (not POWER_REASONS.isdisjoint(reasons))
        if duty:
            self.reasons[k] = duty
        if len(self.reasons) > 2 * HISTORY_BINS:
            for old in sorted(self.reasons)[:HISTORY_BINS]:
                del self.reasons[old]
        self.bins.set("thermal", k, thermal)
        self.bins.set("capped", k, capped)

    def exclude_stuck(self, k: int, origin_s: float, load_s: float | None) -> None:
        """Blank what stuck channels said, from when they stuck."""
        self.stuck.clear()
        since = self.liveness.power_stuck_since_s()
        if since is not None:
            self.stuck.add("power")
            first = max(0, int((since - origin_s) // SECONDS_PER_BIN))
            for name in ("power", "power_flow", "integral_j", "integral_s"):
                self.bins.get(name, first, k + 1)[:] = np.nan
        since = self.liveness.energy_stuck_since_s()
        if since is not None:
            first = max(0, int((since - origin_s) // SECONDS_PER_BIN))
            for name in ("counter_j", "counter_s"):
                self.bins.get(name, first, k + 1)[:] = np.nan
        if self.liveness.is_temperature_stuck(load_s):
            self.stuck.add("temperature")
            for name in ("temperature", "temperature_flow"):
                self.bins.get(name, 0, k + 1)[:] = np.nan
