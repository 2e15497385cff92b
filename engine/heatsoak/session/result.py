"""What a session found, as the public document `heatsoak-result/1`.

Its shape is `heatsoak-result-1.schema.json` beside this file.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heatsoak.profiles.cards import card_profiles
from heatsoak.session import codec
from heatsoak.session.access import reading, session_meta
from heatsoak.session.economics import economics_today
from heatsoak.session.queries import jobs_of, last_verdicts
from heatsoak.session.run_facts import session_facts
from heatsoak.session.slices import is_shared, shared_power
from heatsoak.session.warnings import warnings_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from pathlib import Path

    from heatsoak.session.rows import JobRow
    from heatsoak.steady_state.verdict import Figure, Result, Sustained, Verdict
    from heatsoak.telemetry.device import DeviceInfo

SCHEMA = "heatsoak-result/1"
EVIDENCE: dict[str, Any] = {
    "coverage": None, "pcie": None, "sensors": None, "health": None, "mig": None,
}  # fmt: skip
"""What the recorder adds to a device's entry beside the judge's figures, and null without it."""
FIGURES = (
    "throughput", "all_in_throughput", "power_w", "temperature_c", "sm_clock_mhz", "mem_clock_mhz",
    "utilization_pct", "memory_used_bytes", "joules_per_unit",
)  # fmt: skip
EXIT_CODES = {
    "steady": 0, "not-steady": 3, "stuck": 3, "idle": 3, "failed": 4, "lost": 5,
    "interrupted": 130,
}  # fmt: skip


def exit_code(state: str) -> int | None:
    """The exit code of a command that watched a session to this end; None while it records."""
    return EXIT_CODES.get(state)


def result_entry(
    result: Result, info: DeviceInfo, unit: str, evidence: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The entry of one device in `devices[]`.

    Args:
        result: what the judge found; frozen once its verdict is steady.
        info: the device.
        unit: what its job counts.
        evidence: what else is known of its window and its run, by key of `EVIDENCE`.
    """
    is_frozen = result.verdict.state == "steady"
    known = EVIDENCE | dict(evidence or {})
    numbers = None if result.numbers is None else _numbers(result.numbers, unit)
    if numbers is not None and is_shared(known["mig"]):
        numbers["joules_per_unit"] = None  # Its watts are also another slice's.
    boost = result.boost
    return (
        _identity(info)
        | {
            "unit": unit,
            "verdict": _verdict(result.verdict),
            "sustained": numbers if is_frozen else None,
            "last_window": None if is_frozen else numbers,
            "energy": None if result.numbers is None else _energy(result.numbers, info),
            "boost": None if boost is None else asdict(boost),
            "at_10_min": result.at_10_min,
            "at_20_min": result.at_20_min,
            "throttle": None if result.numbers is None else _throttle(result.numbers),
        }
        | known
    )


def load_result(path: Path) -> dict[str, Any]:
    """The document of a session, finished or still being recorded.

    Raises:
        UsageError: the file is not there, no session, or of a newer version.
    """
    with reading(path) as connection:
        connection.execute("BEGIN")
        meta = session_meta(connection, path)
        jobs = jobs_of(connection)
        devices = _devices(connection, jobs)
        environment = {
            key: json.loads(data)
            for key, data in connection.execute("SELECT key, data FROM environment")
        }
        facts = session_facts(connection, jobs, devices)
    by_id = {device["device_id"]: device for device in devices}
    together = shared_power(devices)
    document = {
        "schema": SCHEMA,
        "session": {
            "id": meta["id"],
            "name": meta.get("name"),
            "created_utc": meta["created_utc"],
            "host": meta["host"],
            "protocol": meta["protocol"],
            "state": meta["state"],
            "end_reason": meta.get("end_reason"),
            "speed": float(meta["speed"]),
            "seed": int(meta["seed"]),
            "heatsoak_version": meta["heatsoak_version"],
            "environment": environment,
        },
        "jobs": [_job(job, [by_id[i] for i in job.device_ids]) for job in jobs],
        "devices": devices,
        "shared_power": together,
        "economics": None,
        "warnings": warnings_of(meta, jobs, devices, together),
    }
    return document | {"economics": economics_today(document, facts)}


def _devices(connection: sqlite3.Connection, jobs: tuple[JobRow, ...]) -> list[dict[str, Any]]:
    units = {device_id: job.unit for job in jobs for device_id in job.device_ids}
    frozen: dict[str, dict[str, Any]] = {
        device_id: json.loads(data)
        for device_id, data in connection.execute(
            "SELECT device_id, data FROM results ORDER BY rowid"
        )
    }
    verdicts = last_verdicts(connection)
    rows = connection.execute("SELECT info FROM devices ORDER BY rowid")
    infos = [codec.device_of(info) for (info,) in rows]
    return [
        _completed(
            frozen.get(info.device_id)
            or _unfinished(info, verdicts.get(info.device_id), units.get(info.device_id, "units")),
            info,
        )
        for info in infos
    ]


def _completed(entry: dict[str, Any], info: DeviceInfo) -> dict[str, Any]:
    """The entry with the keys that the version which recorded it did not have yet."""
    entry = _identity(info) | EVIDENCE | entry
    if entry["energy"] is not None:
        entry["energy"] = {"scope": None, "power_method": None} | entry["energy"]
    return entry


def _unfinished(info: DeviceInfo, verdict: Verdict | None, unit: str) -> dict[str, Any]:
    """The entry of a device whose recorder did not come to a result, or not yet."""
    nothing = dict.fromkeys(
        ("sustained", "last_window", "energy", "boost", "at_10_min", "at_20_min", "throttle")
    )
    return (
        _identity(info)
        | {"unit": unit, "verdict": None if verdict is None else _verdict(verdict)}
        | nothing
    )


def _identity(info: DeviceInfo) -> dict[str, Any]:
    return {
        "device_id": info.device_id,
        "uuid": info.uuid,
        "name": info.name,
        "card": info.card,
        "kind": info.kind,
        "provenance": info.provenance,
        "missing": dict(info.missing),
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "state": verdict.state,
        "flags": list(verdict.flags),
        "frozen_at_s": verdict.frozen_at_s,
        "window_start_s": verdict.window_start_s,
        "window_s": verdict.window_s,
        "blocked_by": verdict.blocked_by,
        "channels": list(verdict.channels),
        "reason": verdict.reason,
        "cycle": None if verdict.cycle is None else asdict(verdict.cycle),
    }


def _numbers(numbers: Sustained, unit: str) -> dict[str, Any]:
    figures = {name: _figure(getattr(numbers, name), unit) for name in FIGURES}
    return {"window_start_s": numbers.window_start_s, "window_s": numbers.window_s} | figures


def _figure(figure: Figure | None, unit: str) -> dict[str, Any] | None:
    """A figure whose mean is not a number is none; an interval that is not finite is not stated.

    The judge says `units/s` and `J/unit`; the reader of the document is told which unit.
    """
    if figure is None or not math.isfinite(figure.mean):
        return None
    return {
        "mean": float(figure.mean),
        "u95": _known(figure.u95),
        "n_eff": _known(figure.n_eff),
        "unit": {"units/s": f"{unit}/s", "J/unit": f"J/{unit.removesuffix('s')}"}.get(
            figure.unit, figure.unit
        ),
    }


def _known(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _throttle(numbers: Sustained) -> dict[str, float]:
    """Shares of the window; a sum of many small shares must not come out above 1."""
    return {reason: min(1.0, share) for reason, share in numbers.throttle_frac.items()}


def _energy(numbers: Sustained, info: DeviceInfo) -> dict[str, Any]:
    counter_j, integrated_j = numbers.counter_j, numbers.integrated_j
    gap = None if not counter_j or integrated_j is None else integrated_j / counter_j - 1
    return {
        "method": numbers.energy_method,
        "counter_j": counter_j,
        "integrated_j": integrated_j,
        "gap_frac": gap,
        "scope": _scope(info) if numbers.energy_method is not None else None,
        "power_method": info.power_method,
    }


def _scope(info: DeviceInfo) -> str | None:
    """What the watts and joules of a device include."""
    if info.kind == "cpu":
        return "package"
    return "card" if info.mig_parent_uuid is not None else info.power_scope


def _job(job: JobRow, devices: list[dict[str, Any]]) -> dict[str, Any]:
    # One counter for the whole job: each of its devices has the same numbers once it is steady.
    is_steady = bool(devices) and all(device["sustained"] for device in devices)
    numbers = devices[0]["sustained"] if is_steady else None
    throughput = numbers["throughput"] if numbers else None
    facts = {key: value for key, value in job.facts.items() if key != "integrity"}
    return {
        "job_id": job.job_id,
        "workload": job.workload,
        "version": job.workload_version,
        "recipe": asdict(job.recipe),
        "recipe_hash": job.recipe.hash,
        "mode": job.mode,
        "unit": job.unit,
        "devices": list(job.device_ids),
        "facts": facts,
        "throughput": throughput,
        "all_in_throughput": numbers["all_in_throughput"] if numbers else None,
        "mfu": _mfu(job, devices, throughput),
        "integrity": job.facts.get("integrity"),
        "scaling": None,
    }


def _mfu(
    job: JobRow, devices: list[dict[str, Any]], throughput: dict[str, Any] | None
) -> dict[str, Any]:
    """Model FLOPs a second over the card's peak: dense BF16 with FP32 accumulation.

    Null unless the device was measured, its card is known by its whole name, and the workload
    says what a unit costs. Against a GEMM measured hot on this very card: not measured yet.
    """
    nominal = None
    flops_per_unit = job.facts.get("flops_per_unit")
    is_measured = all(device["provenance"] == "measured" for device in devices)
    if throughput and flops_per_unit and is_measured and job.recipe.precision == "bf16":
        profile = card_profiles().get(devices[0]["card"] or "")
        peak = profile.bf16_dense_flops if profile else None
        nominal = throughput["mean"] * flops_per_unit / (peak * len(devices)) if peak else None
    return {"nominal_frac": nominal, "measured_frac": None}
