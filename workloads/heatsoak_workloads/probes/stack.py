"""Versions of torch and what it brings, and for which architectures it was built."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any


def probe(_: list[str]) -> dict[str, Any]:
    """Import torch and say what it is; `problem` says why it cannot be."""
    try:
        import torch
    except (ImportError, OSError, RuntimeError) as error:  # A broken library is an OSError.
        text = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return {"problem": f"torch cannot be imported: {text}"}
    return {
        "problem": None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "cudnn": _cudnn(torch),
        "nccl": _nccl(torch),
        "lightning": _version("lightning"),
        "architectures": _architectures(torch),
        "threads": torch.get_num_threads(),
    }


def _architectures(torch: Any) -> list[str]:  # noqa: ANN401 - a module
    """As compiled in; torch.cuda.get_arch_list() is empty where no card is visible."""
    if torch.version.cuda is None:
        return []
    flags = torch._C._cuda_getArchFlags()  # noqa: SLF001 - there is no public way without a card
    return [] if flags is None else list(flags.split())


def _nccl(torch: Any) -> str | None:  # noqa: ANN401 - a module
    if torch.version.cuda is None or not torch.distributed.is_available():
        return None
    try:
        version = torch.cuda.nccl.version()
    except (AttributeError, RuntimeError):  # Built without it.
        return None
    return ".".join(map(str, version[:3])) if isinstance(version, tuple) else str(version)


def _cudnn(torch: Any) -> str | None:  # noqa: ANN401 - a module
    """`9.10.2` of 91002; before version 9 a thousand stood for the major number."""
    number = torch.backends.cudnn.version() if torch.version.cuda else None
    if number is None:
        return None
    major, rest = divmod(number, 10_000) if number >= 90_000 else divmod(number, 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
