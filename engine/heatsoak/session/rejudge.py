"""The judge over a log or session as if live: readings in order, nothing known ahead."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from heapq import merge
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.session import codec
from heatsoak.session.access import check_is_file, reading
from heatsoak.session.importers import native_csv
from heatsoak.session.importers.native_csv import PHASE, SAMPLE, STEPS
from heatsoak.session.importing import Options, import_log, is_foreign
from heatsoak.session.queries import jobs_of
from heatsoak.session.store import SQLITE_MAGIC
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.steady_state.times import in_time

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from heatsoak.steady_state.protocols import Protocol
    from heatsoak.steady_state.verdict import Figure, Result
    from heatsoak.telemetry.device import DeviceInfo

END = 3
"""Beside the kinds of what a row tells: a device or the job ended, for reasons of their own."""
Told = tuple[float, int, Any]
"""(t_s, kind, what)."""


@dataclass(slots=True)
class Feed:
    """Everything one judge needs: a job and its devices."""

    devices: tuple[DeviceInfo, ...]
    told: Iterable[Told]
    """What happened, in the order of time."""
    has_counter: bool
    start_s: float | None = None
    """When the job began; None: with the first that was told."""
    extensions: list[tuple[float, float]] = field(default_factory=list)
    """(when more time was asked for, seconds)"""
    protocol: str = "standard"
    unit: str = "units"
    """What the counter counts."""


def judge_file(
    path: Path,
    protocol: str | None = None,
    options: Options | None = None,
    say: Callable[[str], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """One JSON-ready verdict a device.

    Args:
        path: a session file, a log in the plain CSV form, or a log of another tool.
        protocol: name of the protocol; None: the session's own, `standard` for a log.
        options: what the user says of a log of another tool.
        say: told in words what such a log was understood to be.

    Raises:
        UsageError: the file cannot be read, or there is no such protocol.
    """
    if protocol is not None and protocol not in PROTOCOLS:
        raise UsageError(f"unknown protocol {protocol!r}; there is {', '.join(PROTOCOLS)}")
    check_is_file(path)
    if not _is_session(path) and is_foreign(path, options or Options()):
        yield from _foreign_lines(path, protocol, options or Options(), say)
        return
    for feed in _feeds(path):
        provenance = {info.device_id: info.provenance for info in feed.devices}
        for result in judge(feed, PROTOCOLS[protocol or feed.protocol]):
            marks = {"provenance": provenance[result.device_id], "unit": feed.unit}
            yield {"file": str(path)} | marks | _line(result)


def judge(feed: Feed, protocol: Protocol) -> tuple[Result, ...]:
    """Feed a judge in the order of time until it is over or the readings end."""
    one = Judge(protocol, feed.devices, has_counter=feed.has_counter)
    if feed.start_s is not None:
        one.start(feed.start_s)
    for asked_s, seconds in feed.extensions:
        one.extend(seconds, asked_s)
    t_s = 0.0
    for t_s, kind, what in feed.told:
        if kind == PHASE:
            one.add_phase(t_s, what)
            continue
        one.evaluate(t_s)
        if one.is_over:
            break
        if kind == SAMPLE:
            one.add_sample(what)
        elif kind == STEPS:
            one.add_steps(t_s, what)
        else:
            one.close(t_s, *what)
    else:
        one.finish(t_s)
    return one.results()


def _foreign_lines(
    path: Path, protocol: str | None, options: Options, say: Callable[[str], None] | None
) -> Iterator[dict[str, Any]]:
    """The verdicts of another tool's log, by way of the sessions it would be imported as."""
    with TemporaryDirectory(prefix="heatsoak-") as folder:
        found, sessions = import_log(path, options, Path(folder) / "log.heatsoak")
        if say is not None:
            for words in found.words():
                say(f"{path}: {words}")
        for number, session in enumerate(sessions, 1):
            name = str(path) if len(sessions) == 1 else f"{path} recording {number}"
            for line in judge_file(session, protocol):
                yield line | {"file": name}


def _is_session(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _feeds(path: Path) -> Iterator[Feed]:
    if _is_session(path):
        yield from session_feeds(path)
        return
    for log in native_csv.read(path):
        yield Feed((log.info,), log.told(), log.has_counter)


def session_feeds(path: Path) -> Iterator[Feed]:
    """What a session holds for the judge: a job a feed, and each device that has none."""
    with reading(path) as connection:
        (protocol,) = connection.execute("SELECT value FROM meta WHERE key = 'protocol'").fetchone()
        infos = {
            info.device_id: info
            for (text,) in connection.execute("SELECT info FROM devices")
            for info in [codec.device_of(text)]
        }
        jobs = jobs_of(connection)
        for job in jobs:
            devices = tuple(infos[device_id] for device_id in job.device_ids)
            (rows,) = connection.execute(
                "SELECT count(*) FROM steps WHERE job_id = ?", (job.job_id,)
            ).fetchone()
            starts = connection.execute(
                "SELECT min(t_s) FROM events WHERE kind = 'start' AND job_id = ?", (job.job_id,)
            ).fetchone()
            yield Feed(
                devices,
                _told(connection, job.job_id, job.device_ids),
                # A run of ours counts, also where nothing was ever finished; a log may not.
                has_counter=rows > 0 or any(info.provenance != "imported" for info in devices),
                start_s=starts[0],
                extensions=_extensions(connection),
                protocol=protocol,
                unit=job.unit,
            )
        busy = {device_id for job in jobs for device_id in job.device_ids}
        for device_id in (one for one in infos if one not in busy):
            told = _told(connection, "", (device_id,))
            yield Feed((infos[device_id],), told, has_counter=False, protocol=protocol)


def _told(connection: sqlite3.Connection, job_id: str, device_ids: Sequence[str]) -> Iterator[Told]:
    """What a session says of a job and its devices, as it was told to the judge that watched it."""

    def stream(kind: int, query: str, owner: str) -> Iterator[Told]:
        rows = connection.execute(f"SELECT {query} = ? ORDER BY t_s, rowid", (owner,))
        for row in in_time(rows, lambda row: row[0]):
            yield row[0], kind, codec.sample_of(row) if kind == SAMPLE else row[1]

    return merge(
        stream(PHASE, "t_s, phase FROM phases WHERE job_id", job_id),
        stream(STEPS, "t_s, units_done FROM steps WHERE job_id", job_id),
        *(stream(SAMPLE, "* FROM samples WHERE device_id", one) for one in device_ids),
        _ends(connection, device_ids),
        key=lambda told: told[:2],
    )


def _ends(connection: sqlite3.Connection, device_ids: Sequence[str]) -> list[Told]:
    """What ended the judgement from outside: a card that was lost, a workload that failed, a stop.

    Of a lost card the others of its job are judged on; everything else ends the whole job.
    """
    places = ",".join("?" * len(device_ids))
    rows = connection.execute(
        "SELECT min(t_s), device_id, state, reason FROM verdicts "
        f"WHERE state IN ('lost', 'failed', 'interrupted') AND device_id IN ({places}) "
        "GROUP BY device_id, state ORDER BY 1",
        tuple(device_ids),
    )
    return [
        (t_s, END, (state, reason, device_id if state == "lost" else None))
        for t_s, device_id, state, reason in rows
    ]


def _extensions(connection: sqlite3.Connection) -> list[tuple[float, float]]:
    rows = connection.execute("SELECT t_s, data FROM events WHERE kind = 'extend' ORDER BY rowid")
    return [(t_s, float(json.loads(data)["seconds"])) for t_s, data in rows]


def _line(result: Result) -> dict[str, Any]:
    verdict, numbers = result.verdict, result.numbers
    line: dict[str, Any] = {
        "device": result.device_id,
        "state": verdict.state,
        "flags": list(verdict.flags),
        "frozen_at_s": verdict.frozen_at_s,
        "window_start_s": verdict.window_start_s,
        "window_s": verdict.window_s,
        "cycle": None if verdict.cycle is None else asdict(verdict.cycle),
    }
    for name in ("throughput", "power_w", "sm_clock_mhz", "temperature_c", "joules_per_unit"):
        line[name] = _figure(getattr(numbers, name) if numbers else None)
    return line | {
        "at_10_min": result.at_10_min,
        "at_20_min": result.at_20_min,
        "blocked_by": verdict.blocked_by,
        "reason": verdict.reason,
    }


def _figure(figure: Figure | None) -> dict[str, Any] | None:
    if figure is None:
        return None
    return {key: value for key, value in asdict(figure).items() if key != "n_eff"}
