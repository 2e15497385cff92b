"""What a child prints, drained so that it never blocks, kept within a bound."""

from __future__ import annotations

import os
from collections import deque
from typing import Literal

KEPT_LINES = 100
"""Lines of one stream and poll that go to the session's log: the last ones; nobody reads more."""
LINE_CHARS = 500
TAIL_LINES = 20
READ_BYTES = 64 * 1024
BUDGET_BYTES = 1024 * 1024
"""Bytes taken in one poll; a child that prints faster waits for the next."""


class Output:
    """One of a child's output streams: its lines, cut from a pipe that is never waited for."""

    def __init__(self, fd: int, stream: Literal["stdout", "stderr"]) -> None:
        """Read from `fd`, which becomes this object's to close."""
        os.set_blocking(fd, False)
        self.stream = stream
        self.fd: int | None = fd
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self.dropped = 0
        """Lines that are in no log because there were too many."""
        self._rest = b""

    def poll(self) -> list[str]:
        """The lines that were finished since the last poll, as far as they are kept."""
        lines: deque[str] = deque(maxlen=KEPT_LINES)
        count = 0
        taken = 0
        while self.fd is not None and taken < BUDGET_BYTES:
            try:
                data = os.read(self.fd, READ_BYTES)
            except BlockingIOError:
                break
            taken += len(data)
            finished = self._cut(data) if data else self._end()
            count += len(finished)
            lines += finished
        self.dropped += count - len(lines)
        self.tail += lines
        return list(lines)

    def close(self) -> None:
        """Let go of the pipe."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def _end(self) -> list[str]:
        """The other end is closed: an unfinished line counts as one."""
        self.close()
        rest, self._rest = self._rest, b""
        return _texts([rest])

    def _cut(self, data: bytes) -> list[str]:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > READ_BYTES:
            lines.append(rest)
            rest = b""
        # A progress bar repaints its line with \r for hours; only what it ended as counts.
        self._rest = rest[rest.rfind(b"\r", 0, -1) + 1 :] if b"\r" in rest else rest
        return _texts(lines)


def _texts(lines: list[bytes]) -> list[str]:
    """What of these lines is text that can be shown."""
    texts = []
    for line in lines:
        shown = line.rstrip(b"\r").rpartition(b"\r")[2][: LINE_CHARS * 4]
        text = printable(shown.decode(errors="replace"))[:LINE_CHARS].rstrip()
        if text:
            texts.append(text)
    return texts


def printable(text: str) -> str:
    """The text without control characters, which would move the cursor of whoever shows it."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "" for c in text)
