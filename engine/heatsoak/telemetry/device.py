"""What a device is, and the protocol every vendor's device follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heatsoak.telemetry.sample import DeviceSample

Kind = Literal["nvidia", "cpu", "synthetic"]
Provenance = Literal["measured", "synthetic", "imported"]


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What does not change while a device is watched; None where it is not reported."""

    device_id: str
    """Name within a session and on the command line: `0`, `1`, `cpu`, `synthetic-0`."""
    uuid: str
    """What identifies the very device: NVML UUID, `cpu-HOSTNAME`, `SYNTHETIC-CARD-N`."""
    name: str
    """Whole marketing name as the driver says it; a synthetic card's starts with `SYNTHETIC `."""
    kind: Kind
    provenance: Provenance
    card: str | None = None
    """Id of the card profile that matches the whole name, or None."""
    index: int | None = None
    """NVML index (PCI order), or None."""
    memory_total_bytes: int | None = None
    cores: int | None = None
    """Logical cores, for a CPU."""
    power_limit_w: float | None = None
    """Enforced power limit when the run began."""
    power_limit_default_w: float | None = None
    temperature_limit_c: float | None = None
    """Temperature at which the device slows itself down."""
    fan_max_pct: float | None = None
    sm_clock_max_mhz: float | None = None
    pci_bus_id: str | None = None
    pcie_gen_max: int | None = None
    pcie_width_max: int | None = None
    driver_version: str | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """Readings the device does not report, each with the reason in words."""


class DeviceLostError(Exception):
    """The device is gone for good (NVML: GPU is lost, not found); the text says how it was seen."""


class DeviceReadError(Exception):
    """This reading failed as a whole; the next may succeed."""


class Device(Protocol):
    """One device that can be read. `read` may block for ever: the sampler copes with it."""

    @property
    def info(self) -> DeviceInfo:
        """What the device is."""
        ...

    def read(self, t_s: float) -> DeviceSample:
        """One reading, stamped `t_s`.

        Raises:
            DeviceLostError: the device is gone.
            DeviceReadError: nothing could be read this time.
        """
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...
