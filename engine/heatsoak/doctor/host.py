"""The computer around the cards: processor, memory, load. Read from /proc and /sys, in no time."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.doctor.files import read_integer, read_text
from heatsoak.telemetry.meminfo import host_memory
from heatsoak.telemetry.vendors import cpu

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEAL, _FIELDS = 7, 8
"""Of the first line of /proc/stat: user nice system idle iowait irq softirq steal."""


@dataclass(frozen=True, slots=True)
class Host:
    """A computer, as its kernel describes it; None where that is not told."""

    name: str
    kernel: str
    system: str | None
    """Such as `Ubuntu 24.04.1 LTS`."""
    cpu_model: str
    cores: int | None
    """Logical cores."""
    usable_cores: int
    """Those this process may run on."""
    memory_total_bytes: int | None
    memory_available_bytes: int | None
    load_1_min: float | None
    """Processes that ran or waited, mean over the last minute."""
    governors: tuple[str, ...]
    """How the cores choose their clock; empty where the kernel does not say."""
    clock_driver: str | None
    """What sets the clock of the cores, such as `intel_pstate`."""
    has_boost: bool | None
    """Whether the cores may run above their base clock."""
    is_virtual: bool
    """Whether this is a virtual machine."""
    steal_frac: float | None
    """Share of the time since the start that other virtual machines took from this one."""
    has_powerd: bool
    """Whether nvidia-powerd runs, which moves power between a laptop's CPU and GPU."""
    node_cores: tuple[tuple[int, tuple[int, ...]], ...]
    """Each NUMA node with its cores."""
    usable_nodes: tuple[int, ...]
    """NUMA nodes of the cores that this process may run on."""


def read_host(root: Path = Path("/")) -> Host:
    """What the kernel says now.

    Args:
        root: of the file system that /proc, /sys and /etc are read from.
    """
    total_bytes, free_bytes = host_memory(root)
    info = cpu.CpuDevice(root)
    info.close()
    nodes = tuple(_nodes(root))
    usable = os.sched_getaffinity(0)
    policies = sorted((root / "sys/devices/system/cpu/cpufreq").glob("policy*"))
    governors = {read_text(policy / "scaling_governor") for policy in policies} - {None}
    return Host(
        name=socket.gethostname(),
        kernel=platform.release(),
        system=_system(root),
        cpu_model=info.info.name,
        cores=info.info.cores,
        usable_cores=len(usable),
        memory_total_bytes=total_bytes,
        memory_available_bytes=free_bytes,
        load_1_min=_load(root),
        governors=tuple(sorted(filter(None, governors))),
        clock_driver=read_text(policies[0] / "scaling_driver") if policies else None,
        has_boost=_has_boost(root),
        is_virtual="hypervisor" in _cpu_flags(root),
        steal_frac=_steal_frac(root),
        has_powerd=_runs(root, "nvidia-powerd"),
        node_cores=nodes,
        usable_nodes=tuple(node for node, cores in nodes if not usable.isdisjoint(cores)),
    )


def parse_cores(text: str) -> tuple[int, ...]:
    """The cores of `0-3,8`, as the kernel lists them."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal():
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _load(root: Path) -> float | None:
    first = (read_text(root / "proc/loadavg") or "").split()[:1]
    try:
        return float(first[0]) if first else None
    except ValueError:
        return None


def _system(root: Path) -> str | None:
    for line in (read_text(root / "etc/os-release") or "").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"'")
    return None


def _cpu_flags(root: Path) -> frozenset[str]:
    for line in (read_text(root / "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "flags":
            return frozenset(value.split())
    return frozenset()


def _has_boost(root: Path) -> bool | None:
    folder = root / "sys/devices/system/cpu"
    without = read_integer(folder / "intel_pstate/no_turbo")
    if without is not None:
        return without == 0
    boost = read_integer(folder / "cpufreq/boost")
    return None if boost is None else boost == 1


def _steal_frac(root: Path) -> float | None:
    words = (read_text(root / "proc/stat") or "").partition("\n")[0].split()[1:]
    ticks = [int(word) for word in words[:_FIELDS] if word.isdecimal()]
    if len(ticks) < _FIELDS or not sum(ticks):
        return None
    return ticks[_STEAL] / sum(ticks)


def _runs(root: Path, name: str) -> bool:
    """Whether a program of that name runs; 15 characters of it count."""
    return any(read_text(path) == name[:15] for path in (root / "proc").glob("[0-9]*/comm"))


def _nodes(root: Path) -> Iterator[tuple[int, tuple[int, ...]]]:
    for folder in sorted((root / "sys/devices/system/node").glob("node[0-9]*")):
        cores = parse_cores(read_text(folder / "cpulist") or "")
        if cores:  # A node may be memory alone.
            yield int(folder.name.removeprefix("node")), cores
