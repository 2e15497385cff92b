"""What may end or lose a run: logins, batch systems, containers, disks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine

SESSION_BYTES = 200_000_000
"""Room that a long soak of many cards may take: 8 cards write 4.2 MB an hour."""


def other_runs(machine: Machine) -> Iterator[Finding]:
    """Whether another soak is going on in this machine."""
    if machine.runs:
        yield Finding(
            "other-runs", "warning", None, "another soak is going on",
            f"the heatsoak run {', '.join(machine.runs)} is going on in this machine",
            "two soaks share the host, its power supply and its air, so both are slower and hotter",
            "wait for its end, or heatsoak stop it; cards that will work side by side may be "
            "soaked together in one run",
        )  # fmt: skip
    else:
        yield ok("other-runs", "no other soak", "no other heatsoak run is going on")


def logout(machine: Machine) -> Iterator[Finding]:
    """Who could end a run that nobody watches."""
    confines = machine.confines
    if confines.kills_at_logout is None:
        yield unknown("logout", "runs after logout", "no file of logind says KillUserProcesses")
    elif confines.kills_at_logout:
        lingers = "" if confines.lingers else "loginctl enable-linger, then "
        yield Finding(
            "logout", "warning", None, "runs end at logout",
            "logind ends every process of yours when you log out (KillUserProcesses=yes)",
            "a run that you leave going on ends with your SSH session",
            f"{lingers}start the run under systemd-run --user --scope",
        )  # fmt: skip
    else:
        yield ok("logout", "runs survive logout", "nothing ends a run when you log out")
    if confines.job is not None:
        yield Finding(
            "job", "info", None, f"a {confines.job} job",
            f"this shell is part of a {confines.job} job, and whatever it starts ends with it",
            "a run that is still going on when the job ends",
            "ask for the time that the protocol may take",
        )  # fmt: skip


def container(machine: Machine) -> Iterator[Finding]:
    """What a container or WSL hides."""
    confines = machine.confines
    if confines.is_wsl:
        yield Finding(
            "wsl", "info", None, "WSL",
            "this is the Windows Subsystem for Linux: its driver does not report utilization, fan, "
            "power limit and what holds the clock",
            "the verdict stands on fewer signals; the workload's own counter is one of them",
            "measure under Linux for the full picture",
        )  # fmt: skip
    if confines.container is not None:
        yield Finding(
            "container", "info", None, f"in {confines.container}",
            f"this is a {confines.container} container: processes of others are not seen, and a "
            "run ends with the container",
            "who else uses a card; and with systemd's cgroups a daemon-reload on the host takes "
            "the card away from the container",
            "look for other programs on the host, and keep the container until the run has ended",
        )  # fmt: skip


def session_disk(machine: Machine) -> Iterator[Finding]:
    """Room for the session file."""
    storage = machine.storage
    if not storage.is_writable:
        yield Finding(
            "session-disk", "warning", None, "sessions cannot be written",
            f"{storage.folder} cannot be written by this user", "no run can be recorded there",
            "set XDG_STATE_HOME, or give --out",
        )  # fmt: skip
    elif storage.free_bytes is None:
        yield unknown("session-disk", "room for sessions", f"{storage.folder} does not say")
    elif storage.free_bytes < SESSION_BYTES:
        yield Finding(
            "session-disk", "warning", None, "little room for sessions",
            f"{storage.free_bytes / 1e6:.0f} MB are free at {storage.folder}",
            "a run ends as interrupted when the disk is full",
            "make room, or give --out on another disk",
        )  # fmt: skip
    else:
        yield ok("session-disk", "room for sessions",
                 f"{storage.free_bytes / 1e9:.0f} GB are free at {storage.folder}")  # fmt: skip
    if storage.is_network:
        yield Finding(
            "session-disk", "info", None, "a network file system",
            f"{storage.folder} lies on a file system that several machines share",
            "a commit waits for the network; when it hangs, so does the record, not the training",
            "give --out on a disk of this machine",
        )  # fmt: skip
