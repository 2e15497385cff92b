"""The host's memory, as its kernel counts it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_PER_KIB = 1024


def host_memory(root: Path) -> tuple[int | None, int | None]:
    """Bytes there are, and bytes that a program may still take; None where it is not told.

    Args:
        root: of the file system that /proc is read from.
    """
    sizes = {}
    with suppress(OSError):
        for line in (root / "proc" / "meminfo").read_text().splitlines():
            key, _, rest = line.partition(":")
            number = rest.split()[:1]
            if number and number[0].isdecimal():
                sizes[key] = int(number[0]) * _BYTES_PER_KIB
    return sizes.get("MemTotal"), sizes.get("MemAvailable")
