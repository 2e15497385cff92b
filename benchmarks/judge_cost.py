"""What judging costs: milliseconds per evaluation (every 10 s of a run) and card.

    .venv/bin/python benchmarks/judge_cost.py [--cards 1,8] [--seconds 3600]

Synthetic cards under one job are read beforehand; only the judge is timed: everything from taking
in the readings of ten seconds to the verdicts on them. The run never freezes, so that the window
is as long as it gets. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from time import process_time

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import BIN_S, PROTOCOLS
from heatsoak.telemetry.discovery import open_devices


def cost(cards: int, seconds: int) -> dict[str, float]:
    """Milliseconds per evaluation, of the whole job and per card."""
    devices = open_devices(f"synthetic:rtx-5090x{cards}")
    for device in devices:
        device.start_load(0.0)
    told = [
        (
            [device.read(float(t)) for device in devices],
            sum(device.units_done(float(t)) for device in devices),
        )
        for t in range(1, seconds + 1)
    ]
    never = replace(PROTOCOLS["standard"], hold_s=1e9, timeout_s=1e9)
    judge = Judge(never, [device.info for device in devices])
    began_s = process_time()
    for t, (samples, units) in enumerate(told, 1):
        for sample in samples:
            judge.add_sample(sample)
        judge.add_steps(float(t), units)
        judge.evaluate(float(t))
    ms = 1000.0 * (process_time() - began_s) / (seconds / BIN_S)
    return {"cards": cards, "ms": round(ms, 3), "ms_per_card": round(ms / cards, 3)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cards", default="1,8")
    parser.add_argument("--seconds", type=int, default=3600)
    arguments = parser.parse_args()
    counts = [int(word) for word in arguments.cards.split(",")]
    print(json.dumps({"per_evaluation": [cost(n, arguments.seconds) for n in counts]}, indent=2))


if __name__ == "__main__":
    main()
