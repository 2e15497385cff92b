"""Every error of NVML and what it means, in one table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from heatsoak.telemetry.device import DeviceLostError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Fate = Literal["unsupported", "lost", "transient"]
"""`unsupported`: never to be asked again. `lost`: the card is gone. `transient`: not this time."""

NOT_FOUND = 6
LIBRARY_NOT_FOUND = 12
MISMATCH = 18
_MISSING_FUNCTION = 13

ERRORS: dict[int, tuple[Fate, str]] = {
    1: ("lost", "the connection to the NVIDIA driver was closed"),
    2: ("unsupported", "not supported: the driver does not accept the query"),
    3: ("unsupported", "not supported by this card or driver"),
    4: ("unsupported", "no permission: the driver refuses it to this user"),
    6: ("unsupported", "not supported: the driver finds nothing under this query"),
    7: ("transient", "the driver's answer was longer than expected"),
    8: ("transient", "the card's power cables are not properly attached"),
    9: ("lost", "the NVIDIA driver was unloaded"),
    10: ("transient", "the driver did not answer in time"),
    11: ("transient", "the kernel has trouble with the card's interrupts"),
    13: ("unsupported", "driver too old: it has no such function"),
    14: ("unsupported", "the card's infoROM is corrupted"),
    15: ("lost", "the GPU is lost (it has fallen off the bus)"),
    16: ("lost", "the GPU requires a reset"),
    17: ("transient", "the operating system blocked the query"),
    18: ("lost", "the NVIDIA driver was replaced while running: reboot"),
    19: ("transient", "the card is in use"),
    20: ("transient", "the driver is out of memory"),
    21: ("transient", "the driver has no data yet"),
    22: ("unsupported", "not supported on a virtual GPU"),
    23: ("transient", "the driver is out of resources"),
    24: ("unsupported", "not supported: no such clock"),
    25: ("unsupported", "driver too old: it does not know this form of the query"),
    26: ("unsupported", "withdrawn by this driver"),
    27: ("transient", "the card is not ready"),
    28: ("lost", "the GPU is no longer found"),
    29: ("transient", "the card is in no state to answer"),
    999: ("transient", "the driver reports an unknown error"),
}
"""By `nvmlReturn_t`: what becomes of the reading, and why in words."""

START_PROBLEMS = {
    4: "no permission to use the NVIDIA driver: this user cannot open /dev/nvidiactl",
    9: "the NVIDIA library is installed, but the NVIDIA kernel driver is not loaded",
    LIBRARY_NOT_FOUND: "no NVIDIA driver: its library libnvidia-ml.so.1 was not found",
    13: "the NVIDIA driver is too old: its library lacks nvmlInitWithFlags",
    18: "the NVIDIA kernel driver and its library are of different versions: reboot",
}
"""By `nvmlReturn_t`: why the library does not start."""


def classify(code: int) -> tuple[Fate, str]:
    """What becomes of the reading, and why."""
    return ERRORS.get(code, ("transient", f"the driver reports error {code}"))


def start_problem(code: int) -> str:
    """Why the library does not start, as a sentence for the user."""
    return START_PROBLEMS.get(code, f"the NVIDIA driver does not start: {classify(code)[1]}")


def function(nvml: ModuleType, name: str) -> Callable[..., Any]:
    """A function of the bindings; one that they lack fails as one that the driver lacks."""
    found: Callable[..., Any] = getattr(nvml, name, None) or partial(_fail_missing, nvml)
    return found


def ask(nvml: ModuleType, name: str, *arguments: object) -> tuple[Any, str]:
    """What a function answers once; None, and why in words, where it does not.

    Raises:
        DeviceLostError: the card is gone.
    """
    try:
        return function(nvml, name)(*arguments), ""
    except nvml.NVMLError as error:
        return None, reason_of(error)


def reason_of(error: Any) -> str:  # noqa: ANN401 - its class is the untyped module's
    """Why a query failed, in words.

    Raises:
        DeviceLostError: because the card is gone.
    """
    fate, text = classify(error.value)
    if fate == "lost":
        raise DeviceLostError(text) from error
    return text


def _fail_missing(nvml: ModuleType, *_: object) -> None:
    raise nvml.NVMLError(_MISSING_FUNCTION)
