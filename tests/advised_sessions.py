"""Finished session files with one frozen result a device, written down by formula."""

from __future__ import annotations

from heatsoak.profiles.cards import card_profiles
from heatsoak.recipe import Recipe
from heatsoak.session.result import result_entry
from heatsoak.session.rows import Batch, JobRow, ResultRow
from heatsoak.session.store import SessionWriter
from heatsoak.steady_state.verdict import Boost, Figure, Result, Sustained, Verdict
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

RECIPE = Recipe("synthetic", "1B", 4096, 4, 1, "bf16", "flash", False, False, "adamw")


def write_session(
    folder, name, card, rate, *, power_w=500.0, state="steady", provenance="synthetic", count=1,
    flags=(), recipe=RECIPE, unit="tokens", ddp=False, mode=None, version=1, facts=None,
    protocol="standard", info=None, u95=0.004, environment=None, uuid=None,
    created_utc="2026-11-30T22:41:07Z", start_c=None,
):  # fmt: skip
    """One session of `count` cards of a model, each a job of its own unless `ddp`.

    The second card is 2 % faster than the first, and so on; `u95` is relative. Sessions of one
    `uuid` were recorded on the same cards, which were at `start_c` before the load.
    """
    profile = card_profiles()[card]
    path = folder / f"{name}.heatsoak"
    mark = "SYNTHETIC " if provenance == "synthetic" else "NVIDIA "
    infos = [
        DeviceInfo(
            f"synthetic-{n}", f"SYNTHETIC-{uuid or name}-{n}", f"{mark}{profile.name}", "synthetic",
            provenance, card=card, memory_total_bytes=profile.memory_total_bytes,
            **{"power_limit_w": profile.power_w, "driver_version": "580.159"} | (info or {}),
        )
        for n in range(count)
    ]  # fmt: skip
    mode = mode or ("ddp" if ddp else "synthetic")
    groups = [infos] if ddp else [[one] for one in infos]
    jobs = [
        JobRow(f"job-{n}", recipe.workload, version, recipe, mode, unit,
               tuple(one.device_id for one in group), facts or {})
        for n, group in enumerate(groups)
    ]  # fmt: skip
    meta = {
        "id": name, "created_utc": created_utc, "host": "aurora", "protocol": protocol,
        "heatsoak_version": "0.1.0", "speed": "1", "seed": "7", "provenance": provenance,
        "state": "recording",
    }  # fmt: skip
    writer = SessionWriter.create(
        path, meta=meta, devices=infos, jobs=jobs, environment=environment
    )
    rows, samples = [], []
    for job in jobs:
        for position, device_id in enumerate(job.device_ids):
            order = next(i for i, one in enumerate(infos) if one.device_id == device_id)
            own = rate if ddp else rate * (1 + 0.02 * order)
            result = _result(device_id, own, u95, power_w, state, flags)
            entry = result_entry(result, infos[order], unit)
            rows.append(ResultRow(9.0, device_id, job.job_id, entry))
            samples += [
                DeviceSample(0.0, device_id, temperature_c=start_c, pcie_gen=1, pcie_width=16),
                DeviceSample(1100.0, device_id, pcie_gen=5, pcie_width=8 + position),
            ]
    writer.write(Batch({}, samples=tuple(samples), results=tuple(rows)))
    writer.close(state)
    return path


def _result(device_id, rate, u95, power_w, state, flags):
    figures = Sustained(
        1000.0, 270.0, Figure(rate, rate * u95, 25.0, "units/s"),
        Figure(rate, rate * u95, 25.0, "units/s"), Figure(power_w, 2.0, 25.0, "W"),
        Figure(74.6, 0.4, 25.0, "°C"), Figure(2437.0, 4.0, 25.0, "MHz"), None, None,
        Figure(23.0 * 1024**3, 0.0, 25.0, "B"), Figure(power_w / rate, 0.0001, 25.0, "J/unit"),
        "counter", 151470.0, 151773.0, {"sw_power_cap": 1.0, "sw_thermal_slowdown": 0.02},
    )  # fmt: skip
    verdict = Verdict(
        1270.0, device_id, state, tuple(flags), "the last 4 min are frozen", ("rate",), (), None,
        1000.0, 270.0, 1270.0 if state == "steady" else None, None,
    )  # fmt: skip
    return Result(device_id, verdict, figures, Boost(rate * 1.04, 30.0, 8.0, 0.04), None, None)
