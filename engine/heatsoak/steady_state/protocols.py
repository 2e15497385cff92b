"""How long and how strictly to soak: every constant of the judge, with what it guards against.

The values were found on simulated cards with a known truth; none was checked on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

# -- readings and bins -------------------------------------------------------------------------
BIN_S: Final = 10.0
"""Length of a bin: long enough that a step, a poll and the driver's averaging do not show."""
SECONDS_PER_BIN: Final = 10
LATE_S: Final = 3.0
"""A bin is closed this long after its end: readings may come late, and guards look ahead."""
GUARD_S: Final = 2
"""Seconds left out on both sides of a pause or stall: sensors average over about a second."""
MIN_ACTIVE_S: Final = 4.0
"""A bin with fewer un-paused seconds has no rate: too short to mean anything."""
VALID_SHARE: Final = 0.4
"""A channel with a smaller share of valid bins is missing; it never vetoes by its absence."""
HISTORY_BINS: Final = 1440
"""Bins kept, 4 h: memory stays bounded however long the run."""
GAP_BINS: Final = 360
"""A gap in time beyond this many bins (a suspended machine) starts afresh instead of being
walked through bin by bin."""
JUMP_S: Final = 3600.0
"""An instant further ahead than this is believed only once the next goes on from there: a wrong
stamp must not shut out everything after it."""
SECONDS_KEPT: Final = 1200
"""Seconds of the rate kept beside its bins: guards and stalls look back, late records fill in."""
CLOCK_SLACK_S: Final = 5.0
"""Readings and counter come from two programs whose clocks may differ by so much."""
MOST_UNITS: Final = 1e18
"""A counter beyond is no counter."""
SANE: Final[dict[str, tuple[float, float]]] = {
    "power": (0.0, 2e4),
    "clock": (0.0, 2e4),
    "temperature": (0.5, 126.0),
    "fan": (0.0, 200.0),
    "mem_clock": (0.0, 1e5),
    "utilization": (0.0, 100.0),
    "memory": (0.0, 1e15),
}
"""Readings outside are no readings: a broken card reports 0 or 127 or 255 degrees, or more. W, MHz,
°C, percent, bytes."""
MOST_J: Final = 1e15
"""An energy counter beyond is none."""
LONG_GAP_S: Final = 15.0
"""Power is not integrated over a longer time without a reading."""

# -- un-stalled view ---------------------------------------------------------------------------
STALL_MEDIAN_S: Final = 60
STALL_DROP_FRAC: Final = 0.10
STALL_MADS: Final = 5.0
"""A second is stalled when its rate is below the median of the last minute by the larger of these:
the data loader's hiccups say nothing about heat."""
STALL_MAX_SHARE: Final = 0.3
"""Where more of a window looks stalled than this, it is the signal (a throttle's sawtooth)."""
HAMPEL_HALF_BINS: Final = 6
HAMPEL_MADS: Final = 5.0
HAMPEL_MIN_FRAC: Final = 0.01
HAMPEL_MAX_SHARE: Final = 0.15
"""Single bins off the median of 13 are left out of drift tests, unless that would drop so many
that they are the signal."""
STALL_STEPS: Final = 1.5
"""A counter read once a second in whole steps has seconds with a step less: no stalls."""
STALL_RATE_S: Final = 0.5
"""A second that was paused for longer has no rate to call stalled."""

# -- liveness ----------------------------------------------------------------------------------
STUCK_S: Final = 60.0
STUCK_READINGS: Final = 10
"""Power bit-identical for so long is a dead sensor: real power always moves in its last digit."""
STUCK_COARSE_S: Final = 300.0
STUCK_COARSE_FRAC: Final = 0.02
"""The same for power reported in whole watts within this of its limit, where repeats are
natural."""
FROZEN_S: Final = 300.0
"""Every channel identical for so long and no advancing counter: a dead log, not a steady one."""
UNHEARD_S: Final = 20.0
SILENT_S: Final = 90.0
SILENT_PERIODS: Final = 5.0
"""A device whose last reading is older than this, and than so many of its usual periods, may do
anything: at first nothing of its job freezes, later it does not hold either."""
COLD_STUCK_S: Final = 240.0
"""A temperature that never moved from before the load until so long into it is stuck."""
IDLE_BINS: Final = 6
IDLE_UTILIZATION_PCT: Final = 5.0
IDLE_POWER_FRAC: Final = 0.35
"""Below these a device whose counter stands still is idle, above them it hangs (`stuck`)."""
STILL_AT_TIME_OUT_S: Final = 60.0
"""A counter that has stood still for so long when the time is up did not merely hiccup."""
BARE_BINS: Final = 60
"""A device without any hardware reading in so many bins is judged on throughput alone."""

# -- epochs ------------------------------------------------------------------------------------
EPOCH_BEFORE_BINS: Final = 12
EPOCH_LEAST_BINS: Final = 6
EPOCH_AFTER_BINS: Final = 3
EPOCH_JUMP_FRAC: Final = 0.04
EPOCH_JUMP_MADS: Final = 8.0
"""So abrupt a change is a new regime (another tenant, a changed limit): older bins mislead. At
least `EPOCH_LEAST_BINS` must be there to change from."""
EPOCH_MAX_RESETS: Final = 4
EPOCH_MAX_RESETS_S: Final = 1200.0
"""At most so many resets in 20 min: a noisy job would never get old enough otherwise."""
EPOCH_CYCLE_RESETS: Final = 4
EPOCH_CYCLE_S: Final = 3600.0
EPOCH_CYCLE_FRAC: Final = 0.03
"""After so many in an hour, a return to a level seen before is a cycle, not a disturbance."""
THERMAL_DUTY: Final = 0.3
THERMAL_DUTY_BEFORE: Final = 0.15
"""The first arrival of a thermal slowdown begins a new regime."""
RESET_COST_FRAC: Final = 0.02
"""A reset whose level changed by more needs the longer wait `Protocol.reset_s`."""

# -- still to come -----------------------------------------------------------------------------
WINDOW_AGE_FRAC: Final = 0.7
"""The judged window is this share of the epoch's age: a fixed window mistakes slow for flat."""
TAU_FRACS: Final = (0.15, 0.3, 0.6, 1.0)
"""Time constants tried, as shares of the window."""
PLAUSIBLE_LR: Final = 2.7
"""A time constant is plausible while its misfit over the best is below this (90 % likelihood)."""
BOUND_SES: Final = 1.3
"""Standard errors on top of the estimate: about a one-sided 90 % bound."""
LRV_BATCHES: Final = (8, 12, 16)
LRV_FLOOR: Final = 0.1
"""Long-run variance by batch means, the largest of these, at least this share of the variance:
neighbouring bins are alike, and a lucky quiet window must not fake certainty."""
HALF_WINDOW_BINS: Final = 6
"""Fewer bins in the second half of the window say nothing about curvature."""
WANDER_BATCHES: Final = (4, 12)
WANDER_LEAST_BINS: Final = 20
WANDER_SKIP_BINS: Final = 6
WANDER_RUN_UP_FRAC: Final = 0.1
WANDER_GATE_FACTOR: Final = 2.4
"""Long batches of a rate that is steady average out: what they leave, scaled by its growth from
short to long batches, must stay below this times `Protocol.gate_pct`. Guards against a workload
whose own speed wanders like a random walk; a run-up within the epoch, off its later level by more
than this, is none."""
VETOED: Final = 1.05
"""A veto counts at least as a bound this much over its margin."""
VETO_SES: Final = 2.0
SLOW_RATE_PCT: Final = 0.3
"""A drift at the slow time constant vetoes when significant and above the margin (rate: this)."""
FLOOR_C: Final = 0.08
FLOOR_POINTS: Final = 0.15
FLOOR_PCT: Final = 0.03
"""Floors of the standard error: readings are whole degrees and whole points of fan speed."""
RELAX_SHARE: Final = 0.6
RELAX_FACTOR: Final = 2.0
"""Late in the run a bound may be this times the margin if the estimate is below this share of it:
noise, not drift, keeps it open (not for temperature)."""
FAN_VETO_SHARE: Final = 0.5
LIMIT_NEAR_C: Final = 2.0
LIMIT_NEAR_R_C: Final = 1.0
LIMIT_REACH_C: Final = 0.75
LIMIT_ZONE_C: Final = 1.0
REACH_FACTOR: Final = 1.5
"""A fan about to run out, or a temperature about to reach its limit, changes everything after it:
it vetoes while the extrapolation (this times what is to come) touches the end."""

# -- cycles ------------------------------------------------------------------------------------
CYCLE_EVERY_BINS: Final = 6
CYCLE_WINDOWS: Final = (48, 120, 360)
"""Bins searched for a cycle, shortest first: what cycles now may not have cycled before."""
CYCLE_MIN_BINS: Final = 30
CYCLE_MAX_SHARE: Final = 0.34
"""At least three cycles must be there: two may be chance."""
CYCLE_LEAST_ACF: Final = 0.4
CYCLE_LEAST_SES: Final = 3.5
CYCLE_SECOND_SHARE: Final = 0.6
"""The autocorrelation at the period must be so high, and nearly as high at twice the period:
noise with a memory has no second peak."""
CYCLE_SWING: Final[dict[str, float]] = {
    "clock": 2.0,
    "power": 3.0,
    "rate": 3.0,
    "temperature": 3.0,
}
"""Least swing of a cycle, in percent or °C: a smaller one does no harm."""
CYCLE_READINGS: Final = 300
"""Newest readings of the clock kept, one by one: a throttle that comes and goes within a few bins
shows in bins only as a beat, and its true period is wanted for the words."""
CYCLE_EDGE_BINS: Final = 0.3
"""A window of whole cycles may still begin or end so many bins off: times the swing, over the
window, this adds to the half-width."""
CYCLE_LONG_S: Final = 360.0
CYCLE_WINDOW_MAX_S: Final = 3600.0
"""Cycles longer than the first need a window up to the second, to hold five of them."""

# -- holding and freezing ----------------------------------------------------------------------
PASSES_TO_HOLD: Final = 3
FAILS_TO_SETTLE: Final = 3
HOLD_MARGIN_FACTOR: Final = 1.25
"""Hysteresis, so that noise does not toggle the state."""
HOLD_AGE_FRAC: Final = 0.1
HOLD_MAX_S: Final = 600.0
HALF_WIDTH_FACTOR: Final = 2.1
"""Half-width in standard errors of the mean: t for the few batches of a window."""
POOL_S: Final = 1800.0
"""Long-run variance is pooled over so long and earlier epochs: a lucky quiet stretch must not fake
precision."""
POOL_EPOCHS: Final = 8
POOL_FACTOR: Final = 4.0
"""So many earlier epochs count, each as at most this times the present variance: what they went
through is not what is reported."""
REPORT_MIN_S: Final = 120.0
"""Least window of what is reported: power sensors average and jitter."""
JACKKNIFE_BATCHES: Final = 12
JACKKNIFE_LEAST: Final = 4
"""Joules per unit are a ratio: its spread comes from leaving out one of so many batches at a
time."""
GOOD_COVER: Final = 0.9
"""Share of a window that the energy counter, or the integral of power, must cover to be used."""
PRINTED_GATE_FACTOR: Final = 1.5
"""The printed interval, noise and heat together, must be within this times the gate too."""
U95_FACTOR: Final = 1.25
U95_PCT_PER_C: Final = 0.3
"""What is printed: the half-width widened by this, and so much per degree still to come."""
U95_SENSOR_FLOOR_PCT: Final = 0.05
WATCH_MEAN_S: Final = 300.0
WATCH_CYCLES: Final = 3
SUPERSEDED_FRAC: Final = 0.01
SUPERSEDED_HALF_WIDTHS: Final = 2.0
"""After the freeze, a mean of five minutes, or of so many cycles, that is off by more than this
and by more than so many of its half-widths supersedes."""

# -- flags -------------------------------------------------------------------------------------
CAPPED_DUTY: Final = 0.5
THROTTLED_DUTY: Final = 0.05
EXTERNAL_CAP_FRAC: Final = 0.85
"""A power cap that bites below this share of the enforced limit comes from outside the card."""
UNSATURATED_FRAC: Final = 0.6
"""Below this share of the limit, with nothing holding the clock, the workload does not load it."""
STARVED_UTILIZATION_PCT: Final = 85.0
"""A device busy for less of its time waits for data. Its first pass over them is often slower than
the next, which come from a cache: such a workload is not frozen before `Protocol.late_s`."""
FAN_SPENT_POINTS: Final = 1.0
"""A fan within this of its highest speed can do no more: where no temperature tells how near the
limit is, nothing freezes before `Protocol.late_s`, for heat may yet bring it down."""
BOOST_S: Final = 30.0
ENERGY_GAP_FACTOR: Final = 1.2
"""A counter step above limit x time x this is a glitch, not energy."""
READING_AT_S: Final = (600.0, 1200.0)
READING_WINDOW_S: Final = 120.0
"""What a fixed soak of 10 or 20 minutes would have read: the two minutes before."""

# -- what a degree costs ------------------------------------------------------------------------
SENSITIVITY_SKIP_BINS: Final = 2
SENSITIVITY_LEAST_BINS: Final = 20
SENSITIVITY_LEAST_C: Final = 4.0
SENSITIVITY_RATE_SE: Final = 0.05
"""Rate and power per degree are told only from so many bins over so many degrees; the rate only
with so small an error (percent per °C), else the clock stands for it."""
SENSITIVITY_LATE_FACTOR: Final = 1.5
"""The last degrees cost more than the first: leakage grows exponentially, fans take their share."""
SENSITIVITY_ALLOWED_PCT: Final = 0.5
SENSITIVITY_MARGIN_FRAC: Final = 0.4
"""The temperature margin shrinks so that what is still to come costs at most this (times the gate
over that of `standard`), down to this share of itself: on a card that loses half a percent a
degree, three degrees are too many."""
SENSITIVITY_U95_LEAST: Final = 0.2
"""Percent per °C that the printed interval assumes at least."""
HEAT_FACTOR: Final = 1.3
"""A case slower than the slow time constant has more to come than the fit says: the printed
interval allows for so much more."""

TIME_LEFT: Final = (
    (1.3, 0.2, 2.0),
    (2.0, 0.3, 3.7),
    (4.0, 0.65, 6.6),
    (float("inf"), 0.7, 8.0),
)
"""(worst bound over margin up to, remaining over the epoch's age: 10 %, 90 %), from simulated
soaks that this rule froze."""
TIME_LEFT_HOLDING: Final = 0.7
"""While it holds: from what is left of the hold to this times the epoch's age."""


GATE_PCT: Final = 0.5
RATE_PCT: Final = 1.5
"""What `standard` allows; other protocols' secondary margins scale with their own."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How long and how strictly to soak."""

    name: str
    summary: str
    """One line for the user."""
    soak_s: float
    """Least time under load before anything is judged."""
    epoch_s: float
    """Least age of an epoch."""
    reset_s: float
    """Least wait after a reset that changed the level by over `RESET_COST_FRAC`."""
    window_min_s: float
    window_max_s: float
    slow_s: float
    """Least time constant of the slow mode (the case and the room) that is always suspected."""
    hold_s: float
    """Least time to hold still before the freeze."""
    timeout_s: float
    """The run ends `not-steady` after this."""
    watch_s: float
    """How long the job goes on after the freeze, to see that the numbers stay true."""
    still_s: float
    """Un-paused time without progress after which the run is `stuck` or `idle`."""
    temperature_c: float = 3.0
    """Margin of what is still to come in temperature."""
    power_pct: float = 0.5
    clock_pct: float = 0.6
    rate_pct: float = RATE_PCT
    fan_points: float = 16.0
    gate_pct: float = GATE_PCT
    """Half-width of rate and power that allows the freeze."""
    late_gate_pct: float = 1.0
    """The same after `late_s`."""
    late_s: float = 1800.0
    """Run time after which noise is no longer waited for."""


_STANDARD = Protocol(
    name="standard",
    summary="judged to within 1 %: about 15 to 30 min, at most 90",
    soak_s=300.0,
    epoch_s=180.0,
    reset_s=480.0,
    window_min_s=240.0,
    window_max_s=1800.0,
    slow_s=900.0,
    hold_s=90.0,
    timeout_s=5400.0,
    watch_s=600.0,
    still_s=600.0,
)

PROTOCOLS: Final[dict[str, Protocol]] = {
    "smoke": Protocol(
        name="smoke",
        summary="a demonstration in under 4 min; never called sustained",
        soak_s=60.0,
        epoch_s=45.0,
        reset_s=60.0,
        window_min_s=60.0,
        window_max_s=180.0,
        slow_s=60.0,
        hold_s=20.0,
        timeout_s=240.0,
        watch_s=0.0,
        still_s=60.0,
        # A shared 2-core machine varies by several per cent between bins, and a minute cannot
        # average that away: smoke proves that everything works, not how fast the machine is.
        # Nor do a heatsink of two minutes and its fan settle in it.
        temperature_c=6.0,
        fan_points=60.0,
        power_pct=3.0,
        clock_pct=3.0,
        rate_pct=12.0,
        gate_pct=5.0,
        late_gate_pct=8.0,
        late_s=150.0,
    ),
    "quick": replace(
        _STANDARD,
        name="quick",
        summary="a first answer: about 10 to 15 min, wrong by over 1 % more often",
        soak_s=240.0,
        window_min_s=180.0,
        slow_s=450.0,
        timeout_s=2700.0,
        watch_s=300.0,
    ),
    "standard": _STANDARD,
    "extended": replace(
        _STANDARD,
        name="extended",
        summary="for slow cases and rooms: about 30 to 60 min, at most 180",
        slow_s=1800.0,
        hold_s=180.0,
        timeout_s=10800.0,
        power_pct=0.4,
        clock_pct=0.4,
    ),
}
"""The protocols by name, shortest first."""
