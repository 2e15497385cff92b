"""The child's line to the recorder: progress records out, the request to stop in.

Standard library only, so that a child whose torch is missing can still say so.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from typing import TYPE_CHECKING, NoReturn

from heatsoak.clock import monotonic_s
from heatsoak.progress import DESCRIPTOR_VARIABLE, Done, Record, Steps, encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

WAIT_FOR_READER_S = 5.0
"""How long a record that must arrive waits for room in the pipe, in seconds."""
INTERRUPTED_EXIT = 130


class WorkloadError(Exception):
    """The workload cannot run as asked; its text is one line for the user."""


class Channel:
    """Writes progress records to the recorder's pipe; never lets a slow reader stop the training.

    The descriptor does not block: when the pipe is full, a `Steps` record is dropped (the next one
    is cumulative), and any other waits a few seconds.
    """

    def __init__(self, descriptor: int | None) -> None:
        """Write to `descriptor`, or nowhere when it is None.

        Raises:
            WorkloadError: the descriptor is not a pipe.
        """
        self._descriptor = descriptor
        if descriptor is None:
            return
        try:
            is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        except OSError:
            is_pipe = False
        if not is_pipe:
            raise WorkloadError(
                f"{DESCRIPTOR_VARIABLE}={descriptor} is not a pipe; unset it to run by hand"
            )
        # Neither compiler workers nor anything else the training starts may hold the pipe open.
        os.set_inheritable(descriptor, False)
        os.set_blocking(descriptor, False)

    @staticmethod
    def from_environment(environ: Mapping[str, str]) -> Channel:
        """The channel the recorder gave; one that writes nowhere by hand and on other ranks."""
        if environ.get("RANK", environ.get("LOCAL_RANK", "0")) != "0":
            return Channel(None)
        text = environ.get(DESCRIPTOR_VARIABLE)
        if text is None:
            sys.stderr.write(f"{DESCRIPTOR_VARIABLE} is not set: progress records go nowhere\n")
            return Channel(None)
        if not text.isdecimal():
            raise WorkloadError(f"{DESCRIPTOR_VARIABLE}={text!r} is not a descriptor number")
        return Channel(int(text))

    @property
    def is_open(self) -> bool:
        """Whether records go anywhere."""
        return self._descriptor is not None

    def write(self, record: Record) -> bool:
        """Write one record; false when the pipe was full and the record was dropped.

        A broken pipe means that the recorder is gone: the process ends here and now.
        """
        if self._descriptor is None:
            return True
        line = encode(record)
        while True:
            try:
                # Up to PIPE_BUF (4096 bytes) a write to a pipe is whole or not at all.
                os.write(self._descriptor, line)
            except BlockingIOError:
                if isinstance(record, Steps):
                    return False
                ready = select.select([], [self._descriptor], [], WAIT_FOR_READER_S)
                if not ready[1]:
                    return False
            except BrokenPipeError:
                leave_at_once(1)
            else:
                return True


class StopRequest:
    """SIGTERM or SIGINT, as a flag that the training looks at after every batch.

    Before the first batch is done there is nothing to lose: the process says `Done` and ends at
    once, whatever it is importing or compiling. A second SIGINT ends it at once, too.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._is_set = False
        self.has_started = False
        """Whether a batch has been trained, so that the training loop will see the flag."""

    @property
    def is_set(self) -> bool:
        """Whether the training was asked to stop."""
        return self._is_set

    def listen(self) -> None:
        """Take the signals; called again where a library has put its own handlers over ours."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self.has_started:
            self._channel.write(Done(monotonic_s(), units_done=0.0, steps_done=0))
            leave_at_once(0)
        if self._is_set and number == signal.SIGINT:
            leave_at_once(INTERRUPTED_EXIT)
        self._is_set = True


def leave_at_once(code: int) -> NoReturn:
    """End the process without unwinding: no clean-up of a library can hang or hide it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, RuntimeError):  # closed, gone, or interrupted in a write
            continue
    os._exit(code)
