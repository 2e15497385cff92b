"""Environment variables and packages that change what is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok
from heatsoak.telemetry.visibility import VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine

_SLOWING = {
    "CUDA_LAUNCH_BLOCKING": "every kernel is waited for, so the card idles between them",
    "NVIDIA_TF32_OVERRIDE": "TF32 is switched for every library, whatever the recipe says",
    "NCCL_P2P_DISABLE": "cards exchange everything through the host's memory",
    "NCCL_SHM_DISABLE": "processes exchange everything over the network stack",
    "NCCL_DEBUG": "NCCL writes a log while it works",
    "CUDA_DEVICE_MAX_CONNECTIONS": "copies and kernels may wait for each other",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "memory is asked from the driver for every tensor",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "TF32 is switched on, whatever the recipe says",
}
"""Variables that are for debugging or override the recipe, with what they do."""
_OFF = ("", "0", "WARN", "VERSION")


def debug_variables(machine: Machine) -> Iterator[Finding]:
    """Variables left over from a search for bugs."""
    found = {
        name: words for name, words in _SLOWING.items() if machine.environ.get(name, "") not in _OFF
    }
    for name, words in found.items():
        yield Finding(
            "variables", "warning", None, name, f"{name}={machine.environ[name]} is set",
            words, f"unset {name} before a run",
        )  # fmt: skip
    if not found:
        yield ok("variables", "no variable that slows", "no variable is set that slows a training")


def visible_devices(machine: Machine) -> Iterator[Finding]:
    """Cards that the user's own variable hides."""
    value = machine.environ.get(VARIABLE)
    if value is not None and machine.cards:
        yield Finding(
            "visible", "info", None, VARIABLE, f"{VARIABLE}={value!r} says which cards may be used",
            "", f"unset {VARIABLE} to use others",
        )  # fmt: skip


def threads(machine: Machine) -> Iterator[Finding]:
    """Numbers of threads that somebody set."""
    cores = machine.host.usable_cores
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        value = machine.environ.get(name, "")
        if not value.isdecimal() or int(value) == cores:
            continue
        is_many = int(value) > cores
        yield Finding(
            "threads", "warning" if is_many else "info", None, f"{name}={value}",
            f"{name}={value} on {cores} cores",
            "more threads than cores wait for each other"
            if is_many
            else "a script of yours computes on so many threads; the workloads here take all cores",
            f"unset {name}, unless it is meant",
        )  # fmt: skip


def bindings(machine: Machine) -> Iterator[Finding]:
    """The package through which NVML is asked."""
    stack = machine.stack
    if stack.pynvml is not None:
        yield Finding(
            "bindings", "warning", None, "package pynvml",
            f"the deprecated package pynvml {stack.pynvml} is installed, which stands in the place "
            "of nvidia-ml-py",
            "readings may be missing, and every program that imports it prints a warning",
            "pip uninstall pynvml, then pip install --force-reinstall nvidia-ml-py",
        )  # fmt: skip
    elif stack.nvidia_ml_py is None:
        yield Finding(
            "bindings", "warning", None, "no nvidia-ml-py", "nvidia-ml-py is not installed",
            "no NVIDIA card can be read", "pip install nvidia-ml-py",
        )  # fmt: skip
    else:
        yield ok("bindings", f"nvidia-ml-py {stack.nvidia_ml_py}")
