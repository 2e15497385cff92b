"""The NVIDIA driver: whether it works, and whether it suits the cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown
from heatsoak.doctor.stack import version_pair
from heatsoak.telemetry.nvml.errors import LIBRARY_NOT_FOUND, START_PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine

_LAUNCH_BRANCHES = {12: (571, 572)}
"""By the major number of the compute capability: driver branches of a generation's first weeks,
which were erratic in some applications (the article for 50-series cards)."""
_LEAST_CUDA = {10: (12, 8), 12: (12, 8)}
"""By the major number of the compute capability: the first CUDA that knows the generation."""


def driver(machine: Machine) -> Iterator[Finding]:
    """Whether there is a driver, where there is a card."""
    problem = machine.nvidia_problem
    if machine.cards:
        info = machine.cards[0].info
        words = f"driver {info.driver_version or 'of unknown version'}"
        yield ok("driver", words, f"the NVIDIA {words} answers, for CUDA {info.cuda_version}")
    elif problem is not None and machine.present:
        where = ", ".join(card.bus_id for card in machine.present)
        yield Finding(
            "driver", "warning", None, "a card without a working driver",
            f"there is an NVIDIA card at {where}, but {problem}",
            "nothing can be measured or trained on it",
            "install the driver, or load it (modprobe nvidia), and look again",
        )  # fmt: skip
    elif problem == START_PROBLEMS[LIBRARY_NOT_FOUND]:
        yield Finding("driver", "info", None, "no NVIDIA card", problem)
    elif problem is not None:
        yield Finding(
            "driver", "warning", None, "no NVIDIA card can be read", problem,
            "nothing can be measured on an NVIDIA card",
        )  # fmt: skip


def refused_devices(machine: Machine) -> Iterator[Finding]:
    """Devices that were asked for and cannot be used, and others that cannot be read."""
    for device_id, why in machine.refused.items():
        text = why.removeprefix(f"device {device_id} ")  # It is named beside the sentence.
        yield Finding(
            "device", "error", None if device_id == "default" else device_id, "cannot be used",
            text, "no run can begin on it",
        )  # fmt: skip
    for device_id, why in machine.unreadable.items():
        yield Finding(
            "device", "warning", device_id, "cannot be read",
            why.removeprefix(f"device {device_id} "),
            "whatever spoils this card may disturb the others, which share driver and power supply",
            "look at the kernel's log (dmesg) for Xid lines; a reset or a reboot may bring it back",
        )  # fmt: skip
    for card in machine.cards:
        info = card.info
        if card.problem is not None:
            yield Finding(
                "device", "error" if card.is_asked else "warning", info.device_id,
                "does not answer", f"{info.name} was found, but {card.problem}",
                "nothing can be measured on it",
                "look at the kernel's log (dmesg) for Xid lines; reset the card, or reboot",
            )  # fmt: skip
        elif card.is_asked and info.device_id not in machine.refused:
            yield ok("device", "answers", f"{info.name} answers", info.device_id)


def early_driver(machine: Machine) -> Iterator[Finding]:
    """A driver of the first weeks of the cards' generation."""
    for card in machine.boards:
        info = card.info
        capability = version_pair(info.compute_capability)
        version = version_pair(info.driver_version)
        if capability is None or version is None:
            what = "compute capability" if capability is None else "driver version"
            yield unknown("early-driver", "driver's age", f"no {what} is reported", info.device_id)
        elif version[0] in _LAUNCH_BRANCHES.get(capability[0], ()):
            yield Finding(
                "early-driver", "warning", info.device_id, "early driver",
                f"driver {info.driver_version} is of the launch branch of this generation, which "
                "was erratic in some applications",
                "crashes and rates that a later driver would not show",
                "install a newer driver branch",
            )  # fmt: skip
        else:
            yield ok("early-driver", "driver's age",
                     f"driver {info.driver_version} is of no launch branch of this generation",
                     info.device_id)  # fmt: skip


def driver_cuda(machine: Machine) -> Iterator[Finding]:
    """Whether the driver offers the CUDA that the generation of the card needs."""
    for card in machine.boards:
        info = card.info
        capability = version_pair(info.compute_capability)
        least = _LEAST_CUDA.get(capability[0]) if capability else None
        if least is None:
            continue
        offered = version_pair(info.cuda_version)
        if offered is None:
            yield unknown("driver-cuda", "CUDA of the driver", "the driver does not say it",
                          info.device_id)  # fmt: skip
        elif offered < least:
            yield Finding(
                "driver-cuda", "warning", info.device_id, "driver too old for the card",
                f"the driver runs CUDA {info.cuda_version} at most, and Blackwell needs "
                f"{least[0]}.{least[1]}",
                "programs built for this card do not start",
                "install driver 570 or newer",
            )  # fmt: skip
        else:
            yield ok("driver-cuda", "CUDA of the driver",
                     f"the driver runs CUDA {info.cuda_version}", info.device_id)  # fmt: skip
