"""What a card counted of its own defects: memory errors, replaced rows and pages, Xids."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from heatsoak.telemetry.device import DeviceLostError
from heatsoak.telemetry.health import DeviceHealth
from heatsoak.telemetry.nvml.errors import ask, function

if TYPE_CHECKING:
    from types import ModuleType

_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0
_MULTIPLE_SINGLE_BIT, _DOUBLE_BIT = 0, 1
_XID_EVENT = 0x8
"""`nvmlEventTypeXidCriticalError`."""
_TIMED_OUT = 10
WAIT_MS = 5000
"""So long one wait for an event lasts; a watch that is to end ends by then. Waking costs."""


def read_health(nvml: ModuleType, handle: object, xids: tuple[int, ...] | None) -> DeviceHealth:
    """The defects that a card has counted so far.

    Args:
        nvml: the loaded library.
        handle: of the card.
        xids: those that were announced.

    Raises:
        DeviceLostError: the card is gone.
    """

    def known(name: str, *arguments: int) -> Any:  # noqa: ANN401
        return ask(nvml, name, handle, *arguments)[0]

    corrected, uncorrected, is_pending, has_failed = (
        known("nvmlDeviceGetRemappedRows") or (None,) * 4
    )
    worn, broken = (
        known("nvmlDeviceGetRetiredPages", cause) for cause in (_MULTIPLE_SINGLE_BIT, _DOUBLE_BIT)
    )
    waits = known("nvmlDeviceGetRetiredPagesPendingStatus")
    return DeviceHealth(
        ecc_corrected=known("nvmlDeviceGetTotalEccErrors", _CORRECTED, _VOLATILE),
        ecc_uncorrected=known("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _VOLATILE),
        remapped_rows_corrected=corrected,
        remapped_rows_uncorrected=uncorrected,
        remap_is_pending=None if is_pending is None else bool(is_pending),
        remap_has_failed=None if has_failed is None else bool(has_failed),
        retired_pages_corrected=None if worn is None else len(worn),
        retired_pages_uncorrected=None if broken is None else len(broken),
        retirement_is_pending=None if waits is None else bool(waits),
        xids=xids,
    )


class XidWatch:
    """Takes down the Xids of one card as the driver announces them, in a thread of its own.

    It has its own use of the library and ends it itself, so that nobody waits for its wait.
    """

    def __init__(self, nvml: ModuleType, handle: object, name: str) -> None:
        """Make ready; nothing is watched before `begin`.

        Args:
            nvml: the loaded library.
            handle: of the card.
            name: of the card, for the thread.
        """
        self._nvml = nvml
        self._xids: list[int] = []
        self._is_announced = False
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._once = threading.Lock()
        self._thread = threading.Thread(
            target=self._watch, args=(handle,), name=f"xid {name}", daemon=True
        )

    def begin(self) -> None:
        """Begin to watch, unless it has begun."""
        if self._once.acquire(blocking=False):
            self._thread.start()

    def xids(self, within_s: float = 1.0) -> tuple[int, ...] | None:
        """The codes so far, in order; None where the driver announces none.

        Args:
            within_s: real seconds to wait until the watch has begun.
        """
        self._ready.wait(within_s)
        return tuple(self._xids) if self._is_announced else None

    def stop(self) -> None:
        """Watch no more; returns at once."""
        self._stop.set()

    def _watch(self, handle: object) -> None:
        nvml = self._nvml
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:
            self._ready.set()
            return
        try:
            self._take_down(handle)
        except (nvml.NVMLError, DeviceLostError):
            self._is_announced = bool(self._xids)  # What was announced stays.
        finally:
            self._ready.set()
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:
                return  # a driver that is gone cannot be let go of

    def _take_down(self, handle: object) -> None:
        nvml = self._nvml
        events = function(nvml, "nvmlEventSetCreate")()
        try:
            nvml.nvmlDeviceRegisterEvents(handle, _XID_EVENT, events)
            self._is_announced = True
            self._ready.set()
            while not self._stop.is_set():
                try:
                    event = nvml.nvmlEventSetWait_v2(events, WAIT_MS)
                except nvml.NVMLError as error:
                    if error.value != _TIMED_OUT:
                        raise
                else:
                    self._xids.append(int(event.eventData))
        finally:
            nvml.nvmlEventSetFree(events)
