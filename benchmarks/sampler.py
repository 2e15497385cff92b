"""What sampling costs beside a bare pynvml loop: paired and alternating within one process.

    .venv/bin/python benchmarks/sampler.py [--blocks 40] [--cards 8] [--period 0.1] [--segment 3]

Both read the same fields of the same emulated cards (constant answers: a real driver takes longer,
which both would pay for). The bare loop is one thread that calls the functions and drops what they
answer; the sampler is the one of a run: a thread a card, checked and stamped readings in a queue,
emptied once a second. What is compared is the CPU time of the whole process a round of readings;
the period is shorter than in a run only so that a measurement does not take hours. Prints one JSON
object: the sampler's CPU time over the bare loop's, the median over the blocks with its 95 %
interval, and the milliseconds of both.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from monitor_tax import interval

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from heatsoak.telemetry.sampler import DeviceFault
    from heatsoak.telemetry.vendors.nvidia import NvidiaDevice

EMULATOR = Path(__file__).resolve().parents[1] / "tests" / "nvml_emulator" / "emulator.py"
CARD = """
card {n} name NVIDIA GeForce RTX 5090
card {n} uuid GPU-50900000-0000-4000-8000-00000000000{n}
card {n} bus 00000000:{n}1:00.0
card {n} nvmlDeviceGetPowerUsage 541250
card {n} field:185 541250
card {n} field:186 543000
card {n} field:82 84
card {n} nvmlDeviceGetTotalEnergyConsumption 9876543210
card {n} nvmlDeviceGetTemperature:0 71
card {n} nvmlDeviceGetTemperatureThreshold:3 90
card {n} nvmlDeviceGetClockInfo:1 2407
card {n} nvmlDeviceGetClockInfo:2 13801
card {n} nvmlDeviceGetUtilizationRates 99
card {n} nvmlDeviceGetMemoryInfo_v2:0 34190917632
card {n} nvmlDeviceGetMemoryInfo_v2:1 20000000000
card {n} nvmlDeviceGetNumFans 2
card {n} nvmlDeviceGetFanSpeed_v2:0 54
card {n} nvmlDeviceGetFanSpeed_v2:1 61
card {n} nvmlDeviceGetEnforcedPowerLimit 575000
card {n} nvmlDeviceGetCurrentClocksEventReasons 0x4
card {n} nvmlDeviceGetCurrPcieLinkGeneration 5
card {n} nvmlDeviceGetCurrPcieLinkWidth 16
card {n} nvmlDeviceGetPerformanceState 1
"""
INSIDE = "HEATSOAK_BENCHMARK_INSIDE"
FANS = 2


def bare_calls(nvml: ModuleType, handle: object) -> dict[str, Callable[[], object]]:
    """Each reading by its plain call; those of one query of field values share it."""
    return {
        "power_w": partial(nvml.nvmlDeviceGetPowerUsage, handle),
        "power_instant_w": partial(nvml.nvmlDeviceGetFieldValues, handle, [(186, 0), (82, 0)]),
        "energy_j": partial(nvml.nvmlDeviceGetTotalEnergyConsumption, handle),
        "temperature_c": partial(nvml.nvmlDeviceGetTemperature, handle, 0),
        "sm_clock_mhz": partial(nvml.nvmlDeviceGetClockInfo, handle, 1),
        "mem_clock_mhz": partial(nvml.nvmlDeviceGetClockInfo, handle, 2),
        "utilization_pct": partial(nvml.nvmlDeviceGetUtilizationRates, handle),
        "memory_used_bytes": partial(nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2),
        **{
            f"fan {fan}": partial(nvml.nvmlDeviceGetFanSpeed_v2, handle, fan) for fan in range(FANS)
        },
        "power_limit_w": partial(nvml.nvmlDeviceGetEnforcedPowerLimit, handle),
        "throttle_reasons": partial(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle),
        "pcie_gen": partial(nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
        "pcie_width": partial(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        "pstate": partial(nvml.nvmlDeviceGetPerformanceState, handle),
    }


def check_same_fields(devices: list[NvidiaDevice], calls: dict[str, Callable[[], object]]) -> None:
    """See that both read the same."""
    from heatsoak.telemetry.sample import READINGS

    sample = devices[0].read(0.0)
    ours = {name for name in READINGS if getattr(sample, name) is not None}
    bare = {"fan_pct" if name.startswith("fan ") else name for name in calls}
    bare.add("memory_temperature_c")  # comes with the instant power
    if ours != bare:
        sys.exit(f"the two do not read the same: {sorted(ours ^ bare)}")


def run_bare(calls: list[Callable[[], object]], period_s: float, rounds: int) -> float:
    """CPU seconds a round of the bare loop."""
    start_s, before_s = time.monotonic(), time.process_time()
    for tick in range(1, rounds + 1):
        for call in calls:
            call()
        time.sleep(max(0.0, start_s + tick * period_s - time.monotonic()))
    return (time.process_time() - before_s) / rounds


def run_sampler(devices: list[NvidiaDevice], period_s: float, rounds: int) -> float:
    """CPU seconds a round of the sampler, the emptying of its queue included."""
    from heatsoak.clock import SessionClock
    from heatsoak.telemetry.sampler import DeviceFault, Sampler

    sampler = Sampler(devices, SessionClock(), period_s)
    before_s = time.process_time()
    sampler.start()
    count = 0
    faults: list[DeviceFault] = []
    end_s = time.monotonic() + rounds * period_s
    while time.monotonic() < end_s:
        time.sleep(min(1.0, max(0.0, end_s - time.monotonic())))
        try:
            while True:
                reading = sampler.readings.get_nowait()
                if isinstance(reading, DeviceFault):
                    faults.append(reading)
                count += 1
        except queue.Empty:
            pass
    used_s = time.process_time() - before_s
    sampler.stop()
    if faults or not 0.9 < count / (rounds * len(devices)) < 1.1:
        sys.exit(f"{count} readings in {rounds} rounds of {len(devices)} cards: {faults}")
    return used_s * len(devices) / count


def measure(arguments: argparse.Namespace) -> None:
    """Measure and print; the emulated library is in this process."""
    import pynvml  # noqa: TID251 - what is compared with

    from heatsoak.telemetry.vendors.nvidia import NvidiaDevice

    devices = [NvidiaDevice(index) for index in range(arguments.cards)]
    handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(arguments.cards)]
    check_same_fields(devices, bare_calls(pynvml, handles[0]))
    calls = [call for handle in handles for call in bare_calls(pynvml, handle).values()]
    rounds = max(1, round(arguments.segment / arguments.period))
    kinds = {
        "bare": partial(run_bare, calls, arguments.period, rounds),
        "sampler": partial(run_sampler, devices, arguments.period, rounds),
    }
    cost_s: dict[str, list[float]] = {name: [] for name in kinds}
    for block in range(arguments.blocks + 1):
        for name in kinds if block % 2 == 0 else reversed(kinds):
            used_s = kinds[name]()
            if block:  # the first warms up
                cost_s[name].append(used_s)
        print(f"block {block} of {arguments.blocks}", file=sys.stderr)
    pairs = zip(cost_s["sampler"], cost_s["bare"], strict=True)
    report = {
        "cards": arguments.cards,
        "period_s": arguments.period,
        "blocks": arguments.blocks,
        "rounds_per_block": rounds,
        "cpu_time": interval([ours / bare for ours, bare in pairs]),
        "ms_per_round": {
            name: round(1000 * statistics.median(values), 3) for name, values in cost_s.items()
        },
    }
    print(json.dumps(report, indent=2))


def main() -> None:
    """Compile the emulator and measure in a process that has it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=40)
    parser.add_argument("--cards", type=int, default=8)
    parser.add_argument("--period", type=float, default=0.1, metavar="SECONDS")
    parser.add_argument("--segment", type=float, default=3.0, metavar="SECONDS")
    arguments = parser.parse_args()
    if INSIDE in os.environ:
        measure(arguments)
        return
    spec = importlib.util.spec_from_file_location("nvml_emulator", EMULATOR)
    if spec is None or spec.loader is None:
        sys.exit(f"there is no {EMULATOR}")
    emulator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(emulator)
    with tempfile.TemporaryDirectory() as folder:
        nvml = emulator.Nvml(emulator.Libraries(Path(folder)), Path(folder))
        nvml.tell("".join(CARD.format(n=n) for n in range(arguments.cards)))
        environment = {**os.environ, **nvml.environment, INSIDE: "1"}
        done = subprocess.run([sys.executable, *sys.argv], env=environment, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
