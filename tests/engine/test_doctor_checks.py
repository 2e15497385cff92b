"""Every check of doctor on machines that are made up: what it says, how grave it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from doctor_machines import MEASURES, card, machine
from heatsoak.doctor import examine
from heatsoak.doctor.checks import checks
from heatsoak.doctor.finding import WORST_FIRST, counts, fine_words, problems, summary, told
from heatsoak.doctor.machine import Card, CardMeasures, DiskMeasure, PciCard
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.health import DeviceHealth
from heatsoak.telemetry.surroundings import CardPair, CardUser

GIB = 1024**3
CPU = Card(
    DeviceInfo("cpu", "cpu-aurora", "AMD Ryzen 9 9950X", "cpu", "measured", cores=32),
    is_asked=True,
)
TWO_NODES = {
    "node_cores": ((0, tuple(range(16))), (1, tuple(range(16, 32)))),
    "usable_nodes": (0,), "usable_cores": 16,
}  # fmt: skip
SPLIT = {"mig_mode": True}
APART = CardPair("0", "1", "sockets", "the chipset does not support it", has_nvlink=False)


def test_a_sound_machine_has_nothing_to_mend():
    found = examine(machine(card(0), card(1)))
    assert problems(found) == []
    assert {f.id for f in found if f.severity == "ok"} >= {
        "driver", "device", "early-driver", "driver-cuda", "torch", "torch-cuda", "architectures",
        "kernel", "libraries", "power-limit", "clocks", "persistence", "users", "pcie",
        "transfers", "memory-bandwidth", "nvlink", "peers", "generations", "governor", "host-load",
        "quota", "cores", "memory", "disk-read", "logout", "session-disk", "variables", "bindings",
        "readings",
    }  # fmt: skip


CASES = [
    # the driver
    ("driver", "warning", None, lambda: machine(
        nvidia_problem="the NVIDIA kernel driver is not loaded",
        present=(PciCard("0000:01:00.0", is_asleep=False),))),
    ("driver", "info", None, lambda: machine(
        nvidia_problem="no NVIDIA driver: its library libnvidia-ml.so.1 was not found")),
    ("driver", "warning", None, lambda: machine(nvidia_problem="no permission to use it")),
    ("device", "error", "1", lambda: machine(card(0), refused={"1": "device 1 cannot be read"})),
    ("device", "warning", "1", lambda: machine(card(0), unreadable={"1": "the GPU is lost"})),
    ("device", "error", "0", lambda: machine(card(0, problem="the GPU is lost"))),
    ("device", "warning", "0", lambda: machine(card(0, is_asked=False, problem="lost"), card(1))),
    ("early-driver", "warning", "0", lambda: machine(card(0, driver_version="572.16"))),
    ("driver-cuda", "warning", "0", lambda: machine(card(0, cuda_version="12.4"))),
    # PyTorch
    ("torch", "warning", None, lambda: machine(card(0), stack={"torch": None})),
    ("torch", "warning", None, lambda: machine(card(0), stack={"torch": "2.5.1+cu124"})),
    ("torch", "warning", None, lambda: machine(card(0), stack={"lightning": None})),
    ("torch", "error", None, lambda: machine(card(0), stack={"problem": "libcudart is missing"})),
    ("torch-cuda", "error", None, lambda: machine(card(0), stack={"torch_cuda": None})),
    ("torch-cuda", "warning", "0", lambda: machine(card(0), stack={"torch_cuda": "12.6"})),
    ("torch-cuda", "error", "0", lambda: machine(card(0), stack={"torch_cuda": "14.0"})),
    ("architectures", "error", "0", lambda: machine(
        card(0), stack={"architectures": ("sm_80", "sm_86", "sm_90")})),
    ("architectures", "error", "0", lambda: machine(  # a later minor number does not do
        card(0), stack={"architectures": ("sm_90", "sm_121")})),
    ("architectures", "warning", "0", lambda: machine(
        card(0), stack={"architectures": ("sm_90", "compute_90")})),
    ("kernel", "error", "0", lambda: machine(
        card(0, measures=CardMeasures(problem="no kernel image is available")))),
    ("libraries", "warning", None, lambda: machine(card(0), stack={"nccl": "2.21.5"})),
    # settings
    ("power-limit", "warning", "0", lambda: machine(card(0, power_limit_w=450.0))),
    ("power-limit", "warning", "0", lambda: machine(card(0, power_limit_w=600.0))),
    ("clocks", "warning", "0", lambda: machine(card(0, sm_clock_is_held=True))),
    ("clocks", "warning", "0", lambda: machine(
        card(0, application_clock_mhz=1200.0, application_clock_default_mhz=1980.0))),
    ("persistence", "warning", "0", lambda: machine(card(0, persistence=False))),
    ("ecc", "info", "0", lambda: machine(card(0, ecc_is_on=False))),
    ("mig", "info", "0", lambda: machine(card(0, **SPLIT))),
    ("laptop", "info", "0", lambda: machine(card(0, name="NVIDIA GeForce RTX 5090 Laptop GPU"))),
    # who else is on it
    ("users", "warning", "0", lambda: machine(
        card(0, users=(CardUser(4_000_000, "compute", 2 * GIB),)))),
    ("users", "info", "0", lambda: machine(card(0, users=(CardUser(4_000_000, "graphics", 1),)))),
    ("users", "warning", "0", lambda: machine(card(0, soaked_by=("k3f9",)))),
    ("users", "warning", "0", lambda: machine(card(0, reading={"memory_used_bytes": 3 * GIB}))),
    ("load", "warning", "0", lambda: machine(card(0, reading={"utilization_pct": 60.0}))),
    ("load", "info", "0", lambda: machine(card(0, reading={"temperature_c": 71.0}))),
    ("load", "info", "0", lambda: machine(card(
        0, temperature_limit_c=None,
        reading={"temperature_c": 71.0, "temperature_margin_c": 9.0}))),
    # the way to it
    ("pcie", "warning", "0", lambda: machine(card(0, measures=replace(MEASURES, pcie_width=8)))),
    ("pcie", "warning", "0", lambda: machine(card(0, measures=replace(MEASURES, pcie_gen=3)))),
    ("pcie", "warning", "0", lambda: machine(
        card(0, measures=None, reading={"pcie_width": 4}))),
    ("pcie", "info", "0", lambda: machine(card(0, measures=None))),  # slow at rest is as it should
    ("transfers", "warning", "0", lambda: machine(
        card(0, measures=replace(MEASURES, to_host_bytes_per_s=9e9)))),
    ("memory-bandwidth", "warning", "0", lambda: machine(
        card(0, measures=replace(MEASURES, within_bytes_per_s=0.9e12)))),
    # several cards
    ("peers", "warning", None, lambda: machine(card(0), card(1), pairs=(APART,))),
    ("nvlink", "info", None, lambda: machine(card(0), card(1), pairs=(APART,))),
    ("route", "info", None, lambda: machine(card(0), card(1), pairs=(APART,))),
    ("generations", "warning", None, lambda: machine(
        card(0), card(1, name="NVIDIA GeForce RTX 4090", compute_capability="8.9"))),
    ("generations", "info", None, lambda: machine(
        card(0), card(1, is_asked=False, name="NVIDIA GeForce RTX 5080"))),
    ("numa", "warning", "0", lambda: machine(card(0, numa_node=1), host=TWO_NODES)),
    ("numa", "info", "0", lambda: machine(
        card(0, numa_node=1), host=TWO_NODES | {"usable_nodes": (0, 1)})),
    ("asleep", "info", None, lambda: machine(present=(PciCard("0000:01:00.0", is_asleep=True),))),
    # the host
    ("governor", "warning", None, lambda: machine(card(0), host={"governors": ("powersave",)})),
    ("governor", "info", None, lambda: machine(others=(CPU,), host={"governors": ("schedutil",)})),
    ("governor", "info", None, lambda: machine(card(0), host={"has_boost": False})),
    ("host-load", "warning", None, lambda: machine(others=(CPU,), host={"load_1_min": 8.0})),
    ("host-load", "warning", None, lambda: machine(card(0), host={"load_1_min": 30.0})),
    ("virtual", "info", None, lambda: machine(host={"is_virtual": True})),
    ("steal", "warning", None, lambda: machine(host={"is_virtual": True, "steal_frac": 0.07})),
    ("quota", "warning", None, lambda: machine(confines={"cpu_quota_cores": 4.0})),
    ("quota", "info", None, lambda: machine(host={"usable_cores": 8})),
    ("cores", "warning", None, lambda: machine(
        *(card(n) for n in range(4)), host={"usable_cores": 8, "cores": 8})),
    ("memory", "warning", None, lambda: machine(host={"memory_available_bytes": GIB})),
    ("memory", "warning", None, lambda: machine(
        card(0), confines={"memory_limit_bytes": 16 * GIB})),
    ("shared-memory", "warning", None, lambda: machine(
        confines={"container": "Docker", "shared_memory_bytes": 64 * 2**20})),
    ("disk-read", "warning", None, lambda: machine(storage={"is_rotational": True})),
    ("disk-read", "warning", None, lambda: machine(card(0), disk=DiskMeasure(0.2e9))),
    # the run
    ("other-runs", "warning", None, lambda: machine(runs=("k3f9",))),
    ("logout", "warning", None, lambda: machine(confines={"kills_at_logout": True})),
    ("job", "info", None, lambda: machine(confines={"job": "Slurm"})),
    ("wsl", "info", None, lambda: machine(confines={"is_wsl": True})),
    ("container", "info", None, lambda: machine(confines={"container": "Podman"})),
    ("session-disk", "warning", None, lambda: machine(storage={"is_writable": False})),
    ("session-disk", "warning", None, lambda: machine(storage={"free_bytes": 50_000_000})),
    ("session-disk", "info", None, lambda: machine(storage={"is_network": True})),
    # variables and packages
    ("variables", "warning", None, lambda: machine(environ={"CUDA_LAUNCH_BLOCKING": "1"})),
    ("visible", "info", None, lambda: machine(card(0), environ={"CUDA_VISIBLE_DEVICES": "0"})),
    ("threads", "warning", None, lambda: machine(environ={"OMP_NUM_THREADS": "64"})),
    ("threads", "info", None, lambda: machine(environ={"OMP_NUM_THREADS": "1"})),
    ("bindings", "warning", None, lambda: machine(stack={"pynvml": "12.0.0"})),
    ("bindings", "warning", None, lambda: machine(stack={"nvidia_ml_py": None})),
    # sensors
    ("readings", "info", "0", lambda: machine(card(0, missing={"energy_j": "not supported"}))),
    ("readings", "info", "0", lambda: machine(card(0, power_scope="module"))),
    ("implausible", "warning", "0", lambda: machine(
        card(0, reading={"rejected": (("temperature_c", 2147483647.0),)}))),
    ("defects", "warning", "0", lambda: machine(card(0, health=DeviceHealth(ecc_uncorrected=2)))),
    ("defects", "warning", "0", lambda: machine(
        card(0, health=DeviceHealth(remap_is_pending=True)))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "severity", "device_id", "make"),
    CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)  # fmt: skip
def test_what_a_check_says(check, severity, device_id, make):
    sound = {(f.id, f.severity, f.device_id, f.text) for f in examine(machine(card(0), card(1)))}
    said = examine(make())
    wanted = (check, severity, device_id)
    found = [f for f in said if (f.id, f.severity, f.device_id) == wanted]
    assert found, said
    for finding in found:
        assert (finding.id, finding.severity, finding.device_id, finding.text) not in sound
        assert finding.title
        assert not finding.is_unknown
        for sentence in (finding.text, finding.spoils, finding.remedy):
            assert "\n" not in sentence
            assert not sentence.endswith(".")
        if severity == "warning":
            assert finding.spoils


def test_every_check_has_a_case():
    told_by = {case[0] for case in CASES}
    for check in checks():
        ids = {f.id for case in CASES for f in check(case[3]())}
        assert ids & told_by, check.__name__


UNKNOWN = [
    ("early-driver", lambda: machine(card(0, driver_version=None))),
    ("driver-cuda", lambda: machine(card(0, cuda_version=None))),
    ("architectures", lambda: machine(card(0), stack={"architectures": None})),
    ("architectures", lambda: machine(card(0, compute_capability=None))),
    ("kernel", lambda: machine(card(0, measures=None))),
    ("power-limit", lambda: machine(card(0, power_limit_w=None))),
    ("power-limit", lambda: machine(card(0, power_limit_default_w=None))),
    ("clocks", lambda: machine(card(0, sm_clock_is_held=None))),
    ("persistence", lambda: machine(card(0, persistence=None))),
    ("users", lambda: machine(card(0, users=None, users_problem="not supported"))),
    ("pcie", lambda: machine(card(0, pcie_gen_max=None))),
    ("nvlink", lambda: machine(
        card(0), card(1), pairs=(CardPair("0", "1", None, None, None),))),
    ("peers", lambda: machine(
        card(0), card(1), pairs=(CardPair("0", "1", None, None, None),))),
    ("numa", lambda: machine(card(0, numa_node=None), host=TWO_NODES)),
    ("governor", lambda: machine(host={"governors": ()})),
    ("host-load", lambda: machine(host={"load_1_min": None})),
    ("memory", lambda: machine(host={"memory_available_bytes": None})),
    ("disk-read", lambda: machine(disk=DiskMeasure(None, "too little room"))),
    ("logout", lambda: machine(confines={"kills_at_logout": None})),
    ("session-disk", lambda: machine(storage={"free_bytes": None})),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "make"), UNKNOWN, ids=[f"{number}-{case[0]}" for number, case in enumerate(UNKNOWN)]
)
def test_what_is_not_known_is_never_fine(check, make):
    about = [f for f in examine(make()) if f.id == check and f.device_id in (None, "0")]
    assert any(f.is_unknown for f in about), about
    assert all(f.severity != "ok" for f in about)


def test_a_card_that_nobody_asked_for_cannot_make_the_machine_useless():
    other = card(1, is_asked=False, problem="the GPU is lost", measures=None)
    assert all(f.severity != "error" for f in examine(machine(card(0), other)))


def test_compiled_for_the_major_number_is_enough():
    found = examine(machine(card(0, compute_capability="8.9"), stack={"architectures": ("sm_80",)}))
    assert [f.severity for f in found if f.id == "architectures"] == ["ok"]


def test_the_gravest_comes_first_and_what_is_not_known_after_what_is():
    made = machine(
        card(0, persistence=False, power_limit_w=None, ecc_is_on=False), refused={"7": "gone"}
    )
    found = examine(made)
    ranks = [(WORST_FIRST.index(f.severity), f.is_unknown) for f in found]
    assert ranks == sorted(ranks)
    assert found[0].severity == "error"
    number = counts(found)
    assert (number["error"], number["warning"], number["unknown"]) == (1, 1, 1)
    assert summary(found).startswith("1 error, 1 warning, ")
    assert "1 not known" in summary(found)


def test_the_same_sentence_of_several_cards_is_told_once():
    found = examine(machine(card(0, persistence=False), card(1, persistence=False)))
    (one,) = [t for t in told(found) if t.severity == "warning"]
    assert one.device_ids == ("0", "1")
    assert one.words.startswith("0, 1: ")
    assert "power limit (0, 1)" in fine_words(found)


def test_a_split_card_is_looked_at_once():
    slice_ = card(0, device_id="0:0", uuid="MIG-1", mig_parent_uuid="GPU-0", mig_mode=True)
    whole = card(0, is_asked=False, mig_mode=True)
    made = machine(whole, slice_)
    assert [c.info.device_id for c in made.boards] == ["0"]
    assert [c.info.device_id for c in made.asked_boards] == ["0"]
    assert [f.device_id for f in examine(made) if f.id == "mig"] == ["0"]
    assert [c.info.device_id for c in machine(slice_).boards] == ["0:0"]


def test_asking_for_other_devices_changes_what_counts():
    made = machine(card(0), card(1, is_asked=False), others=(replace(CPU, is_asked=False),))
    asked = made.asking([CPU.info])
    assert asked.loads_cpu
    assert asked.asked_boards == ()
    synthetic = DeviceInfo("synthetic-0", "SYNTHETIC-1", "SYNTHETIC", "synthetic", "synthetic")
    assert made.asking([synthetic]).is_synthetic
    assert not made.asking([synthetic, CPU.info]).is_synthetic


def test_a_synthetic_card_needs_no_torch():
    synthetic = DeviceInfo("synthetic-0", "SYNTHETIC-1", "SYNTHETIC", "synthetic", "synthetic")
    made = machine(stack={"torch": None}).asking([synthetic])
    assert not [f for f in examine(made) if f.id == "torch"]


def test_no_finding_names_this_machine():
    for case in CASES:
        for finding in examine(case[3]()):
            assert str(Path.home()) not in finding.text
