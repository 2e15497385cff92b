"""Where sessions are written: room, speed, and what kind of file system."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heatsoak.doctor.files import read_integer
from heatsoak.session.access import is_network_file_system

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Storage:
    """The folder of the sessions; None where it cannot be told."""

    folder: Path
    """The folder itself, or the nearest one above it that is there."""
    is_writable: bool
    free_bytes: int | None
    """What this user may still write."""
    is_network: bool
    """Whether several machines share the file system."""
    is_rotational: bool | None
    """Whether it lies on a disk that turns."""


def read_storage(folder: Path, root: Path) -> Storage:
    """What is known of a folder, which need not exist yet.

    Args:
        folder: of the sessions.
        root: of the file system that /sys is read from.
    """
    where = folder.absolute()
    while not where.is_dir() and where != where.parent:
        where = where.parent
    try:
        about = os.statvfs(where)
        free_bytes = about.f_bavail * about.f_frsize
        device = where.stat().st_dev
    except OSError:
        return Storage(where, False, None, False, None)
    return Storage(
        where,
        is_writable=os.access(where, os.W_OK | os.X_OK, effective_ids=True),
        free_bytes=free_bytes,
        is_network=is_network_file_system(where),
        is_rotational=_is_rotational(root, device),
    )


def _is_rotational(root: Path, device: int) -> bool | None:
    block = root / "sys/dev/block" / f"{os.major(device)}:{os.minor(device)}"
    # A partition has no queue of its own; the disk it is on lies above it.
    for folder in (block, block / ".."):
        turns = read_integer(folder / "queue/rotational")
        if turns is not None:
            return turns == 1
    return None
