"""Rows to SQLite's values and back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

from heatsoak.recipe import Recipe
from heatsoak.session.rows import EventRow, JobRow, LogRow, ResultRow, StepsRow
from heatsoak.steady_state.verdict import Bound, Cycling, Verdict
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import READINGS, DeviceSample

Values = tuple[Any, ...]

SAMPLE_COLUMNS = ("t_s", "device_id", *READINGS)
VERDICT_COLUMNS = (
    "t_s", "device_id", "state", "flags", "reason", "channels", "bounds", "blocked_by",
    "window_start_s", "window_s", "frozen_at_s", "time_left_s", "cycle",
)  # fmt: skip
_THROTTLE = SAMPLE_COLUMNS.index("throttle_reasons")
_INFO_FIELDS = {f.name for f in fields(DeviceInfo)}


def to_json(value: Any) -> str:  # noqa: ANN401
    """JSON without spaces; a number that is none (NaN, infinity) is not known: null."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain)
    except ValueError:
        plain = json.loads(json.dumps(value, default=_plain))
        return json.dumps(_finite(plain), separators=(",", ":"), allow_nan=False)


def to_text(text: str) -> str:
    """Text as SQLite takes it: what was no UTF-8 on the command line becomes `?`."""
    return text.encode(errors="replace").decode()


def _plain(value: object) -> object:
    if hasattr(value, "tolist"):  # A number or an array of numpy.
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return value


def sample_values(sample: DeviceSample) -> Values:
    """One row of `samples`."""
    row = [getattr(sample, name) for name in SAMPLE_COLUMNS]
    reasons = row[_THROTTLE]
    row[_THROTTLE] = None if reasons is None else "|".join(reasons)
    return tuple(row)


def sample_of(row: Values) -> DeviceSample:
    """The reading of a row of `samples`; readings that an earlier version did not know are None."""
    reasons = row[_THROTTLE]
    decoded = None if reasons is None else _split(reasons)
    return DeviceSample(*row[:_THROTTLE], decoded, *row[_THROTTLE + 1 :])  # type: ignore[call-arg]


def verdict_values(verdict: Verdict) -> Values:
    """One row of `verdicts`."""
    left, cycle = verdict.time_left_s, verdict.cycle
    return (
        verdict.t_s, verdict.device_id, verdict.state, "|".join(verdict.flags),
        to_text(verdict.reason),
        "|".join(verdict.channels), to_json([asdict(bound) for bound in verdict.bounds]),
        verdict.blocked_by, verdict.window_start_s, verdict.window_s, verdict.frozen_at_s,
        None if left is None else to_json(left),
        None if cycle is None else to_json(asdict(cycle)),
    )  # fmt: skip


def verdict_of(row: Values) -> Verdict:
    """The verdict of a row of `verdicts`; of an earlier version, it lacks the newest columns."""
    named: dict[str, Any] = dict.fromkeys(VERDICT_COLUMNS) | dict(
        zip(VERDICT_COLUMNS, row, strict=False)
    )
    left = named["time_left_s"]
    named["flags"] = _split(named["flags"])
    named["channels"] = _split(named["channels"])
    named["bounds"] = tuple(Bound(**bound) for bound in json.loads(named["bounds"]))
    named["time_left_s"] = None if left is None else tuple(json.loads(left))
    named["cycle"] = None if named["cycle"] is None else Cycling(**json.loads(named["cycle"]))
    return Verdict(**named)


def device_values(info: DeviceInfo) -> Values:
    """One row of `devices`."""
    whole = {name: getattr(info, name) for name in _INFO_FIELDS}
    whole["missing"] = dict(info.missing)
    return (
        info.device_id, info.uuid, info.name, info.card, info.kind, info.provenance, to_json(whole),
    )  # fmt: skip


def device_of(info_json: str) -> DeviceInfo:
    """The device of the column `info`; fields of a later version are left out."""
    known = {k: v for k, v in json.loads(info_json).items() if k in _INFO_FIELDS}
    return DeviceInfo(**known)


def job_values(job: JobRow) -> Values:
    """One row of `jobs`."""
    return (
        job.job_id, job.workload, job.workload_version, job.recipe.to_json(), job.recipe.hash,
        job.mode, job.unit, to_json(job.facts),
    )  # fmt: skip


def job_of(row: Values, device_ids: tuple[str, ...]) -> JobRow:
    """The job of a row of `jobs`."""
    job_id, workload, version, recipe, _, mode, unit, facts = row
    return JobRow(
        job_id, workload, version, Recipe.from_json(recipe), mode, unit, device_ids,
        json.loads(facts),
    )  # fmt: skip


def event_values(event: EventRow) -> Values:
    """One row of `events`."""
    data = to_json(event.data)
    return (event.t_s, event.kind, event.device_id, event.job_id, to_text(event.text), data)


def event_of(row: Values) -> EventRow:
    """The event of a row of `events`."""
    t_s, kind, device_id, job_id, text, data = row
    return EventRow(t_s, kind, text, device_id, job_id, json.loads(data))


def steps_values(row: StepsRow) -> Values:
    """One row of `steps`; SQLite stores a loss that is not a number as null."""
    return (row.t_s, row.job_id, row.units_done, row.steps_done, row.loss)


def log_values(row: LogRow) -> Values:
    """One row of `log`."""
    return (row.t_s, row.job_id, row.stream, to_text(row.text))


def result_values(result: ResultRow) -> Values:
    """One row of `results`."""
    return (result.t_s, result.device_id, result.job_id, to_json(result.data))


def result_of(row: Values) -> ResultRow:
    """The result of a row of `results`."""
    return ResultRow(row[0], row[1], row[2], json.loads(row[3]))


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("|")) if text else ()
