"""Versions of the driver's halves, for when they do not fit each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.telemetry.device import DeviceLostError
from heatsoak.telemetry.nvml.errors import MISMATCH, START_PROBLEMS, ask

if TYPE_CHECKING:
    from types import ModuleType

_KERNEL = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")


def mismatch(nvml: ModuleType, root: Path = Path("/")) -> str:
    """A sentence on a kernel driver and a library of different versions, with both where known.

    Args:
        nvml: the loaded library, which need not have started.
        root: of the file system that /proc is read from.
    """
    try:
        library, _ = ask(nvml, "nvmlSystemGetNVMLVersion")
    except DeviceLostError:
        library = None
    try:
        text = (root / "proc/driver/nvidia/version").read_text()
    except OSError:
        text = ""
    kernel = _KERNEL.search(text)
    if not library or kernel is None:
        return START_PROBLEMS[MISMATCH]
    # NVML puts CUDA's major version before the driver's.
    _, _, driver = str(library).partition(".")
    return (
        f"the NVIDIA kernel driver ({kernel.group(1)}) and its library ({driver}) are of different "
        "versions: reboot"
    )
