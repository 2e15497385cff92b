"""The live screen with sick cards and with slices of cards, at the two sizes that matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from heatsoak.session.rows import Batch, EventRow
from heatsoak_tui.app import HeatsoakApp

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 34)], ids=["80x24", "120x34"])
SESSION = Path("20261130-2241-k3f9.heatsoak")
LOST = "6 is lost: the GPU is lost (it has fallen off the bus); Xid 79"


def many(written, count, *, silent=None, lost=None):
    """A run like the written one with so many measured cards."""
    base = written(300)
    infos = tuple(
        replace(
            base.devices[n % 2], device_id=str(n), uuid=f"GPU-{n}", index=n, kind="nvidia",
            name="NVIDIA GeForce RTX 5090", provenance="measured",
        )
        for n in range(count)
    )  # fmt: skip
    jobs = tuple(
        replace(base.jobs[n % 2], job_id=f"job-{n}", mode="replica", device_ids=(str(n),))
        for n in range(count)
    )
    until_s = {silent: 200.0, lost: 220.0}
    batches = []
    for batch in base.batches:
        samples, steps, verdicts = [], [], []
        for n in range(count):
            like = f"synthetic-{n % 2}"
            samples += [
                replace(s, device_id=str(n))
                for s in batch.samples
                if s.device_id == like and s.t_s <= until_s.get(str(n), 1e9)
            ]
            steps += [
                replace(s, job_id=f"job-{n}") for s in batch.steps if s.job_id == f"job-{n % 2}"
            ]
            verdicts += [
                replace(v, device_id=str(n), **({"state": "lost", "reason": LOST, "bounds": ()}
                                                if str(n) == lost else {}))
                for v in batch.verdicts if v.device_id == like
            ]  # fmt: skip
        batches.append(
            Batch(base.meta, samples=tuple(samples), steps=tuple(steps), verdicts=tuple(verdicts))
        )
    return type(base)(base.meta, infos, jobs, batches)


def app_on(run, quiet, folder, monkeypatch):
    monkeypatch.chdir(folder)
    run.write(SESSION)
    app = HeatsoakApp(SESSION, control=lambda _: quiet)
    app.theme = "heatsoak-dark"
    return app


async def shown(pilot) -> None:
    while not pilot.app.view.device_ids:
        await pilot.pause(0.01)
    await pilot.pause(0.05)


@SIZES
def test_c3_live_with_a_silent_a_lost_and_a_stuck_card(
    size, written, quiet, tmp_path, monkeypatch, snap_compare
):
    run = many(written, 8, silent="5", lost="6")
    run.batches.append(
        Batch(run.meta, events=(
            EventRow(206.0, "silent", "5 has not answered for 6 s", "5"),
            EventRow(220.0, "lost", LOST, "6"),
            EventRow(260.0, "warning", "7: its power sensor is stuck; what it says is left out",
                     "7"),
        ))
    )  # fmt: skip
    app = app_on(run, quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=shown)


@SIZES
def test_b3_live_with_two_slices_of_one_card(
    size, written, quiet, tmp_path, monkeypatch, snap_compare
):
    run = many(written, 2)
    run.devices = tuple(
        replace(
            info, uuid=f"MIG-{info.device_id}", mig_parent_uuid="GPU-9",
            name="NVIDIA A100-SXM4-80GB MIG 3g.40gb", mig_profile="3g.40gb",
        )
        for info in run.devices
    )  # fmt: skip
    app = app_on(run, quiet, tmp_path, monkeypatch)
    assert snap_compare(app, terminal_size=size, run_before=shown)
