"""`nvidia-smi dmon`, with or without `-o DT`: columns by its header, printed again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.session.importers import _table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABEL = "nvidia-smi dmon"
MEANINGS = {
    "date": "date", "time": "time", "gpu": "device",
    "pwr": "power_w", "gtemp": "temperature_c", "temp": "temperature_c",
    "mtemp": "memory_temperature_c", "sm": "utilization_pct",
    "mclk": "mem_clock_mhz", "pclk": "sm_clock_mhz", "fb": "memory_used_bytes",
}  # fmt: skip


def claims(head: Sequence[str]) -> bool:
    """Whether the first lines of a log are of this form."""
    return any(_names(line) for line in head)


def rows(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[_table.Row | str]:
    """Its rows; the second line of a header, which holds the units, tells nothing more."""
    table = _table.Table(columns, MEANINGS) if columns else None
    for line in lines:
        if line == "\0":
            yield _table.TORN
        elif line.lstrip().startswith("#"):
            names = _names(line)
            if table is not None:
                yield _table.REPEATED
            if names and not columns and (table is None or table.header != names):
                table = _table.Table(names, MEANINGS)
        elif line.strip():
            cells = line.replace(",", " ").split()
            fits = table is not None and len(cells) == len(table.header)
            yield table.row(cells) if table is not None and fits else _table.NO_FIT


def _names(line: str) -> list[str]:
    """The columns that a header names; empty for its line of units and for any other."""
    if not line.lstrip().startswith("#"):
        return []
    names = line.replace("#", " ").replace(",", " ").lower().split()
    return names if "gpu" in names else []
