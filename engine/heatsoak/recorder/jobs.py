"""From a job's row to what runs: arithmetic for a synthetic card, a child for a real one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from heatsoak.launch.catalog import find_workload
from heatsoak.launch.child import Child, workload_command, workload_environment
from heatsoak.launch.synthetic import SyntheticJob
from heatsoak.telemetry.vendors.synthetic import SyntheticCard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heatsoak.clock import SessionClock
    from heatsoak.launch.job import Job
    from heatsoak.recorder.prepare import Prepared
    from heatsoak.session.rows import JobRow
    from heatsoak.telemetry.device import DeviceInfo


def make_job(row: JobRow, prepared: Prepared, clock: SessionClock) -> Job:
    """The job of a row, not started yet."""
    device = next(d for d in prepared.devices if d.info.device_id == row.device_ids[0])
    if isinstance(device, SyntheticCard):
        size = find_workload(row.workload).sizes[row.recipe.size]
        return SyntheticJob(device, row.recipe, size)
    environment = workload_environment(
        os.environ,
        session_id=prepared.id,
        recipe=row.recipe,
        device=device.info,
        seed=prepared.plan.seed,
    )
    return Child(workload_command(row.workload), environment, clock, device=device.info)


def siblings_of(infos: Iterable[DeviceInfo]) -> dict[str, list[str]]:
    """By device that is a MIG slice: the other slices of its card among these."""
    slices = [info for info in infos if info.mig_parent_uuid is not None]
    return {
        one.device_id: [
            other.device_id
            for other in slices
            if other is not one and other.mig_parent_uuid == one.mig_parent_uuid
        ]
        for one in slices
    }
