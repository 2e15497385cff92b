"""What a recorder answers when it is asked how it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from heatsoak.recorder.prepare import Prepared
    from heatsoak.recorder.track import Track


def status(
    prepared: Prepared,
    tracks: Sequence[Track],
    *,
    t_s: float,
    is_ending: bool,
    silent: Collection[str],
) -> dict[str, Any]:
    """The answer to the request `status`.

    Args:
        prepared: the run.
        tracks: its jobs.
        t_s: session time now.
        is_ending: whether the jobs were asked to end.
        silent: devices that do not answer.
    """
    devices = [
        {
            "device_id": device_id,
            "name": info.name,
            "job_id": track.row.job_id,
            "state": verdict.state if verdict else "warming",
            "reason": verdict.reason if verdict else "",
            "is_silent": device_id in silent,
        }
        for track in tracks
        for device_id, info in track.devices.items()
        for verdict in [track.verdicts.get(device_id)]
    ]
    jobs = [
        {
            "job_id": track.row.job_id,
            "workload": track.row.workload,
            "unit": track.row.unit,
            "units_done": track.units_done,
        }
        for track in tracks
    ]
    return {
        "id": prepared.id,
        "path": str(prepared.path),
        "pid": os.getpid(),
        "name": prepared.plan.name,
        "protocol": prepared.protocol.name,
        "provenance": prepared.provenance,
        "speed": prepared.plan.speed,
        "t_s": t_s,
        "state": "stopping" if is_ending else "recording",
        "devices": devices,
        "jobs": jobs,
    }
