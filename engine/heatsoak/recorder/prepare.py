"""A plan checked against this machine: devices open, jobs known, nothing started yet."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import heatsoak
from heatsoak.clock import now_utc
from heatsoak.errors import UsageError
from heatsoak.launch import catalog
from heatsoak.session.library import sessions_dir
from heatsoak.session.rows import JobRow
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.discovery import open_devices
from heatsoak.telemetry.vendors.synthetic import SyntheticCard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.recorder.plan import Plan
    from heatsoak.steady_state.protocols import Protocol
    from heatsoak.telemetry.device import Device

MAX_SPEED = 1000.0
"""Beyond, sixteen synthetic cards no longer keep up on one core."""
MAX_SEED = 2**32 - 1
NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can begin."""

    id: str
    """Eight hexadecimal digits."""
    path: Path
    """Session file; does not exist yet, or may be replaced."""
    plan: Plan
    protocol: Protocol
    devices: tuple[Device, ...]
    jobs: tuple[JobRow, ...]
    """A replica for each device, in the order of the devices."""
    created_utc: str
    host: str

    @property
    def provenance(self) -> str:
        """`synthetic` as soon as one device is, else `measured`."""
        is_synthetic = any(device.info.kind == "synthetic" for device in self.devices)
        return "synthetic" if is_synthetic else "measured"

    def meta(self, socket_path: Path) -> dict[str, str]:
        """What the session file says of the session when it begins."""
        meta = {
            "id": self.id,
            "created_utc": self.created_utc,
            "host": self.host,
            "protocol": self.protocol.name,
            "heatsoak_version": heatsoak.__version__,
            "speed": f"{self.plan.speed:g}",
            "seed": str(self.plan.seed),
            "provenance": self.provenance,
            "recorder_pid": str(os.getpid()),
            "socket": str(socket_path),
            "state": "recording",
        }
        return meta | ({"name": self.plan.name} if self.plan.name else {})


def prepare(plan: Plan) -> Prepared:
    """Check a plan and open its devices.

    Raises:
        UsageError: something in it does not exist or does not fit together.
        DeviceUnavailableError: a device cannot be read.
    """
    if plan.protocol not in PROTOCOLS:
        raise UsageError(f"unknown protocol {plan.protocol!r}; there is {', '.join(PROTOCOLS)}")
    if not 0 < plan.speed <= MAX_SPEED:
        raise UsageError(f"speed must be above 0 and at most {MAX_SPEED:.0f}, not {plan.speed:g}")
    if not 0 <= plan.seed <= MAX_SEED:
        raise UsageError(f"the seed must be from 0 to {MAX_SEED}, not {plan.seed}")
    if plan.name is not None and not (plan.name.isprintable() and len(plan.name) <= NAME_CHARS):
        raise UsageError(f"a name has at most {NAME_CHARS} printable characters")
    if plan.workload is not None:
        catalog.find_workload(plan.workload)
    if plan.out is not None and not Path(plan.out).is_absolute():
        raise UsageError(f"the session file must be given as an absolute path, not {plan.out!r}")
    devices = tuple(open_devices(plan.devices, seed=plan.seed))
    try:
        jobs = _jobs(plan, devices)
        check_slices(jobs, devices)
    except UsageError:
        for device in devices:
            device.close()
        raise
    session_id = secrets.token_hex(4)
    created_utc = now_utc()
    stamp = created_utc.translate(str.maketrans("", "", "-:Z")).replace("T", "-")
    path = sessions_dir() / f"{stamp}-{jobs[0].workload}-{session_id}.heatsoak"
    return Prepared(
        id=session_id,
        path=Path(plan.out) if plan.out is not None else path,
        plan=plan,
        protocol=PROTOCOLS[plan.protocol],
        devices=devices,
        jobs=jobs,
        created_utc=created_utc,
        host=socket.gethostname(),
    )


def check_slices(jobs: Sequence[JobRow], devices: Sequence[Device]) -> None:
    """Refuse a job on several MIG slices.

    Raises:
        UsageError: CUDA gives a process one slice and no more.
    """
    slices = {d.info.device_id for d in devices if d.info.mig_parent_uuid is not None}
    for job in jobs:
        if len(job.device_ids) > 1 and not slices.isdisjoint(job.device_ids):
            raise UsageError(
                f"{', '.join(job.device_ids)} cannot work on one job: a process can use one MIG "
                "slice only; give each its own job (replicas), or turn MIG off"
            )


def _jobs(plan: Plan, devices: Sequence[Device]) -> tuple[JobRow, ...]:
    if plan.speed != 1 and not all(isinstance(device, SyntheticCard) for device in devices):
        raise UsageError("only synthetic devices can run at another speed than 1")
    jobs = []
    for number, device in enumerate(devices):
        name = plan.workload or catalog.default_workload([device.info])
        workload = catalog.find_workload(name)
        recipe = catalog.make_recipe(workload, device.info, plan.recipe)
        if workload.needs_training and (problem := catalog.training_problem()) is not None:
            raise UsageError(f"cannot train {name}: {problem}")
        jobs.append(
            JobRow(
                job_id=f"job-{number}",
                workload=name,
                workload_version=workload.version,
                recipe=recipe,
                mode="synthetic" if isinstance(device, SyntheticCard) else "replica",
                unit=workload.unit,
                device_ids=(device.info.device_id,),
            )
        )
    return tuple(jobs)
