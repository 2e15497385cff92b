"""GPU-Z's sensor log: cells padded with blanks, Latin-1, a header for each time it was started.

What it calls a performance cap is a code of its own and is left absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.session.importers import _table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABEL = "GPU-Z sensor log"
MEANINGS = {
    "date": "time",
    "board power draw": "power_w", "power consumption (w)": "power_w",
    "gpu power draw": "power_w", "gpu chip power draw": "power_w",
    "gpu temperature": "temperature_c", "memory temperature": "memory_temperature_c",
    "gpu clock": "sm_clock_mhz", "gpu core clock": "sm_clock_mhz", "memory clock": "mem_clock_mhz",
    "gpu load": "utilization_pct",
    "memory used": "memory_used_bytes", "memory used (dedicated)": "memory_used_bytes",
    "fan speed (%)": "fan_pct", "fan 1 speed (%)": "fan_pct",
}  # fmt: skip


def claims(head: Sequence[str]) -> bool:
    """Whether the first lines of a log are of this form."""
    return any(_is_header(_table.split(line, _table.delimiter_of(line))) for line in head)


def rows(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[_table.Row | str]:
    """Its rows; see `_table.table_rows`."""
    return _table.table_rows(lines, MEANINGS, _is_header, columns)


def _is_header(cells: Sequence[str]) -> bool:
    names = [_table.title(cell)[0] for cell in cells]
    return names[:1] == ["date"] and "time" not in names and "[" in "".join(cells)
