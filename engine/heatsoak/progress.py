"""The records a training child writes: newline-delimited JSON on an inherited descriptor.

Standard library only, runs on Python 3.9, so that a child may live in the user's own environment.
Every record carries `v` (version of this format), `kind` and `monotonic_s` (`CLOCK_MONOTONIC`,
which all processes of a machine share).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Union

VERSION = 1
DESCRIPTOR_VARIABLE = "HEATSOAK_PROGRESS_FD"
"""Environment variable that holds the number of the descriptor a child writes its records to."""
SESSION_VARIABLE = "HEATSOAK_SESSION"
"""Environment variable with the id of the session, carried by every process of a run."""

PHASES = ("start", "compile", "train", "eval", "checkpoint", "teardown")
"""What a child may be doing. Seconds outside `train` are paused seconds."""


@dataclass(frozen=True)
class Hello:
    """The first record: what runs, on which device, as the child itself sees it."""

    monotonic_s: float
    pid: int
    unit: str
    """What `units_done` counts: `tokens`, `images` or `samples`."""
    device_uuid: str | None
    """NVML UUID of the device the child computes on; None for the host CPU."""
    device_name: str
    facts: dict[str, Any] = field(default_factory=dict)
    """What the child measured or chose: parameters, precision, attention, `flops_per_unit`."""
    device_memory_bytes: int | None = None
    """Memory of the device as the child's own library sees it; None where it was not asked."""


@dataclass(frozen=True)
class Steps:
    """Cumulative progress; at most 10 a second."""

    monotonic_s: float
    units_done: float
    """Units finished since the start of the job: whole job, all ranks."""
    steps_done: int
    """Optimizer steps finished since the start of the job."""
    loss: float | None
    """Training loss of the last finished step; None where none was read since the last record."""


@dataclass(frozen=True)
class Phase:
    """The child entered a phase, one of `PHASES`."""

    monotonic_s: float
    phase: str


@dataclass(frozen=True)
class Integrity:
    """Cumulative checks of the arithmetic (finite loss, repeated step) and their failures."""

    monotonic_s: float
    checks: int
    failures: int
    text: str


@dataclass(frozen=True)
class Done:
    """The child ended as asked."""

    monotonic_s: float
    units_done: float
    steps_done: int


@dataclass(frozen=True)
class Failed:
    """The child cannot go on; `text` is one line for the user."""

    monotonic_s: float
    text: str


Record = Union[Hello, Steps, Phase, Integrity, Done, Failed]  # noqa: UP007 - Python 3.9
_KINDS: dict[str, type[Record]] = {
    "hello": Hello,
    "steps": Steps,
    "phase": Phase,
    "integrity": Integrity,
    "done": Done,
    "failed": Failed,
}
_NAMES = {cls: kind for kind, cls in _KINDS.items()}


class RecordError(ValueError):
    """A line that is no record of this version."""


def encode(record: Record) -> bytes:
    """One record as one line of JSON, ending with a newline."""
    line = {"v": VERSION, "kind": _NAMES[type(record)]}
    line.update(asdict(record))
    return json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def decode(line: bytes) -> Record:
    """The record of one line.

    Raises:
        RecordError: the line is not JSON, of another version, or of no known kind or fields.
    """
    try:
        fields = json.loads(line)
        version = fields.pop("v")
        kind = _KINDS[fields.pop("kind")]
        if version != VERSION:
            raise RecordError(f"progress record of version {version}, this is version {VERSION}")
        return kind(**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"not a progress record: {line[:80]!r}") from error


class LineBuffer:
    """Cuts a stream of bytes into records' lines; keeps a torn last line for the next feed."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The complete lines that `data` finished, without their newlines."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line for line in lines if line]
