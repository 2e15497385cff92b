"""What a device is, and the protocol every vendor's device follows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heatsoak.telemetry.health import DeviceHealth
    from heatsoak.telemetry.sample import DeviceSample

Kind = Literal["nvidia", "cpu", "synthetic"]
Provenance = Literal["measured", "synthetic", "imported"]
PowerMethod = Literal["average", "instant"]
PowerScope = Literal["gpu", "module"]
MemoryKind = Literal["framebuffer", "unified"]


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
    cuda_version: str | None = None
    """Newest CUDA the driver runs (`nvidia-smi`: CUDA Version), such as `12.8`."""
    power_method: PowerMethod | None = None
    """What `power_w` is: an average over about a second, or instantaneous; None: not known."""
    power_scope: PowerScope | None = None
    """What the watts and joules are of: the card, or a whole module with its CPU (Grace); None
    for what is no GPU."""
    memory_kind: MemoryKind | None = None
    """`unified`: the GPU has no memory of its own, `memory_total_bytes` is the host's."""
    integrated: bool = False
    """Part of a chip with a CPU (GB10): no memory of its own, no PCIe link worth showing."""
    compute_capability: str | None = None
    """Such as `12.0` (`compute_cap`)."""
    vbios: str | None = None
    """Firmware version (`vbios_version`)."""
    ecc_is_on: bool | None = None
    """Error correction of the memory (`ecc.mode.current`)."""
    persistence: bool | None = None
    """Whether the driver stays loaded without users (`persistence_mode`)."""
    application_clock_mhz: float | None = None
    """SM clock that somebody asked for (`clocks.applications.graphics`)."""
    application_clock_default_mhz: float | None = None
    """What it is unless somebody asks (`clocks.default_applications.graphics`)."""
    sm_clock_is_held: bool | None = None
    """Whether application or locked clocks held the SM clock when the device was opened
    (`clocks_event_reasons.applications_clocks_setting`)."""
    numa_node: int | None = None
    """NUMA node of the host that the card is attached to."""
    mig_mode: bool | None = None
    """Whether the card is split into MIG devices (`mig.mode.current`)."""
    mig_parent_uuid: str | None = None
    """For a MIG device the card it is part of, whose power, temperature and clocks it reports."""
    mig_profile: str | None = None
    """Size of a MIG device, such as `3g.40gb`."""
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

    def health(self) -> DeviceHealth | None:
        """What the device counted of its own defects, or None for a kind that counts none.

        May block as `read` does.

        Raises:
            DeviceLostError: the device is gone.
        """
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...
