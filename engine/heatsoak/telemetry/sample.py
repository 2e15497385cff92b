"""One reading of one device at one instant."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class DeviceSample:
    """One reading; None means the device does not report the field, and is never 0."""

    t_s: float
    """Session time of the reading, in seconds."""
    device_id: str
    """The device, as `DeviceInfo.device_id`."""
    power_w: float | None = None
    """Power (`nvidia-smi`: power.draw), averaged as `DeviceInfo.power_method` says and of what
    `DeviceInfo.power_scope` says; CPU: package."""
    energy_j: float | None = None
    """Total energy counter since an arbitrary origin; may restart
    (`nvmlDeviceGetTotalEnergyConsumption`)."""
    temperature_c: float | None = None
    """GPU die (`temperature.gpu`) or CPU package temperature."""
    sm_clock_mhz: float | None = None
    """SM clock (`clocks.sm`); CPU: mean core frequency."""
    mem_clock_mhz: float | None = None
    """Memory clock (`clocks.mem`)."""
    utilization_pct: float | None = None
    """Share of time with a kernel running (`utilization.gpu`); CPU: load of all cores."""
    memory_used_bytes: int | None = None
    """Memory in use (`memory.used`); CPU: host memory."""
    fan_pct: float | None = None
    """Fan speed of the fastest fan (`fan.speed`)."""
    power_limit_w: float | None = None
    """Enforced power limit (`enforced.power.limit`)."""
    throttle_reasons: tuple[str, ...] | None = None
    """Reasons that hold the clock down now (`clocks_event_reasons.active`): names of
    `THROTTLE_REASONS`, an unknown bit as hex; () when nothing does, None when not reported."""
    pcie_gen: int | None = None
    """Current PCIe generation (`pcie.link.gen.current`)."""
    pcie_width: int | None = None
    """Current PCIe lanes (`pcie.link.width.current`)."""
    pstate: int | None = None
    """Performance state, 0 is the highest (`pstate`)."""
    power_instant_w: float | None = None
    """Power at this instant (`power.draw.instant`), where the driver tells it apart from
    `power_w`, which is then an average over about a second."""
    memory_temperature_c: float | None = None
    """Temperature of the memory (`temperature.memory`), where NVML itself reports it."""
    temperature_margin_c: float | None = None
    """How many degrees the device may still warm before it slows itself down
    (`temperature.gpu.tlimit`); read only where no absolute limit is known, and 0 or less once it
    has been reached."""
    rejected: tuple[tuple[str, float], ...] = ()
    """What the driver answered that cannot be (127 degrees, the largest integer): the reading,
    which is None, and the driver's number. Not recorded: the sampler tells of it once."""


THROTTLE_REASONS = (
    "sw_power_cap",
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sync_boost",
)
"""Names of the reasons, as `nvidia-smi` spells them. Idle, application-clock and display-clock bits
are states, not throttling, and are left out."""

READING_NAMES = {
    "power_w": "power",
    "energy_j": "energy counter",
    "temperature_c": "temperature",
    "sm_clock_mhz": "clock",
    "mem_clock_mhz": "memory clock",
    "fan_pct": "fan",
    "utilization_pct": "utilization",
    "memory_used_bytes": "memory",
    "power_limit_w": "power limit",
    "throttle_reasons": "throttle reasons",
    "pcie_gen": "PCIe generation",
    "pcie_width": "PCIe width",
    "pstate": "performance state",
    "power_instant_w": "instant power",
    "memory_temperature_c": "memory temperature",
    "temperature_margin_c": "temperature margin",
}
"""What a user calls each reading."""
READINGS = tuple(
    f.name for f in fields(DeviceSample) if f.name not in ("t_s", "device_id", "rejected")
)
"""Names of the readings, in the order of their columns in the session file."""
