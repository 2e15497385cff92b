"""What doctor saw, as plain data for a session file and for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heatsoak.doctor.checks import examine
from heatsoak.doctor.finding import problems
from heatsoak.doctor.look import look_at_start

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from heatsoak.doctor.finding import Finding
    from heatsoak.doctor.machine import Card, Machine
    from heatsoak.telemetry.device import DeviceInfo

_FACTS = (
    "device_id", "uuid", "name", "vbios", "driver_version", "cuda_version", "compute_capability",
    "power_limit_w", "power_limit_default_w", "application_clock_mhz",
    "application_clock_default_mhz", "sm_clock_is_held", "persistence", "ecc_is_on", "mig_mode",
    "mig_profile", "pcie_gen_max", "pcie_width_max", "numa_node", "memory_total_bytes",
)  # fmt: skip
"""What of a device makes one session differ from another."""


def environment(machine: Machine, findings: Sequence[Finding] | None = None) -> dict[str, Any]:
    """The machine as one JSON document: what a later reader compares sessions by.

    Args:
        machine: as it was looked at.
        findings: of its examination; None: it is examined now. Errors and warnings are kept.
    """
    host, confines, storage, stack = (
        machine.host, machine.confines, machine.storage, machine.stack,
    )  # fmt: skip
    found = examine(machine) if findings is None else findings
    first = machine.cards[0].info if machine.cards else None
    return {
        "host": {
            "name": host.name,
            "system": host.system,
            "kernel": host.kernel,
            "cpu": host.cpu_model,
            "cores": host.cores,
            "usable_cores": host.usable_cores,
            "cpu_quota_cores": confines.cpu_quota_cores,
            "governors": list(host.governors),
            "load_1_min": host.load_1_min,
            "memory_bytes": host.memory_total_bytes,
            "memory_limit_bytes": confines.memory_limit_bytes,
            "numa_nodes": len(host.node_cores) or None,
            "container": confines.container,
            "has_powerd": host.has_powerd,
            "is_wsl": confines.is_wsl,
            "is_virtual": host.is_virtual,
            "is_network_file_system": storage.is_network,
        },
        "driver": {
            "version": first.driver_version if first else None,
            "cuda": first.cuda_version if first else None,
        },
        "training": {
            "python": stack.python,
            "torch": stack.torch,
            "cuda": stack.torch_cuda,
            "cudnn": stack.cudnn,
            "nccl": stack.nccl,
            "lightning": stack.lightning,
            "architectures": None if stack.architectures is None else list(stack.architectures),
        },
        "devices": [_facts(card) for card in (*machine.cards, *machine.others)],
        "findings": [asdict(finding) for finding in problems(found)],
    }


def environment_at_start(devices: Sequence[DeviceInfo], session: Path) -> dict[str, Any]:
    """The environment of a run that is about to begin; costs some hundredths of a second.

    Args:
        devices: of the run, as they were opened.
        session: its file, which need not exist yet.
    """
    return environment(look_at_start(devices, session.parent))


def _facts(card: Card) -> dict[str, Any]:
    facts = {name: getattr(card.info, name) for name in _FACTS}
    measures = card.measures
    return facts | {"measured": None if measures is None else asdict(measures)}
