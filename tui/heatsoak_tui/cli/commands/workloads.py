"""`heatsoak workloads`: what can be trained, with sizes and defaults."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

ORDER = 61
HELP = "what can be trained, with sizes and defaults"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--json", action="store_true")


def run(arguments: argparse.Namespace) -> int:
    """List every workload."""
    from heatsoak.launch import catalog
    from heatsoak_tui.cli.text import print_json, workloads_text

    rows = [asdict(workload) for workload in catalog.workloads().values()]
    problem = catalog.training_problem()
    if arguments.json:
        print_json({"schema": "heatsoak-workloads/1", "workloads": rows, "problem": problem})
    else:
        print(workloads_text(rows, problem))
    return 0
