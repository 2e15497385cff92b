"""The rows of a session file as plain frozen data; `store` and `tail` map them to SQLite."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from heatsoak.recipe import Recipe
    from heatsoak.steady_state.verdict import Verdict
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

SessionState = Literal[
    "recording", "steady", "not-steady", "stuck", "idle", "lost", "failed", "interrupted"
]
"""`recording` while a recorder owns the file; afterwards the worst end state of its devices."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One training run."""

    job_id: str
    workload: str
    workload_version: int
    recipe: Recipe
    mode: Literal["replica", "ddp", "fsdp", "script", "synthetic"]
    unit: str
    device_ids: tuple[str, ...]
    """Its devices in the order of their ranks."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the child said of itself in its hello; empty before it spoke."""


@dataclass(frozen=True, slots=True)
class StepsRow:
    """Progress of one job; at most one row a job and second."""

    t_s: float
    job_id: str
    units_done: float
    steps_done: int
    loss: float | None


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """A job entered a phase."""

    t_s: float
    job_id: str
    phase: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """Something that happened, in words."""

    t_s: float
    kind: str
    """`start`, `state`, `disturbed`, `mark`, `extend`, `lost`, `silent`, `error`, `warning`,
    `end`."""
    text: str
    device_id: str | None = None
    job_id: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One result as it was frozen: the device's entry of `heatsoak-result/1`, and its job's."""

    t_s: float
    device_id: str
    job_id: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line a child printed."""

    t_s: float
    job_id: str
    stream: Literal["stdout", "stderr"]
    text: str


@dataclass(frozen=True, slots=True)
class RollupRow:
    """One reading of one device or job over one span, for drawing."""

    start_s: float
    span_s: float
    """10 or 300 seconds."""
    owner: str
    """A device_id, or a job_id for the reading `rate` (units a second)."""
    reading: str
    minimum: float
    maximum: float
    mean: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Everything that came into a session file since the last poll."""

    meta: dict[str, str]
    """The whole of `meta`."""
    devices: tuple[DeviceInfo, ...] = ()
    """All devices, on the first poll only."""
    jobs: tuple[JobRow, ...] = ()
    """All jobs, on the first poll and whenever one changed."""
    samples: tuple[DeviceSample, ...] = ()
    steps: tuple[StepsRow, ...] = ()
    phases: tuple[PhaseRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    results: tuple[ResultRow, ...] = ()
    logs: tuple[LogRow, ...] = ()
    rollups: tuple[RollupRow, ...] = ()
    """On a first poll of a long session: the past at 10 s or 300 s, in place of its samples."""
