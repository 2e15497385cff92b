"""The arithmetic of a synthetic card: heat, power, clock, fan and rate, in steps of half a second.

Three masses - die, heat sink, the air of the case - each relax towards the temperature that the
heat flow gives them. Leakage grows with the die's temperature, so under a power limit the clock
falls while the card heats; the case goes on heating for a quarter of an hour after the heat sink
has settled. Nothing here was fitted to a real card: the figures are of the size real ones have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

STEP_S = 0.5
"""Length of one step of the model."""
CLOCK_GRID_MHZ = 15.0
"""Clocks are multiples of this."""

_NOISE_MEMORY = math.exp(-STEP_S / 8.0)
_NOISE_KICK = math.sqrt(1.0 - _NOISE_MEMORY**2)
_LEAK_REFERENCE_C = 60.0
_IDLE_LEAK_FRAC = 0.3
_FAN_MIN_PCT = 30.0
_FAN_START_C = 50.0
_FAN_PCT_PER_C = 70.0 / 38.0
_FAN_BACKLASH_C = 4.0
_FAN_SLEW_PCT_PER_S = 1.0
_FAN_REFERENCE_PCT = 60.0
_FAN_EXPONENT = 0.7


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
        self.parameters = parameters
        self._noise = noise
        self.steps = 0
        """Steps done; the model's time is `steps * STEP_S`."""
        self.has_load = False
        self.clock_cap_frac = 1.0
        """Upper bound of the clock as a share of boost, imposed from outside (throttling)."""
        self.rate_share = 1.0
        """Share of the card's work that is the job's (another job takes the rest)."""
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
        self.case_c = p.ambient_c + p.idle_w * p.case_c_per_w
        self.sink_c = self.case_c + p.idle_w * p.sink_c_per_w
        self.die_c = self.sink_c + p.idle_w * p.die_c_per_w
        self.fan_pct = _FAN_MIN_PCT
        self._fan_heard_c = self.die_c
        self._rate_noise = 0.0
        self._power_noise = 0.0
        self._die_keep = math.exp(-STEP_S / p.die_tau_s)
        self._case_keep = math.exp(-STEP_S / p.case_tau_s)
        self._sink_keep = math.exp(-STEP_S / p.sink_tau_s)
        self._sink_c_per_w = p.sink_c_per_w
        self._sink_fan_pct = _FAN_REFERENCE_PCT

    def step(self) -> None:
        """Advance by `STEP_S`."""
        p = self.parameters
        noise = self._noise
        leak_w = p.leak_w * math.exp((self.die_c - _LEAK_REFERENCE_C) / p.leak_scale_c)
        if self.has_load:
            if noise is not None:
                keep = _NOISE_MEMORY
                kick = _NOISE_KICK
                self._rate_noise = keep * self._rate_noise + kick * noise.gauss(0.0, 1.0)
                self._power_noise = keep * self._power_noise + kick * noise.gauss(0.0, 1.0)
            dynamic_w = p.dynamic_w * (1.0 + p.power_noise_frac * self._power_noise)
            clock = self._clock(leak_w, dynamic_w)
            ratio = clock / p.boost_mhz
            power_w = p.idle_w + leak_w + dynamic_w * ratio**p.clock_exponent
            fluctuation = 1.0 + p.rate_noise_frac * self._rate_noise
            rate = p.rate_per_s * ratio**p.rate_exponent * fluctuation * self.rate_share
        else:
            self.is_power_capped = self.is_thermal_capped = False
            clock = p.idle_mhz
            power_w = p.idle_w + _IDLE_LEAK_FRAC * leak_w
            rate = 0.0
        if p.has_fan:
            self._turn_fan()
        sink_to = self.case_c + power_w * self._sink_c_per_w
        case_to = p.ambient_c + power_w * p.case_c_per_w
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
        p = self.parameters
        boost = p.boost_mhz
        clock = boost * self.clock_cap_frac
        self.is_thermal_capped = self.clock_cap_frac < 1.0
        above_c = self.die_c - p.clock_knee_c
        if above_c > 0.0:
            clock = min(clock, boost - p.clock_mhz_per_c * above_c)
        above_c = self.die_c - p.temperature_limit_c
        if above_c > 0.0:
            self.is_thermal_capped = True
            clock = min(clock, boost * max(0.4, 1.0 - 0.05 * above_c))
        left_w = max(0.0, p.power_limit_w - p.idle_w - leak_w)
        by_power = boost * (left_w / dynamic_w) ** (1.0 / p.clock_exponent)
        self.is_power_capped = by_power < clock
        clock = max(p.idle_mhz, min(clock, by_power))
        if self._noise is not None:
            # Random rounding: a governor dithers between two neighbours, and the mean is exact.
            clock = CLOCK_GRID_MHZ * math.floor(clock / CLOCK_GRID_MHZ + self._noise.random())
        return float(clock)

    def _turn_fan(self) -> None:
        """Follow the die with backlash: up at once, down only after several degrees."""
        heard = self._fan_heard_c
        if self.die_c > heard:
            self._fan_heard_c = heard = self.die_c
        elif self.die_c < heard - _FAN_BACKLASH_C:
            self._fan_heard_c = heard = self.die_c + _FAN_BACKLASH_C
        target = _FAN_MIN_PCT + _FAN_PCT_PER_C * max(0.0, heard - _FAN_START_C)
        target = min(100.0, target)
        slew = _FAN_SLEW_PCT_PER_S * STEP_S
        self.fan_pct += max(-slew, min(slew, target - self.fan_pct))
        if abs(self.fan_pct - self._sink_fan_pct) > 0.02:
            p = self.parameters
            share = (_FAN_REFERENCE_PCT / self.fan_pct) ** _FAN_EXPONENT
            self._sink_fan_pct = self.fan_pct
            self._sink_c_per_w = p.sink_c_per_w * share
            self._sink_keep = math.exp(-STEP_S / (p.sink_tau_s * share))


def find_asymptote(parameters: CardParameters) -> Asymptote:
    """The long-run fixed point: the same model, noise-free, from cold over 12 case time constants.

    The mean of its last half hour, so that a card which cycles has one too. Takes about 0.1 s.
    """
    model = ThermalModel(parameters)
    model.has_load = True
    tail = round(1800.0 / STEP_S)
    for _ in range(round(12.0 * parameters.case_tau_s / STEP_S)):
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
