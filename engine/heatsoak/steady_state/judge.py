"""The judge of one job and its devices: readings and counters in, verdicts and results out."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state import reasons, sustained
from heatsoak.steady_state.bins import nan_mean, nan_median
from heatsoak.steady_state.bounds import Row, Rules, Test
from heatsoak.steady_state.drift import fit, time_constants
from heatsoak.steady_state.epoch import SPAN_BINS, Epochs, Reset
from heatsoak.steady_state.protocols import (
    BIN_S,
    CAPPED_DUTY,
    EXTERNAL_CAP_FRAC,
    FAILS_TO_SETTLE,
    FLOOR_C,
    FLOOR_PCT,
    FLOOR_POINTS,
    GAP_BINS,
    HAMPEL_HALF_BINS,
    HAMPEL_MADS,
    HAMPEL_MAX_SHARE,
    HAMPEL_MIN_FRAC,
    HOLD_AGE_FRAC,
    HOLD_MAX_S,
    IDLE_POWER_FRAC,
    IDLE_UTILIZATION_PCT,
    LATE_S,
    PASSES_TO_HOLD,
    READING_AT_S,
    REPORT_MIN_S,
    RESET_COST_FRAC,
    SUPERSEDED_FRAC,
    THROTTLED_DUTY,
    TIME_LEFT,
    UNSATURATED_FRAC,
    VALID_SHARE,
    WATCH_MEAN_S,
    WINDOW_AGE_FRAC,
    Protocol,
)
from heatsoak.steady_state.readings import Readings
from heatsoak.steady_state.throughput import Throughput
from heatsoak.steady_state.verdict import Channel, Flag, Result, State, Sustained, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.steady_state.bins import Array
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

_NAN = float("nan")
_HARDWARE: tuple[Channel, ...] = ("power", "clock", "temperature", "fan")
_FLOORS: dict[Channel, float] = {
    "rate": FLOOR_PCT,
    "power": FLOOR_PCT,
    "clock": FLOOR_PCT,
    "temperature": FLOOR_C,
    "fan": FLOOR_POINTS,
}


class _Device:
    """One device of the job, as the judge sees it."""

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info
        self.readings = Readings(info)
        self.final: Verdict | None = None
        self.tests: list[Test] = []
        self.channels: tuple[Channel, ...] = ()
        self.worst: Test | None = None
        self.frozen: Sustained | None = None
        self.pooled = (_NAN, _NAN)
        self.earlier_lrv: list[tuple[float, float]] = []


class Judge:
    """Judges one job and its devices.

    Feed it in the order things happened; `evaluate` may be called at any time and as often as one
    likes: real work is done once per closed bin, with exactly what was known by then, so verdicts
    depend neither on how the feed was cut nor on when `evaluate` was called.
    """

    def __init__(
        self, protocol: Protocol, devices: Sequence[DeviceInfo], *, has_counter: bool = True
    ) -> None:
        """Judge `devices` that run one job together.

        Args:
            protocol: how long and how strictly.
            devices: in the order verdicts are given in.
            has_counter: false for a log without `units_done`.
        """
        self._protocol = protocol
        self._devices = [_Device(info) for info in devices]
        self._by_id = {d.info.device_id: d for d in self._devices}
        self._has_counter = has_counter
        self._origin_s: float | None = None
        self._job: Throughput | None = None
        self._next_bin = 0
        self._extra_s = 0.0
        self._epochs: Epochs | None = None
        self._load_bin: int | None = None
        self._reset: Reset | None = None
        self._state: State = "warming"
        self._passes = self._fails = 0
        self._hold_bin: int | None = None
        self._window: tuple[int, int] | None = None
        self._frozen_bin: int | None = None
        self._is_watched = False
        self._is_superseded = False
        self._is_noise_limited = False
        self._rate_lrv = _NAN
        self._earlier_rate_lrv: list[tuple[float, float]] = []
        self._best: tuple[float, float] | None = None
        self._best_until = 0
        self._read_at: dict[float, float] = {}
        self._left_s: tuple[float, float] | None = None
        self._verdicts: tuple[Verdict, ...] = tuple(
            Verdict(0.0, d.info.device_id, "warming", self._own_flags(), "no progress yet", ())
            for d in self._devices
        )

    # -- what goes in --------------------------------------------------------------------------

    def add_sample(self, sample: DeviceSample) -> None:
        """One reading; of a device that is not judged, or without a finite time, it is ignored."""
        device = self._by_id.get(sample.device_id)
        if device is not None and self._start(sample.t_s):
            device.readings.add(sample)

    def add_steps(self, t_s: float, units_done: float) -> None:
        """The job's cumulative counter at an instant."""
        if self._start(t_s) and self._job is not None and isfinite(units_done):
            self._job.add_steps(t_s, units_done)

    def add_phase(self, t_s: float, phase: str) -> None:
        """The job entered a phase (`heatsoak.progress.PHASES`)."""
        if self._start(t_s) and self._job is not None:
            self._job.add_phase(t_s, phase)

    def extend(self, seconds: float) -> None:
        """Give the run more time before it ends `not-steady`."""
        self._extra_s += seconds

    def _start(self, t_s: float) -> bool:
        """Begin the grid at the first instant heard of; false for an instant that is none."""
        if not isfinite(t_s):
            return False
        if self._origin_s is None:
            self._origin_s = t_s
            if self._has_counter:
                self._job = Throughput(t_s)
        return t_s >= self._origin_s

    # -- what comes out ------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Every device has a final state, and the watch after the freeze is done."""
        if any(d.final is None for d in self._devices):
            return False
        return self._frozen_bin is None or self._is_watched

    def results(self) -> tuple[Result, ...]:
        """All that is known per device: frozen once steady, else of the last window."""
        verdicts = {v.device_id: v for v in self._verdicts}
        out = []
        for d in self._devices:
            numbers = d.frozen
            if numbers is None and self._window is not None and self._origin_s is not None:
                numbers = sustained.summarize(
                    self._job,
                    d.readings,
                    *self._window,
                    origin_s=self._origin_s,
                    pooled=(self._rate_lrv, _NAN),
                    to_come_c=self._to_come_c(d),
                )
            out.append(
                Result(
                    device_id=d.info.device_id,
                    verdict=verdicts[d.info.device_id],
                    numbers=numbers,
                    boost=sustained.boost(self._boost(), numbers),
                    at_10_min=self._read_at.get(READING_AT_S[0]),
                    at_20_min=self._read_at.get(READING_AT_S[1]),
                )
            )
        return tuple(out)

    def evaluate(self, t_s: float) -> tuple[Verdict, ...]:
        """The verdicts at `t_s`, one per device; unchanged objects until the next bin closes."""
        if not self._start(t_s) or self._origin_s is None:
            return self._verdicts
        newest = int((t_s - LATE_S - self._origin_s) // BIN_S) - 1
        if newest < self._next_bin or self.is_over:
            return self._verdicts
        if newest - self._next_bin > GAP_BINS:
            self._skip_to(newest - SPAN_BINS)
        while self._next_bin <= newest and not self.is_over:
            k = self._next_bin
            self._next_bin += 1
            self._close_bin(k)
        return self._verdicts

    def close(
        self, t_s: float, state: State, reason: str, device_id: str | None = None
    ) -> tuple[Verdict, ...]:
        """End the judgement from outside: lost, failed, interrupted.

        A device that already has a final state keeps it.

        Args:
            t_s: when.
            state: the final state.
            reason: one sentence.
            device_id: the device, or None for all that are not final.
        """
        verdicts = []
        for d, verdict in zip(self._devices, self._verdicts, strict=True):
            if d.final is None and device_id in (None, d.info.device_id):
                d.final = replace(verdict, t_s=t_s, state=state, reason=reason, time_left_s=None)
            verdicts.append(d.final or verdict)
        if device_id is None:
            self._is_watched = True
        self._verdicts = tuple(verdicts)
        return self._verdicts

    def finish(self, t_s: float) -> tuple[Verdict, ...]:
        """The readings end at `t_s` (a log's end): judge what is there as at a time-out."""
        self.evaluate(t_s + LATE_S)
        if any(d.final is None for d in self._devices):
            self._end_unsteady(t_s, "the readings ended")
        self._is_watched = True
        return self._verdicts

    # -- one bin -------------------------------------------------------------------------------

    def _skip_to(self, k: int) -> None:
        """After a long gap: what came before is over."""
        self._next_bin = max(self._next_bin, k)
        if self._epochs is not None:
            self._new_epoch(self._next_bin)
            self._epochs.start_bin = self._next_bin

    def _close_bin(self, k: int) -> None:
        if self._origin_s is None:
            return
        origin_s = self._origin_s
        t_s = origin_s + (k + 1) * BIN_S
        quiet = (np.ones(10, dtype=bool), np.ones(10, dtype=bool))
        if self._job is not None:
            self._job.close_bin(k)
            quiet = self._job.quiet(k)
        load_s = None if self._load_bin is None else origin_s + self._load_bin * BIN_S
        for d in self._devices:
            d.readings.close_bin(k, origin_s, quiet)
            d.readings.exclude_stuck(k, origin_s, load_s)
        if self._load_bin is None and not self._find_load(k):
            self._wait_for_progress(t_s)
            return
        if self._epochs is None or self._load_bin is None:
            return
        for at_s in READING_AT_S:
            if self._job is not None and at_s not in self._read_at:
                reading = sustained.reading_at(self._job, self._load_bin, at_s)
                if reading is not None:
                    self._read_at[at_s] = reading
        self._mark_outliers(k)
        if self._frozen_bin is not None:
            self._watch(k)
            return
        reset = self._epochs.update(k, self._series(k), self._thermal(k))
        if reset is not None:
            self._reset = reset
            self._new_epoch(reset.bin)
        if self._is_dead(t_s):
            return
        self._judge(k, t_s)
        if self._live() and t_s - origin_s >= self._protocol.timeout_s + self._extra_s:
            self._end_unsteady(t_s, None)

    def _find_load(self, k: int) -> bool:
        if self._job is not None:
            self._load_bin = self._job.first_bin()
        elif any(np.isfinite(d.readings.bins.get("count", k, k + 1)).any() for d in self._devices):
            self._load_bin = k
        if self._load_bin is None:
            return False
        self._epochs = Epochs(self._load_bin)
        self._best_until = self._load_bin
        return True

    def _wait_for_progress(self, t_s: float) -> None:
        job = self._job
        phase = job.phase if job is not None else None
        words = {
            None: "no progress yet: waiting for the workload to start",
            "start": "no progress yet: the workload is starting",
            "compile": "compiling",
        }
        self._say("warming", t_s, words.get(phase, "no progress yet"))
        origin_s = self._origin_s or 0.0
        if job is not None and phase == "train" and job.still_s(t_s) >= self._protocol.still_s:
            self._end_still(t_s, "no unit of work was finished in " + _min(job.still_s(t_s)))
        elif t_s - origin_s >= self._protocol.timeout_s + self._extra_s:
            self._end_still(t_s, "no unit of work was finished in " + _min(t_s - origin_s))

    def _new_epoch(self, start: int) -> None:
        age = self._next_bin - start
        if self._window is not None and self._window[1] - self._window[0] > 2 * age:
            weight = float(self._window[1] - self._window[0])
            if isfinite(self._rate_lrv):
                self._earlier_rate_lrv.append((self._rate_lrv, weight))
                del self._earlier_rate_lrv[:-8]
            for d in self._devices:
                if isfinite(d.pooled[1]):
                    d.earlier_lrv.append((d.pooled[1], weight))
                    del d.earlier_lrv[:-8]
        self._passes = self._fails = 0
        self._hold_bin = None
        self._window = None

    def _series(self, k: int) -> Array:
        rows = []
        first = k + 1 - SPAN_BINS
        if self._job is not None:
            rows.append(_last(self._job.bins.get("flow", first, k + 1), SPAN_BINS))
        for d in self._live():
            bins = d.readings.bins
            rows.append(_last(bins.get("power_flow", first, k + 1), SPAN_BINS))
            rows.append(_last(bins.get("clock_flow", first, k + 1), SPAN_BINS))
        return np.array(rows) if rows else np.empty((0, SPAN_BINS))

    def _thermal(self, k: int) -> Array:
        rows = [
            _last(d.readings.bins.get("thermal", k + 1 - SPAN_BINS, k + 1), SPAN_BINS)
            for d in self._live()
            if d.readings.has_reasons
        ]
        return np.array(rows) if rows else np.empty((0, SPAN_BINS))

    def _live(self) -> list[_Device]:
        return [d for d in self._devices if d.final is None]

    def _mark_outliers(self, k: int) -> None:
        """Hampel over the newest bins, whose neighbours on both sides may have come since."""
        half = HAMPEL_HALF_BINS
        width = 2 * half + 1
        tables = []
        if self._job is not None:
            tables.append((self._job.bins, "flow", "outlier"))
        for d in self._live():
            tables += [(d.readings.bins, f"{c}_flow", f"{c}_outlier") for c in ("power", "clock")]
        if not tables:
            return
        first = k + 1 - 3 * half - 1
        tail = np.array([_last(t.get(name, first, k + 1), 3 * half + 1) for t, name, _ in tables])
        padded = np.concatenate([tail, np.full((len(tables), half), _NAN)], axis=1)
        around = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
        values = tail[:, half * 2 :]
        around = around[:, half : half + values.shape[1]]
        middle = nan_median(around)
        spread = nan_median(np.abs(around - middle[..., None]))
        limit = np.maximum(HAMPEL_MADS * spread, HAMPEL_MIN_FRAC * np.abs(middle))
        flags = (np.abs(values - middle) > limit).astype(np.float64)
        for row, (table, _, column) in zip(flags, tables, strict=True):
            table.put(column, k + 1 - len(row), row)

    # -- liveness ------------------------------------------------------------------------------

    def _is_dead(self, t_s: float) -> bool:
        """End the run where nothing moves any more."""
        job = self._job
        if job is not None:
            still_s = job.still_s(t_s)
            if still_s >= self._protocol.still_s:
                self._end_still(t_s, "the counter has not advanced for " + _min(still_s))
                return True
            return False
        frozen = [d.readings.liveness.frozen_since_s(t_s) for d in self._live()]
        if frozen and all(since is not None for since in frozen):
            since = max(since for since in frozen if since is not None)
            self._end_all("stuck", t_s, f"every reading has been identical for {_min(t_s - since)}")
            return True
        return False

    def _is_idle(self, d: _Device) -> bool:
        """Whether the hardware says that the device does nothing."""
        end = self._next_bin
        bins = d.readings.bins
        utilization = nan_mean(bins.get("utilization", end - 6, end))
        if isfinite(utilization):
            return utilization < IDLE_UTILIZATION_PCT
        power = nan_mean(bins.get("power", end - 6, end))
        limit = d.readings.power_limit_w
        return isfinite(power) and limit is not None and power < IDLE_POWER_FRAC * limit

    def _end_still(self, t_s: float, what: str) -> None:
        for d in self._live():
            if self._load_bin is None:
                state: State = "idle" if self._is_idle(d) else "failed"
            else:
                state = "idle" if self._is_idle(d) else "stuck"
            self._end(d, state, t_s, what)
        self._publish()

    # -- judging -------------------------------------------------------------------------------

    def _judge(self, k: int, t_s: float) -> None:
        if self._epochs is None or self._load_bin is None:
            return
        p = self._protocol
        run_s = (k + 1 - self._load_bin) * BIN_S
        age_s = (k + 1 - self._epochs.start_bin) * BIN_S
        window_s = min(max(WINDOW_AGE_FRAC * age_s, p.window_min_s), p.window_max_s, age_s)
        n = max(1, int(window_s // BIN_S))
        self._window = (k + 1 - n, k + 1)
        wait_s = max(p.soak_s - run_s, p.epoch_s - age_s)
        reset = self._reset
        if reset is not None and abs(reset.change_frac) > RESET_COST_FRAC:
            wait_s = max(wait_s, p.reset_s - age_s)
        if wait_s > 0:
            self._left_s = None
            self._state = "warming"
            what = f"waiting for the first {reasons.duration(p.soak_s)} of soak"
            if p.soak_s - run_s < wait_s:
                change = f"{reset.change_frac:+.0%}" if reset is not None else "a change"
                what = f"settling again after a disturbance ({change})"
            self._say("warming", t_s, what)
            return
        self._test(is_late=run_s >= p.late_s)
        live = self._live()
        failing = [d for d in live if d.worst is not None and not d.worst.bound.is_ok]
        empty = [d for d in live if not d.channels]
        is_pass = not failing and not empty
        self._step(k, is_pass)
        blocked_by_gate = ""
        if self._state == "holding" and is_pass and self._hold_bin is not None:
            held_s = (k + 1 - self._hold_bin) * BIN_S
            need_s = max(p.hold_s, min(HOLD_AGE_FRAC * age_s, HOLD_MAX_S))
            if held_s >= need_s:
                report, blocked_by_gate = self._gate(run_s >= p.late_s)
                if report is not None:
                    self._freeze(k, t_s, report)
                    return
        self._left_s = self._time_left(t_s, age_s)
        self._explain(t_s, blocked_by_gate)

    def _step(self, k: int, is_pass: bool) -> None:
        if self._state not in ("settling", "holding"):
            self._state = "settling"
        if is_pass:
            self._passes += 1
            self._fails = 0
            if self._state == "settling" and self._passes >= PASSES_TO_HOLD:
                self._state = "holding"
                self._hold_bin = k + 1 - PASSES_TO_HOLD
        else:
            self._passes = 0
            self._fails += 1
            if self._state == "holding" and self._fails >= FAILS_TO_SETTLE:
                self._state = "settling"
                self._hold_bin = None

    def _rows(self, start: int, end: int) -> list[tuple[_Device | None, Channel, Array, float]]:
        """The usable channels: device (None for the rate), channel, values, latest value."""
        rows: list[tuple[_Device | None, Channel, Array, float]] = []
        n = end - start
        if self._job is not None:
            values = _last(self._job.bins.get("flow", start, end), n)
            outlier = _last(self._job.bins.get("outlier", start, end), n)
            usable = _relative(values, outlier)
            if usable is not None:
                rows.append((None, "rate", usable, 0.0))
        for d in self._live():
            bins = d.readings.bins
            for channel in _HARDWARE:
                values = _last(bins.get(f"{channel}_flow", start, end), n)
                if channel in ("power", "clock"):
                    outlier = _last(bins.get(f"{channel}_outlier", start, end), n)
                    relative = _relative(values, outlier)
                    if relative is not None:
                        rows.append((d, channel, relative, 0.0))
                elif np.isfinite(values).mean() >= VALID_SHARE:
                    rows.append((d, channel, values, nan_mean(values[-3:])))
        return rows

    def _test(self, *, is_late: bool) -> None:
        if self._window is None:
            return
        start, end = self._window
        rows = self._rows(start, end)
        for d in self._devices:
            d.tests, d.channels, d.worst = [], (), None
        if not rows:
            return
        n = end - start
        y = np.array([row[2] for row in rows])
        floor = np.array([_FLOORS[row[1]] for row in rows])
        slow_s = self._protocol.slow_s
        full = fit(y, time_constants(n * BIN_S, slow_s), floor)
        m = n // 2
        half = None
        if m >= 6:
            half = fit(y[:, n - m :], time_constants(m * BIN_S, slow_s), floor)
        rules = Rules(
            self._protocol, full, half, is_holding=self._state == "holding", is_late=is_late
        )
        own: dict[str, set[Channel]] = {
            d.info.device_id: {r[1] for r in rows if r[0] is d} for d in self._live()
        }
        rate_test: Test | None = None
        for i, (device, channel, _, now) in enumerate(rows):
            has_half = channel in ("temperature", "power", "clock") and half is not None
            row = Row(channel, i, i if has_half else None, now)
            if device is None:
                rate_test = rules.test(row, leads=not any(own.values()))
                continue
            leads = channel == "temperature" or (
                channel != "fan" and "temperature" not in own[device.info.device_id]
            )
            device.tests.append(
                rules.test(
                    row,
                    leads=leads,
                    limit_c=device.info.temperature_limit_c,
                    fan_max=device.info.fan_max_pct,
                )
            )
        for d in self._live():
            if rate_test is not None:
                d.tests.insert(0, rate_test)
            d.channels = tuple(test.bound.channel for test in d.tests)
            if d.tests:
                d.worst = max(d.tests, key=lambda test: test.severity)

    def _gate(self, is_late: bool) -> tuple[tuple[int, int] | None, str]:
        """The report window, or None and why the interval does not close."""
        if self._window is None or self._hold_bin is None:
            return None, ""
        p = self._protocol
        gate = p.late_gate_pct if is_late else p.gate_pct
        start, end = self._window
        self._pool(start, end)
        n_max = end - start
        least = int(min(REPORT_MIN_S, n_max * BIN_S) // BIN_S)
        n = min(n_max, max(least, end - self._hold_bin))
        while True:
            worst, name = self._widest(end - n, end)
            if worst <= gate:
                return (end - n, end), ""
            if n >= n_max:
                return None, f"{name} too noisy: ±{worst:.1f} %, needs ±{gate:.1f} %"
            n = min(n_max, max(n + 1, int(n * (worst / gate) ** 2) if isfinite(worst) else n_max))

    def _widest(self, start: int, end: int) -> tuple[float, str]:
        """The widest half-width of rate and power over a window, in percent."""
        worst, name = -1.0, ""
        if self._job is not None:
            half, _ = sustained.half_width_pct(
                self._job.bins.get("rate", start, end), self._rate_lrv
            )
            worst, name = (half if isfinite(half) else float("inf")), "rate"
        for d in self._live():
            if "power" in d.channels:
                half, _ = sustained.half_width_pct(
                    d.readings.bins.get("power", start, end), d.pooled[1]
                )
                if isfinite(half) and half > worst:
                    worst, name = half, "power"
        return worst, name

    def _pool(self, start: int, end: int) -> None:
        """Long-run variance of the plain view over the window and earlier epochs."""
        n = end - start
        names: list[_Device | None] = []
        rows = []
        if self._job is not None:
            names.append(None)
            rows.append(_relative(_last(self._job.bins.get("rate", start, end), n), None))
        for d in self._live():
            names.append(d)
            rows.append(_relative(_last(d.readings.bins.get("power", start, end), n), None))
        kept = [(name, row) for name, row in zip(names, rows, strict=True) if row is not None]
        if not kept:
            return
        y = np.array([row for _, row in kept])
        taus = time_constants(n * BIN_S, self._protocol.slow_s)
        lrv = fit(y, taus, np.zeros(len(kept))).lrv
        for (device, _), value in zip(kept, lrv.tolist(), strict=True):
            if device is None:
                self._rate_lrv = _pooled(value, n, self._earlier_rate_lrv)
        for (device, _), value in zip(kept, lrv.tolist(), strict=True):
            if device is not None:
                device.pooled = (self._rate_lrv, _pooled(value, n, device.earlier_lrv))

    # -- ends ----------------------------------------------------------------------------------

    def _freeze(self, k: int, t_s: float, report: tuple[int, int]) -> None:
        origin_s = self._origin_s or 0.0
        self._state = "steady"
        self._frozen_bin = k
        self._window = report
        self._is_noise_limited = self._protocol.gate_pct < self._widest(*report)[0]
        self._is_watched = self._protocol.watch_s <= 0
        self._left_s = None
        for d in self._live():
            d.frozen = sustained.summarize(
                self._job,
                d.readings,
                *report,
                origin_s=origin_s,
                pooled=(self._rate_lrv, d.pooled[1]),
                to_come_c=self._to_come_c(d),
            )
            window = reasons.duration((report[1] - report[0]) * BIN_S)
            self._end(d, "steady", t_s, f"steady: the numbers of the last {window} are frozen")
        self._publish()

    def _watch(self, k: int) -> None:
        """After the freeze: do the numbers stay true?"""
        if self._frozen_bin is None:
            return
        since_s = (k - self._frozen_bin) * BIN_S
        n = int(WATCH_MEAN_S // BIN_S)
        if since_s >= WATCH_MEAN_S and not self._is_superseded:
            for d in self._devices:
                if d.frozen is None or d.final is None:
                    continue
                moved = self._moved(d, k + 1 - n, k + 1)
                if moved:
                    self._is_superseded = True
                    for other in self._devices:
                        if other.final is not None and other.frozen is not None:
                            other.final = replace(
                                other.final,
                                flags=(*other.final.flags, "superseded"),
                                reason=f"{other.final.reason}; since then {moved}",
                            )
                    break
        if since_s >= self._protocol.watch_s:
            self._is_watched = True
        self._publish()

    def _moved(self, d: _Device, start: int, end: int) -> str:
        if d.frozen is None:
            return ""
        checks = [("rate", d.frozen.throughput, None), ("power", d.frozen.power_w, d)]
        for name, figure, device in checks:
            if figure is None or figure.mean == 0:
                continue
            if device is not None:
                values = device.readings.bins.get("power", start, end)
            elif self._job is not None:
                values = self._job.bins.get("rate", start, end)
            else:
                continue
            change = nan_mean(values) / figure.mean - 1.0
            width = figure.u95 / abs(figure.mean) if figure.u95 is not None else 0.0
            if isfinite(change) and abs(change) > max(SUPERSEDED_FRAC, 1.6 * width):
                return f"the {name} moved by {change:+.1%}"
        return ""

    def _end_unsteady(self, t_s: float, ended: str | None) -> None:
        """The time is up (or the readings ended): say what blocked."""
        origin_s = self._origin_s or 0.0
        if self._window is not None:
            self._pool(*self._window)
        when = ended or f"not steady after {_min(t_s - origin_s)}"
        for d in self._live():
            if self._is_idle(d) and (
                self._job is None or self._job.still_s(t_s) >= min(60.0, self._protocol.still_s)
            ):
                self._end(d, "idle", t_s, f"{when}: the device is idle")
                continue
            what = "the soak was too short to judge"
            if d.worst is not None:
                what = "the interval did not close in time"
                if not d.worst.bound.is_ok:
                    what = reasons.blocked(d.worst)
            elif self._state == "settling":
                what = "no channel could be judged"
            self._end(d, "not-steady", t_s, f"{when}: {what}")
        self._publish()

    def _end_all(self, state: State, t_s: float, reason: str) -> None:
        for d in self._live():
            self._end(d, state, t_s, reason)
        self._publish()

    def _end(self, d: _Device, state: State, t_s: float, reason: str) -> None:
        self._left_s = None
        d.final = self._verdict(d, state, t_s, reason)

    def _publish(self) -> None:
        self._verdicts = tuple(
            d.final or verdict for d, verdict in zip(self._devices, self._verdicts, strict=True)
        )

    # -- words and flags -----------------------------------------------------------------------

    def _say(self, state: State, t_s: float, reason: str) -> None:
        self._verdicts = tuple(
            d.final or self._verdict(d, state, t_s, reason) for d in self._devices
        )

    def _explain(self, t_s: float, gate: str) -> None:
        live = self._live()
        blocking = [d for d in live if d.worst is not None and not d.worst.bound.is_ok]
        verdicts = []
        for d in self._devices:
            if d.final is not None:
                verdicts.append(d.final)
                continue
            if not d.channels:
                reason = "no readings and no progress to judge"
            elif d in blocking and d.worst is not None:
                reason = reasons.blocked(d.worst)
            elif blocking:
                other = blocking[0]
                what = reasons.blocked(other.worst) if other.worst is not None else ""
                reason = f"waiting for {other.info.device_id}: {what}"
            elif gate:
                reason = gate
            else:
                reason = "holding still to be sure"
            reason += reasons.span(self._left_s)
            verdicts.append(self._verdict(d, self._state, t_s, reason))
        self._verdicts = tuple(verdicts)

    def _verdict(self, d: _Device, state: State, t_s: float, reason: str) -> Verdict:
        origin_s = self._origin_s or 0.0
        blocked: Channel | None = None
        if d.worst is not None and not d.worst.bound.is_ok:
            blocked = d.worst.bound.channel
        stuck = tuple(sorted(d.readings.stuck))
        if state != "warming":
            bins = d.readings.bins
            is_bare = not any(
                np.isfinite(bins.get(c, self._next_bin - 60, self._next_bin)).any()
                for c in _HARDWARE
            )
            note = reasons.stood_on(d.channels, stuck, is_bare and not stuck)
            if note:
                reason = f"{reason} ({note})"
        window = self._window
        return Verdict(
            t_s=t_s,
            device_id=d.info.device_id,
            state=state,
            flags=self._flags(d, state),
            reason=reason,
            channels=d.channels,
            bounds=tuple(test.bound for test in d.tests),
            blocked_by=blocked if state != "steady" else None,
            window_start_s=None if window is None else origin_s + window[0] * BIN_S,
            window_s=None if window is None else (window[1] - window[0]) * BIN_S,
            frozen_at_s=t_s if state == "steady" else None,
            time_left_s=self._left_s,
        )

    def _own_flags(self) -> tuple[Flag, ...]:
        flags: list[Flag] = []
        if not self._has_counter:
            flags.append("no-throughput")
        if self._protocol.name == "smoke":
            flags.append("smoke")
        return tuple(flags)

    def _flags(self, d: _Device, state: State) -> tuple[Flag, ...]:
        flags: list[Flag] = []
        bins = d.readings.bins
        end = self._next_bin
        start = self._window[0] if self._window is not None else end - 12
        thermal = nan_mean(bins.get("thermal", start, end))
        capped = nan_mean(bins.get("capped", start, end))
        power = nan_mean(bins.get("power", start, end))
        limit = d.readings.power_limit_w
        if self._reset is not None:
            flags.append("disturbed")
        if thermal > THROTTLED_DUTY:
            flags.append("throttled")
        share = power / limit if limit else _NAN
        if capped > CAPPED_DUTY:
            flags.append("external-cap" if share < EXTERNAL_CAP_FRAC else "power-capped")
        elif share < UNSATURATED_FRAC and not thermal > THROTTLED_DUTY and state != "warming":
            flags.append("unsaturated")
        if self._is_noise_limited:
            flags.append("noise-limited")
        if (
            state != "warming"
            and "temperature" not in d.channels
            and "fan" not in d.channels
            and limit is None
        ):
            flags.append("headroom-unknown")
        return (*flags, *self._own_flags())

    def _time_left(self, t_s: float, age_s: float) -> tuple[float, float] | None:
        live = [d for d in self._live() if d.worst is not None]
        if not live:
            return None
        worst = max(d.worst.severity for d in live if d.worst is not None)
        for up_to, low, high in TIME_LEFT:
            if worst <= up_to:
                origin_s = self._origin_s or 0.0
                left_s = self._protocol.timeout_s + self._extra_s - (t_s - origin_s)
                return min(low * age_s, left_s), min(high * age_s, left_s)
        return None

    def _to_come_c(self, d: _Device) -> float:
        for test in d.tests:
            if test.bound.channel == "temperature":
                return abs(test.to_come)
        return 0.0

    def _boost(self) -> tuple[float, float] | None:
        """Best 30 s before the window; remembers what leaves the bins' memory."""
        if self._job is None or self._load_bin is None or self._origin_s is None:
            return None
        end = self._window[0] if self._window is not None else self._next_bin
        return sustained.best_before(self._job, self._load_bin, end, self._origin_s)


def _last(values: Array, n: int) -> Array:
    """The last `n` values, filled up with NaN in front."""
    if len(values) >= n:
        return values[len(values) - n :]
    return np.concatenate([np.full(n - len(values), _NAN), values])


def _relative(values: Array, outlier: Array | None) -> Array | None:
    """Values in percent of their mean without outliers; None where too few are left."""
    finite = np.isfinite(values)
    if finite.mean() < VALID_SHARE:
        return None
    if outlier is not None:
        is_out = finite & (outlier > 0)
        if is_out.sum() <= HAMPEL_MAX_SHARE * finite.sum():
            values = np.where(is_out, _NAN, values)
    mean = nan_mean(values)
    if not mean > 0:
        return None
    return np.asarray(100.0 * values / mean)


def _pooled(value: float, n: int, earlier: list[tuple[float, float]]) -> float:
    total = n + sum(weight for _, weight in earlier)
    return (value * n + sum(v * weight for v, weight in earlier)) / total


def _min(seconds: float) -> str:
    return reasons.duration(seconds)
