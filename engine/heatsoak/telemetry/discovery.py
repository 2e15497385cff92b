"""Which devices there are, and opening those that a user named."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.profiles.cards import card_profiles
from heatsoak.telemetry.vendors import cpu, nvidia, synthetic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heatsoak.telemetry.device import Device, DeviceInfo

_SYNTHETIC = "synthetic"
_UUIDS = ("GPU-", "MIG-")


def discover() -> list[DeviceInfo]:
    """The NVIDIA cards in PCI order, then the host CPU. A missing driver is no error."""
    return [*nvidia.discover(), cpu.discover()]


def nvidia_problem() -> str | None:
    """One sentence on why no NVIDIA card can be read, or None when one can."""
    return nvidia.problem()


def best_device() -> str:
    """What to soak when nothing was said: the first NVIDIA card, else the host CPU."""
    return discover()[0].device_id


def open_devices(spec: str, *, seed: int = 1) -> list[Device]:
    """Open the devices of a specification, in its order.

    Args:
        spec: comma-separated: NVML indices, NVML UUIDs or their unique prefixes, `all` (every
            NVIDIA card), `cpu`, `synthetic:CARD[xN][+FAULT@T_S[:DURATION_S]]...`.
        seed: of the synthetic cards.

    Raises:
        UsageError: the specification names nothing that exists.
        DeviceUnavailableError: a card that was asked for cannot be read.
    """
    devices: list[Device] = []
    try:
        for word in (part.strip() for part in spec.split(",")):
            devices += _open(word, seed, _count_synthetic(devices))
        _refuse_twice(devices)
    except (UsageError, DeviceUnavailableError):
        for device in devices:
            device.close()
        raise
    return devices


def _open(word: str, seed: int, ordinal: int) -> list[Device]:
    if not word:
        raise UsageError(f"a device has no name in the list of devices; {_say_what_exists()}")
    if word == "cpu":
        return [cpu.CpuDevice()]
    if word == _SYNTHETIC or word.startswith(f"{_SYNTHETIC}:"):
        return _open_synthetic(word, seed, ordinal)
    if word == "all" or word.isdecimal() or word.startswith(_UUIDS):
        with nvidia.kept_open():
            return _open_nvidia(word)
    raise UsageError(f"unknown device {word!r}; {_say_what_exists()}")


def _open_nvidia(word: str) -> list[Device]:
    if word.startswith("MIG-"):
        raise UsageError(
            f"device {word!r} is a part of a card, which reports no power or temperature of its "
            "own; name the whole card"
        )
    problem = nvidia.problem()
    if problem is not None:
        hint = "; the host CPU is -d cpu" if word == "all" else ""
        raise DeviceUnavailableError(f"device {word} cannot be read: {problem}{hint}")
    if word == "all":
        return _open_indices(range(nvidia.count_cards()))
    if word.isdecimal():
        if int(word) >= nvidia.count_cards():
            raise UsageError(f"there is no device {word}; {_say_what_exists()}")
        return [nvidia.NvidiaDevice(int(word))]
    return [nvidia.NvidiaDevice(_index_of(word))]


def _open_indices(indices: Iterable[int]) -> list[Device]:
    devices: list[Device] = []
    try:
        for index in indices:
            devices.append(nvidia.NvidiaDevice(index))  # noqa: PERF401 - a failure closes the rest
    except DeviceUnavailableError:
        for device in devices:
            device.close()
        raise
    return devices


def _index_of(word: str) -> int:
    """The NVML index of the one card whose UUID begins so."""
    found = [info for info in nvidia.discover() if info.uuid.startswith(word)]
    exact = [info for info in found if info.uuid == word]
    found = exact or found
    if not found:
        raise UsageError(f"there is no device {word!r}; {_say_what_exists()}")
    if len(found) > 1:
        uuids = ", ".join(info.uuid for info in found)
        raise UsageError(f"device {word!r} could be any of {uuids}; give more of it")
    return int(found[0].device_id)


def _open_synthetic(word: str, seed: int, ordinal: int) -> list[Device]:
    cards = card_profiles()
    asked = synthetic.parse_spec(word)
    profile = cards.get(asked.card)
    if profile is None:
        near = difflib.get_close_matches(asked.card, cards, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(cards)}"
        raise UsageError(f"there is no card profile {asked.card!r}; {hint}")
    return [
        synthetic.SyntheticCard(profile, ordinal + number, seed, asked.faults)
        for number in range(asked.count)
    ]


def _count_synthetic(devices: list[Device]) -> int:
    return sum(device.info.kind == "synthetic" for device in devices)


def _refuse_twice(devices: list[Device]) -> None:
    seen: set[str] = set()
    for device in devices:
        if device.info.uuid in seen:
            raise UsageError(f"device {device.info.device_id} is named twice; name each once")
        seen.add(device.info.uuid)


def _say_what_exists() -> str:
    names = [f"{info.device_id} ({info.name}, {info.uuid})" for info in nvidia.discover()]
    return f"there are: {', '.join([*names, 'cpu', 'synthetic:CARD such as synthetic:rtx-5090'])}"
