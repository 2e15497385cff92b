"""What recorder and screen take for 8 synthetic cards at 1 Hz: CPU, memory, bytes on the wire.

    .venv/bin/python benchmarks/footprint.py [--seconds 60] [--cards 8]

Prints one JSON object. CPU is per cent of one core over the measured span, memory is resident
(and unique) megabytes at its end, bytes are what the screen wrote to its 160x48 terminal.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import psutil

from _terminal import Terminal
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan

SETTLE_S = 15.0
"""Start-up and first paint, left out."""


def cpu_s(process: psutil.Process) -> float:
    """Processor time the process has used, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def memory(process: psutil.Process) -> dict[str, float]:
    """Resident and unique memory in megabytes (10^6 bytes)."""
    info = process.memory_full_info()
    return {"rss_mb": round(info.rss / 1e6, 1), "uss_mb": round(info.uss / 1e6, 1)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cards", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "footprint.heatsoak")
        running = client.start(
            Plan(devices=f"synthetic:rtx-5090x{arguments.cards}", protocol="extended", out=out)
        )
        heatsoak = str(Path(sys.executable).with_name("heatsoak"))
        terminal = Terminal([heatsoak, "attach", running.id])
        recorder = psutil.Process(running.pid)
        screen = psutil.Process(terminal.process.pid)
        time.sleep(SETTLE_S)
        if terminal.process.poll() is not None:
            sys.exit("the screen has ended; run `heatsoak attach` by hand to see why")
        before = (cpu_s(recorder), cpu_s(screen), terminal.bytes_written, time.monotonic())
        time.sleep(arguments.seconds)
        after = (cpu_s(recorder), cpu_s(screen), terminal.bytes_written, time.monotonic())
        span_s = after[3] - before[3]
        report = {
            "cards": arguments.cards,
            "span_s": round(span_s, 1),
            "recorder": {"cpu_pct": round(100 * (after[0] - before[0]) / span_s, 2)}
            | memory(recorder),
            "screen": {
                "cpu_pct": round(100 * (after[1] - before[1]) / span_s, 2),
                "bytes_per_s": round((after[2] - before[2]) / span_s),
            }
            | memory(screen),
        }
        terminal.close()
        client.kill(running)
        client.wait_ended(running)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
