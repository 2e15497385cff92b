"""Gathering everything that the checks look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.doctor.cards import Look, look_at_devices
from heatsoak.doctor.confines import read_confines
from heatsoak.doctor.host import read_host
from heatsoak.doctor.machine import Card, Machine
from heatsoak.doctor.measure import measure
from heatsoak.doctor.runs import runs_here
from heatsoak.doctor.stack import installed_stack
from heatsoak.doctor.storage import read_storage
from heatsoak.session.library import sessions_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from heatsoak.telemetry.device import DeviceInfo


def look(
    devices: str | None = None,
    *,
    is_measured: bool = False,
    say: Callable[[str], None] = lambda _: None,
    environ: Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> Machine:
    """Look at this machine and its cards.

    Args:
        devices: those that are asked for, as on the command line; None: all that are awake, and
            what `heatsoak run` would take counts as asked for.
        is_measured: whether child programs run a kernel on the cards that are asked for, and copy
            memory and files; up to a minute a card.
        say: told what is done whenever that takes longer than a moment.
        environ: the user's environment; None: that of this process.
        root: of the file system that /proc, /sys and /etc are read from.

    Raises:
        UsageError: a device that does not exist.
    """
    variables = os.environ if environ is None else environ
    machine = _machine(look_at_devices(devices, variables, root), sessions_dir(), variables, root)
    return measure(machine, say) if is_measured else machine


def look_at_start(
    devices: Sequence[DeviceInfo], folder: Path, environ: Mapping[str, str] | None = None
) -> Machine:
    """What can be told at once of a machine whose devices are open already: no card is asked.

    Args:
        devices: of the run.
        folder: where its session is written.
        environ: as in `look`.
    """
    cards = [Card(info, is_asked=True) for info in devices]
    seen = Look(
        cards=[card for card in cards if card.info.kind == "nvidia"],
        others=[card for card in cards if card.info.kind != "nvidia"],
    )
    return _machine(seen, folder, os.environ if environ is None else environ, Path("/"))


def _machine(seen: Look, folder: Path, environ: Mapping[str, str], root: Path) -> Machine:
    return Machine(
        host=read_host(root),
        confines=read_confines(environ, root),
        storage=read_storage(folder, root),
        stack=installed_stack(),
        environ=dict(environ),
        cards=tuple(seen.cards),
        others=tuple(seen.others),
        refused=seen.refused,
        unreadable=seen.unreadable,
        nvidia_problem=seen.nvidia_problem,
        present=seen.present,
        pairs=seen.pairs,
        runs=runs_here(),
    )
