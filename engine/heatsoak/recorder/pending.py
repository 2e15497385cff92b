"""What has come in since the last commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heatsoak.session.rows import Batch, EventRow

if TYPE_CHECKING:
    from heatsoak.session.rows import JobRow, LogRow, PhaseRow, ResultRow, StepsRow
    from heatsoak.steady_state.verdict import Verdict
    from heatsoak.telemetry.sample import DeviceSample


@dataclass(slots=True)
class Pending:
    """Rows on their way into the session file."""

    meta: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, JobRow] = field(default_factory=dict)
    """Jobs that changed, by id."""
    samples: list[DeviceSample] = field(default_factory=list)
    steps: dict[tuple[str, int], StepsRow] = field(default_factory=dict)
    """The last of each job and session second."""
    phases: list[PhaseRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    results: list[ResultRow] = field(default_factory=list)
    logs: list[LogRow] = field(default_factory=list)

    def event(
        self,
        t_s: float,
        kind: str,
        text: str,
        *,
        device_id: str | None = None,
        job_id: str | None = None,
        **data: Any,  # noqa: ANN401 - becomes JSON
    ) -> None:
        """Something happened, in words."""
        self.events.append(EventRow(t_s, kind, text, device_id, job_id, data))

    def step(self, row: StepsRow) -> None:
        """Progress; only the last of each second is kept."""
        self.steps[row.job_id, int(row.t_s)] = row

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not any(getattr(self, name) for name in self.__slots__)

    def take(self) -> Batch:
        """Everything as one batch; nothing is pending afterwards."""
        batch = Batch(
            meta=self.meta,
            jobs=tuple(self.jobs.values()),
            samples=tuple(self.samples),
            steps=tuple(self.steps.values()),
            phases=tuple(self.phases),
            events=tuple(self.events),
            verdicts=tuple(self.verdicts),
            results=tuple(self.results),
            logs=tuple(self.logs),
        )
        fresh = Pending()
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))
        return batch
