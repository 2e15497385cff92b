"""The runs that a comparison is made of, read from their session files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heatsoak.economics.estimate import Estimate
from heatsoak.errors import UsageError
from heatsoak.profiles.prices import price_key
from heatsoak.session import codec
from heatsoak.session.access import reading
from heatsoak.session.measurements import (
    SPOILING_FLAGS,
    check_protocol,
    estimate_of,
    numbers_of,
    provenance_of,
    total_of,
)
from heatsoak.session.result import load_result
from heatsoak.session.run_facts import job_start_s
from heatsoak.session.warnings import FLAG_WORDS

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from heatsoak.telemetry.device import DeviceInfo

MOST = 8
"""Sessions in one comparison."""
START_WITHIN_S = 30.0
"""A first reading later than this after the load began says nothing of the temperature before."""
HALF_DEGREE_C = 0.5
"""Drivers tell temperatures in whole degrees (`temperature.gpu`)."""
BUSY_IDS = frozenset({"users", "load"})
"""Checks of doctor that tell of other work on a card."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a comparison takes although it is not taken unless asked for."""

    smoke: bool = False
    not_steady: bool = False
    mixed: bool = False
    """Synthetic or imported figures beside measured ones."""


@dataclass(frozen=True, slots=True)
class Session:
    """One session of the comparison."""

    label: str
    """`A` for the first that was named, and so on."""
    path: str
    id: str
    name: str | None
    created_utc: str
    host: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Run:
    """One job of one session, with the devices it ran on."""

    session: Session
    label: str
    """The session's, with its device where the session has several jobs: `A/0`."""
    devices: tuple[str, ...]
    """UUIDs."""
    card: str
    """What makes cards one model: the profile, or the name of a device that has none."""
    name: str
    kind: str
    provenance: str
    unit: str
    recipe: Mapping[str, Any]
    marks: frozenset[str]
    measures: Mapping[str, Estimate | None]
    facts: Mapping[str, Any]
    """What may differ between runs, by id of the confounder; None is not known."""
    spoiled: tuple[str, ...]
    """Why its figures are no measure of the card, in sentences."""


def read_runs(paths: Sequence[Path], allowed: Allowed) -> list[Run]:
    """All runs of the sessions, in the order in which these are named; one named twice counts once.

    Raises:
        UsageError: too few or too many, a file is no session, or they may not be compared.
    """
    runs: list[Run] = []
    seen: set[str] = set()
    for path in paths:
        document = load_result(path)
        if document["session"]["id"] in seen:
            continue
        seen.add(document["session"]["id"])
        if len(seen) > MOST:
            raise UsageError(f"compare takes {MOST} sessions at most")
        found = list(_runs(path, document, chr(ord("A") + len(seen) - 1), allowed))
        if not found:
            raise UsageError(f"{path}: no job of it ran on a device; nothing to compare")
        runs += found
    if len(seen) < 2:
        raise UsageError("compare takes two different sessions at least")
    if not allowed.mixed:
        _check_provenance(runs)
    return runs


def _check_provenance(runs: Sequence[Run]) -> None:
    first = runs[0]
    for run in runs:
        if run.provenance != first.provenance:
            raise UsageError(
                f"{first.session.path} is {first.provenance} and {run.session.path} is "
                f"{run.provenance}: never compared unless you say --allow-mixed"
            )


def _runs(path: Path, document: dict[str, Any], label: str, allowed: Allowed) -> Iterator[Run]:
    about = document["session"]
    check_protocol(path, about["protocol"], allow_smoke=allowed.smoke)
    session = Session(
        label, str(path), about["id"], about["name"], about["created_utc"], about["host"],
        about["protocol"],
    )  # fmt: skip
    by_id = {device["device_id"]: device for device in document["devices"]}
    with reading(path) as connection:
        rows = connection.execute("SELECT info FROM devices ORDER BY rowid")
        infos = {info.device_id: info for info in (codec.device_of(data) for (data,) in rows)}
        for job in document["jobs"]:
            own = label
            if len(document["jobs"]) > 1:
                own = f"{label}/{'+'.join(n.rpartition('-')[2] for n in job['devices'])}"
            devices = [by_id[device_id] for device_id in job["devices"]]
            numbers, marks = numbers_of(path, devices, allow_not_steady=allowed.not_steady)
            if not numbers:
                continue
            rate = estimate_of(numbers[0]["throughput"])
            start_s = job_start_s(connection, job["job_id"])
            provenance = provenance_of(devices)
            if provenance != "measured":
                marks.add(provenance.upper())
            if about["protocol"] == "smoke":
                marks.add("SMOKE")
            first = infos[job["devices"][0]]
            facts = _facts(about, job, [infos[device_id] for device_id in job["devices"]])
            facts["watts"] = _watts(first, devices[0])
            facts["start_temperature_c"] = _start_temperature(connection, job["devices"], start_s)
            yield Run(
                session, own, tuple(device["uuid"] for device in devices),
                price_key(first.card, first.kind, first.name), first.name, first.kind, provenance,
                job["unit"], job["recipe"], frozenset(marks),
                _measures(rate, numbers, devices, start_s), facts, _spoiled(job, devices),
            )  # fmt: skip


def _measures(
    rate: Estimate | None,
    numbers: list[dict[str, Any]],
    devices: list[dict[str, Any]],
    start_s: float,
) -> dict[str, Estimate | None]:  # fmt: skip
    """Of all devices of a job: watts and joules summed, clocks averaged, the hottest."""
    frozen = [device["verdict"]["frozen_at_s"] for device in devices]
    boost = devices[0]["boost"]
    drop = None if boost is None else boost["drop_frac"]
    hot = [estimate_of(n["temperature_c"]) for n in numbers]
    hottest = max((one for one in hot if one is not None), key=lambda one: one.mean, default=None)
    return {
        "throughput": rate,
        "power_w": total_of([estimate_of(n["power_w"]) for n in numbers]),
        "joules_per_unit": total_of([estimate_of(n["joules_per_unit"]) for n in numbers]),
        "sm_clock_mhz": _average([estimate_of(n["sm_clock_mhz"]) for n in numbers]),
        "mem_clock_mhz": _average([estimate_of(n["mem_clock_mhz"]) for n in numbers]),
        "temperature_c": None if hottest is None or None in hot else _as_read(hottest),
        "drop_frac": None if drop is None else Estimate(drop, None),
        "time_to_steady_s": None if None in frozen else Estimate(max(frozen) - start_s, None),
    }


def _as_read(temperature_c: Estimate) -> Estimate:
    """No finer than the sensor: a reading that never moves is still only a whole degree."""
    u95 = temperature_c.u95
    return Estimate(temperature_c.mean, None if u95 is None else max(u95, HALF_DEGREE_C))


def _average(parts: list[Estimate | None]) -> Estimate | None:
    total = total_of(parts)
    return None if total is None else total / len(parts)


def _facts(
    about: dict[str, Any], job: dict[str, Any], infos: Sequence[DeviceInfo]
) -> dict[str, Any]:
    environment = about["environment"]
    host, training = environment.get("host") or {}, environment.get("training") or {}
    first = infos[0]
    own = {None, *(info.device_id for info in infos)}
    findings = [f for f in environment.get("findings") or () if f.get("device_id") in own]
    load, cores = host.get("load_1_min"), host.get("cores")
    return {
        "provenance": first.provenance,
        "unit": job["unit"],
        "workload": f"{job['workload']} v{job['version']}",
        "recipe": job["recipe"],
        "devices": "1" if len(infos) == 1 else f"{len(infos)}, {job['mode']}",
        "card": " ".join(sorted({info.name for info in infos})),
        "specimen": " ".join(sorted(info.uuid for info in infos)),
        "mig": first.mig_profile or "none",
        "driver": first.driver_version,
        "torch": training.get("torch"),
        "cuda": training.get("cuda"),
        "power_limit_w": _all([info.power_limit_w for info in infos]),
        "application_clock_mhz": first.application_clock_mhz,
        "clock_is_held": first.sm_clock_is_held,
        "ecc": first.ecc_is_on,
        "host": about["host"],
        "load_per_core": load / cores if load is not None and cores else None,
        "busy": sorted(f["title"] for f in findings if f["id"] in BUSY_IDS),
        "protocol": about["protocol"],
        "vbios": first.vbios,
        "findings": sorted({f["title"] for f in findings if f["id"] not in BUSY_IDS}),
    }


def _all(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _watts(info: DeviceInfo, device: dict[str, Any]) -> str | None:
    """What the watts are of; a synthetic card's are those of a board."""
    if info.kind == "cpu":
        return "package"
    scope = (device["energy"] or {}).get("scope") or info.power_scope
    return "gpu" if scope is None and info.kind == "synthetic" else scope


def _start_temperature(
    connection: sqlite3.Connection, device_ids: Sequence[str], start_s: float
) -> float | None:
    """The last reading before the load, else the first one; the hottest device's."""
    found: list[float] = []
    for device_id in device_ids:
        row = connection.execute(
            "SELECT temperature_c FROM samples WHERE device_id = ? AND temperature_c IS NOT NULL "
            "AND t_s < ? ORDER BY t_s > ?, abs(t_s - ?) LIMIT 1",
            (device_id, start_s + START_WITHIN_S, start_s, start_s),
        ).fetchone()
        if row is not None:
            found.append(float(row[0]))
    return max(found, default=None)


def _spoiled(job: dict[str, Any], devices: list[dict[str, Any]]) -> tuple[str, ...]:
    flags = dict.fromkeys(f for d in devices for f in d["verdict"]["flags"])
    found = [FLAG_WORDS[flag] for flag in flags if flag in (*SPOILING_FLAGS, "disturbed")]
    if (job["integrity"] or {}).get("failures"):
        found.append("checks of its arithmetic failed")
    return tuple(found)
