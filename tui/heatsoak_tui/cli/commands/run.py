"""`heatsoak run`: soak devices until they are steady."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak_tui.cli.exit_codes import EXIT_CODES

if TYPE_CHECKING:
    from heatsoak.recorder.plan import Plan

ORDER = 10
HELP = "soak devices until steady"

DEVICES_HELP = (
    "0,2 (as nvidia-smi counts, not CUDA) | UUIDs of cards or MIG slices, or their beginnings | "
    "all | cpu | synthetic:CARD[xN]; CUDA_VISIBLE_DEVICES is respected; default: the best device"
)
RECIPE_OPTIONS = (
    "size", "context", "micro_batch", "accumulate", "precision", "attention", "compile",
    "optimizer",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.epilog = EXIT_CODES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-w", "--workload", help="name as `heatsoak workloads` lists it")
    parser.add_argument("-d", "--devices", help=DEVICES_HELP)
    parser.add_argument(
        "--protocol", default="standard", help="smoke, quick, standard (default) or extended"
    )
    recipe = parser.add_argument_group("recipe (defaults: `heatsoak workloads`)")
    recipe.add_argument("--size", help="size preset; default: the largest that fits the device")
    recipe.add_argument("--context", type=int, metavar="TOKENS", help="tokens a sequence")
    recipe.add_argument("--micro-batch", type=int, metavar="N", help="examples a forward pass")
    recipe.add_argument("--accumulate", type=int, metavar="N", help="forward passes a step")
    recipe.add_argument("--precision", help="bf16, fp16, tf32 or fp32")
    recipe.add_argument("--attention", help="auto, flash, cudnn, efficient or math")
    recipe.add_argument("--compile", action="store_true", default=None, help="use torch.compile")
    recipe.add_argument("--checkpointing", choices=("on", "off"), help="recompute activations")
    recipe.add_argument("--optimizer", help="such as adamw")
    recipe.add_argument(
        "--set", action="append", type=_setting, default=[], metavar="KEY=VALUE", dest="settings",
        help="another option of the workload",
    )  # fmt: skip
    how = parser.add_argument_group("how")
    how.add_argument("--headless", action="store_true", help="lines instead of the screen")
    how.add_argument("--json", action="store_true", help="print the result as JSON; headless")
    how.add_argument("--detach", action="store_true", help="start it, print its file, and leave")
    how.add_argument("--out", metavar="FILE", help="session file; default: the sessions folder")
    how.add_argument("--force", action="store_true", help="replace FILE if it exists")
    how.add_argument("--name", metavar="TEXT", help="what you call this session")
    how.add_argument(
        "--speed", type=_positive, default=1.0, metavar="X",
        help="times real time; synthetic devices only",
    )  # fmt: skip
    how.add_argument("--seed", type=int, default=1, metavar="N", help="random seed")


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value")
    return key, value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Start the run, then watch it."""
    from heatsoak.recorder import client
    from heatsoak_tui.cli.narration import say
    from heatsoak_tui.cli.watch import follow, has_screen, show

    running = client.start(plan_of(arguments))
    for notice in running.notices:
        say(notice)
    if arguments.detach:
        say(f"recording; `heatsoak attach {running.id}` shows it")
        print(
            json.dumps({"id": running.id, "session": str(running.path), "pid": running.pid})
            if arguments.json
            else running.path
        )
        return 0
    if arguments.headless or arguments.json or not has_screen():
        return follow(running, as_json=arguments.json)
    return show(running.path)


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan of the command line; nothing is checked here, the recorder's client does."""
    from heatsoak.recorder.plan import Plan
    from heatsoak.telemetry.discovery import best_device

    recipe: dict[str, Any] = {
        key: value for key in RECIPE_OPTIONS if (value := getattr(arguments, key)) is not None
    }
    if arguments.checkpointing is not None:
        recipe["checkpointing"] = arguments.checkpointing == "on"
    if arguments.settings:
        recipe["settings"] = dict(arguments.settings)
    return Plan(
        devices=arguments.devices if arguments.devices is not None else best_device(),
        workload=arguments.workload,
        recipe=recipe,
        protocol=arguments.protocol,
        out=None if arguments.out is None else str(Path(arguments.out).absolute()),
        force=arguments.force,
        speed=arguments.speed,
        seed=arguments.seed,
        name=arguments.name,
    )
