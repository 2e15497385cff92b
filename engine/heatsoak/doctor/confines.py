"""What keeps this process within bounds, or may end it: containers, WSL, quotas, logins, jobs."""

from __future__ import annotations

import getpass
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.doctor.files import read_integer, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_UNLIMITED_BYTES = 1 << 60
"""Beyond, a limit of memory is none: cgroups of version 1 say the largest integer."""
_CONTAINERS = {
    "docker": "Docker", "podman": "Podman", "lxc": "LXC", "kubepods": "Kubernetes",
    "systemd-nspawn": "systemd-nspawn", "containerd": "containerd", "crio": "CRI-O",
}  # fmt: skip
_JOB_VARIABLES = {
    "SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF", "JOB_ID": "Grid Engine",
}  # fmt: skip
_LOGIND = ("usr/lib/systemd", "etc/systemd", "run/systemd")
_SETTING = re.compile(
    r"^\s*(#?)\s*(KillUserProcesses|KillExcludeUsers)\s*=\s*(.*?)\s*$", re.MULTILINE
)
_YES = ("yes", "true", "on", "1")


@dataclass(frozen=True, slots=True)
class Confines:
    """Bounds of this process; None where there is none, or it cannot be told."""

    container: str | None
    """What kind of container it runs in."""
    is_wsl: bool
    """Whether it runs in the Windows Subsystem for Linux."""
    cpu_quota_cores: float | None
    """Cores' worth of time it may use (cgroup `cpu.max`)."""
    memory_limit_bytes: int | None
    """Memory it may use (cgroup `memory.max`)."""
    shared_memory_bytes: int | None
    """Size of /dev/shm, through which loader processes hand over their batches."""
    job: str | None
    """The batch system whose job it is part of; the job's end is its own."""
    kills_at_logout: bool | None
    """Whether logind ends what a user started when the user logs out; None: not known."""
    lingers: bool
    """Whether logind keeps the user's services without a login."""


def read_confines(environ: Mapping[str, str], root: Path = Path("/")) -> Confines:
    """What holds for this process now.

    Args:
        environ: its environment.
        root: of the file system that /proc, /sys and /etc are read from.
    """
    groups = _groups(root)
    user = _user(environ)
    return Confines(
        container=_container(root, environ),
        is_wsl="microsoft" in (read_text(root / "proc/version") or "").lower(),
        cpu_quota_cores=_cpu_quota_cores(root, groups),
        memory_limit_bytes=_memory_limit_bytes(root, groups),
        shared_memory_bytes=_size_bytes(root / "dev/shm"),
        job=next((name for key, name in _JOB_VARIABLES.items() if environ.get(key)), None),
        kills_at_logout=_kills_at_logout(root, user),
        lingers=(root / "var/lib/systemd/linger" / user).exists(),
    )


def _user(environ: Mapping[str, str]) -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A container's number without a name.
        return environ.get("USER") or str(os.getuid())


def _container(root: Path, environ: Mapping[str, str]) -> str | None:
    if (root / ".dockerenv").exists():
        return "Docker"
    if (root / "run/.containerenv").exists():
        return "Podman"
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "Kubernetes"
    named = read_text(root / "run/systemd/container") or environ.get("container", "")
    of_first = read_text(root / "proc/1/cgroup") or ""
    for word, name in _CONTAINERS.items():
        if named == word or f"/{word}" in of_first:
            return name
    return named or None


def _groups(root: Path) -> dict[str, str]:
    """The control group of this process, by controller; of version 2 under the empty name."""
    found = {}
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for name in controllers.split(","):
            found[name] = path.lstrip("/")
    return found


def _above(mount: Path, group: str) -> list[Path]:
    """The folder of a group and of all above it: each may set the bound.

    In a container the mount begins at the container's own group, so the path may not be there.
    """
    parts = Path(group).parts
    return [mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def _cpu_quota_cores(root: Path, groups: Mapping[str, str]) -> float | None:
    mount = root / "sys/fs/cgroup"
    found: list[float] = []
    for folder in _above(mount, groups.get("", "")):
        quota, _, period = (read_text(folder / "cpu.max") or "").partition(" ")
        if quota.isdecimal() and period.isdecimal():
            found.append(int(quota) / int(period))
    for folder in _above(mount / "cpu", groups.get("cpu", "")):
        quota_us = read_integer(folder / "cpu.cfs_quota_us")
        period_us = read_integer(folder / "cpu.cfs_period_us")
        if quota_us is not None and quota_us > 0 and period_us:
            found.append(quota_us / period_us)
    return min(found, default=None)


def _memory_limit_bytes(root: Path, groups: Mapping[str, str]) -> int | None:
    mount = root / "sys/fs/cgroup"
    files = [folder / "memory.max" for folder in _above(mount, groups.get("", ""))]
    files += [
        folder / "memory.limit_in_bytes"
        for folder in _above(mount / "memory", groups.get("memory", ""))
    ]
    limits = [limit for file in files if (limit := read_integer(file)) is not None]
    return min((limit for limit in limits if limit < _UNLIMITED_BYTES), default=None)


def _size_bytes(folder: Path) -> int | None:
    try:
        about = os.statvfs(folder)
    except OSError:
        return None
    return about.f_blocks * about.f_frsize


def _kills_at_logout(root: Path, user: str) -> bool | None:
    """What logind's files say; the shipped one names its default behind a `#`."""
    if not (root / "run/systemd/system").is_dir():
        return False  # No systemd, or a container without: nobody is there to do it.
    files = [root / folder / "logind.conf" for folder in _LOGIND]
    dropped = {
        file.name: file  # A later folder hides a file of the same name.
        for folder in _LOGIND
        for file in (root / folder / "logind.conf.d").glob("*.conf")
    }
    default: bool | None = None
    said: bool | None = None
    spared = {"root"}
    for file in [*files, *(dropped[name] for name in sorted(dropped))]:
        for is_comment, key, value in _SETTING.findall(read_text(file) or ""):
            if key == "KillUserProcesses" and is_comment:
                default = value.lower() in _YES
            elif key == "KillUserProcesses":
                said = value.lower() in _YES
            elif not is_comment:
                spared = set(value.split())
    kills = default if said is None else said
    return False if kills and user in spared else kills
