"""The plain CSV log: one row a device and reading, SI units in the names of its columns.

Columns: `t_s, device, power_w, energy_j, temperature_c, sm_clock_mhz, mem_clock_mhz,
utilization_pct, fan_pct, fan_max_pct, temperature_limit_c, power_limit_w, throttle_reasons` (joined
by `|`), `units_done` (cumulative) and `paused_frac` (share of the second up to `t_s` in which the
workload said it was not training). An empty cell is not reported; any column but `t_s` may be
absent.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

DEFAULT_DEVICE = "log-0"
"""The device of a log without the column."""
NUMBERS = (
    "power_w", "energy_j", "temperature_c", "sm_clock_mhz", "mem_clock_mhz", "utilization_pct",
    "fan_pct", "power_limit_w",
)  # fmt: skip
ROW_S = 1.0
"""The span that `paused_frac` speaks of."""


@dataclass(slots=True)
class DeviceLog:
    """What a log says of one device, in the order of its rows."""

    info: DeviceInfo
    samples: list[DeviceSample] = field(default_factory=list)
    steps: list[tuple[float, float]] = field(default_factory=list)
    """(t_s, units_done)"""
    phases: list[tuple[float, str]] = field(default_factory=list)
    """(t_s, phase)"""
    skipped_rows: int = 0
    """Rows without a readable time."""


def read(path: Path) -> list[DeviceLog]:
    """The devices of a log, in the order in which they appear.

    Raises:
        UsageError: the file cannot be read or has no column `t_s`.
    """
    logs: dict[str, DeviceLog] = {}
    for row in _rows(path):
        name = row.get("device") or DEFAULT_DEVICE
        if name not in logs:
            logs[name] = DeviceLog(_info(name, row))
        _take(row, name, logs[name])
    if not logs:
        raise UsageError(f"{path} holds no reading")
    return list(logs.values())


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if "t_s" not in (reader.fieldnames or ()):
                raise UsageError(f"{path} has no column t_s; it is no log that can be judged")
            yield from reader
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} is no CSV log: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _info(name: str, row: Mapping[str, str]) -> DeviceInfo:
    return DeviceInfo(
        device_id=name,
        uuid=name,
        name=name,
        kind="nvidia",
        provenance="imported",
        power_limit_w=_number(row.get("power_limit_w")),
        temperature_limit_c=_number(row.get("temperature_limit_c")),
        fan_max_pct=_number(row.get("fan_max_pct")),
    )


def _take(row: Mapping[str, str], name: str, log: DeviceLog) -> None:
    t_s = _number(row["t_s"])
    if t_s is None:
        log.skipped_rows += 1
        return
    reasons = row.get("throttle_reasons")
    log.samples.append(
        DeviceSample(
            t_s=t_s,
            device_id=name,
            throttle_reasons=None if reasons is None else tuple(filter(None, reasons.split("|"))),
            **{column: _number(row.get(column)) for column in NUMBERS},  # type: ignore[arg-type]
        )
    )
    units = _number(row.get("units_done"))
    if units is not None:
        log.steps.append((t_s, units))
    paused = _number(row.get("paused_frac"))
    if paused is not None:
        _pause(log.phases, t_s, min(1.0, max(0.0, paused)))


def _pause(phases: list[tuple[float, str]], t_s: float, paused_frac: float) -> None:
    """Turn the paused share of one second into the edge that lies in it."""
    is_paused = bool(phases) and phases[-1][1] != "train"
    begin_s = t_s - ROW_S
    if not phases:
        phases.append((begin_s, "eval" if paused_frac >= 1.0 else "train"))
        is_paused = paused_frac >= 1.0
    if not is_paused and paused_frac > 0.0:
        phases.append((t_s - paused_frac * ROW_S, "eval"))
    elif is_paused and paused_frac < 1.0:
        phases.append((begin_s + paused_frac * ROW_S, "train"))


def _number(text: str | None) -> float | None:
    """The number of a cell; None for an empty one and for one that is no number."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
