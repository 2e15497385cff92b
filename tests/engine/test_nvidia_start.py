"""NVML that does not start, or not the NVML that was meant (cases C5, C9)."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from heatsoak.telemetry.nvml.versions import mismatch

LOOK = """
import json
from heatsoak.telemetry import discovery
print(json.dumps([discovery.nvidia_problem(), [i.device_id for i in discovery.discover()]]))
"""


@pytest.fixture
def shadow(nvml, tmp_path):
    """shadow(name, text): run `LOOK` where another file stands before nvidia-ml-py."""

    def play(name, text):
        nvml.play("one-card")
        folder = tmp_path / "before"
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
        return nvml.run(f"import sys\nsys.path.insert(0, {str(folder)!r})\n" + LOOK)

    return play


def test_c9_the_distribution_that_hides_nvidia_ml_py_is_one_sentence(shadow):
    # It has the functions, years old.
    text = "__version__ = '11.4.1'\ndef nvmlInit(): pass\nnvmlDeviceGetFieldValues = nvmlInit\n"
    problem, found = shadow("pynvml/__init__.py", text)
    assert problem.startswith("the Python package pynvml hides nvidia-ml-py: pip uninstall pynvml")
    assert found == ["cpu"]


def test_c9_a_file_of_that_name_is_no_library_either(shadow):
    problem, _ = shadow("pynvml.py", "answer = 42\n")
    assert "hides nvidia-ml-py" in problem


def test_c9_a_missing_library_is_one_sentence(shadow):
    problem, found = shadow("pynvml.py", "raise ImportError('no such thing')\n")
    assert problem == "the Python package nvidia-ml-py is missing: pip install nvidia-ml-py"
    assert found == ["cpu"]


def test_c9_its_warning_is_not_the_users(nvml, tmp_path):
    nvml.play("one-card")
    folder = tmp_path / "before"
    folder.mkdir()
    # What the deprecated distribution does today: it warns, and then is nvidia-ml-py.
    (folder / "pynvml.py").write_text(
        "import warnings, sys\n"
        "warnings.warn('The pynvml package is deprecated.', FutureWarning, stacklevel=2)\n"
        f"sys.path.remove({str(folder)!r})\n"
        "del sys.modules['pynvml']\n"
        "import pynvml\n"
    )
    done = nvml.call(
        sys.executable, "-P", "-W", "error", "-c",
        f"import sys\nsys.path.insert(0, {str(folder)!r})\n" + LOOK,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '[null, ["0", "cpu"]]\n'


class _Error(Exception):
    value = 999


@pytest.fixture
def library():
    """The part of the bindings that tells a version, without having started."""
    return SimpleNamespace(NVMLError=_Error, nvmlSystemGetNVMLVersion=lambda: "13.580.95.05")


@pytest.mark.parametrize("flavour", ["x86_64 Kernel Module", "Open Kernel Module for x86_64"])
def test_c5_both_versions_that_do_not_fit_are_named(library, tmp_path, flavour):
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        f"NVRM version: NVIDIA UNIX {flavour}  570.133.20  Release Build  (archlinux)\n"
        "GCC version:  gcc version 14.2.1\n"
    )
    assert mismatch(library, tmp_path) == (
        "the NVIDIA kernel driver (570.133.20) and its library (580.95.05) are of different "
        "versions: reboot"
    )


def test_c5_versions_that_are_not_known_are_not_made_up(library, tmp_path):
    words = "the NVIDIA kernel driver and its library are of different versions: reboot"
    assert mismatch(library, tmp_path) == words

    def fail():
        raise _Error

    library.nvmlSystemGetNVMLVersion = fail
    assert mismatch(library, tmp_path) == words


def test_c5_a_mismatch_at_the_start_says_reboot(nvml):
    nvml.play("driver-replaced")
    problem, found = nvml.run(LOOK)
    assert "are of different versions: reboot" in problem
    assert found == ["cpu"]


def test_c3_an_nvml_that_hangs_as_it_starts_is_given_up(nvml):
    nvml.play("one-card")
    problem = nvml.run(
        "import json, threading, pynvml\n"
        "from heatsoak.telemetry.vendors import nvidia\n"
        "pynvml.nvmlInit = threading.Event().wait\n"
        "nvidia.START_WITHIN_S = 0.3\n"
        "print(json.dumps(nvidia.problem()))"
    )
    assert problem == "a call into the NVIDIA driver does not return"
