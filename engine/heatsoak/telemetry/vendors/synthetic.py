"""Synthetic cards: made of arithmetic from a card profile, seeded, as fast as the clock goes.

They exist to show, test and learn the tool without hardware. What they report is never a claim
about the real card, and everything they touch says `synthetic`.
"""

from __future__ import annotations

import math
import random
import threading
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.telemetry.device import DeviceInfo, DeviceLostError
from heatsoak.telemetry.sample import DeviceSample
from heatsoak.telemetry.synthetic_spec import (
    FAN_WORDS,
    LIMIT_BELOW_C,
    LIMIT_WORDS,
    Fault,
    FaultKind,
    active_kinds,
    changed,
    is_unloaded,
    lasting_kinds,
)
from heatsoak.telemetry.thermal_model import (
    STEP_S,
    Asymptote,
    CardParameters,
    ThermalModel,
    find_asymptote,
)
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.profiles.cards import CardProfile

UNIT = "tokens"
"""What `units_done` counts."""
UTILIZATION_FRAC = 0.4
"""Nominal share of the measured matrix-multiplication rate that a training step reaches."""
BANDWIDTH_FRAC = 0.7
"""Nominal share of the memory bandwidth that a memory-bound step reaches."""
COMPUTE_BOUND_EXPONENT, MEMORY_BOUND_EXPONENT = 0.9, 0.1
"""The rate follows the SM clock to this power; memory has a clock of its own."""
IDLE_MEMORY_BYTES = BYTES_PER_GIB // 2
"""What a driver and a desktop hold."""
FLOPS_PER_BYTE = 150.0
"""Nominal arithmetic intensity, for a card of which only the memory bandwidth is known."""


@dataclass(frozen=True, slots=True)
class SyntheticWork:
    """What one unit of the workload costs a card."""

    flops_per_unit: float
    bytes_per_unit: float
    """Bytes moved between memory and chip."""
    memory_bytes: int
    """Memory the workload holds on the card."""


BILLION_PARAMETERS = SyntheticWork(6e9, bytes_per_unit=0.0, memory_bytes=26 * BYTES_PER_GIB)
"""The nominal work: six operations a parameter and token, no traffic to speak of."""

_SENSOR_NOISE_FRAC = 0.007
_UNSEEN = ("temperature_c", "fan_pct", "power_limit_w", "throttle_reasons")
"""Readings that a card told to be `blind` does not report."""
_PAST_STEPS = 3600
"""Steps of the model whose counter is kept at least."""

# Nominal boost clock by compute capability, memory clock by memory type: of the size real ones are.
_BOOST_MHZ = {"8.0": 1410.0, "8.9": 2520.0, "9.0": 1830.0, "10.0": 1965.0, "12.0": 2415.0}
_MEMORY_MHZ = {
    "GDDR6": 9001.0,
    "GDDR6X": 10501.0,
    "GDDR7": 14001.0,
    "HBM2e": 1512.0,
    "HBM3": 2619.0,
    "HBM3e": 3201.0,
}


class SyntheticCard:
    """One synthetic card: a `Device`, and the load that its workload puts on it.

    All methods take session time, may be called from any thread, and advance the model as far as
    they need.
    """

    unit = UNIT
    """What `units_done` counts."""

    def __init__(
        self, profile: CardProfile, ordinal: int, seed: int, faults: Sequence[Fault] = ()
    ) -> None:
        """Start cold and idle at session time 0.

        Args:
            profile: the card it imitates.
            ordinal: its number among the synthetic cards of a run; no two are quite alike.
            seed: of everything random about it.
            faults: what happens to it, and when.

        Raises:
            UsageError: the profile has no figure to scale power or rate from, or the card cannot
                do what it is told.
        """
        self._faults = tuple(faults)
        chance = random.Random(f"{seed}/{profile.id}/{ordinal}")
        self._parameters = _parameters(profile, ordinal, chance)
        self._limit_c = _limit_c(profile, self._parameters, self._faults)
        self._on: frozenset[FaultKind] = frozenset()
        """The words in force at the model's last step."""
        self._is_blind = any(fault.kind == "blind" for fault in self._faults)
        self._profile = profile
        self._model = ThermalModel(self._parameters, chance)
        # Of its own: how often a card is read must not change what happens to it.
        self._sensor_noise = random.Random(chance.random())
        self._memory_mhz = _MEMORY_MHZ.get((profile.memory_type or "").partition(" ")[0])
        self._past_units = [0.0]
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._load_from_s: float | None = None
        self._load_until_s: float | None = None
        self._stuck: DeviceSample | None = None
        self.units_per_step = 1.0
        """Units a workload step, of about a tenth of a second; `units_done` counts whole ones."""
        self._take_up(BILLION_PARAMETERS)
        missing = {} if self._parameters.has_fan else {"fan_pct": "a passive card has no fan"}
        if self._is_blind:
            missing = dict.fromkeys(_UNSEEN, "the card was told not to report it")
        is_told, has_fan = not self._is_blind, self._parameters.has_fan
        from_start = self._under(lasting_kinds(f for f in self._faults if f.t_s == 0.0))
        self._info = DeviceInfo(
            device_id=f"synthetic-{ordinal}",
            uuid=f"SYNTHETIC-{profile.id.upper()}-{ordinal}",
            name=f"SYNTHETIC {profile.name}",
            kind="synthetic",
            provenance="synthetic",
            card=profile.id,
            memory_total_bytes=profile.memory_total_bytes,
            power_limit_w=from_start.power_limit_w if is_told else None,
            power_limit_default_w=self._parameters.power_limit_w if is_told else None,
            temperature_limit_c=from_start.temperature_limit_c if is_told else None,
            fan_max_pct=from_start.fan_max_pct if has_fan and is_told else None,
            sm_clock_max_mhz=self._parameters.boost_mhz,
            pcie_gen_max=profile.pcie_gen,
            pcie_width_max=profile.pcie_width,
            missing=missing,
        )

    @property
    def info(self) -> DeviceInfo:
        """What the card is."""
        return self._info

    def start_load(self, t_s: float, work: SyntheticWork = BILLION_PARAMETERS) -> None:
        """The workload begins at `t_s`.

        Args:
            t_s: session time.
            work: what each of its units costs.
        """
        with self._lock:
            self._advance(t_s)
            self._take_up(work)
            self._load_from_s, self._load_until_s = t_s, None

    def stop_load(self, t_s: float) -> None:
        """The workload ends at `t_s`."""
        with self._lock:
            self._advance(t_s)
            self._load_until_s = t_s

    def units_done(self, t_s: float) -> float:
        """Units finished up to `t_s`, in whole workload steps; goes on while `read` hangs.

        Exact for the last half hour: at high speed the thread that counts is session seconds
        behind the one that reads sensors.
        """
        with self._lock:
            self._advance(t_s)
            units = self._units_at(t_s)
            return units // self.units_per_step * self.units_per_step

    def asymptote(self) -> Asymptote:
        """Where the card ends up under its load and what it was told for good, without noise.

        The mean of its cycle where it goes through one. Evaluations are left out, as the judge
        leaves them out.
        """
        begin = sorted({0.0, *(fault.t_s for fault in self._faults)})
        return _asymptote(
            tuple(
                (t_s, self._under(lasting_kinds(f for f in self._faults if f.t_s <= t_s)))
                for t_s in begin
            )
        )

    def is_evaluating(self, t_s: float) -> bool:
        """Whether the workload is evaluating at session time `t_s` (the word `eval`)."""
        return "eval" in active_kinds(self._faults, t_s)

    def crash_s(self) -> float | None:
        """When the workload fails (the word `crash`), or None."""
        return min((f.t_s for f in self._faults if f.kind == "crash"), default=None)

    def read(self, t_s: float) -> DeviceSample:
        """One reading at session time `t_s`.

        Raises:
            DeviceLostError: the card was told to be lost by now.
        """
        if self._is_on("lost", t_s):
            raise DeviceLostError("the synthetic card was told to be lost")
        if self._is_on("hang", t_s):
            self._closed.wait()
        if self._is_on("dropout", t_s):
            return DeviceSample(t_s, self._info.device_id)
        with self._lock:
            self._advance(t_s)
            if self._is_on("stuck", t_s):
                if self._stuck is None:
                    self._stuck = self._sample(t_s)
                return replace(self._stuck, t_s=t_s)
            self._stuck = None
            return self._sample(t_s)

    def health(self) -> None:
        """Arithmetic has no defects to count."""

    def close(self) -> None:
        """Let go of the card; a reading that hangs returns."""
        self._closed.set()

    def _take_up(self, work: SyntheticWork) -> None:
        rate_per_s, exponent = _rate(self._profile, work)
        self._work = work
        self._parameters = replace(self._parameters, rate_per_s=rate_per_s, rate_exponent=exponent)
        self._model.parameters = self._under(self._on)
        self.units_per_step = 2.0 ** max(0, round(math.log2(0.1 * rate_per_s)))

    def _under(self, kinds: frozenset[FaultKind]) -> CardParameters:
        return changed(self._parameters, kinds, self._limit_c)

    def _is_on(self, kind: FaultKind, t_s: float) -> bool:
        return any(fault.kind == kind and fault.is_active(t_s) for fault in self._faults)

    def _units_at(self, t_s: float) -> float:
        """The counter at `t_s`, between the two steps around it."""
        past = self._past_units
        position = max(0.0, t_s / STEP_S - self._model.steps + len(past) - 1)
        before = min(int(position), len(past) - 1)
        after = min(before + 1, len(past) - 1)
        return past[before] + (past[after] - past[before]) * min(1.0, position - before)

    def _advance(self, t_s: float) -> None:
        """Step the model up to the first step at or after `t_s`."""
        model = self._model
        faults = self._faults
        while True:
            now_s = model.steps * STEP_S
            if now_s >= t_s:
                return
            start_s, end_s = self._load_from_s, self._load_until_s
            has_load = start_s is not None and start_s <= now_s
            if end_s is not None and end_s <= now_s:
                has_load = False
            if faults:
                on = active_kinds(faults, now_s)
                if on != self._on:
                    self._on = on
                    model.parameters = self._under(on)
                has_load = has_load and not is_unloaded(on)
            model.has_load = has_load
            model.step()
            self._past_units.append(model.units)
            if len(self._past_units) > 2 * _PAST_STEPS:
                del self._past_units[:-_PAST_STEPS]

    def _sample(self, t_s: float) -> DeviceSample:
        model = self._model
        reasons = []
        if model.is_power_capped:
            reasons.append("sw_power_cap")
        if model.is_thermal_capped:
            reasons.append("sw_thermal_slowdown")
        sensed = 1.0 + _SENSOR_NOISE_FRAC * self._sensor_noise.gauss(0.0, 1.0)
        total_bytes = self._info.memory_total_bytes
        used_bytes = self._work.memory_bytes if model.has_load else IDLE_MEMORY_BYTES
        sample = DeviceSample(
            t_s=t_s,
            device_id=self._info.device_id,
            power_w=round(model.power_average_w * sensed, 2),
            energy_j=round(model.energy_j, 3),
            temperature_c=float(round(model.die_c)),
            sm_clock_mhz=model.clock_mhz,
            mem_clock_mhz=self._memory_mhz,
            utilization_pct=100.0 if model.has_load else 0.0,
            memory_used_bytes=None if total_bytes is None else min(used_bytes, total_bytes),
            fan_pct=float(round(model.fan_pct)) if self._parameters.has_fan else None,
            power_limit_w=model.parameters.power_limit_w,
            throttle_reasons=tuple(reasons),
            pcie_gen=self._info.pcie_gen_max,
            pcie_width=self._info.pcie_width_max,
            pstate=1 if model.has_load else 8,
        )
        unseen: dict[str, Any] = dict.fromkeys(_UNSEEN) if self._is_blind else {}
        return replace(sample, **unseen)


@cache
def _asymptote(stages: tuple[tuple[float, CardParameters], ...]) -> Asymptote:
    return find_asymptote(stages)


def _limit_c(profile: CardProfile, parameters: CardParameters, faults: Sequence[Fault]) -> float:
    """The temperature limit of a card that was told to have one of its own.

    Raises:
        UsageError: it was told to turn a fan that it has not.
    """
    kinds = {fault.kind for fault in faults}
    if not parameters.has_fan and not kinds.isdisjoint(FAN_WORDS):
        raise UsageError(
            f"a synthetic {profile.id} is passive and has no fan; "
            f"{', '.join(sorted(FAN_WORDS))} need a card with one"
        )
    if kinds.isdisjoint(LIMIT_WORDS):
        return parameters.temperature_limit_c
    unlimited = changed(parameters, lasting_kinds(faults), math.inf)
    settled = _asymptote(((0.0, unlimited),))
    return math.floor(settled.temperature_c - LIMIT_BELOW_C)


def _rate(profile: CardProfile, work: SyntheticWork) -> tuple[float, float]:
    """Nominal units a second at the boost clock, and the power of the clock that they follow.

    Arithmetic on published figures, no claim: the lower of what the measured multiplication rate
    and what the bandwidth allow.
    """
    if profile.bf16_gemm_measured_flops is not None:
        flops = sum(profile.bf16_gemm_measured_flops) / 2.0
    elif profile.bandwidth_bytes_per_s is not None:
        flops = profile.bandwidth_bytes_per_s * FLOPS_PER_BYTE
    else:
        raise UsageError(
            f"card {profile.id} has neither a measured GEMM rate nor a bandwidth to scale a "
            "synthetic card from; add one to its profile"
        )
    compute_per_s = UTILIZATION_FRAC * flops / work.flops_per_unit
    if profile.bandwidth_bytes_per_s is not None and work.bytes_per_unit > 0:
        memory_per_s = BANDWIDTH_FRAC * profile.bandwidth_bytes_per_s / work.bytes_per_unit
        if memory_per_s < compute_per_s:
            return memory_per_s, MEMORY_BOUND_EXPONENT
    return compute_per_s, COMPUTE_BOUND_EXPONENT


def _parameters(profile: CardProfile, ordinal: int, chance: random.Random) -> CardParameters:
    limit_w = profile.power_w
    if limit_w is None:
        raise UsageError(
            f"card {profile.id} has no power_w to scale a synthetic card from; "
            "add it to its profile"
        )
    is_passive = (profile.tier or "").startswith("datacenter")
    spread = [1.0 + chance.uniform(-0.02, 0.02) for _ in range(3)]
    return CardParameters(
        power_limit_w=limit_w,
        idle_w=0.035 * limit_w,
        # Passive cards stay a little below their limit, so their power drifts and not their clock.
        dynamic_w=(0.74 if is_passive else 0.9) * limit_w,
        leak_w=0.15 * limit_w * spread[0],
        leak_scale_c=30.0,
        boost_mhz=_BOOST_MHZ.get(profile.compute_capability or "", 2010.0),
        idle_mhz=210.0,
        clock_exponent=2.4,
        clock_knee_c=50.0,
        clock_mhz_per_c=2.5,
        temperature_limit_c=87.0 if is_passive else 90.0,
        ambient_c=22.0 + 0.8 * ordinal,
        die_c_per_w=14.0 / limit_w,
        sink_c_per_w=25.5 * spread[1] / limit_w,
        case_c_per_w=(4.0 if is_passive else 7.0) * spread[2] / limit_w,
        die_tau_s=0.6,
        sink_tau_s=45.0 if is_passive else 100.0,
        case_tau_s=1200.0 if profile.tier == "pro_workstation" else 900.0,
        has_fan=not is_passive,
        rate_per_s=0.0,  # the workload's to say
        rate_exponent=COMPUTE_BOUND_EXPONENT,
        rate_noise_frac=0.005,
        power_noise_frac=0.004,
    )
