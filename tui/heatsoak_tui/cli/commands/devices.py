"""`heatsoak devices`: what can be measured on this machine, each with one reading."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from heatsoak.telemetry.device import Device

ORDER = 60
HELP = "what can be measured on this machine"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """List every device."""
    from heatsoak.telemetry import discovery
    from heatsoak_tui.cli.text import devices_text, print_json

    rows = []
    for info in discovery.discover():
        (device,) = discovery.open_devices(info.device_id, is_only_read=True)
        rows.append(asdict(device.info) | {"reading": _reading(device)})
        device.close()
    problem = discovery.nvidia_problem()
    if arguments.json:
        print_json({"schema": "heatsoak-devices/1", "devices": rows, "nvidia_problem": problem})
    else:
        print(devices_text(rows, problem))
    return 0


def _reading(device: Device) -> dict[str, Any] | None:
    from heatsoak.telemetry.device import DeviceLostError, DeviceReadError
    from heatsoak_tui.cli.narration import say

    try:
        reading = asdict(device.read(0.0))
    except (DeviceLostError, DeviceReadError) as error:
        say(f"{device.info.device_id}: {error}")
        return None
    return {key: value for key, value in reading.items() if key not in ("t_s", "device_id")}
