"""Machines for the tests of doctor: a sound one with two cards, to be changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from heatsoak.doctor.confines import Confines
from heatsoak.doctor.host import Host
from heatsoak.doctor.machine import Card, CardMeasures, DiskMeasure, Machine
from heatsoak.doctor.stack import Stack
from heatsoak.doctor.storage import Storage
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.health import DeviceHealth
from heatsoak.telemetry.sample import DeviceSample
from heatsoak.telemetry.surroundings import CardPair

HOST = Host(
    name="aurora", kernel="6.8.0-45-generic", system="Ubuntu 24.04.1 LTS",
    cpu_model="AMD Ryzen 9 9950X 16-Core Processor", cores=32, usable_cores=32,
    memory_total_bytes=128 * 1024**3, memory_available_bytes=120 * 1024**3, load_1_min=0.3,
    governors=("performance",), clock_driver="acpi-cpufreq", has_boost=True, is_virtual=False,
    steal_frac=None, has_powerd=False, node_cores=((0, tuple(range(32))),), usable_nodes=(0,),
)  # fmt: skip
CONFINES = Confines(
    container=None, is_wsl=False, cpu_quota_cores=None, memory_limit_bytes=None,
    shared_memory_bytes=64 * 1024**3, job=None, kills_at_logout=False, lingers=False,
)  # fmt: skip
STORAGE = Storage(
    Path("/home/user/.local/state"), is_writable=True, free_bytes=10**12, is_network=False,
    is_rotational=False,
)  # fmt: skip
STACK = Stack(
    python="3.12.3", torch="2.9.1+cu128", torch_cuda="12.8", cudnn="9.10.2", nccl="2.27.5",
    lightning="2.6.0", pynvml=None, nvidia_ml_py="13.580.82",
    architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"),
)  # fmt: skip
MEASURES = CardMeasures(
    to_card_bytes_per_s=55.1e9, to_host_bytes_per_s=56.0e9, within_bytes_per_s=1.55e12,
    pcie_gen=5, pcie_width=16,
)  # fmt: skip


def info(number: int = 0, **more) -> DeviceInfo:
    """A GeForce RTX 5090 as it is sold."""
    values = {
        "device_id": str(number), "uuid": f"GPU-{number}", "name": "NVIDIA GeForce RTX 5090",
        "kind": "nvidia", "provenance": "measured", "card": "rtx-5090", "index": number,
        "memory_total_bytes": 34_190_917_632, "power_limit_w": 575.0,
        "power_limit_default_w": 575.0, "temperature_limit_c": 90.0, "pci_bus_id": f"0{number}:00",
        "pcie_gen_max": 5, "pcie_width_max": 16, "driver_version": "580.95.05",
        "cuda_version": "13.0", "power_scope": "gpu", "memory_kind": "framebuffer",
        "compute_capability": "12.0", "persistence": True, "sm_clock_is_held": False,
        "numa_node": None, "mig_mode": None,
    }  # fmt: skip
    return DeviceInfo(**(values | more))


def card(number: int = 0, *, reading=None, **more) -> Card:
    """It, awake and free; keywords of `Card`, and of `DeviceInfo` for the rest."""
    fields = ("is_asked", "health", "users", "users_problem", "soaked_by", "problem", "measures")
    own = {name: more.pop(name) for name in fields if name in more}
    sample = DeviceSample(
        0.0, str(number), temperature_c=31.0, utilization_pct=0.0, memory_used_bytes=400_000_000,
        pcie_gen=1, pcie_width=16, power_w=22.0,
    )  # fmt: skip
    values = {
        "is_asked": True, "reading": replace(sample, **(reading or {})), "users": (),
        "measures": MEASURES, "health": DeviceHealth(),
    }  # fmt: skip
    return Card(info(number, **more), **(values | own))


def machine(*cards: Card, host=None, confines=None, storage=None, stack=None, **more) -> Machine:
    """A sound machine with these cards; what differs is given by part."""
    values = {
        "environ": {}, "disk": DiskMeasure(3.1e9),
        "pairs": tuple(
            CardPair(a.info.device_id, b.info.device_id, "host bridge", "ok", has_nvlink=True)
            for i, a in enumerate(cards) for b in cards[i + 1 :]
        ),
    }  # fmt: skip
    return Machine(
        replace(HOST, **(host or {})),
        replace(CONFINES, **(confines or {})),
        replace(STORAGE, **(storage or {})),
        replace(STACK, **(stack or {})),
        cards=cards,
        **(values | more),
    )
