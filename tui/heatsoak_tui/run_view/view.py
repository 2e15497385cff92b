"""What the screen knows of one run: batches go in, bounded memory stays.

Pure: no thread, no clock, nothing that draws. Only the UI thread calls it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from heatsoak.steady_state.verdict import FINAL_STATES
from heatsoak_tui.run_view.series import Series

if TYPE_CHECKING:
    from heatsoak.session.rows import Batch, EventRow, JobRow, ResultRow, RollupRow, StepsRow
    from heatsoak.steady_state.verdict import Verdict
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

DRAWN_READINGS = ("power_w", "temperature_c", "sm_clock_mhz", "fan_pct")
"""Readings that are kept as series; `rate` is kept beside them, per job."""
EVENTS = 400
"""Most events kept."""
RATE_WINDOW_S = 10.0
"""A rate is the counter's difference over at least this long: a bin of the judge."""
BOOST_WINDOW_S = 30.0
SILENT_S = 5.0
"""A device that has not answered for this long, in real seconds, is silent."""
THERMAL_REASONS = frozenset(
    {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
)
"""Throttle reasons that are no ordinary power cap: drawn as marks on the time axis."""


@dataclass(slots=True)
class BoostSeen:
    """The best rate over `window_s` seen so far, before any result says so."""

    throughput: float
    """Units a second."""
    start_s: float
    window_s: float


@dataclass(slots=True)
class _JobState:
    row: JobRow
    rate: Series = field(default_factory=Series)
    phase: str | None = None
    phase_s: float = 0.0
    steps: StepsRow | None = None
    loss: float | None = None
    window: deque[tuple[float, float]] = field(default_factory=deque)
    boost_window: deque[tuple[float, float]] = field(default_factory=deque)
    boost: BoostSeen | None = None


@dataclass(slots=True)
class _DeviceState:
    info: DeviceInfo
    series: dict[str, Series]
    throttle: Series = field(default_factory=Series)
    latest: DeviceSample | None = None
    verdict: Verdict | None = None
    result: ResultRow | None = None
    error_s: float | None = None
    """When its last reading failed as a whole."""
    throttle_seen: int = 0
    throttle_counts: dict[str, int] = field(default_factory=dict)


class RunView:
    """The run as far as the file has told it."""

    def __init__(self) -> None:
        self.meta: dict[str, str] = {}
        self.now_s = 0.0
        """Session time of the newest row."""
        self.events: deque[EventRow] = deque(maxlen=EVENTS)
        self.version = 0
        """Counts batches, so that a panel can tell whether there is anything new."""
        self._devices: dict[str, _DeviceState] = {}
        self._jobs: dict[str, _JobState] = {}
        self._job_of: dict[str, str] = {}

    # -- what goes in ------------------------------------------------------------------------

    def apply(self, batch: Batch) -> None:
        """Take everything that is new."""
        self.version += 1
        self.meta = batch.meta
        # The recorder says the time itself when nothing else has anything to say.
        self._reached(float(batch.meta.get("now_s", 0.0)))
        for info in batch.devices:
            if info.device_id not in self._devices:
                series = {reading: Series() for reading in DRAWN_READINGS}
                self._devices[info.device_id] = _DeviceState(info, series)
        for row in batch.jobs:
            if row.job_id in self._jobs:
                self._jobs[row.job_id].row = row
            else:
                self._jobs[row.job_id] = _JobState(row)
            self._job_of.update(dict.fromkeys(row.device_ids, row.job_id))
        for rollup in batch.rollups:
            self._apply_rollup(rollup)
        for sample in batch.samples:
            self._apply_sample(sample)
        self._apply_progress(batch)
        for event in batch.events:
            self.events.append(event)
            self._reached(event.t_s)
            if event.kind == "error" and event.device_id in self._devices:
                self._devices[event.device_id].error_s = event.t_s
        for verdict in batch.verdicts:
            if (device := self._devices.get(verdict.device_id)) is not None:
                device.verdict = verdict
                self._reached(verdict.t_s)
        for result in batch.results:
            if (device := self._devices.get(result.device_id)) is not None:
                device.result = result

    def _reached(self, t_s: float) -> None:
        self.now_s = max(self.now_s, t_s)

    def _apply_rollup(self, row: RollupRow) -> None:
        self._reached(row.start_s + row.span_s)
        if row.reading == "rate" and row.owner in self._jobs:
            series = self._jobs[row.owner].rate
        elif row.owner in self._devices and row.reading in DRAWN_READINGS:
            series = self._devices[row.owner].series[row.reading]
        else:
            return
        series.add_span(row.start_s, row.span_s, row.minimum, row.maximum)

    def _apply_sample(self, sample: DeviceSample) -> None:
        device = self._devices.get(sample.device_id)
        if device is None:
            return
        self._reached(sample.t_s)
        device.latest = sample
        for reading, series in device.series.items():
            series.add(sample.t_s, getattr(sample, reading))
        reasons = sample.throttle_reasons
        if reasons is not None:
            device.throttle_seen += 1
            for reason in reasons:
                device.throttle_counts[reason] = device.throttle_counts.get(reason, 0) + 1
            device.throttle.add(sample.t_s, 0.0 if THERMAL_REASONS.isdisjoint(reasons) else 1.0)

    def _apply_progress(self, batch: Batch) -> None:
        # A phase changes what the counter's next difference means, so both go in by time.
        rows: list[tuple[float, int, Any]] = [(row.t_s, 0, row) for row in batch.phases]
        rows += [(row.t_s, 1, row) for row in batch.steps]
        rows.sort(key=lambda item: item[:2])
        for t_s, kind, row in rows:
            job = self._jobs.get(row.job_id)
            if job is None:
                continue
            self._reached(t_s)
            if kind == 0:
                job.phase, job.phase_s = row.phase, t_s
                job.window.clear()
                job.boost_window.clear()
            else:
                self._apply_steps(job, row)

    def _apply_steps(self, job: _JobState, row: StepsRow) -> None:
        if job.steps is not None and row.units_done < job.steps.units_done:
            # The counter began anew: a difference across it would be nonsense.
            job.window.clear()
            job.boost_window.clear()
        job.steps = row
        if row.loss is not None:
            job.loss = row.loss
        if job.phase not in (None, "train"):
            return
        rate = _slide(job.window, row, RATE_WINDOW_S)
        if rate is not None:
            job.rate.add(row.t_s, rate)
        best = _slide(job.boost_window, row, BOOST_WINDOW_S)
        start_s = job.boost_window[0][0]
        if best is not None and row.t_s - start_s >= BOOST_WINDOW_S:
            is_best = job.boost is None or best > job.boost.throughput
            if is_best and not self._is_frozen(job):
                job.boost = BoostSeen(best, start_s, row.t_s - start_s)

    def _is_frozen(self, job: _JobState) -> bool:
        return any(
            (verdict := self.verdict(device_id)) is not None and verdict.frozen_at_s is not None
            for device_id in job.row.device_ids
        )

    # -- what comes out ----------------------------------------------------------------------

    @property
    def device_ids(self) -> list[str]:
        """The devices, in the order of the plan."""
        return list(self._devices)

    def device(self, device_id: str) -> DeviceInfo:
        """What the device is."""
        return self._devices[device_id].info

    def latest(self, device_id: str) -> DeviceSample | None:
        """The newest reading, or None before the first."""
        return self._devices[device_id].latest

    def silent_s(self, device_id: str) -> float | None:
        """Age of the newest reading, session seconds, once it may not be called current."""
        sample = self.latest(device_id)
        if self.has_ended or self.state(device_id) == "lost":
            return None
        age_s = self.now_s - (sample.t_s if sample is not None else 0.0)
        speed = float(self.meta.get("speed") or 1.0)
        return age_s if age_s > SILENT_S * max(1.0, speed) else None

    def silence(self, device_id: str) -> str | None:
        """`no answer for 12 s`, or what else keeps readings away; None while they come."""
        age_s = self.silent_s(device_id)
        if age_s is None:
            return None
        device = self._devices[device_id]
        since_s = device.latest.t_s if device.latest is not None else 0.0
        is_error = device.error_s is not None and device.error_s >= since_s
        return f"{'cannot be read' if is_error else 'no answer'} for {age_s:.0f} s"

    def verdict(self, device_id: str) -> Verdict | None:
        """The newest judgement, or None before the first."""
        device = self._devices.get(device_id)
        return device.verdict if device else None

    def state(self, device_id: str) -> str:
        """The state in one word: the verdict's, `warming` before there is one."""
        verdict = self.verdict(device_id)
        return verdict.state if verdict else "warming"

    def result(self, device_id: str) -> dict[str, Any] | None:
        """The device's entry of `heatsoak-result/1`, or None before there is one."""
        row = self._devices[device_id].result
        return row.data if row else None

    def series(self, device_id: str, reading: str) -> Series:
        """The series of one of `DRAWN_READINGS`, or of its job's `rate`."""
        if reading == "rate":
            job = self._jobs.get(self._job_of.get(device_id, ""))
            return job.rate if job else Series()
        return self._devices[device_id].series[reading]

    def throttle_series(self, device_id: str) -> Series:
        """1 where a thermal or hardware reason held the clock down, 0 where none did."""
        return self._devices[device_id].throttle

    def throttle_frac(self, device_id: str) -> dict[str, float] | None:
        """Share of the readings per throttle reason; None when the device reports none."""
        device = self._devices[device_id]
        if not device.throttle_seen:
            return None
        return {k: n / device.throttle_seen for k, n in device.throttle_counts.items()}

    def job(self, device_id: str) -> JobRow | None:
        """The job the device works for."""
        state = self._jobs.get(self._job_of.get(device_id, ""))
        return state.row if state else None

    @property
    def jobs(self) -> list[JobRow]:
        """All jobs."""
        return [state.row for state in self._jobs.values()]

    def rate(self, device_id: str) -> float | None:
        """Newest throughput of the device's job, units a second; None when it is not training."""
        state = self._jobs.get(self._job_of.get(device_id, ""))
        if state is None or state.rate.last is None or state.phase not in (None, "train"):
            return None
        t_s, rate = state.rate.last
        # A counter that has not moved for long has no rate that may be called current.
        return rate if self.now_s - t_s <= max(15.0, 2 * state.rate.gap_s) else None

    def unit(self, device_id: str) -> str:
        """What the job counts: `tokens`, `images`, `samples`."""
        job = self.job(device_id)
        return job.unit if job else "units"

    def phase(self, device_id: str) -> str | None:
        """What the job is doing: `compile`, `train`, `eval`, ...; None before it said so."""
        state = self._jobs.get(self._job_of.get(device_id, ""))
        return state.phase if state else None

    def loss(self, device_id: str) -> float | None:
        """Newest training loss of the job."""
        state = self._jobs.get(self._job_of.get(device_id, ""))
        return state.loss if state else None

    def steps_done(self, device_id: str) -> int | None:
        """Optimizer steps the job has done."""
        state = self._jobs.get(self._job_of.get(device_id, ""))
        return state.steps.steps_done if state and state.steps else None

    def boost(self, device_id: str) -> BoostSeen | None:
        """The boost of the result, or the best half minute seen so far."""
        data = self.result(device_id)
        if data and data.get("boost"):
            boost = data["boost"]
            return BoostSeen(boost["throughput"], boost.get("start_s", 0.0), boost["window_s"])
        state = self._jobs.get(self._job_of.get(device_id, ""))
        return state.boost if state else None

    @property
    def session_state(self) -> str:
        """`recording`, or the end state of the session."""
        return self.meta.get("state", "recording")

    @property
    def has_ended(self) -> bool:
        """Whether the session is closed."""
        return self.session_state != "recording"

    @property
    def is_judged(self) -> bool:
        """Whether every device has an end state; the run may still be watching after the freeze."""
        return bool(self._devices) and all(self.state(d) in FINAL_STATES for d in self._devices)

    @property
    def warnings(self) -> list[str]:
        """What the header must say in words: SYNTHETIC, IMPORTED, SMOKE, whose watts they are."""
        words = {info.info.provenance.upper() for info in self._devices.values()} - {"MEASURED"}
        if self.meta.get("protocol") == "smoke":
            words.add("SMOKE")
        if any(device.info.mig_parent_uuid is not None for device in self._devices.values()):
            words.add("MIG: W, °C OF THE CARD")
        return sorted(words, reverse=True)

    @property
    def leading_device_id(self) -> str | None:
        """The device that the run waits for: the least settled one that answers."""
        order = ("warming", "settling", "holding")
        waiting = [d for d in self._devices if self.state(d) in order]
        if waiting:
            is_silent = {d: self.silent_s(d) is not None for d in waiting}
            return min(waiting, key=lambda d: (is_silent[d], order.index(self.state(d))))
        return next(iter(self._devices), None)

    def recipe(self, device_id: str) -> dict[str, Any]:
        """Fields of the recipe of the device's job; empty without one."""
        job = self.job(device_id)
        return asdict(job.recipe) if job else {}


def _slide(window: deque[tuple[float, float]], row: StepsRow, width_s: float) -> float | None:
    """Take a point of a counter; its rate over the shortest stretch of at least `width_s`.

    Before `width_s` has passed, over all there is; None with a single point.
    """
    if window and row.t_s <= window[-1][0]:
        return None
    window.append((row.t_s, row.units_done))
    while len(window) > 2 and row.t_s - window[1][0] >= width_s:
        window.popleft()
    t_s, units = window[0]
    return (row.units_done - units) / (row.t_s - t_s) if len(window) > 1 else None
