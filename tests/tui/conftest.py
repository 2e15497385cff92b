"""Real soaks of synthetic cards, judged by the real judge, as batches or as a session file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from heatsoak.launch.catalog import WorkloadInfo
from heatsoak.recipe import Recipe
from heatsoak.session.result import result_entry
from heatsoak.session.rows import Batch, EventRow, JobRow, PhaseRow, ResultRow, StepsRow
from heatsoak.session.store import SessionWriter
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.steady_state.verdict import Boost, Bound, Figure, Result, Sustained, Verdict
from heatsoak.telemetry.device import DeviceInfo, DeviceLostError, DeviceReadError
from heatsoak.telemetry.discovery import open_devices
from heatsoak.telemetry.sample import DeviceSample
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

    def say_quiet(self, quiet_s: float) -> str:
        return ""  # However slow the machine, a picture is not to say so.

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


def written_run(until_s: int, *, is_frozen: bool = False, end: str | None = None) -> Soak:
    """A run of two cards written down by formula: no judge, no model, the same for ever."""
    infos = tuple(
        DeviceInfo(
            f"synthetic-{n}", f"SYNTHETIC-RTX-5090-{n}", "SYNTHETIC GeForce RTX 5090", "synthetic",
            "synthetic", card="rtx-5090", memory_total_bytes=32 * 1024**3, power_limit_w=575.0,
            power_limit_default_w=575.0, temperature_limit_c=83.0, fan_max_pct=100.0,
        )
        for n in (0, 1)
    )  # fmt: skip
    jobs = tuple(
        JobRow(f"job-{n}", "synthetic", 1, RECIPE, "synthetic", "tokens", (info.device_id,))
        for n, info in enumerate(infos)
    )
    meta = {
        "id": "k3f9", "created_utc": "2026-11-30T22:41:07Z", "host": "aurora",
        "protocol": "standard", "heatsoak_version": "0.1.0", "speed": "1.0",
        "state": "recording", "seed": "1",
    }  # fmt: skip
    run = Soak(meta, infos, jobs)
    units = [0.0, 0.0]
    for t in range(until_s):
        samples, steps = [], []
        for n, info in enumerate(infos):
            heat = 1 - 0.7 * math.exp(-t / 60) - 0.3 * math.exp(-t / 500)
            wave = math.sin(t * 2.399 + n) + math.sin(t * 0.61)
            rate = (9812 - (400 + 180 * n) * heat + 12 * wave) if t >= 6 else 0.0
            units[n] += rate
            reasons = ("sw_power_cap",) if t > 8 else ()
            samples.append(
                DeviceSample(
                    float(t), info.device_id, power_w=(561 + 5 * n + 3 * wave) if t > 6 else 62.0,
                    energy_j=561.0 * t, temperature_c=float(int(31 + (43 + 5 * n) * heat)),
                    sm_clock_mhz=float(int((2550 - 115 * heat - 50 * n) / 15) * 15),
                    mem_clock_mhz=14001.0, utilization_pct=99.0 if t > 6 else 0.0,
                    memory_used_bytes=23 * 1024**3, fan_pct=float(int(30 + 38 * heat)),
                    power_limit_w=575.0, throttle_reasons=reasons,
                )
            )  # fmt: skip
            if t >= 6:
                steps.append(StepsRow(float(t), f"job-{n}", units[n], t, None))
        run.batches.append(Batch(meta, samples=tuple(samples), steps=tuple(steps)))
    events = [
        EventRow(41.0, "state", "compile done", None, "job-0"),
        EventRow(370.0, "disturbed", "rate −9 % for 22 s", "synthetic-0"),  # noqa: RUF001
        EventRow(540.0, "mark", "window opened"),
    ]
    verdicts = tuple(_written_verdict(n, until_s, is_frozen=is_frozen) for n in (0, 1))
    results: list[ResultRow] = []
    if is_frozen:
        results = [
            ResultRow(1270.0, info.device_id, f"job-{n}",
                      result_entry(_written_result(n, verdicts[n]), info, "tokens"))
            for n, info in enumerate(infos)
        ]  # fmt: skip
    if end is not None:
        run.meta = {**meta, "state": end}
    run.batches.append(
        Batch(run.meta, events=tuple(events), verdicts=verdicts, results=tuple(results))
    )
    return run


def _written_verdict(n: int, t: int, *, is_frozen: bool) -> Verdict:
    power = 0.4 if n or is_frozen else 0.7
    return Verdict(
        float(t), f"synthetic-{n}", "steady" if is_frozen else "holding" if n else "settling",
        ("power-capped",) if not n else ("power-capped", "disturbed"),
        "the last 4 min are frozen" if is_frozen
        else "holding still to be sure" if n
        else "case still heating, about 2.1 °C to come",
        ("rate", "power", "clock", "temperature", "fan"),
        (
            Bound("temperature", 2.1, 3.0, "°C", is_ok=True),
            Bound("power", power, 0.5, "%", is_ok=power <= 0.5),
            Bound("clock", 0.4, 0.6, "%", is_ok=True),
            Bound("rate", 0.6, 1.5, "%", is_ok=True),
            Bound("fan", 3.0, 16.0, "points", is_ok=True),
        ),
        None if n or is_frozen else "power",
        1000.0 if is_frozen else 0.4 * t, 270.0 if is_frozen else 0.6 * t,
        1270.0 if is_frozen else None, None if is_frozen else (360.0, 1500.0),
    )  # fmt: skip


def _written_result(n: int, verdict: Verdict) -> Result:
    rate = 9402.0 - 214 * n
    figures = Sustained(
        1000.0, 270.0, Figure(rate, 38.0, 25.0, "tokens/s"), Figure(rate, 38.0, 25.0, "tokens/s"),
        Figure(561.0 + 5 * n, 2.0, 25.0, "W"), Figure(74.6 + 5 * n, 0.4, 25.0, "°C"),
        Figure(2437.0 - 52 * n, 4.0, 25.0, "MHz"), Figure(14001.0, 0.0, 25.0, "MHz"),
        Figure(99.0, 0.1, 25.0, "%"), Figure(23.0 * 1024**3, 0.0, 25.0, "B"),
        Figure((561 + 5 * n) / rate, 0.0003, 25.0, "J/token"), "counter", 151470.0, 151773.0,
        {"sw_power_cap": 1.0},
    )  # fmt: skip
    boost = Boost(9812.0, 30.0, 8.0, 1 - rate / 9812.0)
    return Result(f"synthetic-{n}", verdict, figures, boost, 9455.0 - 214 * n, 9404.0 - 214 * n)


@pytest.fixture
def written():
    """written(until_s, is_frozen=, end=) -> Soak."""
    return written_run


@pytest.fixture
def fixed_offer(monkeypatch):
    """Workloads and a protocol that stay as they are when the real ones change."""
    common = {"version": 1, "unit": "tokens", "archetype": ""}
    sizes = {
        "350M": {"memory_gib": 20.0, "kinds": ["nvidia"], "recipe": {"context": 2048}},
        "1B": {"memory_gib": 26.3, "kinds": ["nvidia", "synthetic"]},
    }
    recipe = {
        "size": "1B", "context": 4096, "micro_batch": 2, "accumulate": 1, "precision": "bf16",
        "attention": "auto", "compile": False, "checkpointing": False, "optimizer": "adamw",
    }  # fmt: skip
    options = {
        "context": "int", "micro_batch": "int", "precision": ["bf16", "fp32"],
        "attention": ["auto", "flash"], "compile": [False, True], "learning_rate": "float",
    }  # fmt: skip
    offer = {
        "llm_pretrain": WorkloadInfo(
            "llm_pretrain", title="Pre-training of a transformer on English text",
            kinds=("nvidia", "cpu"), sizes=sizes, defaults=recipe, options=options, **common,
        ),
        "synthetic": WorkloadInfo(
            "synthetic", title="Arithmetic that follows the clock of a synthetic card",
            kinds=("synthetic",), sizes=sizes, defaults=recipe, options={}, **common,
        ),
    }  # fmt: skip
    monkeypatch.setattr("heatsoak.launch.catalog.workloads", lambda: offer)
    monkeypatch.setattr("heatsoak.launch.catalog.training_problem", lambda: None)
    summary = "judged to within 1 %: about 15 to 30 min, at most 90"
    monkeypatch.setitem(PROTOCOLS, "standard", replace(PROTOCOLS["standard"], summary=summary))
