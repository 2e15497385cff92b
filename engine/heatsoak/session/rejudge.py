"""The judge over a log or session as if live: readings in order, nothing known ahead."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from heapq import merge
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.session import codec
from heatsoak.session.access import check_is_file, reading
from heatsoak.session.importers import native_csv
from heatsoak.session.queries import jobs_of
from heatsoak.session.store import SQLITE_MAGIC
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from heatsoak.steady_state.protocols import Protocol
    from heatsoak.steady_state.verdict import Figure, Result
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample


@dataclass(slots=True)
class Feed:
    """Everything one judge needs: a job and its devices."""

    devices: tuple[DeviceInfo, ...]
    samples: Sequence[DeviceSample]
    steps: Sequence[tuple[float, float]] = ()
    """(t_s, units_done)"""
    phases: Sequence[tuple[float, str]] = ()
    """(t_s, phase)"""
    protocol: str = "standard"
    unit: str = "units"
    """What the counter counts."""


def judge_file(path: Path, protocol: str | None = None) -> Iterator[dict[str, Any]]:
    """One JSON-ready verdict a device.

    Args:
        path: a session file, or a log in the plain CSV form.
        protocol: name of the protocol; None: the session's own, `standard` for a log.

    Raises:
        UsageError: the file cannot be read, or there is no such protocol.
    """
    if protocol is not None and protocol not in PROTOCOLS:
        raise UsageError(f"unknown protocol {protocol!r}; there is {', '.join(PROTOCOLS)}")
    for feed in _feeds(path):
        provenance = {info.device_id: info.provenance for info in feed.devices}
        for result in judge(feed, PROTOCOLS[protocol or feed.protocol]):
            marks = {"provenance": provenance[result.device_id], "unit": feed.unit}
            yield {"file": str(path)} | marks | _line(result)


def judge(feed: Feed, protocol: Protocol) -> tuple[Result, ...]:
    """Feed a judge in the order of time until it is over or the readings end."""
    one = Judge(protocol, feed.devices, has_counter=bool(feed.steps))
    t_s = 0.0
    for t_s, kind, row in merge(
        _timed(feed.phases, 0), ((s.t_s, 1, s) for s in feed.samples), _timed(feed.steps, 2),
        key=lambda item: item[:2],
    ):  # fmt: skip
        if kind == 0:
            one.add_phase(*row)
            continue
        if kind == 1:
            one.add_sample(row)
        else:
            one.add_steps(*row)
        one.evaluate(t_s)
        if one.is_over:
            break
    else:
        one.finish(t_s)
    return one.results()


def _timed(rows: Iterable[tuple[float, Any]], kind: int) -> Iterator[tuple[float, int, Any]]:
    return ((row[0], kind, row) for row in rows)


def _feeds(path: Path) -> Iterator[Feed]:
    check_is_file(path)
    try:
        with path.open("rb") as file:
            is_session = file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if is_session:
        yield from _session_feeds(path)
        return
    for log in native_csv.read(path):
        yield Feed((log.info,), log.samples, log.steps, log.phases)


def _session_feeds(path: Path) -> Iterator[Feed]:
    with reading(path) as connection:
        (protocol,) = connection.execute("SELECT value FROM meta WHERE key = 'protocol'").fetchone()
        infos = {
            info.device_id: info
            for (text,) in connection.execute("SELECT info FROM devices")
            for info in [codec.device_of(text)]
        }
        for job in jobs_of(connection):
            places = ",".join("?" * len(job.device_ids))
            samples = connection.execute(
                f"SELECT * FROM samples WHERE device_id IN ({places}) ORDER BY t_s, rowid",
                job.device_ids,
            )
            key = (job.job_id,)
            yield Feed(
                devices=tuple(infos[device_id] for device_id in job.device_ids),
                samples=[codec.sample_of(row) for row in samples],
                steps=connection.execute(
                    "SELECT t_s, units_done FROM steps WHERE job_id = ? ORDER BY t_s", key
                ).fetchall(),
                phases=connection.execute(
                    "SELECT t_s, phase FROM phases WHERE job_id = ? ORDER BY t_s, rowid", key
                ).fetchall(),
                protocol=protocol,
                unit=job.unit,
            )


def _line(result: Result) -> dict[str, Any]:
    verdict, numbers = result.verdict, result.numbers
    line: dict[str, Any] = {
        "device": result.device_id,
        "state": verdict.state,
        "flags": list(verdict.flags),
        "frozen_at_s": verdict.frozen_at_s,
        "window_start_s": verdict.window_start_s,
        "window_s": verdict.window_s,
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
