"""What the judge says: states, flags, bounds, figures. Plain data, also read by screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal[
    "warming",
    "settling",
    "holding",
    "steady",
    "not-steady",
    "stuck",
    "idle",
    "lost",
    "failed",
    "interrupted",
]
FINAL_STATES = frozenset({"steady", "not-steady", "stuck", "idle", "lost", "failed", "interrupted"})

Flag = Literal[
    "disturbed",
    "cycling",
    "throttled",
    "power-capped",
    "external-cap",
    "unsaturated",
    "noise-limited",
    "headroom-unknown",
    "no-throughput",
    "superseded",
    "smoke",
]
Channel = Literal["rate", "power", "clock", "temperature", "fan"]


@dataclass(frozen=True, slots=True)
class Bound:
    """How much is still to come in one channel, against what is allowed."""

    channel: Channel
    value: float
    """Upper bound of the change still to come, in `unit`."""
    margin: float
    """What is allowed, in `unit`."""
    unit: str
    """`%` of the channel's mean, `°C`, or `points` of fan speed."""
    is_ok: bool


@dataclass(frozen=True, slots=True)
class Cycling:
    """The cycle that the channels go through."""

    period_s: float
    channel: Channel
    """The channel it shows in most."""
    swing: float
    """From low to high, in `unit`."""
    unit: str
    """`%` of the channel's mean, or `°C`."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One frozen number with its evidence."""

    mean: float
    u95: float | None
    """Half-width of the 95 % interval in the unit of the mean; None where it cannot be stated."""
    n_eff: float | None
    """Effective number of independent 10 s bins behind the mean."""
    unit: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one device and its job at one instant."""

    t_s: float
    device_id: str
    state: State
    flags: tuple[Flag, ...]
    reason: str
    """One sentence for the screen: what is waited for, or why it ended so."""
    channels: tuple[Channel, ...]
    """The channels the judgement stands on."""
    bounds: tuple[Bound, ...] = ()
    blocked_by: Channel | None = None
    """The channel that keeps it from steady, or None."""
    window_start_s: float | None = None
    window_s: float | None = None
    """The judged window; frozen once steady."""
    frozen_at_s: float | None = None
    time_left_s: tuple[float, float] | None = None
    """Range of the expected time to steady state, or None when nothing can be said."""
    cycle: Cycling | None = None
    """The cycle behind the flag `cycling`, else None."""


@dataclass(frozen=True, slots=True)
class Sustained:
    """The numbers of one window. Called sustained only where the verdict is `steady`."""

    window_start_s: float
    window_s: float
    throughput: Figure | None
    """Units a second of un-paused time, from the job's counter."""
    all_in_throughput: Figure | None
    """Units a second of all time, pauses included."""
    power_w: Figure | None
    temperature_c: Figure | None
    sm_clock_mhz: Figure | None
    mem_clock_mhz: Figure | None
    utilization_pct: Figure | None
    memory_used_bytes: Figure | None
    joules_per_unit: Figure | None
    """Energy of the whole window over its units."""
    energy_method: Literal["counter", "integral"] | None
    """Where the joules come from; None when power is not reported."""
    counter_j: float | None
    """Energy of the window by the counter."""
    integrated_j: float | None
    """Energy of the window by the integral of power."""
    throttle_frac: dict[str, float]
    """Share of the window per throttle reason."""


@dataclass(frozen=True, slots=True)
class Boost:
    """The best short stretch before the window: what a naive benchmark reports."""

    throughput: float
    """Units a second."""
    window_s: float
    start_s: float
    drop_frac: float | None
    """1 - sustained / boost, or None when there is nothing to compare with."""


@dataclass(frozen=True, slots=True)
class Result:
    """All that is known of one device when its judgement ended, or so far."""

    device_id: str
    verdict: Verdict
    numbers: Sustained | None
    """The frozen window if steady, else the last window; None before there is one."""
    boost: Boost | None
    at_10_min: float | None
    """Mean throughput of the two minutes before 10 min, units a second: what a fixed soak reads."""
    at_20_min: float | None
