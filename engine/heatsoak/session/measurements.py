"""What sessions measured, put together by card, or the reason why they may not be.

Numbers are ranked side by side only if they are of one kind: one provenance, one workload of one
version with one recipe, counted in one unit, and steady.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Literal, cast

from heatsoak.economics.estimate import Estimate
from heatsoak.economics.offers import HostSeen, Measured
from heatsoak.errors import UsageError
from heatsoak.profiles.prices import price_key
from heatsoak.session import codec
from heatsoak.session.access import reading
from heatsoak.session.result import load_result
from heatsoak.session.warnings import FLAG_WORDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from heatsoak.telemetry.device import DeviceInfo

SPOILING_FLAGS = ("unsaturated", "superseded")
"""Flags with which a number is shown, and not ranked."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What was trained; equal for all sessions that are compared."""

    name: str
    version: int
    recipe: Mapping[str, Any]
    mode: str
    unit: str


@dataclass(frozen=True, slots=True)
class SessionUsed:
    """One session that stands behind the numbers."""

    path: str
    id: str
    name: str | None
    created_utc: str
    protocol: str
    host: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """All sessions together."""

    provenance: Literal["measured", "synthetic", "imported"]
    workload: Workload
    sessions: tuple[SessionUsed, ...]
    by_card: Mapping[str, Measured]
    """By id of the card profile, or by name of a device that has none."""
    names: Mapping[str, str]
    """Name of each of them as the driver says it."""
    marks: tuple[str, ...] = ()
    """Words that must stand wherever these numbers do: `SYNTHETIC`, `SMOKE`, `NOT STEADY`."""


@dataclass(slots=True)
class _Job:
    """One job of one session."""

    session: SessionUsed
    workload: Workload
    provenance: Literal["measured", "synthetic", "imported"]
    card: str
    name: str
    measured: Measured
    marks: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Open:
    """A session that is being read."""

    path: Path
    used: SessionUsed
    infos: Mapping[str, DeviceInfo]
    environment: Mapping[str, Any]
    connection: sqlite3.Connection


def load_measurements(
    paths: Sequence[Path], *, allow_smoke: bool = False, allow_not_steady: bool = False
) -> Measurements:
    """Read sessions and put together what they say of each card.

    Args:
        paths: session files; one that is named twice counts once.
        allow_smoke: take results of protocol smoke, marked so.
        allow_not_steady: take the last window of devices that were not steady, marked so.

    Raises:
        UsageError: a file is no session, has nothing to show, or they may not be compared.
    """
    jobs: list[_Job] = []
    seen: set[str] = set()
    for path in paths:
        document = load_result(path)
        if document["session"]["id"] in seen:
            continue
        seen.add(document["session"]["id"])
        found = list(_jobs(path, document, allow_smoke, allow_not_steady))
        if not found:
            raise UsageError(f"{path}: no job of it counted anything; nothing to advise on")
        jobs += found
    if not jobs:
        raise UsageError("no session to advise on")
    _check_alike(jobs)
    groups: dict[tuple[str, int], list[_Job]] = {}
    for job in jobs:
        groups.setdefault((job.card, job.measured.n), []).append(job)
    counts: dict[str, int] = {}
    for card, n in groups:  # Of each card the smallest set stays.
        counts[card] = min(n, counts.get(card, n))
    return Measurements(
        provenance=jobs[0].provenance,
        workload=jobs[0].workload,
        sessions=tuple({job.session.id: job.session for job in jobs}.values()),
        by_card={
            card: _together([j.measured for j in groups[card, n]]) for card, n in counts.items()
        },
        names={job.card: job.name for job in jobs},
        marks=tuple(sorted({mark for job in jobs for mark in job.marks})),
    )


def _jobs(
    path: Path, document: dict[str, Any], allow_smoke: bool, allow_not_steady: bool
) -> Iterator[_Job]:
    session = document["session"]
    used = SessionUsed(
        str(path), session["id"], session["name"], session["created_utc"], session["protocol"],
        session["host"],
    )  # fmt: skip
    check_protocol(path, session["protocol"], allow_smoke=allow_smoke)
    by_id = {device["device_id"]: device for device in document["devices"]}
    with reading(path) as connection:
        infos = {
            info.device_id: info
            for (data,) in connection.execute("SELECT info FROM devices ORDER BY rowid")
            for info in [codec.device_of(data)]
        }
        opened = _Open(path, used, infos, session["environment"], connection)
        for job in document["jobs"]:
            devices = [by_id[device_id] for device_id in job["devices"]]
            made = _job(opened, job, devices, allow_not_steady)
            if made is not None:
                if session["protocol"] == "smoke":
                    made.marks.add("SMOKE")
                yield made


def _job(
    opened: _Open, job: dict[str, Any], devices: list[dict[str, Any]], allow_not_steady: bool
) -> _Job | None:
    numbers, marks = numbers_of(opened.path, devices, allow_not_steady=allow_not_steady)
    rate = numbers[0]["throughput"] if numbers else None
    if rate is None or rate["mean"] <= 0:
        return None
    provenance = provenance_of(devices)
    if provenance != "measured":
        marks.add(provenance.upper())
    first = opened.infos[devices[0]["device_id"]]
    card = _price_key(first)
    if {_price_key(opened.infos[device["device_id"]]) for device in devices} != {card}:
        raise UsageError(f"{opened.path}: its job {job['job_id']} ran on cards of several kinds")
    measured = _measured(opened, job, devices, numbers, provenance)
    workload = Workload(job["workload"], job["version"], job["recipe"], job["mode"], job["unit"])
    return _Job(opened.used, workload, provenance, card, first.name, measured, marks)


def numbers_of(
    path: Path, devices: Sequence[dict[str, Any]], *, allow_not_steady: bool
) -> tuple[list[dict[str, Any]], set[str]]:
    """The frozen numbers of devices, and the words that must stand beside them.

    Args:
        path: of their session.
        devices: entries of `devices[]`.
        allow_not_steady: take the last window where nothing was frozen, marked so.

    Raises:
        UsageError: one of them was not steady.
    """
    marks: set[str] = set()
    numbers = []
    for device in devices:
        sustained = device["sustained"]
        if sustained is None:
            state = device["verdict"]["state"] if device["verdict"] else "without a verdict"
            if not allow_not_steady or device["last_window"] is None:
                way = "" if device["last_window"] is None else ", or say --allow-not-steady"
                raise UsageError(
                    f"{path}: {device['device_id']} is {state}, so nothing was frozen; soak "
                    f"it until it is steady{way}"
                )
            sustained = device["last_window"]
            marks.add("NOT STEADY")
        numbers.append(sustained)
    return numbers, marks


def check_protocol(path: Path, protocol: str, *, allow_smoke: bool) -> None:
    """See that a session is of a protocol whose numbers may stand beside others.

    Raises:
        UsageError: it is of protocol smoke, and that was not asked for.
    """
    if protocol == "smoke" and not allow_smoke:
        raise UsageError(
            f"{path} is of protocol smoke, a demonstration that is never ranked; soak longer, or "
            "say --allow-smoke"
        )


def _price_key(info: DeviceInfo) -> str:
    return price_key(info.card, info.kind, info.name)


def provenance_of(
    devices: Sequence[dict[str, Any]],
) -> Literal["measured", "synthetic", "imported"]:
    """What devices together are: as good as the least of them."""
    found = {device["provenance"] for device in devices}
    order: tuple[Literal["imported", "synthetic", "measured"], ...] = (
        "imported", "synthetic", "measured",
    )  # fmt: skip
    return next(kind for kind in order if kind in found)


def _measured(
    opened: _Open, job: dict[str, Any], devices: list[dict[str, Any]],
    numbers: list[dict[str, Any]], provenance: Literal["measured", "synthetic", "imported"],
) -> Measured:  # fmt: skip
    rate = estimate_of(numbers[0]["throughput"])
    power = total_of([estimate_of(n["power_w"]) for n in numbers])
    joules = total_of([estimate_of(n["joules_per_unit"]) for n in numbers])
    memory = [n["memory_used_bytes"]["mean"] for n in numbers if n["memory_used_bytes"]]
    degrees = [n["temperature_c"]["mean"] for n in numbers if n["temperature_c"]]
    flags = tuple(dict.fromkeys(f for d in devices for f in d["verdict"]["flags"]))
    first = opened.infos[devices[0]["device_id"]]
    integrity = job["integrity"] or {}
    spoiled = [FLAG_WORDS[flag] for flag in flags if flag in SPOILING_FLAGS]
    if integrity.get("failures"):
        spoiled.append("checks of its arithmetic failed")
    throttle: dict[str, float] | None = None
    for device in devices:
        for reason, share in (device["throttle"] or {}).items():
            throttle = throttle or {}
            throttle[reason] = max(share, throttle.get(reason, 0.0))
        if throttle is None and device["throttle"] is not None:
            throttle = {}
    start_s = numbers[0]["window_start_s"]
    return Measured(
        provenance=provenance,
        n=len(devices),
        devices=tuple(f"{opened.used.id}:{device['device_id']}" for device in devices),
        unit=job["unit"],
        rate_per_s=cast("Estimate", rate),
        power_w=power,
        joules_per_unit=joules,
        memory_used_bytes=max(memory, default=None),
        temperature_c=max(degrees, default=None),
        flags=flags,
        spoiled="; ".join(spoiled) or None,
        ecc_is_on=first.ecc_is_on,
        driver_version=first.driver_version,
        power_limit_w=first.power_limit_w,
        throttle_frac=throttle,
        pcie=_link(opened.connection, first.device_id, start_s),
        pcie_most=(first.pcie_gen_max, first.pcie_width_max),
        host=_host(opened.environment, devices) if provenance == "measured" else None,
    )


def _host(environment: Mapping[str, Any], devices: Sequence[Mapping[str, Any]]) -> HostSeen | None:
    """What doctor wrote into the session; None where it did not look."""
    host = environment.get("host")
    if not isinstance(host, dict):
        return None
    own = {None, *(device["device_id"] for device in devices)}
    return HostSeen(
        cpu=host.get("cpu"),
        cores=host.get("cores"),
        memory_bytes=host.get("memory_bytes"),
        devices=len(environment.get("devices", ())),
        problems=tuple(
            (finding["id"], finding["title"])
            for finding in environment.get("findings", ())
            if finding.get("device_id") in own
        ),
    )


def _link(
    connection: sqlite3.Connection, device_id: str, start_s: float
) -> tuple[int | None, int | None]:
    """The widest link seen in the window: an idle card lowers it."""
    query = "SELECT max(pcie_gen), max(pcie_width) FROM samples WHERE device_id = ? AND t_s >= ?"
    gen, width = connection.execute(query, (device_id, start_s)).fetchone()
    return gen, width


def estimate_of(figure: dict[str, Any] | None) -> Estimate | None:
    """A figure of a result; None where there is none."""
    return None if figure is None else Estimate(figure["mean"], figure["u95"])


def total_of(parts: Sequence[Estimate | None]) -> Estimate | None:
    """Of all cards of a job; None where one of them is not known."""
    known = [part for part in parts if part is not None]
    if len(known) != len(parts) or not known:
        return None
    return reduce(add, known)


def _check_alike(jobs: Sequence[_Job]) -> None:
    first = jobs[0]
    for job in jobs[1:]:
        if job.provenance != first.provenance:
            raise UsageError(
                f"{first.session.path} is {first.provenance} and {job.session.path} is "
                f"{job.provenance}: the two are never ranked together; advise on each kind alone"
            )
    for job in jobs[1:]:
        differences = list(_differences(first.workload, job.workload))
        if differences:
            raise UsageError(
                f"{first.session.path} and {job.session.path} cannot be compared: "
                f"{'; '.join(differences)}; soak both with the same workload and recipe"
            )


def _differences(one: Workload, other: Workload) -> Iterator[str]:
    for name in ("name", "version", "unit", "mode"):
        pair = getattr(one, name), getattr(other, name)
        if pair[0] != pair[1]:
            word = "workload" if name == "name" else name
            yield f"{word} {pair[0]} and {pair[1]}"
    if one.name != other.name:
        return
    for key in sorted({*one.recipe, *other.recipe}):
        if one.recipe.get(key) != other.recipe.get(key):
            yield f"{key} {one.recipe.get(key)} and {other.recipe.get(key)}"


def _together(parts: Sequence[Measured]) -> Measured:
    """Several measurements of one card model as one.

    The mean of their means; its interval is the wider of what the runs say of themselves and half
    the distance between the best and the worst card: specimens differ more than runs do.
    """
    good = [part for part in parts if part.spoiled is None] or list(parts)
    if len(good) == 1:
        return good[0]
    memory = [p.memory_used_bytes for p in good if p.memory_used_bytes is not None]
    degrees = [p.temperature_c for p in good if p.temperature_c is not None]
    return replace(
        good[0],
        devices=tuple(dict.fromkeys(device for part in good for device in part.devices)),
        rate_per_s=cast("Estimate", _mean([part.rate_per_s for part in good])),
        power_w=_mean([part.power_w for part in good]),
        joules_per_unit=_mean([part.joules_per_unit for part in good]),
        memory_used_bytes=max(memory, default=None),
        temperature_c=max(degrees, default=None),
        flags=tuple(dict.fromkeys(flag for part in good for flag in part.flags)),
        ecc_is_on=None if len({part.ecc_is_on for part in good}) > 1 else good[0].ecc_is_on,
    )


def _mean(parts: Sequence[Estimate | None]) -> Estimate | None:
    total = total_of(parts)
    if total is None:
        return None
    mean = total / len(parts)
    means = [part.mean for part in parts if part is not None]
    spread = (max(means) - min(means)) / 2
    return Estimate(mean.mean, None if mean.u95 is None else max(mean.u95, spread))
