"""What watching costs the training: paired and alternating within one real run on the host CPU.

    .venv/bin/python benchmarks/monitor_tax.py [--blocks 40] [--segment 6]

One training child runs on all cores throughout. Recorder and screen are stopped and continued with
SIGSTOP and SIGCONT, so that each block holds the bare workload, the workload with its recorder, and
with recorder and screen, in an order that is turned round from block to block. Rates come from the
child's own counters. Prints one JSON object: throughput over that of the bare workload, the median
over the blocks with its 95 % interval (a virtual machine's stalls are outliers), and the share of
one core that recorder and screen used while they were awake: a step waits for the slower core, so
that share bounds what they can cost it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from _terminal import Terminal
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan
from heatsoak.session.tail import Tail

GUARD_S = 1.0
"""Left out at the start of each segment: the recorder works off what has queued up."""
ARRANGEMENTS = ("bare", "recorder", "recorder and screen")


def arrange(name: str, recorder: psutil.Process, screen: psutil.Process) -> None:
    """Stop or continue the two so that only what `name` says is awake."""
    recorder.send_signal(signal.SIGSTOP if name == "bare" else signal.SIGCONT)
    screen.send_signal(signal.SIGCONT if name == "recorder and screen" else signal.SIGSTOP)


def units_at(steps: list[tuple[float, float]], t_s: float) -> float:
    """Cumulative units at an instant, linear between records."""
    for (t0, u0), (t1, u1) in itertools.pairwise(steps):
        if t0 <= t_s <= t1:
            return u0 + (u1 - u0) * (t_s - t0) / (t1 - t0)
    sys.exit(f"no progress recorded around {t_s:.0f} s")


def interval(ratios: list[float]) -> dict[str, float]:
    """Median of paired ratios and its 95 % interval by order statistics."""
    ordered = sorted(ratios)
    count = len(ordered)
    reach = 0.98 * math.sqrt(count)
    low, high = max(0, int(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return {
        "ratio": round(statistics.median(ordered), 4),
        "from": round(ordered[low], 4),
        "to": round(ordered[high], 4),
    }


def cpu_s(process: psutil.Process) -> float:
    """Processor time the process has used, in seconds."""
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--segment", type=float, default=6.0, metavar="SECONDS")
    arguments = parser.parse_args()
    segments: list[tuple[str, float, float]] = []
    used_s = dict.fromkeys(ARRANGEMENTS, 0.0)
    awake_s = dict.fromkeys(ARRANGEMENTS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tax.heatsoak"
        running = client.start(
            Plan(devices="cpu", workload="llm_pretrain", protocol="extended", out=str(out))
        )
        recorder = psutil.Process(running.pid)
        terminal = Terminal([str(Path(sys.executable).with_name("heatsoak")), "attach", running.id])
        screen = psutil.Process(terminal.process.pid)
        tail = Tail(out)
        while not (batch := tail.poll()) or not batch.steps:
            time.sleep(0.5)
        time.sleep(10.0)
        # The session's clock against ours, from the recorder's own word.
        offset_s = time.monotonic() - float(client.status(running)["t_s"])
        for block in range(arguments.blocks):
            for name in ARRANGEMENTS if block % 2 == 0 else reversed(ARRANGEMENTS):
                arrange(name, recorder, screen)
                time.sleep(GUARD_S)
                start_s, before_s = time.monotonic() - offset_s, cpu_s(recorder) + cpu_s(screen)
                time.sleep(arguments.segment)
                end_s = time.monotonic() - offset_s
                segments.append((name, start_s, end_s))
                used_s[name] += cpu_s(recorder) + cpu_s(screen) - before_s
                awake_s[name] += end_s - start_s
            print(f"block {block + 1} of {arguments.blocks}", file=sys.stderr)
        arrange("recorder and screen", recorder, screen)
        time.sleep(GUARD_S)
        terminal.close()
        client.stop(running)
        client.wait_ended(running)
        with sqlite3.connect(f"file:{out}?mode=ro", uri=True) as connection:
            steps = connection.execute("SELECT t_s, units_done FROM steps ORDER BY t_s").fetchall()
    rates: dict[str, list[float]] = {name: [] for name in ARRANGEMENTS}
    for name, start_s, end_s in segments:
        units = units_at(steps, end_s) - units_at(steps, start_s)
        rates[name].append(units / (end_s - start_s))
    # Both passes of a block are in block order for every arrangement: pair them one to one.
    report: dict[str, object] = {"blocks": arguments.blocks, "segment_s": arguments.segment}
    report["bare_units_per_s"] = round(statistics.fmean(rates["bare"]), 1)
    for name in ARRANGEMENTS[1:]:
        pairs = zip(rates[name], rates["bare"], strict=True)
        share = {"core_pct": round(100 * used_s[name] / awake_s[name], 2)}
        report[name] = interval([watched / bare for watched, bare in pairs]) | share
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
