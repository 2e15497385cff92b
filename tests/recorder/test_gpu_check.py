"""`make gpu-check` as far as it goes without a card: none, an emulated one, other answers."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heatsoak.clock import monotonic_s

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_check.py"
SMI = """#!/bin/sh
# Answers one query of one form, as nvidia-smi does.
case "$1" in --query-gpu=uuid,name,*) cat "$(dirname "$0")/answer.csv" ;; *) exit 2 ;; esac
"""
ANSWER = (
    "GPU-50900000-0000-4000-8000-000000000000, NVIDIA GeForce RTX 5090, 580.95.05, "
    "98.02.2E.40.9B, 12.0, 5, 16, Enabled, [N/A], {memory}, 575.00, 575.00, 41, 90.12, 27120\n"
)
CARD = (
    "driver 580.95.05\nnvml 13.580.95.05\ncuda 13000\ncard 0 like rtx-5090\n"
    "card 0 nvmlDeviceGetTemperature:0 41\ncard 0 nvmlDeviceGetPowerUsage 90000\n"
    "card 0 field:185 90000\n"
)


@pytest.fixture(scope="module")
def gpu_check():
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """smi(TEXT) puts an nvidia-smi that answers so on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def make(text):
        (folder / "answer.csv").write_text(text)
        (folder / "nvidia-smi").write_text(SMI)
        (folder / "nvidia-smi").chmod(0o755)

    return make


def run(nvml, tmp_path, *arguments):
    return nvml.call(
        sys.executable, str(SCRIPT), "--out", str(tmp_path / "a.json"), "--workloads", "none",
        *arguments,
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_without_a_card_it_says_so_and_makes_nothing(tmp_path):
    if (ROOT / ".venv").exists() and Path("/dev/nvidiactl").exists():
        pytest.skip("there is a card here")
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    for name in ("Makefile", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    done = subprocess.run(
        ["make", "-s", "gpu-check", f"PYTHON={sys.executable}"], cwd=tmp_path,
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("gpu-check: no NVIDIA card here: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Makefile", "benchmarks"]


def test_a_driver_without_a_card_is_told_apart_from_one_that_does_not_start(nvml, tmp_path):
    nvml.tell("")
    done = run(nvml, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no NVIDIA card here: the NVIDIA driver works, but it finds no card" in done.stderr
    nvml.tell("init DRIVER_NOT_LOADED\n")
    assert run(nvml, tmp_path).returncode == 0
    nvml.tell("init LIB_RM_VERSION_MISMATCH\n")
    done = run(nvml, tmp_path)
    assert done.returncode == 5
    assert "the NVIDIA card here cannot be used" in done.stderr
    assert "different versions: reboot" in done.stderr
    assert not (tmp_path / "a.json").exists()


def test_what_is_missing_is_named_and_may_come_as_wheels(nvml, tmp_path):
    """A Python without any package: everything is named; a wheel is no longer missing."""
    import zipfile

    nvml.tell(CARD)
    bare = (sys.executable, "-S", str(SCRIPT), "--workloads", "none", "--out", "/dev/null")
    done = nvml.call("env", "-u", "PYTHONPATH", *bare)
    assert done.returncode == 2
    assert "lacks torch 2.6 or newer, lightning, nvidia-ml-py, numpy, psutil" in done.stderr
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "psutil-7.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("psutil/__init__.py", "")
    done = nvml.call("env", "-u", "PYTHONPATH", *bare, "--wheels", str(wheels))
    assert "numpy, pyyaml" in done.stderr


def test_nvidia_smi_is_compared_once(nvml, smi, tmp_path):
    nvml.tell(CARD)
    smi(ANSWER.format(memory=32607))
    done = run(nvml, tmp_path)
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["nvidia_smi"] == {"compared": 15, "differences": [], "problem": None}
    assert document["environment"]["driver"]["version"] == "580.95.05"
    assert document["device"] == "0"
    assert document["doctor"]["counts"]["ok"] > 10
    # A PyTorch without CUDA is what keeps this from holding here.
    assert done.returncode == (0 if document["holds"] else 1)
    assert len((tmp_path / "a.json").read_text()) < 20_000


def test_what_nvidia_smi_says_otherwise_is_told(nvml, smi, gpu_check):
    code = (
        "import importlib.util, json\n"
        f"spec = importlib.util.spec_from_file_location('gpu_check', {str(SCRIPT)!r})\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "print(json.dumps(module.compare()))\n"
    )
    smi(ANSWER.format(memory=24000))
    found = nvml.run(code, CARD)
    (difference,) = found["differences"]
    assert (difference["field"], difference["nvidia_smi"]) == ("memory.total", "24000")
    smi("GPU-else" + ANSWER.format(memory=32607)[40:])
    assert [d["field"] for d in nvml.run(code, CARD)["differences"]] == ["uuid"]
    (Path(os.environ["PATH"].partition(os.pathsep)[0]) / "nvidia-smi").write_text(
        "#!/bin/sh\nexit 9"
    )
    assert nvml.run(code, CARD)["problem"].startswith("nvidia-smi failed")


def test_a_workload_is_soaked_for_its_time_and_told(
    nvml, tiny, mark, gpu_check, monkeypatch, tmp_path
):
    nvml.tell(CARD)
    monkeypatch.setattr(gpu_check, "TAIL_S", 2.0)
    found = gpu_check.soak("tiny", "0", tmp_path, 3.0, monotonic_s() + 60)
    assert found["failure"] is None
    assert found["state"] == "interrupted"
    assert found["rate_per_s"] > 0
    assert found["power_w"] == 90.0
    late = gpu_check.soak("tiny", "0", tmp_path, 3.0, monotonic_s() + 1)
    assert late["failure"].startswith("left out")


def test_a_workload_that_fails_says_why(nvml, tiny, mark, gpu_check, tmp_path):
    nvml.tell(CARD)
    found = gpu_check.soak("nothing", "0", tmp_path, 3.0, monotonic_s() + 60)
    assert "unknown workload" in found["failure"]
    document = {
        "doctor": {"problems": [{"severity": "warning", "text": "a warning"}]},
        "nvidia_smi": {"problem": None, "differences": []},
        "workloads": [{"workload": "nothing", "failure": found["failure"]}],
    }
    (said,) = gpu_check.failures(document)
    assert said.startswith("nothing: unknown workload")
