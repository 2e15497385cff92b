"""What a child prints, drained so that it never blocks, kept within a bound."""

from __future__ import annotations

import os
from collections import deque
from typing import Literal

KEPT_LINES = 4000
"""Lines of one stream that go to the session's log; the last ones are known beside it."""
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
        self._kept = 0

    def poll(self) -> list[str]:
        """The lines that were finished since the last poll, as far as they are kept."""
        kept = []
        taken = 0
        while self.fd is not None and taken < BUDGET_BYTES:
            try:
                data = os.read(self.fd, READ_BYTES)
            except BlockingIOError:
                break
            if not data:
                self.close()
                break
            taken += len(data)
            kept += self._cut(data)
        return kept

    def close(self) -> None:
        """Let go of the pipe; an unfinished line counts as one."""
        if self.fd is None:
            return
        os.close(self.fd)
        self.fd = None
        if self._rest:
            self._keep(self._rest)
            self._rest = b""

    def _cut(self, data: bytes) -> list[str]:
        *lines, rest = (self._rest + data).split(b"\n")
        if len(rest) > READ_BYTES:
            lines.append(rest)
            rest = b""
        # A progress bar repaints its line with \r for hours; only what it ended as counts.
        self._rest = rest[rest.rfind(b"\r", 0, -1) + 1 :] if b"\r" in rest else rest
        return [text for line in lines if (text := self._keep(line)) is not None]

    def _keep(self, line: bytes) -> str | None:
        shown = line.rstrip(b"\r").rpartition(b"\r")[2][: LINE_CHARS * 4]
        text = printable(shown.decode(errors="replace"))[:LINE_CHARS].rstrip()
        if not text:
            return None
        self.tail.append(text)
        if self._kept >= KEPT_LINES:
            self.dropped += 1
            return None
        self._kept += 1
        return text


def printable(text: str) -> str:
    """The text without control characters, which would move the cursor of whoever shows it."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "" for c in text)
