"""What the screen asks of a run's recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.recorder import client
from heatsoak.session import store

if TYPE_CHECKING:
    from pathlib import Path


class Control:
    """The recorder of one session file, found anew for each question. Every call may block."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_alive(self) -> bool:
        """Whether the recorder is there."""
        return any(run.path == self._path for run in client.running())

    def say_quiet(self, quiet_s: float) -> str:
        """Why nothing has come from the recorder for `quiet_s` real seconds."""
        try:
            return client.say_quiet(client.find_running(str(self._path)), quiet_s)
        except UsageError:
            return f"nothing has come from the recorder for {quiet_s:.0f} s"

    def close_crashed(self) -> None:
        """Close the session of a recorder that is gone, with what was recorded."""
        store.close_crashed(self._path)

    def stop(self) -> None:
        """End the run cleanly."""
        client.stop(client.find_running(str(self._path)))

    def mark(self, text: str) -> None:
        """Write an event of the user's own."""
        client.mark(client.find_running(str(self._path)), text)

    def extend(self, seconds: float) -> None:
        """Give the run more time before its protocol's time-out."""
        client.extend(client.find_running(str(self._path)), seconds)
