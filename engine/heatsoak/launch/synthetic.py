"""The job of a synthetic card: arithmetic inside the recorder, with the records of a child."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from heatsoak.launch.job import LogLine, TimedRecord
from heatsoak.progress import Done, Failed, Hello, Phase, Record, Steps
from heatsoak.telemetry.vendors.synthetic import SyntheticWork
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heatsoak.recipe import Recipe
    from heatsoak.telemetry.vendors.synthetic import SyntheticCard


class SyntheticJob:
    """Loads one synthetic card and reports what it did; its instants are session time."""

    failure: str | None = None
    """Set when the card was told that its workload crashes; arithmetic alone does not fail."""
    stderr_tail: Sequence[str] = ()

    def __init__(self, card: SyntheticCard, recipe: Recipe, size: Mapping[str, Any]) -> None:
        """A job on `card`, idle until `start`.

        Args:
            card: where it runs.
            recipe: what it pretends to train.
            size: the preset of the recipe's size, from the workload's literal.
        """
        self._card = card
        self._parameters = float(size["parameters"])
        self._work = synthetic_work(recipe, self._parameters, float(size["memory_gib"]))
        self._t_s = 0.0
        self._records: list[TimedRecord] = []
        self._is_running = False
        self._phase = "train"

    def start(self, t_s: float) -> None:
        """Put the load on the card, at session time `t_s`."""
        self._t_s = t_s
        self._card.start_load(t_s, self._work)
        self._is_running = True
        info = self._card.info
        facts = {"synthetic": True, "parameters": self._parameters}
        self._report(Hello(t_s, os.getpid(), self._card.unit, info.uuid, info.name, facts))
        self._report(Phase(t_s, self._phase))

    def poll(self, t_s: float) -> Sequence[TimedRecord]:
        """The counter as it stands at session time `t_s`, and what came before it."""
        if self._is_running:
            crash_s = self._card.crash_s()
            until_s = t_s if crash_s is None else min(t_s, crash_s)
            # At high speed a poll covers many session seconds: each gets its record.
            for second in range(int(self._t_s) + 1, int(until_s) + 1):
                if second < until_s:
                    self._count(float(second))
            self._count(until_s)
            if until_s < t_s:
                self._crash()
        records, self._records = self._records, []
        return records

    def stop(self) -> None:
        """Take the load off, as of the last poll."""
        if not self._is_running:
            return
        self._is_running = False
        units = self._card.units_done(self._t_s)
        self._card.stop_load(self._t_s)
        self._report(Done(self._t_s, units, self._steps(units)))

    def kill(self) -> None:
        """The same as `stop`: there is no process."""
        self.stop()

    def take_log(self) -> Sequence[LogLine]:
        """Nothing: arithmetic does not print."""
        return ()

    def take_warnings(self) -> Sequence[str]:
        """Nothing."""
        return ()

    def filenos(self) -> Sequence[int]:
        """Nothing."""
        return ()

    @property
    def is_gone(self) -> bool:
        """Whether it puts no load on the card, and its last record was taken."""
        return not self._is_running and not self._records

    def _crash(self) -> None:
        self._is_running = False
        self._card.stop_load(self._t_s)
        self.failure = "the workload failed: the synthetic workload was told to crash"
        self._report(Failed(self._t_s, "the synthetic workload was told to crash"))

    def _count(self, t_s: float) -> None:
        self._t_s = t_s
        phase = "eval" if self._card.is_evaluating(t_s) else "train"
        if phase != self._phase:
            self._phase = phase
            self._report(Phase(t_s, phase))
        units = self._card.units_done(t_s)
        self._report(Steps(t_s, units, self._steps(units), None))

    def _steps(self, units: float) -> int:
        return int(units / self._card.units_per_step)

    def _report(self, record: Record) -> None:
        self._records.append(TimedRecord(self._t_s, record))


def synthetic_work(recipe: Recipe, parameters: float, memory_gib: float) -> SyntheticWork:
    """What a token of a recipe costs: the usual count for mixed-precision AdamW.

    Six operations a parameter (Kaplan et al., arXiv 2001.08361). Each micro batch reads the 16-bit
    weights forward and backward and adds to 32-bit gradients (8 bytes a parameter); each step reads
    weights, gradients and two moments and writes all but the gradients (28 bytes).
    """
    tokens = recipe.micro_batch * recipe.context
    bytes_per_parameter = 8.0 / tokens + 28.0 / (tokens * recipe.accumulate)
    return SyntheticWork(
        flops_per_unit=6.0 * parameters,
        bytes_per_unit=bytes_per_parameter * parameters,
        memory_bytes=int(memory_gib * BYTES_PER_GIB),
    )
