"""A short child program that measures one thing, prints one line of JSON, and leaves nothing."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from heatsoak.clock import monotonic_s
from heatsoak.launch import guard
from heatsoak.launch.child import with_absolute_python_path

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

LOOK_EVERY_S = 0.1
MOST_BYTES = 1024 * 1024
"""More than any answer; a program that prints without end is ended."""
_TAIL_CHARS = 300


class ProbeError(Exception):
    """The program gave no answer; the text says why, in words."""


def run_probe(
    name: str,
    *arguments: str,
    environ: Mapping[str, str],
    within_s: float,
    meanwhile: Callable[[], None] = lambda: None,
    stop: threading.Event | None = None,
) -> dict[str, Any]:
    """What a program of `heatsoak_workloads.probes` answers.

    It runs under the guard that workloads run under: whatever becomes of this process, nothing of
    it stays on a card.

    Args:
        name: of the program.
        arguments: of the program.
        environ: its whole environment.
        within_s: real seconds after which it is ended.
        meanwhile: called some times a second while it runs.
        stop: ends it early when it is set.

    Raises:
        ProbeError: it ended without an answer, or did not end in time.
    """
    command = [sys.executable, "-P", "-m", "heatsoak_workloads.probes", name, *arguments]
    environment = with_absolute_python_path(environ) | {"PYTHONSAFEPATH": "1"}
    with ExitStack() as stack:
        life_read, life_write = os.pipe()
        stack.callback(os.close, life_write)  # The guard ends everything when it closes.
        report_read, report_write = os.pipe()
        stack.callback(os.close, report_read)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, str(life_read), str(report_write),
                 *command],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, pass_fds=(life_read, report_write), start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ProbeError(f"it cannot be started: {error.strerror}") from error
        finally:
            os.close(life_read)
            os.close(report_write)
        with process:
            try:
                return _answer(*_outputs(process, within_s, meanwhile, stop))
            finally:
                # Before `process` waits for the guard, which waits for this.
                stack.close()


def _outputs(
    process: subprocess.Popen[bytes],
    within_s: float,
    meanwhile: Callable[[], None],
    stop: threading.Event | None,
) -> tuple[bytes, bytes]:
    """Everything that was printed, stdout and stderr."""
    assert process.stdout is not None
    assert process.stderr is not None
    parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    open_ = set(parts)
    until_s = monotonic_s() + within_s
    while open_:
        if monotonic_s() > until_s:
            raise ProbeError(f"it gave no answer within {within_s:.0f} s")
        if stop is not None and stop.is_set():
            raise ProbeError("it was ended before it had an answer")
        for fd in select.select(list(open_), [], [], LOOK_EVERY_S)[0]:
            data = os.read(fd, 65536)
            if not data:
                open_.discard(fd)
            parts[fd].append(data)
            if sum(map(len, parts[fd])) > MOST_BYTES:
                raise ProbeError("it prints without end")
        meanwhile()
    out, err = (b"".join(found) for found in parts.values())
    return out, err


def _answer(out: bytes, err: bytes) -> dict[str, Any]:
    """The last line of stdout; libraries may have printed before it."""
    lines: Sequence[bytes] = out.strip().splitlines() or [b""]
    try:
        found = json.loads(lines[-1])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        words = (err.decode(errors="replace").strip().splitlines() or ["no word"])[-1]
        raise ProbeError(f"it ended without an answer: {words[-_TAIL_CHARS:]}")
    return found
