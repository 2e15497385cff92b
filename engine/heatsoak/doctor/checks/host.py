"""The computer itself: clock, load, quotas, memory, what a loader needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine

_DYNAMIC_DRIVERS = ("intel_pstate", "amd-pstate-epp")
"""Where `powersave` is the name of the ordinary dynamic choice."""
_BUSY_CPU_FRAC = 0.15
"""Load per core from which a soak of the CPU itself is disturbed."""
_BUSY_HOST_FRAC = 0.8
"""Load per core from which cards may wait for the host."""
_STEAL_FRAC = 0.01
_CORES_PER_CARD = 4
"""Cores that keep a card fed: the training process, and loaders beside it."""
_LEAST_FREE_BYTES = 2 * BYTES_PER_GIB
_LEAST_SHARED_BYTES = BYTES_PER_GIB
_LOADER_BYTES_PER_S = 0.35e9
"""What a fast card reads of images: 3,000 a second of 115 kB."""


def governor(machine: Machine) -> Iterator[Finding]:
    """How the cores choose their clock."""
    host = machine.host
    if not host.governors:
        why = "a virtual machine is not told" if host.is_virtual else "the kernel does not say"
        yield unknown("governor", "how the clock of the cores is chosen", why)
        return
    named = ", ".join(host.governors)
    is_slow = any(
        (name == "powersave" and host.clock_driver not in _DYNAMIC_DRIVERS)
        or name in ("conservative", "userspace")
        for name in host.governors
    )
    if is_slow:
        yield Finding(
            "governor", "warning", None, f"governor {named}",
            f"the clock of the cores is chosen by the governor {named}",
            "the cores run below what they can, and cards wait for them",
            "cpupower frequency-set -g performance (as root)",
        )  # fmt: skip
    elif machine.loads_cpu and host.governors != ("performance",):
        yield Finding(
            "governor", "info", None, f"governor {named}",
            f"the governor {named} moves the clock of the cores with their load",
            "the first seconds of a soak of the CPU",
            "cpupower frequency-set -g performance (as root) holds it up",
        )  # fmt: skip
    else:
        yield ok("governor", f"governor {named}")
    if host.has_boost is False:
        yield Finding(
            "governor", "info", None, "no boost of the cores",
            "the cores are kept at their base clock: boost is switched off",
            "rates that hang on the host are lower than with it",
            "switch turbo or core performance boost on in the firmware, or in sysfs",
        )  # fmt: skip


def host_load(machine: Machine) -> Iterator[Finding]:
    """What else the host does."""
    host = machine.host
    if host.load_1_min is None:
        yield unknown("host-load", "other load", "the kernel does not say it")
        return
    share = host.load_1_min / max(1, host.usable_cores)
    text = f"the load of the last minute is {host.load_1_min:.1f} on {host.usable_cores} cores"
    if share > (_BUSY_CPU_FRAC if machine.loads_cpu else _BUSY_HOST_FRAC):
        yield Finding(
            "host-load", "warning", None, f"load {host.load_1_min:.1f}",
            f"{text}: other programs run",
            "the cores are shared, so rates are low and restless"
            if machine.loads_cpu
            else "cards wait for the host",
            "end what else runs, and look again a minute later",
        )  # fmt: skip
    else:
        yield ok("host-load", "little other load", text)


def steal(machine: Machine) -> Iterator[Finding]:
    """Whether other virtual machines take the host's time."""
    host = machine.host
    if not host.is_virtual:
        return
    yield Finding(
        "virtual", "info", None, "a virtual machine",
        "this is a virtual machine: power, temperature and clock of its cores are hidden, and its "
        "neighbours are not seen",
    )  # fmt: skip
    if host.steal_frac is not None and host.steal_frac > _STEAL_FRAC:
        yield Finding(
            "steal", "warning", None, f"{host.steal_frac:.0%} of time stolen",
            f"since its start, {host.steal_frac:.1%} of this machine's time went to others on the "
            "same host",
            "rates change with what the neighbours do",
            "use a machine with cores of its own",
        )  # fmt: skip


def quota(machine: Machine) -> Iterator[Finding]:
    """Whether a container may use fewer cores than it sees."""
    host, limit = machine.host, machine.confines.cpu_quota_cores
    if limit is not None and limit < host.usable_cores - 0.01:
        yield Finding(
            "quota", "warning", None, f"{limit:g} of {host.usable_cores} cores",
            f"this container may use {limit:g} cores' worth of time, and sees {host.usable_cores}",
            "training starts a thread for each core it sees; all are stopped together when the "
            "time is used up, so the rate jumps",
            "give the container more (--cpus), or pin it to as many cores (--cpuset-cpus)",
        )  # fmt: skip
    elif host.cores is not None and host.usable_cores < host.cores:
        yield Finding(
            "quota", "info", None, f"{host.usable_cores} of {host.cores} cores",
            f"this process may run on {host.usable_cores} of {host.cores} cores",
        )  # fmt: skip
    else:
        yield ok("quota", "all cores", f"this process may use all {host.usable_cores} cores")


def cores(machine: Machine) -> Iterator[Finding]:
    """Whether there are cores enough for the cards."""
    cards = len(machine.asked_boards)
    if not cards:
        return
    host = machine.host
    if host.usable_cores < _CORES_PER_CARD * cards:
        yield Finding(
            "cores", "warning", None, f"{host.usable_cores} cores for {cards} cards",
            f"{host.usable_cores} cores are to feed {cards} card{'s' if cards > 1 else ''}; "
            f"{_CORES_PER_CARD} a card is a fair start",
            "workloads with loaders (images, audio) wait for data",
            "use fewer cards at a time, or a host with more cores",
        )  # fmt: skip
    else:
        yield ok("cores", "cores for the cards", f"{host.usable_cores} cores for {cards}")


def memory(machine: Machine) -> Iterator[Finding]:
    """Whether there is memory enough."""
    host, limit = machine.host, machine.confines.memory_limit_bytes
    total, free = host.memory_total_bytes, host.memory_available_bytes
    if total is None or free is None:
        yield unknown("memory", "host memory", "the kernel does not say it")
        return
    if limit is not None:
        total = min(total, limit)
    on_cards = sum(
        card.info.memory_total_bytes or 0
        for card in machine.asked_boards
        if card.info.memory_kind != "unified"
    )
    text = f"{_gib(free)} of {_gib(total)} are free"
    if limit is not None and limit < (host.memory_total_bytes or 0):
        text += f"; the container's limit is {_gib(limit)}"
    if free < _LEAST_FREE_BYTES:
        yield Finding(
            "memory", "warning", None, "little host memory", text,
            "a training may be ended by the kernel, or swap", "end what else runs",
        )  # fmt: skip
    elif total < on_cards:
        yield Finding(
            "memory", "warning", None, "less host memory than card memory",
            f"the host has {_gib(total)}, the cards {_gib(on_cards)}",
            "checkpoints, offloading and large loaders", "add memory, or use fewer cards",
        )  # fmt: skip
    else:
        yield ok("memory", "host memory", text)


def shared_memory(machine: Machine) -> Iterator[Finding]:
    """Whether loader processes have room to hand over their batches; Docker gives 64 MiB."""
    size = machine.confines.shared_memory_bytes
    if size is None or machine.confines.container is None:
        return
    if size < _LEAST_SHARED_BYTES:
        yield Finding(
            "shared-memory", "warning", None, "little shared memory",
            f"/dev/shm of this container has {size / 2**20:.0f} MiB",
            "loader processes end with a bus error, and NCCL may not start",
            "start the container with --ipc=host, or --shm-size=8g",
        )  # fmt: skip
    else:
        yield ok("shared-memory", "shared memory", f"/dev/shm has {_gib(size)}")


def disk_read(machine: Machine) -> Iterator[Finding]:
    """Whether the disk feeds a loader."""
    storage, host = machine.storage, machine.host
    if storage.is_rotational and not host.is_virtual:
        yield Finding(
            "disk-read", "warning", None, "a disk that turns",
            f"{storage.folder} lies on a disk that turns",
            "workloads that read their data from it wait for it",
            "keep training data on an NVMe disk",
        )  # fmt: skip
    if machine.disk is None:
        return
    rate = machine.disk.read_bytes_per_s
    if rate is None:
        yield unknown("disk-read", "disk", machine.disk.problem or "it was not measured")
        return
    needed = _LOADER_BYTES_PER_S * max(1, len(machine.asked_boards))
    text = f"{storage.folder} is read at {rate / 1e9:.2f} GB/s"
    if rate < needed:
        yield Finding(
            "disk-read", "warning", None, "slow disk",
            f"{text}; images for the cards asked for need about {needed / 1e9:.2f}",
            "workloads that read images or audio from it wait for data",
            "keep training data on a fast NVMe disk, or in memory",
        )  # fmt: skip
    else:
        yield ok("disk-read", "disk", text)


def _gib(count: float) -> str:
    return f"{count / BYTES_PER_GIB:.1f} GiB"
