"""The training environment: versions, read from what is installed, or told by a child program.

Reading costs milliseconds and imports nothing; only a child that imports torch knows for which
architectures it was built.
"""

from __future__ import annotations

import ast
import platform
import re
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_CUDA_MAJORS = (13, 12, 11)
"""Of the distributions that bring cuDNN and NCCL, such as `nvidia-nccl-cu12`."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Versions of what trains here; None where it is not there, or not told."""

    python: str
    torch: str | None
    torch_cuda: str | None
    """CUDA that torch was built with; None: without."""
    cudnn: str | None
    nccl: str | None
    lightning: str | None
    pynvml: str | None
    """Version of the deprecated distribution named `pynvml`, which stands where nvidia-ml-py
    should; None: it is not installed."""
    nvidia_ml_py: str | None
    architectures: tuple[str, ...] | None = None
    """What torch has kernels for: `sm_90`, and as source `compute_90`; None: nobody has asked."""
    problem: str | None = None
    """Why torch cannot be imported, in a sentence; None when it can, or nobody has tried."""


def installed_stack() -> Stack:
    """What lies in this Python, without importing it."""
    torch, cuda = _torch_version()
    return Stack(
        python=platform.python_version(),
        torch=torch,
        torch_cuda=cuda,
        cudnn=_installed(*(f"nvidia-cudnn-cu{major}" for major in _CUDA_MAJORS)),
        nccl=_installed(*(f"nvidia-nccl-cu{major}" for major in _CUDA_MAJORS)),
        lightning=_installed("lightning", "pytorch-lightning"),
        pynvml=_installed("pynvml"),
        nvidia_ml_py=_installed("nvidia-ml-py"),
    )


def told_stack(installed: Stack, told: Mapping[str, Any]) -> Stack:
    """The stack with what the child program `stack` said, which has imported it."""
    if told.get("problem"):
        return replace(installed, problem=str(told["problem"]))
    return replace(
        installed,
        torch=told["torch"],
        torch_cuda=told["torch_cuda"],
        cudnn=told["cudnn"],
        nccl=told["nccl"],
        lightning=told["lightning"] or installed.lightning,
        architectures=tuple(told["architectures"]),
    )


def version_pair(text: str | None) -> tuple[int, int] | None:
    """`(2, 6)` of `2.6.0+cu124`; None of what does not begin so."""
    match = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def _torch_version() -> tuple[str | None, str | None]:
    """Versions of torch and of the CUDA it was built with, as its own file `version.py` has them.

    The name of the distribution does not always say the second.
    """
    spec = find_spec("torch")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        try:
            tree = ast.parse((Path(folder) / "version.py").read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        values: dict[str, Any] = {}
        for node in tree.body:  # `__version__ = "2.6.0"`, `cuda: Optional[str] = "12.4"`
            if isinstance(node, ast.Assign):
                target: ast.expr = node.targets[0]
            elif isinstance(node, ast.AnnAssign):
                target = node.target
            else:
                continue
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Constant):
                values[target.id] = node.value.value
        return values.get("__version__"), values.get("cuda")
    return None, None


def _installed(*names: str) -> str | None:
    """The version of the first of these distributions that is installed."""
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None
