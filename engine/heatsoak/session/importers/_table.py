"""Rows of cells under a header that says what they are, whatever its order."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heatsoak.session.importers import _cells
from heatsoak.telemetry.nvml.reasons import decode_reasons
from heatsoak.telemetry.sample import READINGS, THROTTLE_REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

REPEATED, NO_TIME, NO_FIT = "repeated headers", "rows without a time", "rows that do not fit"
TORN, FOREIGN = "a last line that was cut off", "lines that are no row"
"""Why a line was skipped."""
TEXTS = ("device", "name", "driver_version")
"""What is taken as it is written."""
_KINDS = ("w", "c", "mhz", "pct", "bytes")
_WHOLE = {"pcie_gen", "pcie_width", "memory_used_bytes", "memory_total_bytes"}
_PLAUSIBLE = {"c": (-50.0, 126.0), "pct": (0.0, 1000.0), "w": (0.0, 1e5), "mhz": (0.0, 1e5)}
"""By kind: what a reading can be; 127 and 255 degrees are what sensors say that are not there."""


@dataclass(slots=True)
class Row:
    """One reading of one device."""

    time_s: float | None
    """Seconds since any origin; None where the log has no times."""
    has_day: bool
    device: str
    """What tells it from the other devices of the log; empty where the log tells none."""
    values: dict[str, Any]
    """Readings of `DeviceSample`, facts of `DeviceInfo`, and `rate` (units a second)."""
    odd: list[str] = field(default_factory=list)
    """Columns whose cell held a number that cannot be theirs."""


def split(line: str, delimiter: str = ",") -> list[str]:
    """The cells of a line, without the blanks around them and without empty ones at its end."""
    if '"' in line:
        try:
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error:
            return []
    else:
        cells = line.split(delimiter)
    cells = [cell.strip() for cell in cells]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def delimiter_of(line: str) -> str:
    """What stands between the cells of a header."""
    return max(",;\t", key=line.count)


def title(cell: str) -> tuple[str, str]:
    """Name in small letters and unit of a column: `Power [W]`, `power.draw`."""
    match = re.fullmatch(r"(.*?)\s*\[([^\]]*)\]", cell.strip())
    return (match[1].strip().lower(), match[2].strip()) if match else (cell.strip().lower(), "")


class Table:
    """What the columns of one header mean."""

    def __init__(self, header: Sequence[str], meanings: Mapping[str, str]) -> None:
        """Find the columns.

        Args:
            header: cells of the header.
            meanings: by name of a column in small letters what it is; of several that are the same
                the one that stands first here counts, then the leftmost.
        """
        self.header = list(header)
        ranks = {name: rank for rank, name in enumerate(meanings)}
        best: dict[str, tuple[int, int, str]] = {}
        self.reasons: list[tuple[int, str]] = []
        for at, cell in enumerate(header):
            name, unit = title(cell)
            target = meanings.get(name)
            if target is None:
                continue
            if target.startswith("reason:"):
                self.reasons.append((at, target.removeprefix("reason:")))
            elif target not in best or ranks[name] < best[target][0]:
                best[target] = (ranks[name], at, unit)
        self.columns = {target: (at, unit) for target, (_, at, unit) in best.items()}

    @property
    def readings(self) -> list[str]:
        """The readings that it has a column for."""
        found = [name for name in self.columns if name in READINGS or name == "rate"]
        return found + (["throttle_reasons"] if self.reasons or "mask" in self.columns else [])

    def row(self, cells: Sequence[str]) -> Row | str:
        """What a row says, or why it cannot be used."""
        if len(cells) > len(self.header):
            return NO_FIT
        last = max((at for at, _ in self.columns.values()), default=0)
        if len(cells) <= last and len(cells) < len(self.header) - 1:
            return NO_FIT
        row = Row(None, False, "", {})
        if "time" in self.columns:
            when = self._cell(cells, "time")
            if "date" in self.columns:
                when = f"{self._cell(cells, 'date')} {when}"
            found = _cells.instant(when)
            if found is None:
                return NO_TIME
            row.time_s, row.has_day = found
        self._read(cells, row)
        return row

    def _cell(self, cells: Sequence[str], target: str) -> str:
        at = self.columns[target][0]
        return cells[at] if at < len(cells) else ""

    def _read(self, cells: Sequence[str], row: Row) -> None:
        for target, (at, unit) in self.columns.items():
            if target in ("time", "date") or at >= len(cells):
                continue
            cell = cells[at]
            if target == "device":
                row.device = cell
            elif target in TEXTS:
                row.values[target] = cell or None
            elif target == "mask":
                row.values["throttle_reasons"] = _mask(cell)
            elif target == "pstate":
                row.values[target] = int(cell[1:]) if re.fullmatch(r"P\d{1,2}", cell) else None
            else:
                row.values[target] = _number(target, cell, unit, row)
        if self.reasons and "mask" not in self.columns:
            said = {name: cells[at].lower() for at, name in self.reasons if at < len(cells)}
            if any(word in ("active", "not active") for word in said.values()):
                active = {name for name, word in said.items() if word == "active"}
                row.values["throttle_reasons"] = tuple(r for r in THROTTLE_REASONS if r in active)
            else:
                row.values["throttle_reasons"] = None


def _number(target: str, cell: str, unit: str, row: Row) -> float | int | None:
    kind = target.rpartition("_")[2]
    kind = kind if kind in _KINDS else ""
    try:
        value = _cells.number(cell, kind, unit)
    except ValueError:
        row.odd.append(target)
        return None
    if value is None:
        return None
    low, high = _PLAUSIBLE.get(kind, (0.0, 1e18))
    if not low <= value <= high:
        row.odd.append(target)
        return None
    return round(value) if target in _WHOLE else value


def _mask(cell: str) -> tuple[str, ...] | None:
    return decode_reasons(int(cell, 16)) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", cell) else None


def table_rows(
    lines: Iterable[str],
    meanings: Mapping[str, str],
    is_header: Callable[[Sequence[str]], bool],
    columns: Sequence[str] | None,
    make: Callable[[Sequence[str]], Sequence[Table]] | None = None,
) -> Iterator[Row | str]:
    """The rows of lines of cells, each a `Row` or the reason why it was skipped.

    Args:
        lines: the lines.
        meanings: see `Table`.
        is_header: whether the cells of a line are a header.
        columns: names of the columns in place of any header.
        make: the tables of a header, one a device; None: one.
    """
    tables: Sequence[Table] = [Table(columns, meanings)] if columns else []
    delimiter, header = "", list(columns or [])
    for line in lines:
        if line == "\0":
            yield TORN
            continue
        if not line.strip():
            continue
        delimiter = delimiter or delimiter_of(line)
        cells = split(line, delimiter)
        if is_header(cells):
            delimiter = delimiter_of(line)
            cells = split(line, delimiter)
            if cells == header or columns:
                yield REPEATED
                continue
            tables = make(cells) if make else [Table(cells, meanings)]
            header = cells
        elif not tables:
            yield FOREIGN
        else:
            for at, table in enumerate(tables):
                row = table.row(cells)
                if isinstance(row, Row) and len(tables) > 1:
                    row.device = row.device or str(at)
                yield row
                if isinstance(row, str):
                    break
