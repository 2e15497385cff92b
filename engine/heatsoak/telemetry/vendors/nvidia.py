"""NVIDIA cards through NVML; the only file that loads the library.

Past this file and `telemetry/nvml` there is no NVML name, no exception of it, no milliwatt: what a
card does not support is None for good after one probe, a reading that failed once is None once, a
card that is gone raises `DeviceLostError`.

A call into the driver may never return. What opens a card is therefore waited for with a deadline,
and NVML is let go of in a thread that nobody waits for long.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from heatsoak.clock import monotonic_s
from heatsoak.errors import DeviceUnavailableError
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak.telemetry.nvml.calls import Call, HangError, is_any_hung
from heatsoak.telemetry.nvml.defects import XidWatch, read_health
from heatsoak.telemetry.nvml.errors import MISMATCH, NOT_FOUND, classify, start_problem
from heatsoak.telemetry.nvml.facts import describe
from heatsoak.telemetry.nvml.poll import NoAnswerError
from heatsoak.telemetry.nvml.slices import busy_slices, slices_of
from heatsoak.telemetry.nvml.topology import card_pair, card_users
from heatsoak.telemetry.nvml.versions import mismatch
from heatsoak.telemetry.sample import DeviceSample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.health import DeviceHealth
    from heatsoak.telemetry.nvml.poll import Poll
    from heatsoak.telemetry.surroundings import CardPair, CardUser

START_WITHIN_S = 60.0
"""Real seconds to wait for NVML to start: without persistence mode it wakes every card."""
OPEN_WITHIN_S = 15.0
"""Real seconds to wait for cards to say what they are."""
LET_GO_WITHIN_S = 1.0
NO_CARDS = "the NVIDIA driver works, but it finds no card"
_SHADOWED = (
    "the Python package pynvml hides nvidia-ml-py: pip uninstall pynvml, then "
    "pip install --force-reinstall nvidia-ml-py"
)
_NOT_INSTALLED = "the Python package nvidia-ml-py is missing: pip install nvidia-ml-py"


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is of NVIDIA in this machine."""

    found: list[DeviceInfo]
    """Cards in PCI order, each before its MIG devices."""
    unreadable: dict[str, str]
    """Cards that cannot be read, by index, each with the reason in words."""


def problem() -> str | None:
    """One sentence on why no NVIDIA card can be read, or None when one can."""
    try:
        return None if _count() > 0 else NO_CARDS
    except _StartError as error:
        return str(error)


@contextlib.contextmanager
def kept_open() -> Iterator[ModuleType | None]:
    """NVML, kept open over several calls, or None: each start may wake every card."""
    try:
        nvml = _begin()
    except _StartError:
        yield None
        return
    try:
        yield nvml
    finally:
        _end(nvml)


def discover() -> list[DeviceInfo]:
    """The NVIDIA cards and MIG devices that can be read now; [] without a driver."""
    return survey().found


def survey() -> Survey:
    """Ask all cards at once what they are; one that hangs costs the others nothing."""
    found: list[DeviceInfo] = []
    unreadable: dict[str, str] = {}
    with kept_open() as nvml:
        if nvml is None:
            return Survey(found, unreadable)
        calls = [
            Call(partial(_describe_all, nvml, index), f"ask {index}")
            for index in range(count_cards())
        ]
        until_s = monotonic_s() + OPEN_WITHIN_S
        for index, call in enumerate(calls):
            try:
                found += call.result(until_s - monotonic_s())
            except (DeviceUnavailableError, HangError) as error:
                unreadable[str(index)] = str(error)
    return Survey(found, unreadable)


def count_cards() -> int:
    """How many cards the driver counts, readable or not; 0 without a driver."""
    try:
        return _count()
    except _StartError:
        return 0


def open_mig(uuid: str) -> NvidiaDevice:
    """Open a MIG device by its whole UUID, in either form.

    Raises:
        DeviceUnavailableError: no driver, no such MIG device, or its card cannot be read.
    """
    with kept_open() as nvml:
        calls = [
            Call(partial(_has_slice, nvml, index, uuid), f"search {index}")
            for index in range(count_cards())
            if nvml is not None
        ]
        until_s = monotonic_s() + OPEN_WITHIN_S
        for index, call in enumerate(calls):
            with contextlib.suppress(DeviceUnavailableError, HangError):
                if call.result(until_s - monotonic_s()):
                    return NvidiaDevice(index, uuid)
    raise DeviceUnavailableError(f"device {uuid} cannot be read: {problem() or 'no card has it'}")


class NvidiaDevice:
    """One NVIDIA card, or one MIG device of one."""

    def __init__(self, index: int, mig_uuid: str | None = None) -> None:
        """Open the card and probe once what it supports.

        Args:
            index: NVML index, in PCI order.
            mig_uuid: of the MIG device of that card that is meant, in either form.

        Raises:
            DeviceUnavailableError: no driver, no such card, or the card is lost or hangs.
        """
        name = mig_uuid or str(index)
        try:
            self._nvml = _begin()
        except _StartError as error:
            raise DeviceUnavailableError(f"device {name}: {error}") from error
        call = Call(partial(_describe, self._nvml, index, mig_uuid), f"open {name}")
        try:
            self._handle, self._info, self._poll = call.result(OPEN_WITHIN_S)
        except (DeviceUnavailableError, HangError) as error:
            _end(self._nvml)
            raise DeviceUnavailableError(f"device {name} cannot be read: {error}") from error
        self._watch = XidWatch(self._nvml, self._handle, self._info.device_id)
        self._reading, self._asking = threading.Lock(), threading.Lock()
        self._is_closed = False

    @property
    def info(self) -> DeviceInfo:
        """What the card is."""
        return self._info

    def read(self, t_s: float) -> DeviceSample:
        """One reading of everything the card supports.

        Raises:
            DeviceLostError: the card has fallen off the bus, or its driver is gone.
            DeviceReadError: no field at all could be read this time.
        """
        with self._reading:
            self._watch.begin()
            try:
                values = self._poll.read()
            except DeviceLostError as error:
                raise DeviceLostError(f"{error}{self._say_xids()}") from error
            except NoAnswerError as error:
                if self._is_gone():
                    text = "the GPU is no longer among those the driver finds"
                    raise DeviceLostError(f"{text}{self._say_xids()}") from error
                raise DeviceReadError(str(error)) from error
            rejected = tuple(self._poll.rejected)
        return DeviceSample(t_s, self._info.device_id, rejected=rejected, **values)

    def health(self) -> DeviceHealth:
        """What the card counted of its own defects; may be called while it is read.

        Raises:
            DeviceLostError: the card is gone.
        """
        self._watch.begin()
        with self._asking:
            return read_health(self._nvml, self._handle, self._watch.xids())

    def busy_siblings(self) -> tuple[str, ...]:
        """UUIDs of other MIG devices of the same card that somebody uses now.

        Raises:
            DeviceLostError: the card is gone.
        """
        if self._info.mig_parent_uuid is None:
            return ()
        with self._asking:
            return busy_slices(self._nvml, self._handle, self._info.uuid)

    def users(self) -> tuple[tuple[CardUser, ...] | None, str]:
        """The processes on the card; None, and why in words, where they are not told.

        Raises:
            DeviceLostError: the card is gone.
        """
        with self._asking:
            return card_users(self._nvml, self._handle)

    def pair_with(self, other: NvidiaDevice) -> CardPair:
        """How the card is joined to another.

        Raises:
            DeviceLostError: one of them is gone.
        """
        with self._asking:
            mine = (self._info.device_id, self._handle)
            theirs = (other._info.device_id, other._handle)
            return card_pair(self._nvml, mine, theirs)

    def close(self) -> None:
        """Let go of NVML, unless a call hangs in it (shutting down would hang as well)."""
        self._watch.stop()
        with contextlib.ExitStack() as stack:
            for lock in (self._reading, self._asking):
                if not lock.acquire(blocking=False):
                    return
                stack.callback(lock.release)
            if not self._is_closed:
                self._is_closed = True
                _end(self._nvml)

    def _say_xids(self) -> str:
        xids = self._watch.xids(0.0)
        return f"; Xid {', '.join(map(str, xids))}" if xids else ""

    def _is_gone(self) -> bool:
        """Whether the driver, asked anew, no longer finds the card."""
        uuid = self._info.mig_parent_uuid or self._info.uuid
        try:
            self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except self._nvml.NVMLError as error:
            return error.value == NOT_FOUND or classify(error.value)[0] == "lost"
        return False


# -- the library ----------------------------------------------------------------------------------


class _StartError(DeviceUnavailableError):
    """NVML does not start; the text is a sentence for the user."""


@cache
def _load() -> ModuleType:
    """The bindings.

    Raises:
        _StartError: they are missing, or another package of the same name hides them.
    """
    try:
        with warnings.catch_warnings():
            # Not for the user, who may not even have installed the package that says it.
            warnings.simplefilter("ignore", FutureWarning)
            import pynvml
    except ImportError as error:
        raise _StartError(_NOT_INSTALLED) from error
    # nvidia-ml-py is one module; the deprecated distribution `pynvml` is a package.
    if hasattr(pynvml, "__path__") or not hasattr(pynvml, "nvmlDeviceGetFieldValues"):
        raise _StartError(_SHADOWED)
    module: ModuleType = pynvml
    return module


def _begin() -> ModuleType:
    """Begin one use of NVML, which counts them; `_end` ends it.

    Raises:
        _StartError: NVML does not start.
    """
    nvml = _load()
    try:
        Call(partial(_start, nvml), "start NVML").result(START_WITHIN_S)
    except HangError as error:
        raise _StartError(str(error)) from error
    return nvml


def _start(nvml: ModuleType) -> None:
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        text = mismatch(nvml) if error.value == MISMATCH else start_problem(error.value)
        raise _StartError(text) from error


def _end(nvml: ModuleType) -> None:
    """End one use of NVML, without waiting long for a driver that hangs."""

    def shut_down() -> None:
        with contextlib.suppress(nvml.NVMLError):  # a driver that is gone cannot be let go of
            nvml.nvmlShutdown()

    if not is_any_hung():
        with contextlib.suppress(HangError):
            Call(shut_down, "end NVML").result(LET_GO_WITHIN_S)


def _count() -> int:
    """How many cards the driver counts.

    Raises:
        _StartError: there is no driver that could count.
    """
    nvml = _begin()
    try:
        return Call(partial(_count_of, nvml), "count cards").result(OPEN_WITHIN_S)
    except HangError as error:
        raise _StartError(str(error)) from error
    finally:
        _end(nvml)


def _count_of(nvml: ModuleType) -> int:
    try:
        return int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        raise _StartError(start_problem(error.value)) from error


# -- one card, within a `Call` --------------------------------------------------------------------


@contextlib.contextmanager
def _in_words(nvml: ModuleType) -> Iterator[None]:
    """Whatever the library or a lost card raises as a `DeviceUnavailableError`."""
    try:
        yield
    except nvml.NVMLError as error:
        raise DeviceUnavailableError(classify(error.value)[1]) from error
    except DeviceLostError as error:
        raise DeviceUnavailableError(str(error)) from error


def _describe(
    nvml: ModuleType, index: int, mig_uuid: str | None
) -> tuple[object, DeviceInfo, Poll]:
    """A card's handle, what it or its MIG device is, and how it is read."""
    with _in_words(nvml):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if mig_uuid is None:
            return handle, *describe(nvml, handle, index)
        part = next((p for p in slices_of(nvml, handle) if p.is_named(mig_uuid)), None)
        if part is None:
            raise DeviceUnavailableError(f"card {index} has no such part")
        return handle, *describe(nvml, handle, index, part)


def _describe_all(nvml: ModuleType, index: int) -> list[DeviceInfo]:
    """What a card and its MIG devices are."""
    with _in_words(nvml):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        parts = [None, *slices_of(nvml, handle)]
        return [describe(nvml, handle, index, part)[0] for part in parts]


def _has_slice(nvml: ModuleType, index: int, mig_uuid: str) -> bool:
    with _in_words(nvml):
        card = nvml.nvmlDeviceGetHandleByIndex(index)
        return any(part.is_named(mig_uuid) for part in slices_of(nvml, card))
