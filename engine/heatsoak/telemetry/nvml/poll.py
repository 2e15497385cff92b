"""The queries that give one reading of a card: found by trying each once, then repeated."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from heatsoak.telemetry.device import DeviceLostError
from heatsoak.telemetry.nvml.errors import ask, classify, function, reason_of
from heatsoak.telemetry.nvml.reasons import decode_reasons

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    Query = Callable[[], Any]
    Convert = Callable[[Any], Any]
    Step = tuple[str, Query, Convert, float, float]
    """Reading, query, what makes its answer ours, and the range of answers that can be."""
    Field = tuple[str, Convert, float, float]

POWER_AVERAGE, POWER_INSTANT, MEMORY_TEMPERATURE = 185, 186, 82
"""`NVML_FI_DEV_POWER_AVERAGE`, `NVML_FI_DEV_POWER_INSTANT`, `NVML_FI_DEV_MEMORY_TEMP`."""
SCOPE_GPU = 0
"""`NVML_POWER_SCOPE_GPU`: of a Grace superchip the GPU alone."""
_NO_TYPE = 3
"""A value of a type that is not known is as good as not supported."""
_VALUES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""By `nvmlValueType_t`: the member of the union that holds the value of a field."""
_SENSOR_GPU = 0
_CLOCK_SM, _CLOCK_MEM = 1, 2

LIMITS: dict[str, tuple[float, float]] = {
    "power_w": (0.001, 20_000.0),
    "power_instant_w": (0.001, 20_000.0),
    "energy_j": (0.0, 1e15),
    "memory_used_bytes": (0.0, 1e15),
    "temperature_c": (1.0, 126.0),
    "memory_temperature_c": (1.0, 126.0),
    "temperature_margin_c": (-60.0, 126.0),
    "sm_clock_mhz": (1.0, 20_000.0),
    "mem_clock_mhz": (0.0, 100_000.0),
    "utilization_pct": (0.0, 100.0),
    "fan_pct": (0.0, 200.0),
    "power_limit_w": (1.0, 20_000.0),
    "pcie_gen": (1.0, 15.0),
    "pcie_width": (1.0, 64.0),
    "pstate": (0.0, 15.0),
    "throttle_reasons": (0.0, (1 << 63) - 1.0),
}
"""Answers outside are a driver's way of saying "none": 0, 127 and 255 degrees, 0 W, the largest
integer, pstate 32."""
_PSTATE_UNKNOWN = 32
"""`NVML_PSTATE_UNKNOWN`: the driver says that it does not know, which is no defect."""


def _thousandth(value: int) -> float:
    """Milliwatts and millijoules, which end here."""
    return value / 1000


class NoAnswerError(Exception):
    """Every query failed this time; the text says why the last one did."""


class Poll:
    """One card's queries. What it does not support is never asked again; `missing` says why."""

    def __init__(
        self,
        nvml: ModuleType,
        handle: object,
        *,
        hidden: Mapping[str, str],
        is_superchip: bool = False,
        memory_handle: object = None,
        host_memory_used: Callable[[], int | None] | None = None,
    ) -> None:
        """Try every query once.

        Args:
            nvml: the loaded library.
            handle: of the card.
            hidden: readings not to ask for, each with the reason.
            is_superchip: a CPU shares the module, and the energy counter counts it too.
            memory_handle: of the MIG device whose memory in use is asked for; None: the card's.
            host_memory_used: of a part without memory of its own: how to read what is in use.

        Raises:
            DeviceLostError: the card is gone.
        """
        self.missing = dict(hidden)
        """Readings that the card does not report, each with the reason in words."""
        self.rejected: list[tuple[str, float]] = []
        """What could not be in the last answer: the reading and the driver's number."""
        self.mask: int | None = None
        """The first answer of the clock event reasons, states included."""
        self.power_is_average: bool | None = None
        """Whether power is an average over a second; None where the driver does not tell."""
        self.power_is_of_gpu = not is_superchip
        """Whether power is known to be the GPU's alone."""
        self._nvml = nvml
        self._error: Any = nvml.NVMLError
        self._handle = handle
        self._memory_handle = memory_handle or handle
        self._host_memory_used = host_memory_used
        self._get_fields = function(nvml, "nvmlDeviceGetFieldValues")
        self._fields: list[Field] = []
        self._field_ids: list[tuple[int, int]] = []
        self._steps: list[Step] = []
        self._probe_fields(is_superchip=is_superchip)
        has_power = any(name == "power_w" for name, *_ in self._fields)
        if is_superchip and has_power:
            self.power_is_of_gpu = True
            self.missing["energy_j"] = "the counter is of the whole module, CPU included"
        for name, convert, queries in self._candidates():
            if name not in self.missing and not (name == "power_w" and has_power):
                self._probe(name, convert, queries)

    def read(self) -> dict[str, Any]:
        """What the card answers now, by reading; a query that fails this time is left out.

        Raises:
            DeviceLostError: the card is gone.
            NoAnswerError: every query failed.
        """
        values: dict[str, Any] = {}
        error_class = self._error
        if self.rejected:
            self.rejected = []
        text = "the card answers no query"
        if self._fields:
            try:
                self._read_fields(values)
            except error_class as error:
                text = reason_of(error)
        for name, query, convert, low, high in self._steps:
            try:
                raw = query()
            except error_class as error:
                text = reason_of(error)
                continue
            if low <= raw <= high:
                values[name] = convert(raw)
            else:
                self._reject(name, raw)
        if not values and not self.rejected and (self._fields or self._steps):
            raise NoAnswerError(text)
        if self._host_memory_used is not None:
            # Last, and not the card's: that the host has memory does not mean that the card lives.
            values["memory_used_bytes"] = self._host_memory_used()
        return values

    def _read_fields(self, values: dict[str, Any]) -> None:
        answers = self._get_fields(self._handle, self._field_ids)
        for (name, convert, low, high), answer in zip(self._fields, answers, strict=True):
            raw = _field_value(answer)
            if raw is None:
                continue
            if low <= raw <= high:
                values[name] = convert(raw)
            else:
                self._reject(name, raw)

    def _reject(self, name: str, raw: float) -> None:
        if name != "pstate" or raw != _PSTATE_UNKNOWN:
            self.rejected.append((name, float(raw)))

    # -- what there is to ask ------------------------------------------------------------------

    def _probe_fields(self, *, is_superchip: bool) -> None:
        """Average power, instant power and memory temperature, which come by one query.

        Where there is an average, it is what the plain reading of power gives too; of a superchip
        only the field says whose power it is.
        """
        wanted: tuple[tuple[str, int, Convert], ...] = (
            ("power_w", POWER_AVERAGE, _thousandth),
            ("power_instant_w", POWER_INSTANT, _thousandth),
            ("memory_temperature_c", MEMORY_TEMPERATURE, float),
        )
        ids = [(field, SCOPE_GPU) for _, field, _ in wanted]
        answers, reason = ask(self._nvml, "nvmlDeviceGetFieldValues", self._handle, ids)
        found = {}
        for i, (name, _, convert) in enumerate(wanted):
            low, high = _raw_limits(name, convert)
            is_checked = name == "memory_temperature_c"
            if answers is not None:
                reason = _why_missing(answers[i], (low, high) if is_checked else None)
            if not reason:
                found[name] = (ids[i], (name, convert, low, high))
            elif name != "power_w":
                self.missing.setdefault(name, reason)
        if "power_w" in found:
            self.power_is_average = True
            if not is_superchip:
                del found["power_w"]
        elif "power_instant_w" in found:
            # Where instant power is told and no average, the plain reading of power is instant.
            self.power_is_average = False
            del found["power_instant_w"]
            self.missing["power_instant_w"] = "power is instantaneous already"
        for field_id, field in found.values():
            self._field_ids.append(field_id)
            self._fields.append(field)

    def _probe(self, name: str, convert: Convert, queries: Iterator[Query]) -> None:
        for query in queries:
            try:
                raw = query()
            except self._error as error:
                text = reason_of(error)
                if classify(error.value)[0] == "unsupported":
                    self.missing[name] = text
                    continue
            else:
                if name == "throttle_reasons":
                    self.mask = raw
            self.missing.pop(name, None)
            self._steps.append((name, query, convert, *_raw_limits(name, convert)))
            return

    def _candidates(self) -> Iterator[tuple[str, Convert, Iterator[Query]]]:
        """Per reading the ways to get it, best first: older drivers lack some."""
        ways = self._ways
        yield "power_w", _thousandth, ways("nvmlDeviceGetPowerUsage")
        yield "energy_j", _thousandth, ways("nvmlDeviceGetTotalEnergyConsumption")
        yield (
            "temperature_c",
            float,
            # The first is announced to go with CUDA 14.
            ways("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV", arguments=(_SENSOR_GPU,)),
        )
        yield "sm_clock_mhz", float, ways("nvmlDeviceGetClockInfo", arguments=(_CLOCK_SM,))
        yield "mem_clock_mhz", float, ways("nvmlDeviceGetClockInfo", arguments=(_CLOCK_MEM,))
        yield "utilization_pct", float, self._utilization()
        if self._host_memory_used is None:
            yield "memory_used_bytes", int, self._memory_used()
        yield "fan_pct", float, self._fan()
        yield "power_limit_w", _thousandth, ways("nvmlDeviceGetEnforcedPowerLimit")
        yield (
            "throttle_reasons",
            decode_reasons,
            # Renamed with driver 535.
            ways(
                "nvmlDeviceGetCurrentClocksEventReasons",
                "nvmlDeviceGetCurrentClocksThrottleReasons",
            ),
        )
        yield "pcie_gen", int, ways("nvmlDeviceGetCurrPcieLinkGeneration")
        yield "pcie_width", int, ways("nvmlDeviceGetCurrPcieLinkWidth")
        yield "pstate", int, ways("nvmlDeviceGetPerformanceState")
        yield "temperature_margin_c", float, ways("nvmlDeviceGetMarginTemperature")

    def _ways(self, *names: str, arguments: tuple[int, ...] = ()) -> Iterator[Query]:
        for name in names:
            yield partial(function(self._nvml, name), self._handle, *arguments)

    def _utilization(self) -> Iterator[Query]:
        rates, handle = function(self._nvml, "nvmlDeviceGetUtilizationRates"), self._handle
        yield lambda: rates(handle).gpu

    def _memory_used(self) -> Iterator[Query]:
        get, handle = function(self._nvml, "nvmlDeviceGetMemoryInfo"), self._memory_handle
        # The second form leaves out what the driver reserves, as `nvidia-smi` does.
        second_form = getattr(self._nvml, "nvmlMemory_v2", None)
        if second_form is not None:
            yield lambda: get(handle, second_form).used
        yield lambda: get(handle).used

    def _fan(self) -> Iterator[Query]:
        handle = self._handle
        count, _ = ask(self._nvml, "nvmlDeviceGetNumFans", handle)
        if count:
            speed, fans = function(self._nvml, "nvmlDeviceGetFanSpeed_v2"), range(count)
            yield lambda: max([speed(handle, fan) for fan in fans])
        yield from self._ways("nvmlDeviceGetFanSpeed")


def _raw_limits(name: str, convert: Convert) -> tuple[float, float]:
    low, high = LIMITS[name]
    return (low * 1000, high * 1000) if convert is _thousandth else (low, high)


def _field_value(answer: Any) -> Any:  # noqa: ANN401 - a structure of the module's
    """The number in a field's answer, or None where there is none.

    Raises:
        DeviceLostError: the card is gone.
    """
    if answer.nvmlReturn:
        fate, text = classify(answer.nvmlReturn)
        if fate == "lost":
            raise DeviceLostError(text)
        return None
    return (
        getattr(answer.value, _VALUES[answer.valueType])
        if answer.valueType < len(_VALUES)
        else None
    )


def _why_missing(answer: Any, limits: tuple[float, float] | None) -> str:  # noqa: ANN401
    """Why a field is not to be asked again, or nothing.

    Args:
        answer: the driver's, for this field.
        limits: outside of which the first answer means that the driver does not expose the field.
    """
    raw = _field_value(answer)
    if raw is None:
        fate, text = classify(answer.nvmlReturn or _NO_TYPE)
        return text if fate == "unsupported" else ""
    # A constant 0, 127 or 255 is how drivers say it.
    is_exposed = limits is None or limits[0] <= raw <= limits[1]
    return "" if is_exposed else "not exposed by the driver"
