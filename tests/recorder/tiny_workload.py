"""A workload without torch for the tests: writes progress records and misbehaves as told.

    python tiny_workload.py [BEHAVIOUR...]

Behaviours: `ignore-term`, `grandchild` (one that detaches, ignores TERM and outlives its parent),
`chatty` (prints without end), `exit=N`, `failed=TEXT`, `uuid=UUID`, `mute` (no hello),
`memory=BYTES`, `early` (work before the hello), `bad-line`, `rate=UNITS_PER_S`, `stderr=TEXT`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from heatsoak import progress
from heatsoak.clock import monotonic_s

GRANDCHILD = """
import os, signal, sys, threading
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    os._exit(0)
os.setsid()
threading.Event().wait()
"""


def main() -> int:
    told = dict(word.partition("=")[::2] for word in sys.argv[1:])
    fd = int(os.environ[progress.DESCRIPTOR_VARIABLE])
    stop = threading.Event()
    handler = signal.SIG_IGN if "ignore-term" in told else lambda *_: stop.set()
    signal.signal(signal.SIGTERM, handler)

    def write(record: progress.Record) -> None:
        os.write(fd, progress.encode(record))

    if "stderr" in told:
        print(told["stderr"], file=sys.stderr, flush=True)
    if "grandchild" in told:
        subprocess.run([sys.executable, "-c", GRANDCHILD], check=True)
    if "mute" in told:
        stop.wait()
        return 0
    if "bad-line" in told:
        os.write(fd, b"not a record\n")
    given = os.environ["HEATSOAK_DEVICE"]
    uuid = told.get("uuid", None if given == "cpu" else os.environ["CUDA_VISIBLE_DEVICES"])
    memory = int(told["memory"]) if "memory" in told else None
    if "early" in told:
        write(progress.Steps(monotonic_s(), 1.0, 1, None))
    facts = {"tiny": 1}
    write(progress.Hello(monotonic_s(), os.getpid(), "samples", uuid, "test device", facts, memory))
    write(progress.Phase(monotonic_s(), "train"))
    if "chatty" in told:
        threading.Thread(target=chatter, daemon=True).start()
    if "failed" in told:
        write(progress.Failed(monotonic_s(), told["failed"]))
        return 1
    rate_per_s, began_s, steps = float(told.get("rate", "1000")), monotonic_s(), 0
    while not stop.wait(0.1):
        steps += 1
        units = rate_per_s * (monotonic_s() - began_s)
        write(progress.Steps(monotonic_s(), units, steps, 5.0 / steps))
        if "exit" in told and steps >= 3:
            return int(told["exit"])
    write(progress.Done(monotonic_s(), rate_per_s * (monotonic_s() - began_s), steps))
    return 0


def chatter() -> None:
    while True:
        sys.stdout.write("all work and no play \x1b[31m makes a dull log\n" * 1000)


if __name__ == "__main__":
    sys.exit(main())
