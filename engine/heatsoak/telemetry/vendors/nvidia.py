"""NVIDIA cards through NVML, the only file that talks to it.

Past this file there is no NVML name, no exception of it, no milliwatt: what a card does not support
is None for good after one probe, a reading that failed once is None once, a card that is gone
raises `DeviceLostError`.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.errors import DeviceUnavailableError
from heatsoak.profiles.cards import card_for_name
from heatsoak.telemetry.device import DeviceInfo, DeviceLostError, DeviceReadError
from heatsoak.telemetry.sample import DeviceSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Fate = Literal["unsupported", "lost", "transient"]

_ERRORS: dict[int, tuple[Fate, str]] = {
    1: ("lost", "NVML was shut down"),
    2: ("unsupported", "the driver does not accept the query"),
    3: ("unsupported", "not supported by this card or driver"),
    4: ("unsupported", "not permitted to this user"),
    6: ("unsupported", "the driver finds nothing under this query"),
    9: ("lost", "the NVIDIA driver was unloaded"),
    13: ("unsupported", "this driver has no such function"),
    15: ("lost", "the GPU is lost (it has fallen off the bus)"),
    16: ("lost", "the GPU requires a reset"),
    18: ("lost", "the NVIDIA driver was replaced while running: reboot"),
    25: ("unsupported", "the driver does not accept this version of the query"),
    26: ("unsupported", "withdrawn by this driver"),
    28: ("lost", "the GPU is no longer found"),
}
"""Every NVML error code (`nvmlReturn_t`) that is not merely a reading failed this time."""

_START_PROBLEMS = {
    4: "no permission to use the NVIDIA driver: this user cannot open /dev/nvidiactl",
    9: "the NVIDIA library is installed, but the NVIDIA kernel driver is not loaded",
    12: "no NVIDIA driver: its library libnvidia-ml.so.1 was not found",
    13: "the NVIDIA driver is too old: its library lacks nvmlInitWithFlags",
    18: "the NVIDIA kernel driver and its library are of different versions: reboot",
}
NO_CARDS = "the NVIDIA driver works, but it finds no card"

_REASONS = {
    0x04: "sw_power_cap",
    0x08: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
_STATE_BITS = 0x001 | 0x002 | 0x100
"""Idle, application clocks, display clock: states, not throttling."""

_LIMITS: dict[str, tuple[float, float]] = {
    "power_w": (0.0, 20_000.0),
    "energy_j": (0.0, 1e15),
    "memory_used_bytes": (0.0, 1e15),
    "temperature_c": (-40.0, 126.0),
    "sm_clock_mhz": (0.0, 20_000.0),
    "mem_clock_mhz": (0.0, 100_000.0),
    "utilization_pct": (0.0, 100.0),
    "fan_pct": (0.0, 200.0),
    "power_limit_w": (1.0, 20_000.0),
    "pcie_gen": (1.0, 15.0),
    "pcie_width": (1.0, 64.0),
    "pstate": (0.0, 15.0),
}
"""Values outside are a driver's way of saying "none": 127, 255, the largest integer, pstate 32."""
_NOT_AVAILABLE = (0xFFFFFFFF, 0xFFFFFFFF / 1000, float((1 << 64) - 1), (1 << 64) - 1)
"""The largest integers, with which drivers say "none" (also as milliwatts turned into watts)."""
_SENSOR_GPU = 0
_CLOCK_SM, _CLOCK_MEM = 1, 2
_THRESHOLD_SLOWDOWN, _THRESHOLD_GPU_MAX = 1, 3
_THRESHOLDS_C = (50.0, 126.0)
"""Newer cards answer with a margin such as -2, which is no temperature."""


def problem() -> str | None:
    """One sentence on why no NVIDIA card can be read, or None when one can."""
    try:
        return None if _count() > 0 else NO_CARDS
    except _StartError as error:
        return str(error)


@contextlib.contextmanager
def kept_open() -> Iterator[None]:
    """Keep NVML open over several calls: without persistence mode each start wakes every card."""
    nvml = _Nvml()
    try:
        nvml.open()
    except _StartError:
        yield
        return
    try:
        yield
    finally:
        nvml.close()


def discover() -> list[DeviceInfo]:
    """The NVIDIA cards that can be read now; [] without a driver."""
    infos = []
    with kept_open():
        for index in range(count_cards()):
            try:
                device = NvidiaDevice(index)
            except DeviceUnavailableError:
                continue
            infos.append(device.info)
            device.close()
    return infos


def count_cards() -> int:
    """How many cards the driver counts, readable or not; 0 without a driver."""
    try:
        return _count()
    except _StartError:
        return 0


class NvidiaDevice:
    """One NVIDIA card."""

    def __init__(self, index: int) -> None:
        """Open the card and probe once what it supports.

        Args:
            index: NVML index, in PCI order.

        Raises:
            DeviceUnavailableError: no driver, no such card, or the card is lost.
        """
        self._busy = threading.Lock()
        self._is_closed = False
        self._nvml_session = _Nvml()
        try:
            nvml = self._nvml_session.open()
        except _StartError as error:
            raise DeviceUnavailableError(f"device {index}: {error}") from error
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            self._info, self._fields = _probe(nvml, handle, index)
        except (nvml.NVMLError, DeviceLostError) as error:
            self._nvml_session.close()
            text = _classify(error.value)[1] if isinstance(error, nvml.NVMLError) else str(error)
            raise DeviceUnavailableError(f"device {index} cannot be read: {text}") from error

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
        with self._busy:
            values: dict[str, Any] = {}
            text = "the card answers no query"
            for field in self._fields:
                try:
                    values[field.name] = field.read()
                except field.error_class as error:
                    fate, text = _classify(error.value)
                    if fate == "lost":
                        raise DeviceLostError(text) from error
        if not values:
            raise DeviceReadError(text)
        return DeviceSample(t_s, self._info.device_id, **values)

    def close(self) -> None:
        """Let go of NVML, unless a reading hangs in it (shutting down would hang as well)."""
        if self._busy.acquire(blocking=False):
            try:
                if not self._is_closed:
                    self._is_closed = True
                    self._nvml_session.close()
            finally:
                self._busy.release()


@dataclass(frozen=True, slots=True)
class _Field:
    """One reading that the card supports."""

    name: str
    get: Callable[[], Any]
    error_class: Any

    def read(self) -> Any:  # noqa: ANN401 - a value of any field of DeviceSample
        """The value in our unit, or None where the driver gave a sentinel."""
        value = self.get()
        limits = _LIMITS.get(self.name)
        if limits is not None and not limits[0] <= value <= limits[1]:
            return None
        return value


class _StartError(Exception):
    """NVML does not start; the text is a sentence for the user."""


class _Nvml:
    """One use of NVML, from `open` to `close`; NVML counts the uses."""

    def open(self) -> Any:  # noqa: ANN401 - the untyped module
        import pynvml

        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise _StartError(_start_problem(error.value)) from error
        self._nvml = pynvml
        return pynvml

    def close(self) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            return  # a driver that is gone cannot be let go of


def _count() -> int:
    """How many cards the driver counts.

    Raises:
        _StartError: there is no driver that could count.
    """
    session = _Nvml()
    nvml = session.open()
    try:
        return int(nvml.nvmlDeviceGetCount())
    except nvml.NVMLError as error:
        raise _StartError(_start_problem(error.value)) from error
    finally:
        session.close()


def _classify(code: int) -> tuple[Fate, str]:
    return _ERRORS.get(code, ("transient", f"NVML error {code}"))


def _start_problem(code: int) -> str:
    return _START_PROBLEMS.get(code, f"the NVIDIA driver does not answer: NVML error {code}")


def _probe(nvml: Any, handle: Any, index: int) -> tuple[DeviceInfo, list[_Field]]:  # noqa: ANN401
    """What the card is, and the readings it supports: each is tried once.

    Raises:
        DeviceLostError: the card is gone.
    """
    missing: dict[str, str] = {}
    fields: list[_Field] = []
    for name, candidates in _candidates(nvml, handle).items():
        for get in candidates:
            field = _Field(name, get, nvml.NVMLError)
            try:
                field.read()
            except nvml.NVMLError as error:
                fate, text = _classify(error.value)
                if fate == "lost":
                    raise DeviceLostError(text) from error
                if fate == "unsupported":
                    missing[name] = text
                    continue
            missing.pop(name, None)
            fields.append(field)
            break
    ask = _Asker(nvml)
    name = ask.text(lambda: nvml.nvmlDeviceGetName(handle)) or "NVIDIA card of unknown name"
    memory_bytes = ask.number(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total)
    total_bytes = None if memory_bytes is None else int(memory_bytes)
    card = card_for_name(name, total_bytes)
    info = DeviceInfo(
        device_id=str(index),
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        name=name,
        kind="nvidia",
        provenance="measured",
        card=None if card is None else card.id,
        index=index,
        memory_total_bytes=total_bytes,
        power_limit_w=ask.number(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
        power_limit_default_w=ask.number(
            lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000
        ),
        temperature_limit_c=ask.temperature_limit_c(handle),
        fan_max_pct=ask.number(lambda: nvml.nvmlDeviceGetMinMaxFanSpeed(handle)[1])
        if "fan_pct" not in missing
        else None,
        sm_clock_max_mhz=ask.number(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, _CLOCK_SM)),
        pci_bus_id=ask.text(lambda: nvml.nvmlDeviceGetPciInfo(handle).busId),
        pcie_gen_max=ask.integer(lambda: nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
        pcie_width_max=ask.integer(lambda: nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
        driver_version=ask.text(nvml.nvmlSystemGetDriverVersion),
        missing=missing,
    )
    return info, fields


def _candidates(nvml: Any, handle: Any) -> dict[str, tuple[Callable[[], Any], ...]]:  # noqa: ANN401
    """Per reading the ways to get it, best first (older drivers lack some)."""
    return {
        "power_w": (lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,),
        "energy_j": (lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,),
        "temperature_c": (lambda: float(nvml.nvmlDeviceGetTemperature(handle, _SENSOR_GPU)),),
        "sm_clock_mhz": (lambda: float(nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_SM)),),
        "mem_clock_mhz": (lambda: float(nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_MEM)),),
        "utilization_pct": (lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),),
        "memory_used_bytes": (
            # The second form leaves out what the driver reserves, as `nvidia-smi` does.
            lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2).used),
            lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).used),
        ),
        "fan_pct": (
            lambda: _fastest_fan_pct(nvml, handle),
            lambda: float(nvml.nvmlDeviceGetFanSpeed(handle)),
        ),
        "power_limit_w": (lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,),
        "throttle_reasons": (
            lambda: decode_reasons(nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
            lambda: decode_reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        ),
        "pcie_gen": (lambda: int(nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),),
        "pcie_width": (lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),),
        "pstate": (lambda: int(nvml.nvmlDeviceGetPerformanceState(handle)),),
    }


def decode_reasons(mask: int) -> tuple[str, ...] | None:
    """Names of the reasons in an NVML clock event mask; unknown bits as hex, states left out."""
    if mask in _NOT_AVAILABLE:
        return None
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return tuple(_REASONS.get(bit, hex(bit)) for bit in bits if not bit & _STATE_BITS)


def _fastest_fan_pct(nvml: Any, handle: Any) -> float:  # noqa: ANN401
    fans = range(nvml.nvmlDeviceGetNumFans(handle))
    if not fans:
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
    return float(max(nvml.nvmlDeviceGetFanSpeed_v2(handle, fan) for fan in fans))


class _Asker:
    """Static facts that a driver may refuse: each is asked once, None when refused."""

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401
        self._nvml = nvml

    def number(self, get: Callable[[], Any]) -> float | None:
        try:
            value = float(get())
        except self._nvml.NVMLError as error:
            if _classify(error.value)[0] == "lost":
                raise DeviceLostError(_classify(error.value)[1]) from error
            return None
        return None if value in _NOT_AVAILABLE else value

    def integer(self, get: Callable[[], Any]) -> int | None:
        value = self.number(get)
        return None if value is None else int(value)

    def temperature_limit_c(self, handle: Any) -> float | None:  # noqa: ANN401
        """The lower of the two thresholds at which the card slows itself down."""
        low_c, high_c = _THRESHOLDS_C
        ask = self._nvml.nvmlDeviceGetTemperatureThreshold
        known = [
            value
            for threshold in (_THRESHOLD_GPU_MAX, _THRESHOLD_SLOWDOWN)
            if (value := self.number(partial(ask, handle, threshold))) is not None
            and low_c <= value <= high_c
        ]
        return min(known, default=None)

    def text(self, get: Callable[[], Any]) -> str | None:
        try:
            value = get()
        except self._nvml.NVMLError as error:
            if _classify(error.value)[0] == "lost":
                raise DeviceLostError(_classify(error.value)[1]) from error
            return None
        return value.decode() if isinstance(value, bytes) else str(value)
