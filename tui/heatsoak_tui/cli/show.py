"""Commands that only read: `devices`, `workloads`, `sessions`, `result`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.launch.catalog import training_problem
from heatsoak.launch.catalog import workloads as all_workloads
from heatsoak.session.library import find_session, list_sessions
from heatsoak.session.rejudge import judge_file
from heatsoak.session.result import load_result
from heatsoak.telemetry import discovery
from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
from heatsoak_tui.cli.narration import say, tell_crashed
from heatsoak_tui.cli.text import (
    devices_text,
    result_text,
    sessions_text,
    verdict_text,
    workloads_text,
)

if TYPE_CHECKING:
    import argparse

    from heatsoak.telemetry.device import Device


def devices(arguments: argparse.Namespace) -> int:
    """`heatsoak devices`: every device with one reading."""
    rows = []
    for info in discovery.discover():
        (device,) = discovery.open_devices(info.device_id)
        rows.append(asdict(device.info) | {"reading": _reading(device)})
        device.close()
    problem = discovery.nvidia_problem()
    if arguments.json:
        _print_json({"schema": "heatsoak-devices/1", "devices": rows, "nvidia_problem": problem})
    else:
        print(devices_text(rows, problem))
    return 0


def _reading(device: Device) -> dict[str, Any] | None:
    try:
        reading = asdict(device.read(0.0))
    except (DeviceLostError, DeviceReadError) as error:
        say(f"{device.info.device_id}: {error}")
        return None
    return {key: value for key, value in reading.items() if key not in ("t_s", "device_id")}


def workloads(arguments: argparse.Namespace) -> int:
    """`heatsoak workloads`: what can be trained."""
    rows = [asdict(workload) for workload in all_workloads().values()]
    problem = training_problem()
    if arguments.json:
        document = {"schema": "heatsoak-workloads/1", "workloads": rows, "problem": problem}
        _print_json(document)
    else:
        print(workloads_text(rows, problem))
    return 0


def sessions(arguments: argparse.Namespace) -> int:
    """`heatsoak sessions`: the sessions folder, newest first."""
    tell_crashed()
    rows = [asdict(summary) for summary in list_sessions()]
    if arguments.json:
        _print_json({"schema": "heatsoak-sessions/1", "sessions": rows})
    else:
        print(sessions_text(rows))
    return 0


def result(arguments: argparse.Namespace) -> int:
    """`heatsoak result`: what one session found."""
    tell_crashed()
    path = find_session(arguments.session)
    document = load_result(path)
    if arguments.json:
        _print_json(document)
    else:
        print(result_text(document, path))
    return 0


def judge(arguments: argparse.Namespace) -> int:
    """`heatsoak judge`: one line a file and device; a file that cannot be read costs code 2."""
    code = 0
    for file in arguments.files:
        try:
            for line in judge_file(Path(file), arguments.protocol):
                print(json.dumps(line) if arguments.json else verdict_text(line), flush=True)
        except UsageError as error:
            say(f"heatsoak: {error}")
            code = error.exit_code
    return code


def _print_json(document: dict[str, Any]) -> None:
    json.dump(document, sys.stdout, indent=2, default=str)
    print()
