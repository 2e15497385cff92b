"""Which devices there are, and opening those that a user named."""

from __future__ import annotations

import contextlib
import difflib
import os
from functools import cached_property
from typing import TYPE_CHECKING

from heatsoak.errors import DeviceUnavailableError, UsageError
from heatsoak.profiles.cards import card_profiles
from heatsoak.telemetry.synthetic_spec import parse_spec
from heatsoak.telemetry.vendors import cpu, nvidia, synthetic
from heatsoak.telemetry.visibility import (
    OLD_FORM,
    UUID_PREFIXES,
    VARIABLE,
    is_visible,
    named,
    visible_uuids,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from heatsoak.telemetry.device import Device, DeviceInfo

_SYNTHETIC = "synthetic"


def discover() -> list[DeviceInfo]:
    """The NVIDIA cards in PCI order, each before its MIG slices, then the host CPU.

    Hidden ones too. A missing driver is no error.
    """
    return [*nvidia.discover(), cpu.discover()]


def nvidia_problem() -> str | None:
    """One sentence on why no NVIDIA card can be read, or None when one can."""
    return nvidia.problem()


def best_device(environ: Mapping[str, str] | None = None) -> str:
    """What to soak when nothing was said: the first visible NVIDIA device, else the host CPU.

    Args:
        environ: the user's environment; None: that of this process.

    Raises:
        UsageError: the environment hides some devices, and only CUDA can tell which.
    """
    return usable(discover(), environ)[0].device_id


def usable(
    infos: Iterable[DeviceInfo], environ: Mapping[str, str] | None = None
) -> list[DeviceInfo]:
    """Those of all devices that may be loaded: not hidden, and whole or a slice, but not split.

    Args:
        infos: every device, as `discover` gives them.
        environ: the user's environment; None: that of this process.

    Raises:
        UsageError: the environment hides some devices, and only CUDA can tell which.
    """
    infos = list(infos)
    cards = [info for info in infos if info.kind == "nvidia"]
    uuids = visible_uuids(os.environ if environ is None else environ, cards, _uuid_of_old_form)
    return [
        info
        for info in infos
        if info.kind != "nvidia" or (not _is_split(info) and is_visible(info, uuids))
    ]


def open_devices(
    spec: str,
    *,
    seed: int = 1,
    environ: Mapping[str, str] | None = None,
    is_only_read: bool = False,
) -> list[Device]:
    """Open the devices of a specification, in its order.

    Args:
        spec: comma-separated: NVML indices (`0`, a MIG slice `0:1`), UUIDs of cards or MIG slices
            (either form) or their unique beginnings, `all` (every visible NVIDIA device), `cpu`,
            `synthetic:CARD[xN][+WORD[@T_S[:DURATION_S]]]...`. Indices are NVML's, as `nvidia-smi`
            lists them, never CUDA's.
        seed: of the synthetic cards.
        environ: the user's environment, whose CUDA_VISIBLE_DEVICES says which NVIDIA devices are
            theirs: one that it hides is refused even by name. None: that of this process.
        is_only_read: nothing is to be loaded, so hidden and split cards may be opened too.

    Raises:
        UsageError: the specification names nothing that exists, or what may not be used.
        DeviceUnavailableError: a device that was asked for cannot be read.
    """
    cards = _Nvidia(os.environ if environ is None else environ, is_only_read=is_only_read)
    devices: list[Device] = []
    try:
        with contextlib.ExitStack() as stack:
            for word in (part.strip() for part in spec.split(",")):
                if _is_nvidia(word):
                    stack.enter_context(nvidia.kept_open())
                    cards.open(word, devices)
                else:
                    devices += _open(word, seed, _count_synthetic(devices))
        _refuse_twice(devices)
    except (UsageError, DeviceUnavailableError):
        for device in devices:
            device.close()
        raise
    return devices


def _open(word: str, seed: int, ordinal: int) -> list[Device]:
    if word == "cpu":
        return [cpu.CpuDevice()]
    if word == _SYNTHETIC or word.startswith(f"{_SYNTHETIC}:"):
        return _open_synthetic(word, seed, ordinal)
    if not word:
        raise UsageError(f"a device has no name in the list of devices; {_say_what_exists()}")
    if word == "-1":
        raise UsageError(f"-1 means no device at all, and one is needed; {_say_what_exists()}")
    raise UsageError(f"unknown device {word!r}; {_say_what_exists()}")


def _is_nvidia(word: str) -> bool:
    card, _, part = word.partition(":")
    is_index = card.isdecimal() and (part.isdecimal() or part == "")
    return word == "all" or is_index or word.startswith(UUID_PREFIXES)


class _Nvidia:
    """The NVIDIA devices of this machine, and which of them the user may load."""

    def __init__(self, environ: Mapping[str, str], *, is_only_read: bool = False) -> None:
        self._environ = environ
        self._is_only_read = is_only_read

    @cached_property
    def _survey(self) -> nvidia.Survey:
        return nvidia.survey()

    @cached_property
    def _visible(self) -> frozenset[str] | None:
        """UUIDs of those that are not hidden; None: all, without asking any card."""
        if self._is_only_read or VARIABLE not in self._environ:
            return None
        return visible_uuids(self._environ, self._survey.found, _uuid_of_old_form)

    @property
    def usable(self) -> list[DeviceInfo]:
        """What can be loaded: visible slices, and visible cards that are not split."""
        found = self._survey.found
        return [i for i in found if not _is_split(i) and is_visible(i, self._visible)]

    def open(self, word: str, devices: list[Device]) -> None:
        """Open what a word names and put it to the others, which the caller closes on an error."""
        problem = nvidia.problem()
        if problem is not None:
            hint = "; the host CPU is -d cpu" if word == "all" else ""
            raise DeviceUnavailableError(f"device {word} cannot be read: {problem}{hint}")
        if word == "all":
            devices.extend(map(_open_info, self._all()))  # A failure leaves those before it there.
            return
        device = self._open_one(word)
        devices.append(device)
        if not is_visible(device.info, self._visible):
            raise UsageError(
                f"device {word} is hidden by {self._say_variable()}; take one of those, or change "
                "the variable"
            )
        if _is_split(device.info) and not self._is_only_read:
            parts = [i for i in self._survey.found if i.mig_parent_uuid == device.info.uuid]
            raise UsageError(
                f"device {word} is split into MIG slices, and a program can use only one of them; "
                f"{_say_names(parts) or 'it has none yet: make one, or turn MIG off'}"
            )

    def _all(self) -> list[DeviceInfo]:
        for index, text in self._survey.unreadable.items():
            if self._visible is None:
                raise DeviceUnavailableError(
                    f"device {index} cannot be read: {text}; name the others one by one"
                )
        if not self.usable:
            raise DeviceUnavailableError(
                f"there is no NVIDIA device to load: {self._say_variable()}"
            )
        return self.usable

    def _open_one(self, word: str) -> Device:
        if word.startswith(OLD_FORM) and "/" in word:
            return nvidia.open_mig(word)
        if word.isdecimal():
            # Without asking the other cards, of which one may hang.
            if int(word) >= nvidia.count_cards():
                raise UsageError(f"there is no device {word}; {_say_what_exists()}")
            return nvidia.NvidiaDevice(int(word))
        found = self._survey.found
        meant = [i for i in found if i.device_id == word] if ":" in word else named(word, found)
        if not meant:
            raise UsageError(f"there is no device {word!r}; {_say_what_exists()}")
        if len(meant) > 1:
            uuids = ", ".join(info.uuid for info in meant)
            raise UsageError(f"device {word!r} could be any of {uuids}; give more of it")
        return _open_info(meant[0])

    def _say_variable(self) -> str:
        value = self._environ.get(VARIABLE)
        if value is None:
            return "all of them are split, and none has a slice"
        left = _say_names(self.usable) or "none"
        return f"{VARIABLE}={value!r}, which leaves {left.removeprefix('there are: ')}"


def _is_split(info: DeviceInfo) -> bool:
    """Whether a whole card is in MIG mode: what runs on it gets a slice."""
    return info.mig_mode is True and info.mig_parent_uuid is None


def _open_info(info: DeviceInfo) -> Device:
    assert info.index is not None
    is_slice = info.mig_parent_uuid is not None
    return nvidia.NvidiaDevice(info.index, info.uuid if is_slice else None)


def _uuid_of_old_form(name: str) -> str | None:
    try:
        device = nvidia.open_mig(name)
    except DeviceUnavailableError:
        return None
    device.close()
    return device.info.uuid


def _open_synthetic(word: str, seed: int, ordinal: int) -> list[Device]:
    cards = card_profiles()
    asked = parse_spec(word)
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
    more = ["cpu", "synthetic:CARD such as synthetic:rtx-5090"]
    return _say_names(nvidia.discover(), more)


def _say_names(infos: Iterable[DeviceInfo], more: Iterable[str] = ()) -> str:
    """`there are: 0 (a card, GPU-...), cpu`; empty without any."""
    names = [f"{info.device_id} ({info.name}, {info.uuid})" for info in infos]
    return f"there are: {', '.join([*names, *more])}" if names or more else ""
