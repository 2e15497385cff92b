"""Looking at the cards: which there are, one reading of each, who uses them, how they are joined.

A card that sleeps is left asleep unless the user named it: opening one would wake it, and keep it
awake for as long as somebody looks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from heatsoak.clock import monotonic_s
from heatsoak.doctor.files import read_text
from heatsoak.doctor.machine import Card, PciCard
from heatsoak.doctor.runs import run_of
from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.discovery import best_device, open_devices
from heatsoak.telemetry.nvml.calls import Call, HangError
from heatsoak.telemetry.vendors import cpu, nvidia

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from heatsoak.telemetry.device import Device
    from heatsoak.telemetry.surroundings import CardPair

READ_WITHIN_S = 5.0
"""Real seconds for all cards together to give a reading; one that hangs is told as such."""
_NVIDIA, _DISPLAY = "0x10de", "0x03"


@dataclass(slots=True)
class Look:
    """What was seen of the devices."""

    cards: list[Card] = field(default_factory=list)
    others: list[Card] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    nvidia_problem: str | None = None
    present: tuple[PciCard, ...] = ()
    pairs: tuple[CardPair, ...] = ()


def look_at_devices(spec: str | None, environ: Mapping[str, str], root: Path) -> Look:
    """Look at the devices of a specification, or at all that are awake.

    Args:
        spec: as on the command line; None: all, and what `heatsoak run` would take counts as
            asked for.
        environ: the user's environment, which may hide cards.
        root: of the file system that /sys is read from.

    Raises:
        UsageError: the specification names what does not exist.
    """
    seen = Look(present=present_cards(root))
    devices = _open_all(seen, environ) if spec is None else _open_named(spec, seen, environ)
    try:
        _look_closer(seen, devices)
    finally:
        for device in devices.values():
            device.close()
    return seen


def present_cards(root: Path) -> tuple[PciCard, ...]:
    """The NVIDIA cards on the PCI bus, in its order."""
    found = []
    for folder in sorted((root / "sys/bus/pci/devices").glob("*")):
        kind = read_text(folder / "class") or ""
        if read_text(folder / "vendor") == _NVIDIA and kind.startswith(_DISPLAY):
            state = read_text(folder / "power/runtime_status")
            found.append(PciCard(folder.name, state == "suspended"))
    return tuple(found)


# -- opening --------------------------------------------------------------------------------------


def _open_all(seen: Look, environ: Mapping[str, str]) -> dict[str, Device]:
    """All that are awake; the asleep ones cannot be told from the others without waking them."""
    asleep = [card.is_asleep for card in seen.present]
    words: list[str] = []
    if not (asleep and all(asleep)):
        seen.nvidia_problem = nvidia.problem()
        if any(asleep) and nvidia.count_cards() == len(asleep):
            words = [str(index) for index, sleeps in enumerate(asleep) if not sleeps]
        else:
            survey = nvidia.survey()
            words = [info.device_id for info in survey.found]
            seen.unreadable |= survey.unreadable
    devices: dict[str, Device] = {}
    for word in words:
        try:
            (device,) = open_devices(word, environ=environ, is_only_read=True)
        except DeviceUnavailableError as error:
            seen.unreadable[word] = str(error)
        else:
            devices[word] = device
    best = cpu.DEVICE_ID
    if devices and any(asleep):
        best = next((w for w, d in devices.items() if not d.info.mig_mode), best)
    elif devices:
        try:
            best = best_device(environ)  # Asks all cards, so it would wake those that sleep.
        except UsageError as error:  # Only CUDA can tell which are hidden.
            seen.refused["default"] = str(error)
    for word, device in devices.items():
        seen.cards.append(Card(device.info, is_asked=word == best))
    seen.others.append(Card(cpu.discover(), is_asked=best == cpu.DEVICE_ID))
    return devices


def _open_named(spec: str, seen: Look, environ: Mapping[str, str]) -> dict[str, Device]:
    """Those that the user named, one by one, so that one that fails does not hide the others."""
    devices: dict[str, Device] = {}
    known: set[str] = set()
    for word in _words(spec, seen):
        try:
            opened = open_devices(word, environ=environ, is_only_read=True)
        except DeviceUnavailableError as error:
            seen.refused[word] = str(error)
            continue
        for device in opened:
            info = device.info
            if info.uuid in known:
                device.close()
                continue
            known.add(info.uuid)
            if info.kind == "nvidia":
                devices[info.device_id] = device
                seen.cards.append(Card(info, is_asked=True))
            else:
                device.close()
                seen.others.append(Card(info, is_asked=True))
    _refuse_what_cannot_be_loaded(seen, environ)
    return devices


def _words(spec: str, seen: Look) -> list[str]:
    words = []
    for word in (part.strip() for part in spec.split(",")):
        if word != "all":
            words.append(word)
            continue
        problem = nvidia.problem()
        if problem is not None:
            seen.refused[word] = problem
            continue
        survey = nvidia.survey()
        seen.refused |= survey.unreadable
        words += [info.device_id for info in survey.found if info.mig_mode is not True
                  or info.mig_parent_uuid is not None]  # fmt: skip
    return words


def _refuse_what_cannot_be_loaded(seen: Look, environ: Mapping[str, str]) -> None:
    """A card may be read and yet not be loaded: hidden from CUDA, or split into slices."""
    for card in seen.cards:
        try:
            for device in open_devices(card.info.device_id, environ=environ):
                device.close()
        except (UsageError, DeviceUnavailableError) as error:
            seen.refused[card.info.device_id] = str(error)


# -- looking --------------------------------------------------------------------------------------


def _look_closer(seen: Look, devices: Mapping[str, Device]) -> None:
    """One reading of each card, its defects and its users, all at once."""
    calls = {
        card.info.device_id: Call(
            partial(_examined, card, devices[card.info.device_id]), card.info.device_id
        )
        for card in seen.cards
    }
    until_s = monotonic_s() + READ_WITHIN_S
    for place, card in enumerate(seen.cards):
        try:
            seen.cards[place] = calls[card.info.device_id].result(until_s - monotonic_s())
        except HangError as error:
            seen.cards[place] = replace(card, problem=str(error))
    whole = [
        device
        for card in seen.cards
        if card.problem is None
        and card.info.mig_parent_uuid is None
        and isinstance(device := devices[card.info.device_id], nvidia.NvidiaDevice)
    ]
    if len(whole) > 1:
        seen.pairs = _pairs(whole, until_s)


def _examined(card: Card, device: Device) -> Card:
    assert isinstance(device, nvidia.NvidiaDevice)
    try:
        reading = device.read(0.0)
        health = device.health()
        users, why = device.users()
    except (DeviceLostError, DeviceReadError) as error:
        return replace(card, problem=str(error))
    runs = {user.pid: run for user in users or () if (run := run_of(user.pid)) is not None}
    if users is not None:
        users = tuple(u for u in users if u.pid not in runs and u.pid != os.getpid())
    return replace(
        card,
        reading=reading,
        health=health,
        users=users,
        users_problem=why,
        soaked_by=tuple(sorted(set(runs.values()))),
    )


def _pairs(devices: Sequence[nvidia.NvidiaDevice], until_s: float) -> tuple[CardPair, ...]:
    def ask() -> tuple[CardPair, ...]:
        try:
            return tuple(one.pair_with(other) for one, other in combinations(devices, 2))
        except DeviceLostError:
            return ()  # Told of the card itself.

    try:
        return Call(ask, "pairs").result(until_s - monotonic_s())
    except HangError:
        return ()
