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
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.steady_state.times import in_time
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

DEFAULT_DEVICE = "log-0"
"""The device of a log without the column."""
NUMBERS = (
    "power_w", "energy_j", "temperature_c", "sm_clock_mhz", "mem_clock_mhz", "utilization_pct",
    "fan_pct", "power_limit_w",
)  # fmt: skip
ROW_S = 1.0
"""The span that `paused_frac` speaks of."""
PHASE, SAMPLE, STEPS = 0, 1, 2
"""Kinds of what a row tells, in the order in which it is told."""


@dataclass(slots=True)
class DeviceLog:
    """What a log says of one device, in the order of its rows.

    Cells become readings only when they are asked for: a judge has as a rule seen enough after a
    fraction of a long log.
    """

    info: DeviceInfo
    columns: Mapping[str, int]
    """Where each column is in a row."""
    rows: list[tuple[float, list[str]]] = field(default_factory=list)
    """(t_s, cells), those whose time goes on."""
    skipped_rows: int = 0
    """Rows without a readable time, or with one that goes back or jumps ahead alone."""

    def told(self) -> Iterator[tuple[float, int, Any]]:
        """All it tells in the order of time: `(t_s, kind, ...)`.

        After a `PHASE` the phase, after a `SAMPLE` the `DeviceSample`, after `STEPS` the counter.
        """
        where = self.columns
        numbers = [(name, where[name]) for name in NUMBERS if name in where]
        reasons_at, units_at = where.get("throttle_reasons"), where.get("units_done")
        paused_at = where.get("paused_frac")
        name, phase = self.info.device_id, ""
        for t_s, cells in self.rows:
            paused = _cell(cells, paused_at)
            if paused is not None:
                for edge_s, entered in _edges(phase, t_s, min(1.0, max(0.0, paused))):
                    yield edge_s, PHASE, entered
                    phase = entered
            readings = {column: _cell(cells, at) for column, at in numbers}
            reasons = None
            if reasons_at is not None and reasons_at < len(cells):
                reasons = tuple(filter(None, cells[reasons_at].split("|")))
            sample = DeviceSample(t_s, name, throttle_reasons=reasons, **readings)  # type: ignore[arg-type]
            yield t_s, SAMPLE, sample
            units = _cell(cells, units_at)
            if units is not None:
                yield t_s, STEPS, units

    @property
    def has_counter(self) -> bool:
        """Whether any row counts units."""
        at = self.columns.get("units_done")
        return any(_cell(cells, at) is not None for _, cells in self.rows)

    @property
    def samples(self) -> list[DeviceSample]:
        """All readings."""
        return [what for _, kind, what in self.told() if kind == SAMPLE]

    @property
    def steps(self) -> list[tuple[float, float]]:
        """All counters: (t_s, units_done)."""
        return [(t_s, what) for t_s, kind, what in self.told() if kind == STEPS]

    @property
    def phases(self) -> list[tuple[float, str]]:
        """All changes of phase: (t_s, phase)."""
        return [(t_s, what) for t_s, kind, what in self.told() if kind == PHASE]


def read(path: Path) -> list[DeviceLog]:
    """The devices of a log, in the order in which they appear.

    Raises:
        UsageError: the file cannot be read or has no column `t_s`.
    """
    logs: dict[str, DeviceLog] = {}
    columns: dict[str, int] = {}
    for cells in _lines(path):
        if not columns:
            columns = {name: at for at, name in enumerate(cells)}
            if "t_s" not in columns:
                break
            continue
        device_at = columns.get("device")
        has_name = device_at is not None and device_at < len(cells)
        name = (cells[device_at] if device_at is not None and has_name else "") or DEFAULT_DEVICE
        if name not in logs:
            logs[name] = DeviceLog(_info(name, columns, cells), columns)
        log = logs[name]
        t_s = _cell(cells, columns["t_s"])
        if t_s is None:
            log.skipped_rows += 1
        else:
            log.rows.append((t_s, cells))
    if "t_s" not in columns:
        raise UsageError(f"{path} has no column t_s; it is no log that can be judged")
    if not logs:
        raise UsageError(f"{path} holds no reading")
    for log in logs.values():
        kept = list(in_time(log.rows, lambda row: row[0]))
        log.skipped_rows += len(log.rows) - len(kept)
        log.rows = kept
    return list(logs.values())


def _lines(path: Path) -> Iterator[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from filter(None, csv.reader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} is no CSV log: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _info(name: str, columns: Mapping[str, int], cells: list[str]) -> DeviceInfo:
    return DeviceInfo(
        device_id=name,
        uuid=name,
        name=name,
        kind="nvidia",
        provenance="imported",
        power_limit_w=_cell(cells, columns.get("power_limit_w")),
        temperature_limit_c=_cell(cells, columns.get("temperature_limit_c")),
        fan_max_pct=_cell(cells, columns.get("fan_max_pct")),
    )


def _edges(phase: str, t_s: float, paused_frac: float) -> Iterable[tuple[float, str]]:
    """The edge that lies in the second before `t_s`, by how much of it was paused.

    Args:
        phase: what the job was in before, empty at first.
        t_s: end of the second.
        paused_frac: share of it.
    """
    begin_s = t_s - ROW_S
    if not phase:
        phase = "eval" if paused_frac >= 1.0 else "train"
        yield begin_s, phase
    if phase == "train" and paused_frac > 0.0:
        yield t_s - paused_frac * ROW_S, "eval"
    elif phase != "train" and paused_frac < 1.0:
        yield begin_s + paused_frac * ROW_S, "train"


def _cell(cells: list[str], at: int | None) -> float | None:
    """The number of a cell; None for an empty or absent one and for one that is no number."""
    if at is None or at >= len(cells) or not cells[at]:
        return None
    try:
        value = float(cells[at])
    except ValueError:
        return None
    return value if isfinite(value) else None
