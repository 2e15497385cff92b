"""`nvidia-smi --query-gpu=... --format=csv`, with or without units and header, old and new names.

Driver 535 renamed `clocks_throttle_reasons.*` to `clocks_event_reasons.*` and parted `power.draw`
into `power.draw.average` and `power.draw.instant` (`nvidia-smi --help-query-gpu`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from heatsoak.session.importers import _table
from heatsoak.telemetry.sample import THROTTLE_REASONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABEL = "nvidia-smi --query-gpu CSV"
MEANINGS = {
    "timestamp": "time",
    "uuid": "device", "gpu_uuid": "device", "pci.bus_id": "device", "gpu_bus_id": "device",
    "index": "device",
    "name": "name", "gpu_name": "name",
    "driver_version": "driver_version",
    "power.draw": "power_w", "power.draw.average": "power_w", "average_power_draw": "power_w",
    "gpu_power_draw": "power_w", "module.power.draw.average": "module_power_w",
    "power.draw.instant": "power_instant_w", "instant_power_draw": "power_instant_w",
    "enforced.power.limit": "power_limit_w", "power.limit": "power_limit_w",
    "current_power_limit": "power_limit_w",
    "power.default_limit": "power_limit_default_w",
    "temperature.gpu": "temperature_c", "temperature.memory": "memory_temperature_c",
    "temperature.gpu.tlimit": "temperature_margin_c",
    "clocks.sm": "sm_clock_mhz", "clocks.current.sm": "sm_clock_mhz",
    "clocks.gr": "sm_clock_mhz", "clocks.current.graphics": "sm_clock_mhz",
    "clocks.mem": "mem_clock_mhz", "clocks.current.memory": "mem_clock_mhz",
    "utilization.gpu": "utilization_pct", "fan.speed": "fan_pct",
    "memory.used": "memory_used_bytes", "memory.total": "memory_total_bytes",
    "pstate": "pstate",
    "pcie.link.gen.gpucurrent": "pcie_gen", "pcie.link.gen.current": "pcie_gen",
    "pcie.link.width.current": "pcie_width",
    "clocks_event_reasons.active": "mask", "clocks_throttle_reasons.active": "mask",
} | {
    f"clocks_{word}_reasons.{name}": f"reason:{name}"
    for word in ("event", "throttle") for name in THROTTLE_REASONS
}  # fmt: skip
_NAME = re.compile(r"[a-z_]+(\.[a-z_]+)*")
_HEADLESS = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}[,;] ")


def claims(head: Sequence[str]) -> bool:
    """Whether the first lines of a log are of this form."""
    return any(
        _is_header(_table.split(line, _table.delimiter_of(line))) or _HEADLESS.match(line)
        for line in head
    )


def rows(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[_table.Row | str]:
    """Its rows; see `_table.table_rows`."""
    return _table.table_rows(lines, MEANINGS, _is_header, columns)


def _is_header(cells: Sequence[str]) -> bool:
    names = [_table.title(cell)[0] for cell in cells]
    known = [name for name in names if name in MEANINGS and "." in name]
    return bool(known) and all(_NAME.fullmatch(name) for name in names)
