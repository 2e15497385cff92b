"""Tables made of gpu-burn's progress: `ClientCalcs,Gflops,Temperature,Errors`, without times.

The counter of work is the rate summed over time, in GFLOP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.session.importers import _table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABEL = "gpu-burn CSV"
UNIT = "GFLOP"
MEANINGS = {
    "timestamp": "time", "time": "time",
    "gpu": "device", "device": "device", "gpu_id": "device", "index": "device",
    "gflops": "rate", "gflop/s": "rate", "gflops/s": "rate",
    "temperature": "temperature_c", "temp": "temperature_c", "temps": "temperature_c",
}  # fmt: skip


def claims(head: Sequence[str]) -> bool:
    """Whether the first lines of a log are of this form."""
    return any(_is_header(_table.split(line, _table.delimiter_of(line))) for line in head)


def rows(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[_table.Row | str]:
    """Its rows; see `_table.table_rows`."""
    return _table.table_rows(lines, MEANINGS, _is_header, columns)


def _is_header(cells: Sequence[str]) -> bool:
    return any(MEANINGS.get(_table.title(cell)[0]) == "rate" for cell in cells)
