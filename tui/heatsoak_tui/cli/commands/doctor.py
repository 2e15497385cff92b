"""`heatsoak doctor`: what on this machine would spoil a measurement, why, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 55
HELP = "what on this machine would spoil a measurement"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    from heatsoak_tui.cli.commands.run import DEVICES_HELP

    parser.description = (
        "Look at this machine: driver, PyTorch, cards, settings, other programs, disk. Changes "
        "nothing. Exit code 5 when a device that was asked for cannot be used; without -d that is "
        "the one `heatsoak run` would take."
    )
    parser.add_argument("-d", "--devices", help=DEVICES_HELP.replace("default: the best device",
                        "default: all that are awake"))  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true",
        help="only look: no kernel, no copies, no file read; a second instead of up to minutes",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """Look, and say what was seen."""
    from dataclasses import asdict

    from heatsoak.doctor import environment, examine, look
    from heatsoak.doctor.finding import counts
    from heatsoak.errors import DeviceUnavailableError
    from heatsoak_tui.cli.doctor_text import doctor_text
    from heatsoak_tui.cli.narration import say
    from heatsoak_tui.cli.text import print_json

    machine = look(arguments.devices, is_measured=not arguments.quick, say=say)
    findings = examine(machine)
    is_usable = all(finding.severity != "error" for finding in findings)
    if arguments.json:
        print_json(
            {
                "schema": "heatsoak-doctor/1",
                "is_usable": is_usable,
                "counts": counts(findings),
                "findings": [asdict(finding) for finding in findings],
                "environment": environment(machine, findings),
            }
        )
    else:
        print(doctor_text(findings))
    return 0 if is_usable else DeviceUnavailableError.exit_code
