"""Follows a session file from a thread and posts what is new; touches nothing that is shown."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

from heatsoak.errors import HeatsoakError
from heatsoak_tui.messages import BatchArrived, FeedTrouble, RecorderGone

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message import Message

    from heatsoak.session.tail import Tail

POLL_S = 1.0
"""Real seconds between two looks at the file: as often as the recorder commits."""
TROUBLE_AFTER = 3
"""Failed looks in a row before the user is told."""
SILENT_AFTER = 3
"""Looks without anything new before the recorder is asked for."""
QUIET_AFTER = 6
"""Looks without anything new before the user is told: a recorder writes every second."""


class Feed:
    """One session file, one thread: `run` is the thread, `stop` ends it."""

    def __init__(
        self,
        tail: Tail,
        post: Callable[[Message], object],
        is_recorder_alive: Callable[[], bool],
        poll_s: float = POLL_S,
        say_quiet: Callable[[float], str] = lambda quiet_s: f"nothing new for {quiet_s:.0f} s",
    ) -> None:
        """Nothing is read before `run`.

        Args:
            tail: The place in the session file from which it is followed.
            post: Takes a message from any thread.
            is_recorder_alive: Whether the process that writes the file is there; asked only when
                nothing new came for a while.
            poll_s: Real seconds between two looks.
            say_quiet: A sentence on a recorder that is there and has written nothing for so many
                real seconds.
        """
        self._tail = tail
        self._post = post
        self._is_recorder_alive = is_recorder_alive
        self._poll_s = poll_s
        self._say_quiet = say_quiet
        self._stopped = threading.Event()
        self._failures = 0
        self._quiet = 0

    def stop(self) -> None:
        """End the thread within a moment."""
        self._stopped.set()

    def run(self) -> None:
        """Look, post, wait; until stopped or the session is closed."""
        while not self._stopped.is_set():
            if self._look(self._tail):
                return
            self._stopped.wait(self._poll_s)

    def _look(self, tail: Tail) -> bool:
        """One poll; true when there is nothing more to come."""
        try:
            batch = tail.poll()
        except (sqlite3.Error, OSError, HeatsoakError) as error:
            # A file that is locked or being moved for a moment is no reason to say anything.
            self._failures += 1
            if self._failures == TROUBLE_AFTER:
                self._post(FeedTrouble(f"cannot read the session: {error}; trying again"))
            return False
        if self._failures >= TROUBLE_AFTER:
            self._post(FeedTrouble(""))
        self._failures = 0
        if batch is not None:
            if self._quiet >= QUIET_AFTER:
                self._post(FeedTrouble(""))
            self._quiet = 0
            self._post(BatchArrived(batch))
            return False
        if tail.state != "recording":
            return True
        self._quiet += 1
        if self._quiet % SILENT_AFTER == 0:
            self._ask_for_recorder(tail)
        return False

    def _ask_for_recorder(self, tail: Tail) -> None:
        """Nothing came for a while: is somebody there to write, and why do they not?"""
        if self._is_recorder_alive():
            if self._quiet >= QUIET_AFTER:
                self._post(FeedTrouble(self._say_quiet(self._quiet * self._poll_s)))
            return
        # It may have closed the file between the last look and this question.
        last = tail.poll()
        if last is not None:
            self._post(BatchArrived(last))
        if tail.state == "recording":
            self._post(RecorderGone())
