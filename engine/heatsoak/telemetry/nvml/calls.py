"""Calls into the driver, which may never return, waited for with a deadline."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from typing_extensions import override

from heatsoak.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class HangError(Exception):
    """A call has not returned in time."""


class Call(threading.Thread, Generic[T]):
    """A call into the driver in a thread of its own; one that hangs is left behind."""

    def __init__(self, work: Callable[[], T], name: str) -> None:
        """Begin.

        Args:
            work: what to do; may raise `DeviceUnavailableError`.
            name: of the thread.
        """
        super().__init__(name=name, daemon=True)
        self._work = work
        self._results: list[T] = []
        self._error: DeviceUnavailableError | None = None
        self.start()

    @override
    def run(self) -> None:
        """Do the work, and keep what came of it."""
        try:
            self._results.append(self._work())
        except DeviceUnavailableError as error:
            self._error = error

    def result(self, within_s: float) -> T:
        """What came of it.

        Args:
            within_s: real seconds to wait.

        Raises:
            HangError: it has not returned in time.
            DeviceUnavailableError: the card or the driver cannot be used.
        """
        self.join(max(0.0, within_s))
        if self.is_alive():
            _hung.append(self)
            raise HangError("a call into the NVIDIA driver does not return")
        if self._error is not None:
            raise self._error
        return self._results[0]


_hung: list[Call[Any]] = []


def is_any_hung() -> bool:
    """Whether a call that was given up still runs: the library must not be shut down under it."""
    return any(call.is_alive() for call in _hung)
