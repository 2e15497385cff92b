"""A real pseudo-terminal with a program in it, read by a thread that counts the bytes."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading


class Terminal:
    """Runs `command` in a pseudo-terminal of `columns` x `rows` and throws away what it writes."""

    def __init__(self, command: list[str], columns: int = 160, rows: int = 48) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        os.close(slave)
        self._master = master
        self.bytes_written = 0
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # EIO: the program has left its terminal
                return
            if not data:
                return
            self.bytes_written += len(data)

    def close(self) -> None:
        """End the program and the terminal."""
        self.process.terminate()
        self.process.wait(timeout=20)
        os.close(self._master)
