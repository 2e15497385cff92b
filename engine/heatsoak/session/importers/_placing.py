"""When the rows of a log were, and to which recording each belongs.

A recording ends where its clock leaps by more than `GAP_S` or goes back by more than `BACK_S`: what
follows is a recording, and a session, of its own. A shorter gap stays a gap. One reading whose time
alone leaps is left out, and so is one that goes back a little. Times of day without a date that go
back by more than half a day have passed midnight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.session.importers import _lines
from heatsoak.session.importers._cells import DAY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from heatsoak.session.importers._table import Row
    from heatsoak.session.importing import Importer, Options, Understood

GAP_S = 600.0
"""A longer silence begins another recording."""
BACK_S = 60.0
"""A clock that goes back further begins another recording."""
ALONE, EARLIER = "rows whose time leaps alone", "rows whose time goes back"
"""Why a row was left out."""


def placed(
    path: Path,
    module: Importer,
    options: Options,
    found: Understood,
    progress: Callable[[float], None] | None,
) -> Iterator[tuple[int, float, Row]]:
    """Every row with its recording and its instant; what is left out is counted in `found`."""
    at, day_s = 0, 0.0
    last_s: float | None = None
    held: tuple[float, Row] | None = None
    by_device: dict[str, float] = {}
    tick = 0
    told: set[str] = set()
    """The devices that have told of the tick at hand; with the first again the next begins."""
    clock_s: float | None = None

    def breaks(before_s: float, t_s: float) -> bool:
        return t_s > before_s + GAP_S or t_s < before_s - BACK_S

    for row in module.rows(_lines.lines(path, progress), options.columns):
        if isinstance(row, str):
            found.skipped[row] += 1
            continue
        found.odd.update(row.odd)
        row.device = row.device or "log-0"
        t_s = row.time_s
        if t_s is None:
            if options.period_s is None:
                raise UsageError(f"{path} has no times; say --period SECONDS between its rows")
            found.has_times = False
            if row.device in told:
                tick, told = tick + 1, set()
            told.add(row.device)
            t_s = tick * options.period_s
        elif not row.has_day:
            found.has_times = False
            if clock_s is not None and t_s < clock_s - DAY_S / 2:
                day_s += DAY_S
            clock_s = t_s
            t_s += day_s
        fresh = [(t_s, row)]
        if held is not None:
            if not breaks(held[0], t_s):
                at, last_s, by_device = at + 1, None, {}
                fresh.insert(0, held)
            else:
                found.skipped[ALONE] += 1
            held = None
        for t_s, row in fresh:
            if last_s is not None and breaks(last_s, t_s):
                held = (t_s, row)
            elif t_s < by_device.get(row.device, t_s):
                found.skipped[EARLIER] += 1
            else:
                last_s = by_device[row.device] = t_s
                yield at, t_s, row
    if held is not None:
        found.skipped[ALONE] += 1
