"""One tiny kernel on the one card that is visible, then copies to it, from it and within it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

COPY_BYTES = 256 * 1024 * 1024
"""Large against the caches, small against any card's memory."""
COPY_S = 1.0
"""Long enough for a link that rests to wake up, and to be read meanwhile."""
WARM_COPIES = 3


def probe(arguments: list[str]) -> dict[str, Any]:
    """What the card did; `problem` says why nothing can be computed on it.

    Args:
        arguments: `kernel` leaves out the copies, which would disturb whoever else uses the card.
    """
    try:
        import torch
    except (ImportError, OSError) as error:
        return {"problem": f"torch cannot be imported: {error}"}
    try:
        # Unlike is_available() it says why there is no card.
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        text = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return {"problem": f"torch finds no card: {text}"}
    try:
        if not _computes(torch):
            return {"problem": "it computed a wrong product"}
        copies = {} if arguments == ["kernel"] else _copies(torch)
        return {"problem": None, "name": torch.cuda.get_device_name(0), **copies}
    except RuntimeError as error:  # All errors of CUDA, out of memory too.
        text = next(iter(str(error).strip().splitlines()), "")
        return {"problem": text or type(error).__name__}


def _computes(torch: Any) -> bool:  # noqa: ANN401 - a module
    """Whether a small product comes out as it must: whole numbers, exact in any format."""
    left = torch.arange(64, device="cuda", dtype=torch.float32).reshape(8, 8)
    right = torch.eye(8, device="cuda", dtype=torch.float32) * 2
    return bool(torch.equal((left @ right).cpu(), torch.arange(64.0).reshape(8, 8) * 2))


def _copies(torch: Any) -> dict[str, float]:  # noqa: ANN401 - a module
    host = torch.empty(COPY_BYTES, dtype=torch.uint8, pin_memory=True)
    card = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(card)
    return {
        "to_card_bytes_per_s": _rate(torch, lambda: card.copy_(host, non_blocking=True)),
        "to_host_bytes_per_s": _rate(torch, lambda: host.copy_(card, non_blocking=True)),
        # Each byte is read once and written once.
        "within_bytes_per_s": 2 * _rate(torch, lambda: other.copy_(card)),
    }


def _rate(torch: Any, copy: Callable[[], object]) -> float:  # noqa: ANN401 - a module
    """Bytes a second of a copy of `COPY_BYTES`, repeated for `COPY_S`."""
    for _ in range(WARM_COPIES):
        copy()
    torch.cuda.synchronize()
    count, start_s = 0, time.monotonic()
    while (spent_s := time.monotonic() - start_s) < COPY_S:
        for _ in range(8):
            copy()
        torch.cuda.synchronize()
        count += 8
    return count * COPY_BYTES / spent_s
