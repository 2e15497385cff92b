"""PyTorch and what it needs, against the cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown
from heatsoak.doctor.stack import version_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine

_LEAST_TORCH = (2, 6)
_BLACKWELL = (10, 12)
_LEAST_BLACKWELL_CUDA = (12, 8)
_LEAST_BLACKWELL_NCCL = (2, 25)
"""NCCL 2.25.1 was the first to know Blackwell (github.com/NVIDIA/nccl, its release notes)."""
_INSTALL = "install PyTorch 2.7 or newer built for CUDA 12.8 or newer (pytorch.org, cu128 wheels)"


def torch(machine: Machine) -> Iterator[Finding]:
    """Whether PyTorch is there, and new enough."""
    stack = machine.stack
    if machine.is_synthetic:
        return
    if stack.problem is not None:
        yield Finding(
            "torch", "error", None, "PyTorch does not start", stack.problem,
            "nothing can be trained here", "install PyTorch anew in this Python",
        )  # fmt: skip
    elif stack.torch is None:
        yield Finding(
            "torch", "warning", None, "no PyTorch",
            f"PyTorch is not installed in this Python {stack.python}",
            "only synthetic cards can be soaked", "pip install 'heatsoak[train]'",
        )  # fmt: skip
    elif (version_pair(stack.torch) or _LEAST_TORCH) < _LEAST_TORCH:
        yield Finding(
            "torch", "warning", None, "old PyTorch",
            f"torch {stack.torch} is installed; the workloads are made for 2.6 and newer",
            "kernels of today's attention and optimizers are missing in it, so the rate says "
            "little of the card",
            "pip install -U torch",
        )  # fmt: skip
    else:
        yield ok("torch", f"torch {stack.torch}", f"torch {stack.torch} on Python {stack.python}")
    if stack.torch is not None and stack.lightning is None:
        yield Finding(
            "torch", "warning", None, "no Lightning", "Lightning is not installed in this Python",
            "none of the workloads can run", "pip install lightning",
        )  # fmt: skip


def torch_cuda(machine: Machine) -> Iterator[Finding]:
    """Whether PyTorch was built for CUDA, and for one that driver and card take."""
    stack, cards = machine.stack, machine.boards
    if stack.torch is None or not cards:
        return
    built = version_pair(stack.torch_cuda)
    if built is None:
        yield Finding(
            "torch-cuda", "error" if machine.asked_boards else "warning", None,
            "PyTorch without CUDA", f"torch {stack.torch} was built without CUDA",
            "nothing can be trained on an NVIDIA card",
            "install a PyTorch built for CUDA (pytorch.org)",
        )  # fmt: skip
        return
    for card in cards:
        info = card.info
        offered = version_pair(info.cuda_version)
        capability = version_pair(info.compute_capability)
        is_blackwell = capability is not None and capability[0] in _BLACKWELL
        if offered is not None and built[0] > offered[0]:
            yield Finding(
                "torch-cuda", "error" if card.is_asked else "warning", info.device_id,
                "driver too old for PyTorch",
                f"torch {stack.torch} is built for CUDA {stack.torch_cuda}; the driver runs "
                f"{info.cuda_version} at most",
                "PyTorch finds no card",
                "install a newer driver, or a PyTorch built for an older CUDA",
            )  # fmt: skip
        elif is_blackwell and built < _LEAST_BLACKWELL_CUDA:
            yield Finding(
                "torch-cuda", "warning", info.device_id, "CUDA too old for the card",
                f"torch {stack.torch} is built for CUDA {stack.torch_cuda}, and Blackwell needs "
                "12.8",
                "trainings end with `no kernel image is available`, or run on kernels of an older "
                "generation",
                _INSTALL,
            )  # fmt: skip
        else:
            yield ok("torch-cuda", f"torch for CUDA {stack.torch_cuda}",
                     f"torch is built for CUDA {stack.torch_cuda}", info.device_id)  # fmt: skip


def architectures(machine: Machine) -> Iterator[Finding]:
    """Whether PyTorch has kernels for the card; `is_available()` does not tell."""
    stack = machine.stack
    if stack.torch is None or stack.torch_cuda is None:
        return
    for card in machine.boards:
        info = card.info
        capability = version_pair(info.compute_capability)
        if stack.architectures is None:
            yield unknown("architectures", "kernels for the card", _not_asked(machine),
                          info.device_id)  # fmt: skip
        elif capability is None:
            yield unknown("architectures", "kernels for the card",
                          "the driver does not say its compute capability",
                          info.device_id)  # fmt: skip
        elif _has_kernels(stack.architectures, capability):
            yield ok("architectures", "kernels for the card",
                     f"torch {stack.torch} has kernels for {_sm(capability)}",
                     info.device_id)  # fmt: skip
        elif _has_source(stack.architectures, capability):
            yield Finding(
                "architectures", "warning", info.device_id, "kernels translated at the start",
                f"torch {stack.torch} has no kernels for {_sm(capability)}, only code of an older "
                "generation that the driver translates",
                "the first minutes go into compiling, and the rate is below what the card can do",
                _INSTALL,
            )  # fmt: skip
        else:
            known = ", ".join(stack.architectures) or "none"
            yield Finding(
                "architectures", "error" if card.is_asked else "warning", info.device_id,
                "no kernels for the card",
                f"torch {stack.torch} has no kernels for {_sm(capability)} (it has {known})",
                "every training on it ends with `no kernel image is available`",
                _INSTALL,
            )  # fmt: skip


def kernel(machine: Machine) -> Iterator[Finding]:
    """Whether a tiny kernel runs on each card."""
    for card in machine.cards:
        if not card.is_asked:
            continue
        device_id, measures = card.info.device_id, card.measures
        if measures is None:
            why = _not_asked(machine)
            yield unknown("kernel", "a first kernel", why, device_id)
        elif measures.problem is not None:
            yield Finding(
                "kernel", "error", device_id, "no kernel runs",
                f"a tiny kernel did not run on it: {measures.problem}",
                "no training can run on it",
                "look at the other findings of this card first; they may say why",
            )  # fmt: skip
        else:
            yield ok("kernel", "a first kernel", "a tiny kernel ran on it", device_id)


def libraries(machine: Machine) -> Iterator[Finding]:
    """Versions of cuDNN and NCCL."""
    stack = machine.stack
    if stack.torch_cuda is None or not machine.boards:
        return
    words = f"cuDNN {stack.cudnn or 'not found'}, NCCL {stack.nccl or 'not found'}"
    is_blackwell = any(
        (version_pair(card.info.compute_capability) or (0, 0))[0] in _BLACKWELL
        for card in machine.boards
    )
    nccl = version_pair(stack.nccl)
    if len(machine.asked_boards) > 1 and stack.nccl is None:
        yield unknown("libraries", words, "NCCL's version is told by no installed file")
    elif is_blackwell and nccl is not None and nccl < _LEAST_BLACKWELL_NCCL:
        yield Finding(
            "libraries", "warning", None, "NCCL too old for the cards",
            f"NCCL {stack.nccl} is installed; 2.25 was the first to know Blackwell",
            "trainings on several cards may hang or be slow", "pip install -U torch",
        )  # fmt: skip
    else:
        yield ok("libraries", words)


def _not_asked(machine: Machine) -> str:
    if machine.stack.torch is None:
        return "PyTorch is not installed"
    if machine.stack.torch_cuda is None:
        return "PyTorch was built without CUDA"
    return "nothing was measured"


def _has_kernels(architectures: tuple[str, ...], capability: tuple[int, int]) -> bool:
    """Compiled code runs on its own and later minor numbers of the same major one."""
    if f"{_sm(capability)}a" in architectures:  # For this one alone.
        return True
    return any(
        found[0] == capability[0] and found[1] <= capability[1]
        for found in _parsed(architectures, "sm_")
    )


def _has_source(architectures: tuple[str, ...], capability: tuple[int, int]) -> bool:
    """PTX is translated for any later architecture."""
    return any(found <= capability for found in _parsed(architectures, "compute_"))


def _parsed(architectures: tuple[str, ...], prefix: str) -> Iterator[tuple[int, int]]:
    for name in architectures:
        digits = name.removeprefix(prefix)
        if digits != name and digits.isdecimal():
            yield int(digits[:-1]), int(digits[-1])


def _sm(capability: tuple[int, int]) -> str:
    return f"sm_{capability[0]}{capability[1]}"
