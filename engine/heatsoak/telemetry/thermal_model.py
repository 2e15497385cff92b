"""The arithmetic of a synthetic card: heat, power, clock, fan and rate, in steps of half a second.

Three masses - die, heat sink, the air of the case - and, where it is told to, the air of the room
each relax towards the temperature that the heat flow gives them. Leakage grows with the die's
temperature, so under a power limit the clock falls while the card heats; the case goes on heating
for a quarter of an hour after the heat sink has settled. The clock is the lowest of what boost
bins, a thermal limit (a slope, a governor that holds a temperature, or a switch with hysteresis)
and the power limit allow; the fan follows one of several laws. Nothing here was fitted to a real
card: the figures are of the size real ones have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

ThermalLimit = Literal["slope", "governor", "switch"]
"""How a card keeps to its temperature limit: its clock falls by the degree above it; a governor
turns the clock until the temperature is held; or the clock drops at the limit and comes back some
degrees below it, a sawtooth."""
FanLaw = Literal["curve", "steps", "target", "pause", "stopped"]
"""How a fan is driven: a curve over temperature with backlash; the same in steps; to hold a
temperature; a curve that stands still when cool (zero-rpm); or not at all."""

STEP_S = 0.5
"""Length of one step of the model."""
CLOCK_GRID_MHZ = 15.0
"""Clocks are multiples of this."""

_NOISE_MEMORY = math.exp(-STEP_S / 8.0)
_NOISE_KICK = math.sqrt(1.0 - _NOISE_MEMORY**2)
_WANDER_KICK = math.sqrt(STEP_S)
_LEAK_REFERENCE_C = 60.0
_IDLE_LEAK_FRAC = 0.3
_LEAST_CLOCK_FRAC = 0.4
"""No thermal limit takes the clock below this share of boost."""
_SLOPE_FRAC_PER_C = 0.05
_GOVERNOR_FRAC_PER_C_S = 0.001
"""A governor turns the clock by this share of boost per second and degree off the limit."""
_FAN_MIN_PCT = 30.0
_FAN_START_C = 50.0
_FAN_PCT_PER_C = 70.0 / 38.0
_FAN_BACKLASH_C = 4.0
_FAN_STEP_C = 6.0
_FAN_PAUSE_C = 8.0
"""A fan that stands still when cool begins at `_FAN_START_C` and stops this far below it."""
_FAN_SLEW_PCT_PER_S = 1.0
_FAN_REFERENCE_PCT = 60.0
_FAN_EXPONENT = 0.7
_FAN_DRAUGHT_PCT = 20.0
"""A fan that stands still cools like one at this speed: air moves by itself, and by others."""
_FAN_POINTS_PER_C = 1.2
_FAN_POINTS_PER_C_S = 0.02
"""Of a fan that holds a temperature: at once, and per second, for each degree off."""


@dataclass(frozen=True, slots=True)
class CardParameters:
    """What tells one synthetic card from another."""

    power_limit_w: float
    idle_w: float
    dynamic_w: float
    """Switching power under load at the boost clock."""
    leak_w: float
    """Leakage under load at 60 degrees of the die."""
    leak_scale_c: float
    """Leakage grows by e over this many degrees."""
    boost_mhz: float
    idle_mhz: float
    clock_exponent: float
    """Switching power follows the clock to this power (voltage falls with the clock)."""
    clock_knee_c: float
    """Above this die temperature the boost clock falls ..."""
    clock_mhz_per_c: float
    """... by this much a degree."""
    temperature_limit_c: float
    """Above this die temperature the card slows itself down."""
    ambient_c: float
    die_c_per_w: float
    sink_c_per_w: float
    """Of the heat sink against the case's air, at 60 % fan."""
    case_c_per_w: float
    die_tau_s: float
    sink_tau_s: float
    """At 60 % fan; the heat sink answers faster when the fan blows harder."""
    case_tau_s: float
    has_fan: bool
    rate_per_s: float
    """Units a second at the boost clock."""
    rate_exponent: float
    """The rate follows the clock to this power (a part of the work waits for memory)."""
    rate_noise_frac: float
    power_noise_frac: float
    """Standard deviations of the load's own fluctuation."""
    load_frac: float = 1.0
    """Share of the switching power, and of the rate, that the workload asks for."""
    rate_share: float = 1.0
    """Share of the card's work that is the job's (another job takes the rest)."""
    wander_frac: float = 0.0
    """The rate walks at random by this share in the root of a second: it has no mean."""
    power_cap_frac: float = 1.0
    """Something outside holds power to this share of the limit, which nothing reports."""
    clock_cap_frac: float = 1.0
    """Upper bound of the clock as a share of boost, imposed for heat."""
    clock_bin_mhz: float = 0.0
    """Above the knee the clock falls in bins of so much; 0 for a line."""
    thermal_limit: ThermalLimit = "slope"
    hysteresis_c: float = 8.0
    """Of a thermal limit that switches: the clock comes back so far below it ..."""
    throttled_frac: float = 0.7
    """... and is meanwhile at this share of boost."""
    fan_law: FanLaw = "curve"
    fan_max_pct: float = 100.0
    fan_target_c: float = 60.0
    """What a fan that holds a temperature holds."""
    room_c_per_w: float = 0.0
    """Of the room's air; 0 for a room that does not heat up."""
    room_tau_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Asymptote:
    """Where a synthetic card ends up under its load, without noise and faults."""

    rate_per_s: float
    power_w: float
    temperature_c: float
    sm_clock_mhz: float


class ThermalModel:
    """One card's state, advanced step by step.

    Plain floats and no arrays: a step costs about two microseconds.
    """

    def __init__(self, parameters: CardParameters, noise: random.Random | None = None) -> None:
        """Start cold at time 0, without load.

        Args:
            parameters: the card.
            noise: source of all fluctuation; None for the noise-free card, whose clock is also
                free of its grid (which the noisy one dithers around).
        """
        self._noise = noise
        self.steps = 0
        """Steps done; the model's time is `steps * STEP_S`."""
        self.has_load = False
        self.units = 0.0
        self.energy_j = 0.0
        self.power_w = parameters.idle_w
        """True power of the last step."""
        self.power_average_w = parameters.idle_w
        """Mean power of the last second, as a driver averages it."""
        self.clock_mhz = parameters.idle_mhz
        self.rate_per_s = 0.0
        self.is_power_capped = False
        self.is_thermal_capped = False
        p = parameters
        self.room_c = p.ambient_c
        self.case_c = p.ambient_c + p.idle_w * p.case_c_per_w
        self.sink_c = self.case_c + p.idle_w * p.sink_c_per_w
        self.die_c = self.sink_c + p.idle_w * p.die_c_per_w
        self.fan_pct = _FAN_MIN_PCT
        self._fan_heard_c = self.die_c
        self._fan_held_pct = _FAN_MIN_PCT
        self._governed_frac = 1.0
        self._is_switched_down = False
        self._rate_noise = 0.0
        self._power_noise = 0.0
        self._wandered = 0.0
        self._sink_fan_pct = _FAN_REFERENCE_PCT
        self.parameters = parameters

    @property
    def parameters(self) -> CardParameters:
        """The card as it is now; may be replaced between two steps."""
        return self._parameters

    @parameters.setter
    def parameters(self, p: CardParameters) -> None:
        self._parameters = p
        self._die_keep = math.exp(-STEP_S / p.die_tau_s)
        self._case_keep = math.exp(-STEP_S / p.case_tau_s)
        self._room_keep = math.exp(-STEP_S / p.room_tau_s)
        self._cool_by_fan()

    def step(self) -> None:
        """Advance by `STEP_S`."""
        p = self._parameters
        noise = self._noise
        leak_w = p.leak_w * math.exp((self.die_c - _LEAK_REFERENCE_C) / p.leak_scale_c)
        if self.has_load:
            if noise is not None:
                keep = _NOISE_MEMORY
                kick = _NOISE_KICK
                self._rate_noise = keep * self._rate_noise + kick * noise.gauss(0.0, 1.0)
                self._power_noise = keep * self._power_noise + kick * noise.gauss(0.0, 1.0)
                if p.wander_frac:
                    self._wandered += p.wander_frac * _WANDER_KICK * noise.gauss(0.0, 1.0)
            dynamic_w = p.dynamic_w * p.load_frac * (1.0 + p.power_noise_frac * self._power_noise)
            clock = self._clock(leak_w, dynamic_w)
            ratio = clock / p.boost_mhz
            power_w = p.idle_w + leak_w + dynamic_w * ratio**p.clock_exponent
            fluctuation = 1.0 + p.rate_noise_frac * self._rate_noise + self._wandered
            rate = p.rate_per_s * ratio**p.rate_exponent * max(0.0, fluctuation)
            rate *= p.load_frac * p.rate_share
        else:
            self.is_power_capped = self.is_thermal_capped = False
            clock = p.idle_mhz
            power_w = p.idle_w + _IDLE_LEAK_FRAC * leak_w
            rate = 0.0
        if p.has_fan:
            self._turn_fan()
        if p.room_c_per_w > 0.0:
            room_to = p.ambient_c + power_w * p.room_c_per_w
            self.room_c = room_to + (self.room_c - room_to) * self._room_keep
        else:
            self.room_c = p.ambient_c
        sink_to = self.case_c + power_w * self._sink_c_per_w
        case_to = self.room_c + power_w * p.case_c_per_w
        self.case_c = case_to + (self.case_c - case_to) * self._case_keep
        self.sink_c = sink_to + (self.sink_c - sink_to) * self._sink_keep
        die_to = self.sink_c + power_w * p.die_c_per_w
        self.die_c = die_to + (self.die_c - die_to) * self._die_keep
        self.power_average_w = 0.5 * (self.power_w + power_w)
        self.power_w = power_w
        self.clock_mhz = clock
        self.rate_per_s = rate
        self.units += rate * STEP_S
        self.energy_j += power_w * STEP_S
        self.steps += 1

    def _clock(self, leak_w: float, dynamic_w: float) -> float:
        """The clock of this step: the lowest of what temperature and power allow."""
        p = self._parameters
        boost = p.boost_mhz
        clock = boost * p.clock_cap_frac
        self.is_thermal_capped = p.clock_cap_frac < 1.0
        above_c = self.die_c - p.clock_knee_c
        if above_c > 0.0:
            fall = p.clock_mhz_per_c * above_c
            if p.clock_bin_mhz:
                fall = p.clock_bin_mhz * math.floor(fall / p.clock_bin_mhz)
            clock = min(clock, boost - fall)
        by_heat = boost * self._heat_frac()
        if by_heat < boost:
            self.is_thermal_capped = self.is_thermal_capped or by_heat < clock
            clock = min(clock, by_heat)
        left_w = max(0.0, p.power_limit_w * p.power_cap_frac - p.idle_w - leak_w)
        by_power = boost * (left_w / dynamic_w) ** (1.0 / p.clock_exponent)
        self.is_power_capped = by_power < clock
        clock = max(p.idle_mhz, min(clock, by_power))
        if self._noise is not None:
            # Random rounding: a governor dithers between two neighbours, and the mean is exact.
            clock = CLOCK_GRID_MHZ * math.floor(clock / CLOCK_GRID_MHZ + self._noise.random())
        return float(clock)

    def _heat_frac(self) -> float:
        """Share of the boost clock that the temperature limit allows."""
        p = self._parameters
        above_c = self.die_c - p.temperature_limit_c
        if p.thermal_limit == "slope":
            allowed = 1.0 - _SLOPE_FRAC_PER_C * max(0.0, above_c)
            return max(_LEAST_CLOCK_FRAC, allowed)
        if p.thermal_limit == "governor":
            turned = self._governed_frac - _GOVERNOR_FRAC_PER_C_S * above_c * STEP_S
            self._governed_frac = min(1.0, max(_LEAST_CLOCK_FRAC, turned))
            return self._governed_frac
        if above_c >= 0.0:
            self._is_switched_down = True
        elif above_c <= -p.hysteresis_c:
            self._is_switched_down = False
        return p.throttled_frac if self._is_switched_down else 1.0

    def _turn_fan(self) -> None:
        """Drive the fan by its law, no faster than it can."""
        target = min(self._parameters.fan_max_pct, self._wanted_fan_pct())
        slew = _FAN_SLEW_PCT_PER_S * STEP_S
        self.fan_pct += max(-slew, min(slew, target - self.fan_pct))
        if abs(self.fan_pct - self._sink_fan_pct) > 0.02:
            self._sink_fan_pct = self.fan_pct
            self._cool_by_fan()

    def _cool_by_fan(self) -> None:
        p = self._parameters
        share = (_FAN_REFERENCE_PCT / max(_FAN_DRAUGHT_PCT, self._sink_fan_pct)) ** _FAN_EXPONENT
        self._sink_c_per_w = p.sink_c_per_w * share
        self._sink_keep = math.exp(-STEP_S / (p.sink_tau_s * share))

    def _wanted_fan_pct(self) -> float:
        law = self._parameters.fan_law
        if law == "stopped":
            return 0.0
        if law == "target":
            off_c = self.die_c - self._parameters.fan_target_c
            held = self._fan_held_pct + _FAN_POINTS_PER_C_S * off_c * STEP_S
            self._fan_held_pct = min(self._parameters.fan_max_pct, max(_FAN_MIN_PCT, held))
            return max(_FAN_MIN_PCT, self._fan_held_pct + _FAN_POINTS_PER_C * off_c)
        # With backlash: up at once, down only after several degrees.
        heard = self._fan_heard_c
        if self.die_c > heard:
            self._fan_heard_c = heard = self.die_c
        elif self.die_c < heard - _FAN_BACKLASH_C:
            self._fan_heard_c = heard = self.die_c + _FAN_BACKLASH_C
        above_c = max(0.0, heard - _FAN_START_C)
        if law == "steps":
            above_c = _FAN_STEP_C * math.floor(above_c / _FAN_STEP_C)
        # A fan that pauses stands still again only some degrees below where it began.
        begin_c = _FAN_START_C - (_FAN_PAUSE_C if self.fan_pct > 0.0 else 0.0)
        if law == "pause" and self.die_c < begin_c:
            return 0.0
        return _FAN_MIN_PCT + _FAN_PCT_PER_C * above_c


def find_asymptote(stages: Sequence[tuple[float, CardParameters]]) -> Asymptote:
    """The long-run fixed point: the same model, noise-free, from cold over 12 time constants.

    Those of the case, or of a room that heats up. The mean of its last half hour, so that a card
    which cycles has one too. Takes about 0.1 s.

    Args:
        stages: the card from each of these seconds on, the first at 0. What it went through
            matters where a fan or a limit has hysteresis.
    """
    model = ThermalModel(stages[0][1])
    model.has_load = True
    for from_s, parameters in stages:
        while model.steps * STEP_S < from_s:
            model.step()
        model.parameters = parameters
    parameters = stages[-1][1]
    slowest_s = parameters.case_tau_s
    if parameters.room_c_per_w > 0.0:
        slowest_s = max(slowest_s, parameters.room_tau_s)
    tail = round(1800.0 / STEP_S)
    for _ in range(round(12.0 * slowest_s / STEP_S)):
        model.step()
    units, energy_j = model.units, model.energy_j
    die_sum_c = clock_sum_mhz = 0.0
    for _ in range(tail):
        model.step()
        die_sum_c += model.die_c
        clock_sum_mhz += model.clock_mhz
    span_s = tail * STEP_S
    return Asymptote(
        rate_per_s=(model.units - units) / span_s,
        power_w=(model.energy_j - energy_j) / span_s,
        temperature_c=die_sum_c / tail,
        sm_clock_mhz=clock_sum_mhz / tail,
    )
