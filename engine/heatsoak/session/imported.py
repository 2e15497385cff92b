"""A log of another tool as a session that has been judged, as if it had been recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.session.importing import Options, Understood, import_log
from heatsoak.session.rejudge import judge, session_feeds
from heatsoak.session.result import result_entry
from heatsoak.session.rows import Batch, EventRow, ResultRow
from heatsoak.steady_state.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from heatsoak.session.rows import SessionState
    from heatsoak.session.store import SessionWriter

WORST: tuple[SessionState, ...] = ("lost", "failed", "stuck", "not-steady", "idle", "steady")
"""The state of a session is the first of these that a device has."""


def import_judged(
    path: Path,
    options: Options,
    out: Path,
    *,
    force: bool = False,
    progress: Callable[[float], None] | None = None,
) -> tuple[Understood, list[Path]]:
    """Import a log and judge every recording of it; see `importing.import_log`.

    Raises:
        UsageError: the log is not understood, or a file cannot be written.
    """
    return import_log(path, options, out, force=force, judged=_judged, progress=progress)


def _judged(path: Path, writer: SessionWriter) -> SessionState:
    verdicts, results, states, events = [], [], set(), []
    for feed in session_feeds(path):
        infos = {info.device_id: info for info in feed.devices}
        for result in judge(feed, PROTOCOLS[feed.protocol]):
            verdict, name = result.verdict, result.device_id
            job_id = f"job-{name}" if feed.has_counter else ""
            entry = result_entry(result, infos[name], feed.unit)
            verdicts.append(verdict)
            results.append(ResultRow(verdict.t_s, name, job_id, entry))
            states.add(verdict.state)
            words = f"{verdict.state}: {verdict.reason}"
            events.append(EventRow(verdict.t_s, "state", words, name))
    writer.write(Batch({}, verdicts=tuple(verdicts), results=tuple(results), events=tuple(events)))
    return next(state for state in WORST if state in states)
