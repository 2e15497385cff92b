"""One device's readings in bins: plain means, and the un-stalled view that drift is judged on."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import Table
from heatsoak.steady_state.liveness import Liveness
from heatsoak.steady_state.protocols import (
    ENERGY_GAP_FACTOR,
    HISTORY_BINS,
    SECONDS_PER_BIN,
    SILENT_PERIODS,
    SILENT_S,
)

if TYPE_CHECKING:
    from heatsoak.steady_state.bins import Array
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

_FIELDS = ("power", "clock", "temperature", "fan", "mem_clock", "utilization", "memory")
_RANGES = np.array(
    [(0.0, 2e4), (0.0, 2e4), (0.0, 126.0), (0.0, 200.0), (0.0, 1e5), (0.0, 100.0), (0.0, 1e15)]
)
"""Readings outside are no readings: a broken card reports 0 or 127 or 255 degrees, or more."""
THERMAL_REASONS = frozenset(
    {"sw_thermal_slowdown", "hw_thermal_slowdown", "hw_slowdown", "hw_power_brake_slowdown"}
)
POWER_REASONS = frozenset({"sw_power_cap", "hw_power_brake_slowdown"})
_MOST_J = 1e15
_LONG_GAP_S = 15.0


class Readings:
    """The bins of one device."""

    def __init__(self, info: DeviceInfo) -> None:
        """Begin without readings."""
        self.info = info
        self.liveness = Liveness(info.power_limit_w)
        self.bins = Table(
            (
                *_FIELDS,
                *(f"{name}_flow" for name in _FIELDS[:4]),
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
        self._last_t_s = -np.inf
        self._energy: tuple[float, float] | None = None
        self._power: tuple[float, float] | None = None
        self.power_limit_w = info.power_limit_w
        """Enforced limit as last read."""
        self.stuck: set[str] = set()
        """Channels that are stuck now."""
        self._taken = (0, 0.0, 0.0)
        """How many readings were reduced, the first and the last instant."""

    def add(self, sample: DeviceSample) -> None:
        """Queue one reading; one that goes back in time is ignored."""
        if sample.t_s > self._last_t_s:
            self._last_t_s = sample.t_s
            self._pending.append(sample)

    def is_silent(self, t_s: float) -> bool:
        """Whether it has not answered for too long at `t_s`; a CPU without sensors does answer."""
        count, first_s, last_s = self._taken
        usual_s = (last_s - first_s) / max(1, count - 1)
        return t_s - last_s > max(SILENT_S, SILENT_PERIODS * usual_s)

    def close_bin(self, k: int, origin_s: float, quiet: tuple[Array, Array]) -> None:
        """Reduce the queued readings of bin `k`.

        Args:
            k: number of the bin.
            origin_s: session time at which bin 0 begins.
            quiet: per second of the bin, whether it is un-paused, and whether un-stalled too.
        """
        self.bins.grow(k + 1)
        end_s = origin_s + (k + 1) * SECONDS_PER_BIN
        pending = self._pending
        batch: list[DeviceSample] = []
        while pending and pending[0].t_s <= end_s:
            batch.append(pending.popleft())
        if not batch:
            return
        t = np.array([s.t_s for s in batch])
        count, first_s, _ = self._taken
        self._taken = (count + len(t), first_s if count else batch[0].t_s, batch[-1].t_s)
        values = np.array(
            [
                [s.power_w for s in batch],
                [s.sm_clock_mhz for s in batch],
                [s.temperature_c for s in batch],
                [s.fan_pct for s in batch],
                [s.mem_clock_mhz for s in batch],
                [s.utilization_pct for s in batch],
                [s.memory_used_bytes for s in batch],
                [s.energy_j for s in batch],
            ],
            dtype=np.float64,
        )
        energy = np.where(np.abs(values[7]) <= _MOST_J, values[7], np.nan)
        values = values[:7]
        with np.errstate(invalid="ignore"):
            is_out = ~((values >= _RANGES[:, :1]) & (values <= _RANGES[:, 1:]))
        is_out[2] |= values[2] == 0.0
        values[is_out] = np.nan
        self._reduce(k, t, values, origin_s, quiet)
        self._add_energy(k, t, energy, values[0])
        self._add_reasons(k, batch)
        for s in reversed(batch):
            if s.power_limit_w is not None and 0 < s.power_limit_w < np.inf:
                self.power_limit_w = s.power_limit_w
                break
        for row, name in ((0, "power"), (1, "clock"), (2, "temperature"), (3, "fan")):
            self._watch(name, t, values[row])
        self._watch("energy", t, energy)

    def _watch(self, name: str, t: Array, values: Array) -> None:
        is_there = np.isfinite(values)
        if is_there.any():
            self.liveness.add(
                name, zip(t[is_there].tolist(), values[is_there].tolist(), strict=True)
            )

    def _reduce(
        self, k: int, t: Array, values: Array, origin_s: float, quiet: tuple[Array, Array]
    ) -> None:
        """Means over un-paused seconds, and over un-stalled ones (`_flow`)."""
        second = np.ceil(t - origin_s - 1e-9).astype(np.int64) - 1 - k * SECONDS_PER_BIN
        second = np.clip(second, 0, SECONDS_PER_BIN - 1)
        is_there = np.isfinite(values)
        filled = np.where(is_there, values, 0.0)
        masks = np.array([quiet[0][second], quiet[1][second]], dtype=np.float64)
        counts = is_there @ masks.T
        sums = filled @ masks.T
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums / counts
        bins = self.bins
        for i, name in enumerate(_FIELDS):
            bins.set(name, k, means[i, 0])
            if i < 4:
                bins.set(f"{name}_flow", k, means[i, 1])
        bins.set("count", k, len(t))

    def _add_energy(self, k: int, t: Array, energy: Array, power: Array) -> None:
        joules = seconds = 0.0
        limit_w = self.power_limit_w if self.power_limit_w is not None else np.inf
        for t_s, value in zip(t.tolist(), energy.tolist(), strict=True):
            if not np.isfinite(value):
                continue
            if self._energy is not None:
                dt, delta = t_s - self._energy[0], value - self._energy[1]
                # A step back is a restarted counter, one too large a glitch: both re-base.
                if 0.0 <= delta <= ENERGY_GAP_FACTOR * limit_w * (dt + 1.0):
                    joules += delta
                    seconds += dt
            self._energy = (t_s, value)
        self.bins.set("counter_j", k, joules)
        self.bins.set("counter_s", k, seconds)
        joules = seconds = 0.0
        for t_s, value in zip(t.tolist(), power.tolist(), strict=True):
            if not np.isfinite(value):
                continue
            if self._power is not None and t_s - self._power[0] <= _LONG_GAP_S:
                dt = t_s - self._power[0]
                joules += 0.5 * (value + self._power[1]) * dt
                seconds += dt
            self._power = (t_s, value)
        self.bins.set("integral_j", k, joules)
        self.bins.set("integral_s", k, seconds)

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
