"""What the recorder sees of a job, whether it is a child process or arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.progress import Record


class TimedRecord(NamedTuple):
    """A progress record and the session time at which it was true."""

    t_s: float
    record: Record


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line a child printed."""

    t_s: float
    stream: Literal["stdout", "stderr"]
    text: str


class Job(Protocol):
    """One training run, polled by the recorder's loop; nothing of it blocks."""

    def start(self, t_s: float) -> None:
        """Begin, at session time `t_s`."""
        ...

    def poll(self, t_s: float) -> Sequence[TimedRecord]:
        """What the job reported since the last poll, in order."""
        ...

    def take_log(self) -> Sequence[LogLine]:
        """What the job printed since the last call."""
        ...

    def take_warnings(self) -> Sequence[str]:
        """What went wrong without ending the job since the last call, a sentence each."""
        ...

    def stop(self) -> None:
        """Ask the job to end; what has not ended after a grace period is killed."""
        ...

    def kill(self) -> None:
        """End the job, and whatever it started, now."""
        ...

    def filenos(self) -> Sequence[int]:
        """Descriptors that become readable when a poll should not wait for its turn."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the job ended without being asked, in words; None while it has not."""
        ...

    @property
    def stderr_tail(self) -> Sequence[str]:
        """The last lines of the job's stderr."""
        ...

    @property
    def is_gone(self) -> bool:
        """Whether nothing of the job is left."""
        ...
