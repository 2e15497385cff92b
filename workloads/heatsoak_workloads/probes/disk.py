"""How fast a folder's disk is read, past the cache of the kernel. Needs no torch."""

from __future__ import annotations

import mmap
import os
import tempfile
import time
from typing import Any

FILE_BYTES = 256 * 1024 * 1024
BLOCK_BYTES = 8 * 1024 * 1024
MOST_S = 4.0
"""A slow disk is known well enough after this."""
SPARE_BYTES = 4 * FILE_BYTES
"""Room that must be left besides."""


def probe(arguments: list[str]) -> dict[str, Any]:
    """Write a file in the folder and read it; it has no name, so nothing of it can stay."""
    folder = arguments[0]
    about = os.statvfs(folder)
    if about.f_bavail * about.f_frsize < FILE_BYTES + SPARE_BYTES:
        return {"read_bytes_per_s": None, "problem": "there is too little room to measure it"}
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return _measured(file.fileno())
    except OSError as error:
        return {"read_bytes_per_s": None, "problem": f"it cannot be measured: {error.strerror}"}


def _measured(target: int) -> dict[str, Any]:
    # Memory of its own pages is aligned as O_DIRECT wants it.
    block = mmap.mmap(-1, BLOCK_BYTES)
    block.write(os.urandom(BLOCK_BYTES))
    start_s, written = time.monotonic(), 0
    while written < FILE_BYTES and time.monotonic() - start_s < MOST_S:
        written += os.write(target, block)
    os.fsync(target)
    source = os.open(f"/proc/self/fd/{target}", os.O_RDONLY | os.O_DIRECT)
    try:
        start_s, read = time.monotonic(), 0
        while read < written and (time.monotonic() - start_s < MOST_S or not read):
            count = os.readv(source, [block])
            if not count:
                break
            read += count
        spent_s = time.monotonic() - start_s
    finally:
        os.close(source)
    return {"read_bytes_per_s": read / spent_s, "bytes": read, "problem": None}
