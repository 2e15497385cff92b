"""gpu-burn's progress as it prints it: `12.5%  proc'd: 45 (8010 Gflop/s) ... temps: 63 C - 65 C`.

Several cards stand in one line between ` - `. It has no times; a line is a period.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from heatsoak.session.importers import _table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LABEL = "gpu-burn progress"
UNIT = "GFLOP"
_LINE = re.compile(r"\s*[\d.]+%\s+proc'd:\s*(.*?)\s+errors:\s*(.*?)\s+temps:\s*(.*)")
_RATE = re.compile(r"\(([\d.]+) Gflop/s\)")
_DEGREES = re.compile(r"(\d+) C")


def claims(head: Sequence[str]) -> bool:
    """Whether the first lines of a log are of this form."""
    return any(_LINE.match(line) for line in head)


def rows(lines: Iterable[str], columns: Sequence[str] | None) -> Iterator[_table.Row | str]:
    """Its rows, one a card and line; it needs no columns."""
    del columns
    for line in lines:
        match = _LINE.match(line)
        if line == "\0":
            yield _table.TORN
        elif match is None:
            if line.strip():
                yield _table.FOREIGN
        else:
            rates, temperatures = match[1].split(" - "), match[3].split(" - ")
            if len(rates) != len(temperatures):
                yield _table.NO_FIT
                continue
            for card, (rate, degrees) in enumerate(zip(rates, temperatures, strict=True)):
                done, hot = _RATE.search(rate), _DEGREES.match(degrees)
                values = {
                    "rate": float(done[1]) if done else None,
                    "temperature_c": float(hot[1]) if hot else None,
                }
                yield _table.Row(None, False, str(card), values)
