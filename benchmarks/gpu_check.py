"""What holds on a real NVIDIA card: doctor, a short soak of each workload, nvidia-smi beside ours.

    make gpu-check [PYTHON=python3] [OUT=gpu-check.json] [WHEELS=folder]

Installs nothing and changes nothing: it takes the Python, torch and Lightning that are there; what
else is missing may lie as wheels in a folder, which are unpacked beside the run. Under 8 minutes:
45 seconds of training a workload. Writes one small JSON.

Exit codes: 0 all of it holds, or there is no NVIDIA card here and nothing to check; 1 something did
not hold, the JSON says what; 2 this Python lacks something; 5 there is a card or a driver, and it
cannot be used.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = tuple(str(ROOT / name) for name in ("engine", "tui", "workloads"))
TOTAL_S = 8 * 60.0 - 15.0
"""All of it together, with a little left for the end."""
TRAIN_S = 45.0
"""Of one workload, from its first counted step."""
START_S = 75.0
"""Within which a workload must have counted its first step: importing, building, compiling."""
TAIL_S = 20.0
"""The last part of a training, over which the figures are taken."""
LEAST_TORCH = (2, 6)
MODULES = {
    "torch": "torch 2.6 or newer", "lightning": "lightning", "pynvml": "nvidia-ml-py",
    "numpy": "numpy", "psutil": "psutil", "yaml": "pyyaml",
    "typing_extensions": "typing-extensions",
}  # fmt: skip
NOT_REPORTED = ("", "-", "N/A", "[N/A]", "[Not Supported]", "[Unknown Error]", "ERR!")

WITHOUT_CARD = ("finds no card", "kernel driver is not loaded")
"""What NVML says where there is no card on the bus either."""

EXACT = {
    "uuid": "uuid", "name": "name", "driver_version": "driver_version",
    "vbios_version": "vbios", "compute_cap": "compute_capability",
    "pcie.link.gen.max": "pcie_gen_max", "pcie.link.width.max": "pcie_width_max",
}  # fmt: skip
"""Field of nvidia-smi and of DeviceInfo, which must be the same."""
FLAGS = {"persistence_mode": "persistence", "ecc.mode.current": "ecc_is_on"}
NUMBERS = {
    "memory.total": ("memory_total_bytes", 1 / 2**20, 1.0),
    "power.limit": ("power_limit_w", 1.0, 0.1),
    "power.default_limit": ("power_limit_default_w", 1.0, 0.1),
}  # fmt: skip
"""Field of nvidia-smi: field of DeviceInfo, its factor to nvidia-smi's unit, and how far off."""
MOVING = {
    "temperature.gpu": ("temperature_c", 1.0, 3.0),
    "power.draw": ("power_w", 1.0, 15.0),
    # What the driver reserves counts as used here, and not in nvidia-smi: half a GiB, as a rule.
    "memory.used": ("memory_used_bytes", 1 / 2**20, 1024.0),
}  # fmt: skip
"""The same of a reading, which must lie near the two readings taken around it."""


def say(text: str) -> None:
    """One line of narration."""
    print(f"gpu-check: {text}", file=sys.stderr, flush=True)


def main() -> int:
    """Check what can be checked; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("gpu-check.json"))
    parser.add_argument("--wheels", type=Path, help="folder of wheels for what is missing")
    parser.add_argument("--seconds", type=float, default=TRAIN_S, help="of training a workload")
    parser.add_argument("--workloads", help="names, comma-separated; none: no soak at all")
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036 - whatever Python is there may run this
        say(f"needs Python 3.11 or newer, this is {sys.version.split()[0]}; set PYTHON=...")
        return 2
    if not has_card() and not has_library():
        say("no NVIDIA card here: none on the PCI bus, and no driver's library; nothing to check")
        return 0
    with tempfile.TemporaryDirectory(prefix="heatsoak-gpu-check-") as folder:
        take_wheels(arguments.wheels, Path(folder) / "wheels")
        missing = problems_of_python()
        if missing:
            say(f"{sys.executable} lacks {', '.join(missing)}; set PYTHON=..., or WHEELS=folder")
            return 2
        return check(arguments, Path(folder))


def has_card() -> bool:
    """Whether the kernel lists an NVIDIA card."""
    for device in Path("/sys/bus/pci/devices").glob("*"):
        with suppress(OSError):
            is_display = (device / "class").read_text().startswith("0x03")
            if is_display and (device / "vendor").read_text().strip() == "0x10de":
                return True
    return False


def has_library() -> bool:
    """Whether the driver's library can be loaded (WSL has no card on a bus)."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def take_wheels(wheels: Path | None, where: Path) -> None:
    """Unpack the wheels of a folder, behind everything that is there already."""
    where.mkdir()
    for wheel in sorted(wheels.glob("*.whl")) if wheels is not None else []:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(where)
    sys.path[:0] = SOURCES
    sys.path.append(str(where))
    kept = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    paths = dict.fromkeys([*SOURCES, *kept, str(where)])
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)


def problems_of_python() -> list[str]:
    """What is not installed, or too old, by the name of its package."""
    missing = [name for module, name in MODULES.items() if importlib.util.find_spec(module) is None]
    if "torch 2.6 or newer" not in missing:
        from heatsoak.doctor.stack import installed_stack, version_pair

        torch = installed_stack().torch
        if (version_pair(torch) or LEAST_TORCH) < LEAST_TORCH:
            missing.append(f"torch 2.6 or newer (it has {torch})")
    return missing


def check(arguments: argparse.Namespace, folder: Path) -> int:
    """Everything that needs a card."""
    from heatsoak.clock import now_utc
    from heatsoak.telemetry.discovery import best_device, nvidia_problem

    problem = nvidia_problem()
    if problem is not None:
        # A library alone, as in an image built for machines with and without cards, is no defect.
        is_here = has_card() or not any(words in problem for words in WITHOUT_CARD)
        what = "the NVIDIA card here cannot be used" if is_here else "no NVIDIA card here"
        say(f"{what}: {problem}")
        return 5 if is_here else 0
    start_s = time.monotonic()
    device = best_device()
    document = {"schema": "heatsoak-gpu-check/1", "created_utc": now_utc(), "device": device}
    document |= run_doctor(device)
    document["nvidia_smi"] = compare()
    document["workloads"] = [
        soak(name, device, folder, arguments.seconds, start_s + TOTAL_S)
        for name in chosen(arguments.workloads)
    ]
    document["seconds"] = round(time.monotonic() - start_s, 1)
    failed = failures(document)
    document = {"holds": not failed, "failed": failed} | document
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")
    for text in failed:
        say(text)
    say(f"{'something does not hold' if failed else 'all of it holds'}: {arguments.out}")
    return 1 if failed else 0


def run_doctor(device: str) -> dict:
    """What doctor finds and measures on the card that is soaked."""
    from dataclasses import asdict

    from heatsoak.doctor import environment, examine, look
    from heatsoak.doctor.finding import counts, problems

    machine = look(device, is_measured=True, say=say)
    findings = examine(machine)
    return {
        "doctor": {
            "counts": counts(findings),
            "problems": [asdict(finding) for finding in problems(findings)],
            "not_known": [f"{f.title}: {f.text}" for f in findings if f.is_unknown],
        },
        "environment": environment(machine, ()),
    }


# -- against nvidia-smi ---------------------------------------------------------------------------


def compare() -> dict:
    """What nvidia-smi, started once, says of the cards, beside what pynvml says."""
    from heatsoak.telemetry.discovery import discover, open_devices

    names = [*EXACT, *FLAGS, *NUMBERS, *MOVING]
    command = ["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits"]
    cards = [info for info in discover() if info.kind == "nvidia" and not info.mig_parent_uuid]
    say(f"comparing {len(cards)} card(s) with nvidia-smi")
    devices = [open_devices(info.device_id, is_only_read=True)[0] for info in cards]
    try:
        before = [device.read(0.0) for device in devices]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        after = [device.read(0.0) for device in devices]
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"compared": 0, "differences": [], "problem": f"nvidia-smi does not run: {error}"}
    finally:
        for device in devices:
            device.close()
    if done.returncode != 0:
        words = (done.stdout + done.stderr).strip().splitlines()[:1]
        return {"compared": 0, "differences": [], "problem": f"nvidia-smi failed: {words}"}
    compared, differences = 0, []
    rows = {row[0].strip(): row for row in csv.reader(io.StringIO(done.stdout)) if row}
    for info, *readings in zip(cards, before, after, strict=True):
        row = rows.get(info.uuid)
        if row is None:
            differences.append({"device": info.device_id, "field": "uuid", "ours": info.uuid,
                                "nvidia_smi": sorted(rows)})  # fmt: skip
            continue
        said = dict(zip(names, (cell.strip() for cell in row), strict=True))
        for name, text in said.items():
            ours, agrees = verdict(name, None if text in NOT_REPORTED else text, info, readings)
            compared += 1
            if not agrees:
                differences.append(
                    {"device": info.device_id, "field": name, "ours": ours, "nvidia_smi": text}
                )
    return {"compared": compared, "differences": differences, "problem": None}


def verdict(name: str, text: str | None, info: object, readings: list) -> tuple[object, bool]:
    """Our value of a field, and whether it agrees with nvidia-smi's."""
    if name in EXACT:
        ours = getattr(info, EXACT[name])
        return ours, text is None or ours is None or str(ours) == text
    if name in FLAGS:
        ours = getattr(info, FLAGS[name])
        return ours, (ours is None) == (text is None) and (
            ours is None or ours == (text == "Enabled")
        )
    field, factor, off = NUMBERS.get(name) or MOVING[name]
    found = [getattr(one, field) for one in (readings if name in MOVING else [info])]
    values = [value * factor for value in found if value is not None]
    if not values or text is None:
        return None, not values and text is None
    return values, min(values) - off <= float(text) <= max(values) + off


# -- the workloads --------------------------------------------------------------------------------


def chosen(names: str | None) -> list[str]:
    """The workloads to soak: all that run on NVIDIA cards, or those that were named."""
    from heatsoak.launch.catalog import workloads

    if names is not None:
        return [name for name in names.split(",") if name and name != "none"]
    return [name for name, info in workloads().items() if "nvidia" in info.kinds]


def soak(name: str, device: str, folder: Path, seconds: float, until_s: float) -> dict:
    """One workload under protocol smoke, ended by its own clock."""
    from heatsoak.errors import HeatsoakError
    from heatsoak.recorder import client
    from heatsoak.recorder.plan import Plan

    left_s = until_s - time.monotonic()
    if left_s < seconds:
        return {"workload": name, "failure": f"left out: only {left_s:.0f} s were left"}
    say(f"soaking {name} on {device} for {seconds:.0f} s")
    path = folder / f"{name}.heatsoak"
    begun_s = time.monotonic()
    try:
        run = client.start(Plan(device, workload=name, protocol="smoke", out=str(path)))
    except HeatsoakError as error:
        return {"workload": name, "failure": str(error)}
    first_s = None
    try:
        while client.is_alive(run):
            now_s = time.monotonic()
            with suppress(HeatsoakError):
                job = client.status(run)["jobs"][0]
                if first_s is None and job["units_done"]:
                    first_s = now_s
            is_late = first_s is None and now_s - begun_s > START_S
            if is_late or now_s > until_s or (first_s is not None and now_s - first_s >= seconds):
                break
            time.sleep(0.5)
        if client.is_alive(run):
            client.stop(run)
            client.wait_ended(run, 30.0)
    finally:
        if client.is_alive(run):
            client.kill(run)
            with suppress(HeatsoakError):
                client.wait_ended(run, 30.0)
    return figures(name, path) | {"start_s": first_s and round(first_s - begun_s, 1)}


def figures(name: str, path: Path) -> dict:
    """What a workload did in the last seconds of its training; never a sustained result."""
    from heatsoak.session.result import load_result
    from heatsoak.session.tail import Tail

    result, batch = load_result(path), Tail(path).poll()
    session, (job, *_) = result["session"], result["jobs"]
    steps = batch.steps if batch is not None else ()
    tail = [row for row in steps if row.t_s >= steps[-1].t_s - TAIL_S]
    rate, means = None, {}
    if len(tail) > 1 and tail[-1].t_s - tail[0].t_s > TAIL_S / 2:
        rate = (tail[-1].units_done - tail[0].units_done) / (tail[-1].t_s - tail[0].t_s)
        for reading in ("power_w", "temperature_c", "sm_clock_mhz", "utilization_pct"):
            values = [
                value for sample in batch.samples
                if tail[0].t_s <= sample.t_s <= tail[-1].t_s
                and (value := getattr(sample, reading)) is not None
            ]  # fmt: skip
            means[reading] = sum(values) / len(values) if values else None
    failure = None
    if session["state"] in ("failed", "lost"):
        failure = session["end_reason"]
    elif rate is None:
        failure = f"it did not train for {TAIL_S / 2:.0f} s: {session['end_reason']}"
    return {
        "workload": name, "failure": failure, "state": session["state"], "unit": job["unit"],
        "recipe": job["recipe"], "facts": job["facts"], "rate_per_s": rate, **means,
        "losses": [row.loss for row in steps if row.loss is not None][-1:],
        "sensors": result["devices"][0]["sensors"], "missing": result["devices"][0]["missing"],
        "warnings": result["warnings"],
    }  # fmt: skip


def failures(document: dict) -> list[str]:
    """What did not hold, a sentence each."""
    found = [f["text"] for f in document["doctor"]["problems"] if f["severity"] == "error"]
    against = document["nvidia_smi"]
    if against["problem"]:
        found.append(against["problem"])
    found += [
        f"card {d['device']}: {d['field']} is {d['ours']} here and {d['nvidia_smi']} in nvidia-smi"
        for d in against["differences"]
    ]
    found += [f"{w['workload']}: {w['failure']}" for w in document["workloads"] if w["failure"]]
    return found


if __name__ == "__main__":
    sys.exit(main())
