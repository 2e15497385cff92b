"""What doctor reads of a machine: from made-up folders of the kernel, and from emulated cards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from doctor_machines import info
from heatsoak.doctor import environment, environment_at_start, examine, look
from heatsoak.doctor.cards import present_cards
from heatsoak.doctor.confines import read_confines
from heatsoak.doctor.host import parse_cores, read_host
from heatsoak.doctor.stack import installed_stack, told_stack, version_pair
from heatsoak.doctor.storage import read_storage

CPUINFO = "processor\t: 0\nmodel name\t: AMD Ryzen 9 9950X\nflags\t\t: fpu sse2 hypervisor\n"
MEMINFO = "MemTotal:       131072000 kB\nMemFree: 1 kB\nMemAvailable:   100000000 kB\n"
STAT = "cpu  600 0 200 9000 0 0 0 200 0 0\ncpu0 1 2 3\n"
LOGIND = "[Login]\n#NAutoVTs=6\n#KillUserProcesses=no\n#KillExcludeUsers=root\n"


@pytest.fixture
def kernel(tmp_path):
    """kernel(PATH=TEXT...) writes files below a root of its own, and returns the root."""

    def write(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def test_a_host_is_read_from_its_kernel(kernel):
    root = kernel({
        "proc/cpuinfo": CPUINFO, "proc/meminfo": MEMINFO, "proc/loadavg": "3.25 1 1 2/300 9\n",
        "proc/stat": STAT, "etc/os-release": 'NAME=x\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n',
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
        "sys/devices/system/cpu/cpufreq/policy0/scaling_driver": "acpi-cpufreq\n",
        "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
        "proc/41/comm": "systemd\n", "proc/42/comm": "nvidia-powerd\n",
        "sys/devices/system/node/node0/cpulist": "0-4095\n",
        "sys/devices/system/node/node1/cpulist": "5000-5001\n",
        "sys/devices/system/node/node2/cpulist": "\n",
    })  # fmt: skip
    host = read_host(root)
    assert host.cpu_model == "AMD Ryzen 9 9950X"
    assert host.system == "Ubuntu 24.04.1 LTS"
    assert host.memory_total_bytes == 131_072_000 * 1024
    assert host.memory_available_bytes == 100_000_000 * 1024
    assert host.load_1_min == 3.25
    assert host.governors == ("performance", "powersave")
    assert host.clock_driver == "acpi-cpufreq"
    assert host.has_boost is False
    assert host.is_virtual
    assert host.has_powerd
    assert host.steal_frac == pytest.approx(0.02)
    assert [node for node, _ in host.node_cores] == [0, 1]
    assert host.usable_nodes == (0,)


def test_a_host_that_says_nothing_is_not_known(tmp_path):
    host = read_host(tmp_path)
    assert (host.memory_total_bytes, host.load_1_min, host.has_boost) == (None, None, None)
    assert (host.governors, host.steal_frac, host.system) == ((), None, None)
    assert parse_cores("0-2,7") == (0, 1, 2, 7)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
          "sys/fs/cgroup/a/cpu.max": "400000 100000\n"}, 4.0),
        ({"proc/self/cgroup": "0::/not/here\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0),
        ({"proc/self/cgroup": "3:cpu,cpuacct:/x\n",
          "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "50000\n",
          "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"proc/self/cgroup": "3:cpu:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n",
          "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_quota_is_the_least_of_all_groups_above(kernel, files, cores):
    assert read_confines({}, kernel(files)).cpu_quota_cores == cores


def test_a_memory_limit_of_the_largest_integer_is_none(kernel):
    files = {"proc/self/cgroup": "0::/\n4:memory:/\n", "sys/fs/cgroup/memory.max": "max\n"}
    root = kernel(files)
    assert read_confines({}, root).memory_limit_bytes is None
    kernel({"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"})
    assert read_confines({}, root).memory_limit_bytes is None
    kernel({"sys/fs/cgroup/memory.max": "17179869184\n"})
    assert read_confines({}, root).memory_limit_bytes == 16 * 1024**3


@pytest.mark.parametrize(
    ("files", "environ", "container"),
    [
        ({".dockerenv": ""}, {}, "Docker"),
        ({"run/.containerenv": ""}, {}, "Podman"),
        ({"run/systemd/container": "lxc\n"}, {}, "LXC"),
        ({"proc/1/cgroup": "0::/kubepods/besteffort/pod1\n"}, {}, "Kubernetes"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "Kubernetes"),
        ({}, {"container": "toolbox"}, "toolbox"),
        ({"proc/1/cgroup": "0::/init.scope\n"}, {}, None),
    ],
)
def test_containers_are_known_by_their_marks(kernel, files, environ, container):
    assert read_confines(environ, kernel(files | {"x": ""})).container == container


def test_wsl_and_batch_jobs(kernel):
    root = kernel({"proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2\n"})
    assert read_confines({}, root).is_wsl
    assert read_confines({"SLURM_JOB_ID": "7"}, root).job == "Slurm"
    assert read_confines({"SLURM_JOB_ID": ""}, root).job is None


@pytest.mark.parametrize(
    ("files", "kills"),
    [
        ({}, False),  # no systemd: nobody is there to do it
        ({"run/systemd/system/x": ""}, None),
        ({"run/systemd/system/x": "", "etc/systemd/logind.conf": LOGIND}, False),
        ({"run/systemd/system/x": "",
          "usr/lib/systemd/logind.conf": LOGIND.replace("=no", "=yes")}, True),
        ({"run/systemd/system/x": "", "etc/systemd/logind.conf": LOGIND,
          "etc/systemd/logind.conf.d/50.conf": "[Login]\nKillUserProcesses = yes\n"}, True),
        ({"run/systemd/system/x": "",
          "usr/lib/systemd/logind.conf.d/50.conf": "[Login]\nKillUserProcesses=yes\n",
          "etc/systemd/logind.conf.d/50.conf": "[Login]\nKillUserProcesses=no\n"}, False),
        ({"run/systemd/system/x": "", "etc/systemd/logind.conf":
          "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=root somebody\n"}, False),
    ],
)  # fmt: skip
def test_who_is_ended_at_logout(kernel, files, kills, monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody")
    assert read_confines({}, kernel(files)).kills_at_logout is kills


def test_lingering_is_a_file_of_the_user(kernel, monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody")
    root = kernel({"var/lib/systemd/linger/else": ""})
    assert not read_confines({}, root).lingers
    kernel({"var/lib/systemd/linger/somebody": ""})
    assert read_confines({}, root).lingers


def test_a_folder_that_is_not_there_yet_is_judged_by_the_one_above(tmp_path):
    seen = read_storage(tmp_path / "not" / "there", Path("/"))
    assert seen.folder == tmp_path
    assert seen.is_writable
    assert seen.free_bytes > 0


def test_a_folder_that_may_not_be_written(open_folder, as_nobody):
    open_folder.chmod(0o555)
    with as_nobody():
        assert not read_storage(open_folder / "sessions", Path("/")).is_writable


def test_cards_on_the_bus_and_which_of_them_sleep(kernel):
    root = kernel({
        "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n",
        "sys/bus/pci/devices/0000:01:00.0/power/runtime_status": "suspended\n",
        "sys/bus/pci/devices/0000:01:00.1/vendor": "0x10de\n",  # its sound function
        "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",
        "sys/bus/pci/devices/0000:02:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:02:00.0/class": "0x030200\n",
        "sys/bus/pci/devices/0000:03:00.0/vendor": "0x1002\n",
        "sys/bus/pci/devices/0000:03:00.0/class": "0x030000\n",
    })  # fmt: skip
    found = [(card.bus_id, card.is_asleep) for card in present_cards(root)]
    assert found == [("0000:01:00.0", True), ("0000:02:00.0", False)]


def test_versions_are_read_without_importing_anything():
    before = set(sys.modules)
    stack = installed_stack()
    assert version_pair(stack.torch) >= (2, 6)
    assert stack.lightning
    assert stack.nvidia_ml_py
    assert stack.architectures is None
    assert not {"torch", "lightning"} & (set(sys.modules) - before)


def test_what_a_child_says_counts_more_than_what_is_installed():
    installed = installed_stack()
    told = {
        "problem": None, "torch": "2.9.1+cu128", "torch_cuda": "12.8", "cudnn": "9.10.2",
        "nccl": "2.27.5", "lightning": None, "architectures": ["sm_90"],
    }  # fmt: skip
    stack = told_stack(installed, told)
    assert (stack.torch_cuda, stack.architectures) == ("12.8", ("sm_90",))
    assert stack.lightning == installed.lightning
    assert told_stack(installed, {"problem": "broken"}).problem == "broken"
    assert version_pair("2.6.0+cu124") == (2, 6)
    assert version_pair("nightly") is None


def test_this_machine_can_be_looked_at():
    made = look()
    assert all(finding.text for finding in examine(made))
    json.dumps(environment(made), allow_nan=False)


def test_the_environment_at_the_start_is_told_from_what_is_open(tmp_path):
    cards = [info(0, power_limit_w=450.0), info(1, persistence=False)]
    document = environment_at_start(cards, tmp_path / "a.heatsoak")
    json.dumps(document, allow_nan=False)
    assert document["driver"] == {"version": "580.95.05", "cuda": "13.0"}
    assert [d["power_limit_w"] for d in document["devices"]] == [450.0, 575.0]
    told = {(f["id"], f["device_id"]) for f in document["findings"]}
    assert {("power-limit", "0"), ("persistence", "1")} <= told
    assert {f["severity"] for f in document["findings"]} <= {"warning", "error"}


# -- emulated cards -------------------------------------------------------------------------------

LOOK = """
import json, pathlib
from dataclasses import asdict
from heatsoak.doctor import cards
cards.READ_WITHIN_S = 1.0
seen = cards.look_at_devices({spec!r}, {environ!r}, pathlib.Path({root!r}))
print(json.dumps({{
    "cards": [c.info.device_id for c in seen.cards],
    "asked": [c.info.device_id for c in (*seen.cards, *seen.others) if c.is_asked],
    "problems": {{c.info.device_id: c.problem for c in seen.cards if c.problem}},
    "users": {{c.info.device_id: c.users and [asdict(u) for u in c.users] for c in seen.cards}},
    "refused": seen.refused, "unreadable": seen.unreadable, "problem": seen.nvidia_problem,
    "pairs": [asdict(p) for p in seen.pairs],
}}))
"""


@pytest.fixture
def looked(nvml):
    """looked(scenario, spec, environ, root): what was seen of emulated cards."""

    def run(scenario, spec=None, environ=None, root="/"):
        return nvml.run(LOOK.format(spec=spec, environ=environ or {}, root=str(root)), scenario)

    return run


def test_all_cards_are_looked_at_and_the_first_is_what_a_run_would_take(looked, nvml):
    seen = looked(nvml.read("mixed-cards"))
    assert seen["cards"] == ["0", "1", "2"]
    assert seen["asked"] == ["0"]
    assert seen["problem"] is None
    assert [(p["first"], p["second"], p["route"]) for p in seen["pairs"]] == [
        ("0", "1", "sockets"), ("0", "2", "host bridge"), ("1", "2", "sockets"),
    ]  # fmt: skip
    assert {p["peer_status"] for p in seen["pairs"]} == {"not supported"}
    assert {p["has_nvlink"] for p in seen["pairs"]} == {False}


def test_a_sleeping_card_is_not_asked_for_anything(looked, nvml, kernel):
    bus = "sys/bus/pci/devices/0000:0{}:00.0/"
    files = {}
    for number, state in ((1, "active"), (2, "suspended")):
        files[bus.format(number) + "vendor"] = "0x10de\n"
        files[bus.format(number) + "class"] = "0x030000\n"
        files[bus.format(number) + "power/runtime_status"] = f"{state}\n"
    root = kernel(files)
    nvml.keep_journal()
    seen = looked("card 0-1 like rtx-5090\n", root=root)
    assert seen["cards"] == ["0"]
    assert {card for card, _ in nvml.calls()} == {-1, 0}
    seen = looked("card 0-1 like rtx-5090\n", spec="1", root=root)
    assert seen["cards"] == ["1"]


def test_where_all_cards_sleep_the_driver_is_left_alone(looked, nvml, kernel):
    folder = "sys/bus/pci/devices/0000:01:00.0/"
    root = kernel({folder + "vendor": "0x10de", folder + "class": "0x030000",
                   folder + "power/runtime_status": "suspended"})  # fmt: skip
    nvml.keep_journal()
    seen = looked("card 0 like rtx-5090\n", root=root)
    assert (seen["cards"], seen["asked"]) == ([], ["cpu"])
    assert not nvml.journal.exists()


def test_a_lost_and_a_hanging_card_do_not_hide_the_others(looked):
    scenario = (
        "card 0-2 like rtx-5090\nfail 1 * GPU_IS_LOST\n"
        "hang 2 nvmlDeviceGetComputeRunningProcesses_v3\n"
    )
    seen = looked(scenario, spec="0,1,2")
    assert seen["cards"] == ["0", "2"]
    assert "lost" in seen["refused"]["1"]
    assert "does not return" in seen["problems"]["2"]
    assert seen["users"]["0"] == []


def test_hidden_and_split_cards_are_refused_in_words(looked, nvml):
    seen = looked("card 0-1 like rtx-5090\n", spec="0,1", environ={"CUDA_VISIBLE_DEVICES": "1"})
    assert list(seen["refused"]) == ["0"]
    assert "hidden by CUDA_VISIBLE_DEVICES" in seen["refused"]["0"]
    seen = looked(nvml.read("mig"), spec="0")
    assert "split into MIG slices" in seen["refused"]["0"]
    assert looked(nvml.read("mig"), spec="all")["asked"] == ["0:0", "0:1", "1"]


def test_the_processes_of_a_run_of_ours_are_told_apart(nvml, monkeypatch):
    code = LOOK + "print(json.dumps([c.soaked_by for c in seen.cards]))"
    monkeypatch.setenv("HEATSOAK_SESSION", "k3f9")
    with nvml.borrowed(), subprocess.Popen(["sleep", "60"]) as ours:
        monkeypatch.delenv("HEATSOAK_SESSION")
        with subprocess.Popen(["sleep", "60"]) as other:
            scenario = (
                "card 0 like rtx-5090\n"
                f"process 0 compute {ours.pid} 2000MiB\nprocess 0 compute {other.pid} ?\n"
                "process 0 compute self 100MiB\n"
            )
            nvml.tell(scenario)
            done = nvml.call(
                sys.executable, "-P", "-c",
                code.format(spec="0", environ={}, root="/"),
            )  # fmt: skip
            assert "k3f9" in look(devices="cpu").runs
            other.kill()
        ours.kill()
    users, soaked = (json.loads(line) for line in done.stdout.splitlines())
    assert users["users"]["0"] == [{"pid": other.pid, "kind": "compute", "memory_bytes": None}]
    assert soaked == [["k3f9"]]
