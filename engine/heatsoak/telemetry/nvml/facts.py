"""What a card is: asked once, when it is opened."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak.profiles.cards import card_for_name
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.meminfo import host_memory
from heatsoak.telemetry.nvml.errors import ask
from heatsoak.telemetry.nvml.poll import Poll
from heatsoak.telemetry.nvml.reasons import APPLICATION_CLOCKS

if TYPE_CHECKING:
    from types import ModuleType

    from heatsoak.telemetry.device import PowerMethod
    from heatsoak.telemetry.nvml.slices import Slice

NOT_AVAILABLE = (0xFFFFFFFF, (1 << 64) - 1)
"""The largest integers, with which drivers say "none"."""
_INTEGRATED = re.compile(r"(NVIDIA )?(GB10|Thor|Orin|Xavier|Tegra|Jetson)\b.*")
"""Whole names of parts without memory of their own (DGX Spark, Jetson); no other is treated so."""
_SUPERCHIP = re.compile(r"\bG[HB]\d{3}\b.*")
"""Grace and its GPU on one module, as older drivers let it be known: by name alone."""
_CLOCK_SM = 1
_THRESHOLD_SLOWDOWN, _THRESHOLD_GPU_MAX = 1, 3
_THRESHOLDS_C = (50.0, 126.0)
"""Newer cards answer with a margin such as -2, which is no temperature."""
_GA100 = (8, 0)
_AMPERE = (8, 0)


def describe(
    nvml: ModuleType,
    handle: object,
    index: int,
    part: Slice | None = None,
    root: Path = Path("/"),
) -> tuple[DeviceInfo, Poll]:
    """What a card or a slice of it is, and the queries that read it.

    Args:
        nvml: the loaded library.
        handle: of the card.
        index: NVML's number of it.
        part: the MIG device that is meant, or None; everything but its memory is the card's.
        root: of the file system that /proc and /sys are read from.

    Raises:
        DeviceLostError: the card is gone.
        NVMLError: it has no UUID.
    """
    known = partial(_known, nvml, handle)
    name = _text(known("nvmlDeviceGetName")) or "NVIDIA card of unknown name"
    is_integrated = _INTEGRATED.fullmatch(name) is not None
    limit_c = _temperature_limit_c(nvml, handle)
    hidden = {}
    if limit_c is not None:
        hidden["temperature_margin_c"] = "the limit itself is known"
    if is_integrated:
        hidden |= dict.fromkeys(("pcie_gen", "pcie_width"), "part of a chip: no PCIe link")
    if part is not None:
        hidden["utilization_pct"] = "not reported of a part of a card"
    poll = Poll(
        nvml,
        handle,
        hidden=hidden,
        is_superchip=_is_superchip(nvml, handle, name),
        memory_handle=None if part is None else part.handle,
        host_memory_used=partial(_host_memory_used, root) if is_integrated else None,
    )
    memory = host_memory(root)[0] if is_integrated else _memory_total(nvml, handle)
    card = card_for_name(name, memory)
    capability = known("nvmlDeviceGetCudaComputeCapability")
    cuda, _ = ask(nvml, "nvmlSystemGetCudaDriverVersion")
    bus_id = _bus_id(nvml, handle)
    has_power = "power_w" not in poll.missing
    info = DeviceInfo(
        device_id=str(index),
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=name,
        kind="nvidia",
        provenance="measured",
        card=None if card is None else card.id,
        index=index,
        memory_total_bytes=memory,
        power_limit_w=_watts(known("nvmlDeviceGetEnforcedPowerLimit")),
        power_limit_default_w=_watts(known("nvmlDeviceGetPowerManagementDefaultLimit")),
        temperature_limit_c=limit_c,
        fan_max_pct=_fan_max_pct(nvml, handle) if "fan_pct" not in poll.missing else None,
        sm_clock_max_mhz=_number(known("nvmlDeviceGetMaxClockInfo", _CLOCK_SM)),
        pci_bus_id=bus_id,
        pcie_gen_max=None if is_integrated else known("nvmlDeviceGetMaxPcieLinkGeneration"),
        pcie_width_max=None if is_integrated else known("nvmlDeviceGetMaxPcieLinkWidth"),
        driver_version=_text(ask(nvml, "nvmlSystemGetDriverVersion")[0]),
        cuda_version=None if not cuda else f"{cuda // 1000}.{cuda % 1000 // 10}",
        power_method=_power_method(poll, capability) if has_power else None,
        power_scope=("gpu" if poll.power_is_of_gpu else "module") if has_power else None,
        memory_kind="unified" if is_integrated else "framebuffer",
        integrated=is_integrated,
        compute_capability=None if capability is None else "{}.{}".format(*capability),
        vbios=_text(known("nvmlDeviceGetVbiosVersion")),
        ecc_is_on=_first_flag(known("nvmlDeviceGetEccMode")),
        persistence=_flag(known("nvmlDeviceGetPersistenceMode")),
        application_clock_mhz=_number(known("nvmlDeviceGetApplicationsClock", _CLOCK_SM)),
        application_clock_default_mhz=_number(
            known("nvmlDeviceGetDefaultApplicationsClock", _CLOCK_SM)
        ),
        sm_clock_is_held=None if poll.mask is None else bool(poll.mask & APPLICATION_CLOCKS),
        numa_node=None if bus_id is None else _numa_node(root, bus_id),
        mig_mode=_first_flag(known("nvmlDeviceGetMigMode")),
        missing=dict(poll.missing),
    )
    return (info if part is None else _of_slice(nvml, info, part)), poll


def _of_slice(nvml: ModuleType, card: DeviceInfo, part: Slice) -> DeviceInfo:
    """What is a MIG device's own, and the rest from its card."""
    name = _text(ask(nvml, "nvmlDeviceGetName", part.handle)[0]) or f"{card.name} MIG"
    _, mark, profile = name.partition(" MIG ")
    return replace(
        card,
        device_id=f"{card.index}:{part.number}",
        uuid=part.uuid,
        name=name,
        card=None,  # What a whole card costs and reaches is not true of its part.
        memory_total_bytes=_memory_total(nvml, part.handle),
        mig_parent_uuid=card.uuid,
        mig_profile=profile if mark else None,
    )


def _known(nvml: ModuleType, handle: object, name: str, *arguments: int) -> Any:  # noqa: ANN401
    """What a function of the card answers once, or None."""
    answer, _ = ask(nvml, name, handle, *arguments)
    return None if answer in NOT_AVAILABLE else answer


def _text(answer: str | bytes | None) -> str | None:
    return answer.decode() if isinstance(answer, bytes) else answer


def _number(answer: int | None) -> float | None:
    return None if answer is None else float(answer)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _flag(answer: int | None) -> bool | None:
    return None if answer is None else bool(answer)


def _first_flag(answer: list[int] | None) -> bool | None:
    """Of a current and a pending mode the current."""
    return None if answer is None else bool(answer[0])


def _memory_total(nvml: ModuleType, handle: object) -> int | None:
    memory, _ = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    return None if memory is None or memory.total in (0, *NOT_AVAILABLE) else int(memory.total)


def _temperature_limit_c(nvml: ModuleType, handle: object) -> float | None:
    """The lower of the two thresholds at which the card slows itself down."""
    low_c, high_c = _THRESHOLDS_C
    known = [
        float(value)
        for threshold in (_THRESHOLD_GPU_MAX, _THRESHOLD_SLOWDOWN)
        if (value := ask(nvml, "nvmlDeviceGetTemperatureThreshold", handle, threshold)[0])
        and low_c <= value <= high_c
    ]
    return min(known, default=None)


def _fan_max_pct(nvml: ModuleType, handle: object) -> float | None:
    limits, _ = ask(nvml, "nvmlDeviceGetMinMaxFanSpeed", handle)
    return None if limits is None else float(limits[1])


def _bus_id(nvml: ModuleType, handle: object) -> str | None:
    pci, _ = ask(nvml, "nvmlDeviceGetPciInfo", handle)
    return None if pci is None else _text(pci.busId)


def _power_method(poll: Poll, capability: tuple[int, int] | None) -> PowerMethod | None:
    """What the plain reading of power is.

    Where the driver does not tell the two apart, NVML's documentation does: an average over a
    second on Ampere and newer except GA100, instantaneous there and before.
    """
    if poll.power_is_average is not None:
        return "average" if poll.power_is_average else "instant"
    if capability is None:
        return None
    return "average" if tuple(capability) >= _AMPERE and capability != _GA100 else "instant"


def _is_superchip(nvml: ModuleType, handle: object, name: str) -> bool:
    """Whether a CPU shares the module: the driver calls the link between them C2C."""
    mode, _ = ask(nvml, "nvmlDeviceGetC2cModeInfoV", handle)
    if mode is not None:
        return bool(mode.isC2cEnabled)
    return _SUPERCHIP.search(name) is not None


def _host_memory_used(root: Path) -> int | None:
    total, free = host_memory(root)
    return None if total is None or free is None else total - free


def _numa_node(root: Path, bus_id: str) -> int | None:
    """The host's NUMA node that a PCI slot belongs to; None where there is only one (-1)."""
    domain, _, rest = bus_id.lower().partition(":")
    slot = f"{domain[-4:]}:{rest}"
    try:
        node = int((root / "sys/bus/pci/devices" / slot / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None
