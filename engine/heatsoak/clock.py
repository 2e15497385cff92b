"""Session time: seconds since the session began, in real time or faster for synthetic devices.

The only file that reads the machine's clocks. Standard library only, runs on Python 3.9.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading


class Clock(Protocol):
    """What code that needs the time is given, so that a test can give it another."""

    speed: float
    """Session seconds per real second."""

    def now_s(self) -> float:
        """Session time now, in seconds."""
        ...

    def wait_until(self, t_s: float, stop: threading.Event) -> bool:
        """Block until session time `t_s`, or until `stop` is set; true when `stop` was set."""
        ...


class SessionClock:
    """Session time that runs `speed` times as fast as `CLOCK_MONOTONIC`."""

    def __init__(self, speed: float = 1.0) -> None:
        """Start at 0 s now.

        Args:
            speed: session seconds per real second; 1.0 for anything but synthetic devices.
        """
        self.speed = speed
        self._origin_s = monotonic_s()

    def now_s(self) -> float:
        """Session time now, in seconds."""
        return self.at_s(monotonic_s())

    def at_s(self, monotonic_s: float) -> float:
        """Session time of an instant of `monotonic_s()`, which is the same in every process."""
        return (monotonic_s - self._origin_s) * self.speed

    def wait_until(self, t_s: float, stop: threading.Event) -> bool:
        """Block until session time `t_s`, or until `stop` is set; true when `stop` was set."""
        return stop.wait(max(0.0, (t_s - self.now_s()) / self.speed))


def monotonic_s() -> float:
    """`CLOCK_MONOTONIC` in seconds: one time line for all processes since the machine started."""
    return time.monotonic()


def now_utc() -> str:
    """The wall time as `2026-12-01T22:41:07Z`, for labels; never for a duration."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")  # noqa: UP017 - Python 3.9
