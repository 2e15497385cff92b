"""Real soaks of synthetic cards, judged by the real judge, as batches or as a session file."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from heatsoak.recipe import Recipe
from heatsoak.session.result import result_entry
from heatsoak.session.rows import Batch, EventRow, JobRow, PhaseRow, ResultRow, StepsRow
from heatsoak.session.store import SessionWriter
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.discovery import open_devices
from heatsoak_tui.run_view import RunView

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = Recipe("synthetic", "1B", 4096, 4, 1, "bf16", "flash", False, False, "adamw")


@dataclass
class Soak:
    """A run: its opening batch, and one batch a second."""

    meta: dict[str, str]
    devices: tuple[Any, ...]
    jobs: tuple[JobRow, ...]
    batches: list[Batch] = field(default_factory=list)

    def view(self) -> RunView:
        view = RunView()
        view.apply(Batch(self.meta, devices=self.devices, jobs=self.jobs))
        for batch in self.batches:
            view.apply(batch)
        return view

    def write(self, path: Path) -> Path:
        """The session file, closed if the run has ended."""
        writer = self.open(path)
        writer.write(self.joined())
        if self.meta["state"] != "recording":
            writer.close(self.meta["state"])
        return path

    def open(self, path: Path) -> SessionWriter:
        meta = {**self.meta, "state": "recording"}
        return SessionWriter.create(path, meta=meta, devices=self.devices, jobs=self.jobs)

    def joined(self) -> Batch:
        every = {
            name: tuple(row for batch in self.batches for row in getattr(batch, name))
            for name in ("samples", "steps", "phases", "events", "verdicts", "results")
        }
        return Batch({}, **every)


@cache
def _soak(spec: str, until_s: int, protocol: str, end: str | None) -> Soak:
    devices = open_devices(spec, seed=7)
    infos = tuple(device.info for device in devices)
    jobs = tuple(
        JobRow(f"job-{n}", "synthetic", 1, RECIPE, "synthetic", "tokens", (info.device_id,))
        for n, info in enumerate(infos)
    )
    meta = {
        "id": "k3f9", "created_utc": "2026-11-30T22:41:07Z", "host": "aurora",
        "protocol": protocol, "heatsoak_version": "0.1.0", "speed": "1.0",
        "state": "recording", "seed": "7",
    }  # fmt: skip
    run = Soak(meta, infos, jobs)
    judges = [Judge(PROTOCOLS[protocol], [info]) for info in infos]
    states: dict[str, str] = {}
    frozen: set[str] = set()
    for t in range(until_s):
        t_s = float(t)
        rows: dict[str, list[Any]] = {
            name: [] for name in ("samples", "steps", "phases", "events", "verdicts", "results")
        }
        for device, job, judge in zip(devices, jobs, judges, strict=True):
            if t == 0:
                rows["events"].append(EventRow(t_s, "start", "recording", device.info.device_id))
            if t == 6:
                device.start_load(t_s)
                rows["phases"].append(PhaseRow(t_s, job.job_id, "train"))
                judge.add_phase(t_s, "train")
            try:
                sample = device.read(t_s)
            except (DeviceReadError, DeviceLostError):
                sample = None
            if sample is not None:
                rows["samples"].append(sample)
                judge.add_sample(sample)
            if t >= 6:
                units = device.units_done(t_s)
                rows["steps"].append(StepsRow(t_s, job.job_id, units, t, 4.0 / (1 + t / 300)))
                judge.add_steps(t_s, units)
            for verdict in judge.evaluate(t_s):
                rows["verdicts"].append(verdict)
                if states.get(verdict.device_id) != verdict.state:
                    states[verdict.device_id] = verdict.state
                    text = f"{verdict.device_id} {verdict.state}: {verdict.reason}"
                    rows["events"].append(EventRow(t_s, "state", text, verdict.device_id))
                if verdict.frozen_at_s is not None and verdict.device_id not in frozen:
                    frozen.add(verdict.device_id)
                    rows["results"] += _results(judge, t_s, job, device.info)
        if t == 400:
            rows["events"].append(EventRow(t_s, "mark", "window opened"))
        if any(rows.values()):
            run.batches.append(Batch(meta, **{name: tuple(found) for name, found in rows.items()}))
    if end is not None:
        run.meta = {**meta, "state": end}
        final: list[ResultRow] = []
        for device, job, judge in zip(devices, jobs, judges, strict=True):
            if end == "interrupted":
                judge.close(float(until_s), "interrupted", "stopped by the user")
            final += _results(judge, float(until_s), job, device.info)
        verdicts = tuple(result.verdict for judge in judges for result in judge.results())
        run.batches.append(Batch(run.meta, results=tuple(final), verdicts=verdicts))
    return run


def _results(judge: Judge, t_s: float, job: JobRow, info: Any) -> list[ResultRow]:
    return [
        ResultRow(t_s, result.device_id, job.job_id, result_entry(result, info, job.unit))
        for result in judge.results()
    ]


@pytest.fixture(scope="session")
def soak():
    """soak(spec, until_s, protocol, end) -> Soak; made once for each set of arguments."""

    def make(
        spec: str = "synthetic:rtx-5090x2",
        until_s: int = 872,
        protocol: str = "standard",
        end: str | None = None,
    ) -> Soak:
        return _soak(spec, until_s, protocol, end)

    return make


class Quiet:
    """A recorder that is there and does as it is told, on paper."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.is_there = True

    def is_alive(self) -> bool:
        return self.is_there

    def close_crashed(self) -> None:
        self.asked.append("close")

    def stop(self) -> None:
        self.asked.append("stop")

    def mark(self, text: str) -> None:
        self.asked.append(("mark", text))

    def extend(self, seconds: float) -> None:
        self.asked.append(("extend", seconds))


@pytest.fixture
def quiet() -> Quiet:
    return Quiet()
