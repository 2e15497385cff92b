"""HWiNFO's sensor log: UTF-8 with a mark or Latin-1, names that occur twice, a footer.

Where a name occurs twice there are two cards, and its k-th column is the k-th card's; a name that
then occurs once could be either's and is left out, so that `--columns` must say what it is. Names
in another language are found by their unit where only one column that speaks of a GPU has it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from heatsoak.session.importers import _table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABEL = "HWiNFO sensor log"
MEANINGS = {
    "date": "date", "time": "time",
    "total board power": "power_w", "gpu power (total)": "power_w", "gpu power": "power_w",
    "gpu temperature": "temperature_c",
    "gpu memory junction temperature": "memory_temperature_c",
    "gpu clock": "sm_clock_mhz", "gpu memory clock": "mem_clock_mhz",
    "gpu core load": "utilization_pct", "gpu utilization": "utilization_pct",
    "gpu memory allocated": "memory_used_bytes", "gpu d3d memory dedicated": "memory_used_bytes",
}  # fmt: skip
_BY_UNIT = {"w": "gpu power", "°c": "gpu temperature"}


def claims(head: Sequence[str]) -> bool:
    """Whether the first lines of a log are of this form."""
    return any(_is_header(_table.split(line, _table.delimiter_of(line))) for line in head)


def rows(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[_table.Row | str]:
    """Its rows; see `_table.table_rows`."""
    return _table.table_rows(lines, MEANINGS, _is_header, columns, _tables)


def _is_header(cells: Sequence[str]) -> bool:
    return [cell.lower() for cell in cells[:2]] == ["date", "time"] and "[" in "".join(cells)


def _tables(header: Sequence[str]) -> Sequence[_table.Table]:
    names = [_table.title(cell)[0] for cell in header]
    times = Counter(name for name in names if name in MEANINGS)
    cards = max(times.values(), default=1)
    if cards == 1:
        return [_table.Table(_translated(header, times), MEANINGS)]
    tables = []
    for card in range(cards):
        met: Counter[str] = Counter()
        own = []
        for cell, name in zip(header, names, strict=True):
            is_shared = MEANINGS.get(name) in ("date", "time")
            is_own = times[name] == cards and met[name] == card
            met[name] += 1
            own.append(cell if is_shared or is_own else "")
        tables.append(_table.Table(own, MEANINGS))
    return tables


def _translated(header: Sequence[str], times: Counter[str]) -> list[str]:
    """The header with English names where a unit leaves no doubt."""
    out = list(header)
    for unit, name in _BY_UNIT.items():
        taken = {MEANINGS[known] for known in times}
        found = [
            at for at, cell in enumerate(header)
            if "gpu" in cell.lower() and _table.title(cell)[1].lower() == unit
        ]  # fmt: skip
        if (
            MEANINGS[name] not in taken
            and len(found) == 1
            and not _title_is_english(header[found[0]])
        ):
            out[found[0]] = f"{name} [{unit}]"
    return out


def _title_is_english(cell: str) -> bool:
    return _table.title(cell)[0].isascii()
