"""The meter: a Lightning callback that counts what is trained and tells the recorder.

It counts batches, not optimizer steps, so that the counter is the same under any accumulation. On
a GPU it never waits for a step: it leaves a CUDA event behind each one and counts the step when
the event says that it is done, at the time the device itself took.
"""

from __future__ import annotations

import gc
import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from lightning.pytorch import Callback
from typing_extensions import override

from heatsoak.clock import monotonic_s
from heatsoak.progress import Integrity, Phase, Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightning.pytorch import LightningModule, Trainer
    from torch import Tensor

    from heatsoak_workloads._channel import Channel, StopRequest

REPORT_PERIOD_S = 0.1
"""Least time between two `Steps` records, in seconds."""
LOSS_PERIOD_S = 1.0
"""Least time between two readings of the loss, in seconds."""
INTEGRITY_PERIOD_S = 10.0
"""Least time between two `Integrity` records without a new failure, in seconds."""
WARM_STEPS = 3
"""Optimizer steps that belong to the phase `compile`: compilation, first allocations, kernels
being chosen."""


class StepEvent(Protocol):
    """What the meter needs of a `torch.cuda.Event`."""

    def record(self) -> None:
        """Leave the event behind the work given to the device so far."""
        ...

    def query(self) -> bool:
        """Whether that work is done; never waits."""
        ...

    def synchronize(self) -> None:
        """Wait until that work is done."""
        ...

    def elapsed_time(self, end_event: Any) -> float:  # noqa: ANN401 - an event of the same kind
        """Milliseconds on the device from this event to `end_event`, both done."""
        ...


@dataclass(frozen=True)
class Finished:
    """The state of the counters when the newest finished batch was finished."""

    monotonic_s: float
    units_done: float
    steps_done: int
    loss: float | None
    """The newest loss read since the last `collect`, or None."""


@dataclass(frozen=True)
class _Pending:
    units_done: float
    steps_done: int
    loss: Tensor | None
    event: StepEvent


class FinishedSteps:
    """Tells which batches the device has finished, without waiting for it.

    Without events (on the CPU) a batch is finished when it is added.
    """

    def __init__(
        self,
        make_event: Callable[[], StepEvent] | None = None,
        now_s: Callable[[], float] = monotonic_s,
    ) -> None:
        """Start with nothing done.

        Args:
            make_event: makes a timing event of the device; None where work is done when it returns.
            now_s: `CLOCK_MONOTONIC` in seconds.
        """
        self._make_event = make_event
        self._now_s = now_s
        self._pending: deque[_Pending] = deque()
        self._anchor: tuple[float, StepEvent] | None = None
        self._newest: Finished | None = None

    def anchor(self) -> None:
        """Tie the device's clock to ours: the one wait for the device, before the first step."""
        if self._make_event is None:
            return
        event = self._make_event()
        event.record()
        event.synchronize()
        self._anchor = (self._now_s(), event)

    def add(self, units_done: float, steps_done: int, loss: Tensor | None) -> None:
        """A batch was given to the device.

        Args:
            units_done: units including this batch, cumulative.
            steps_done: optimizer steps including this batch, cumulative.
            loss: its loss, a tensor of one number, where it should be read; else None.
        """
        if self._make_event is None:
            value = None if loss is None else float(loss)
            self._finish(self._now_s(), units_done, steps_done, value)
            return
        host_loss = None
        if loss is not None:
            # Copied behind the step and before its event: read later without waiting.
            host_loss = torch.empty((), dtype=torch.float32, pin_memory=loss.is_cuda)
            host_loss.copy_(loss, non_blocking=True)
        event = self._make_event()
        event.record()
        self._pending.append(_Pending(units_done, steps_done, host_loss, event))

    def collect(self) -> Finished | None:
        """The newest finished batch, or None when none was finished since the last call."""
        while self._pending and self._pending[0].event.query():
            done = self._pending.popleft()
            loss = None if done.loss is None else float(done.loss)
            self._finish(self._time_of(done.event), done.units_done, done.steps_done, loss)
        newest, self._newest = self._newest, None
        return newest

    def drain(self) -> Finished | None:
        """Wait for everything given to the device, then `collect`."""
        if self._pending:
            self._pending[-1].event.synchronize()
        return self.collect()

    def _time_of(self, event: StepEvent) -> float:
        """When the device reached `event`, on our clock; never in the future."""
        now_s = self._now_s()
        if self._anchor is None:
            return now_s
        anchor_s, anchor = self._anchor
        return min(now_s, anchor_s + anchor.elapsed_time(event) / 1000.0)

    def _finish(self, t_s: float, units_done: float, steps_done: int, loss: float | None) -> None:
        if loss is None and self._newest is not None:
            loss = self._newest.loss
        self._newest = Finished(t_s, units_done, steps_done, loss)


class Meter(Callback):
    """Counts units and steps, reports them with the loss, and stops the trainer when asked."""

    def __init__(
        self,
        channel: Channel,
        stop: StopRequest,
        count_units: Callable[[Any], int],
        now_s: Callable[[], float] = monotonic_s,
    ) -> None:
        """Count from zero.

        Args:
            channel: where the records go.
            stop: the request to stop, looked at after every batch.
            count_units: units in one batch of one rank.
            now_s: `CLOCK_MONOTONIC` in seconds.
        """
        self.units_done = 0.0
        """Units given to the device so far; all finished once the training has ended."""
        self.steps_done = 0
        """Optimizer steps given to the device so far."""
        self._channel = channel
        self._stop = stop
        self._count_units = count_units
        self._now_s = now_s
        self._finished = FinishedSteps(None, now_s)
        self._is_warm = False
        self._loss: float | None = None
        self._loss_asked_s = -math.inf
        self._reported_s = -math.inf
        self._checks = 0
        self._failures = 0
        self._integrity_told = (-math.inf, 0)

    @override
    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # Lightning has put its SIGTERM handler, which raises, around ours: ours alone again.
        self._stop.listen()
        if pl_module.device.type == "cuda":
            make_event = _cuda_events(pl_module.device)
            self._finished = FinishedSteps(make_event, self._now_s)
        self._finished.anchor()
        self._tell_phase("compile")

    @override
    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now_s = self._now_s()
        self.units_done += self._count_units(batch) * trainer.world_size
        self.steps_done = trainer.global_step
        loss = None
        if now_s - self._loss_asked_s >= LOSS_PERIOD_S:
            # Lightning hands over the loss divided by the accumulation.
            loss = outputs["loss"] * trainer.accumulate_grad_batches
            self._loss_asked_s = now_s
        self._finished.add(self.units_done, self.steps_done, loss)
        self._stop.has_started = True
        if not self._is_warm and self.steps_done >= WARM_STEPS:
            self._is_warm = True
            self._report(self._finished.drain())
            # What lives now lives to the end: the collector need not walk it again, mid-step.
            gc.collect()
            gc.freeze()
            self._tell_phase("train")
        elif now_s - self._reported_s >= REPORT_PERIOD_S:
            self._report(self._finished.collect())
        if self._stop.is_set:
            trainer.should_stop = True

    @override
    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._report(self._finished.drain())
        self._tell_integrity(is_forced=True)
        self._tell_phase("teardown")

    def _report(self, finished: Finished | None) -> None:
        if finished is None:
            return
        if finished.loss is not None:
            self._check(finished.loss)
        record = Steps(finished.monotonic_s, finished.units_done, finished.steps_done, self._loss)
        if self._channel.write(record):
            self._loss = None
            self._reported_s = self._now_s()
        self._tell_integrity()

    def _check(self, loss: float) -> None:
        self._checks += 1
        if math.isfinite(loss):
            self._loss = loss
        else:
            self._loss = None
            self._failures += 1

    def _tell_integrity(self, *, is_forced: bool = False) -> None:
        told_s, told_failures = self._integrity_told
        now_s = self._now_s()
        is_due = now_s - told_s >= INTEGRITY_PERIOD_S or self._failures > told_failures
        if self._checks == 0 or not (is_due or is_forced):
            return
        text = f"loss is finite in {self._checks - self._failures} of {self._checks} readings"
        self._channel.write(Integrity(now_s, self._checks, self._failures, text))
        self._integrity_told = (now_s, self._failures)

    def _tell_phase(self, phase: str) -> None:
        self._channel.write(Phase(self._now_s(), phase))


def _cuda_events(device: torch.device) -> Callable[[], StepEvent]:
    def make_event() -> StepEvent:
        with torch.cuda.device(device):
            return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    return make_event
