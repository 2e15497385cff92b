"""The words of the command line. Imports nothing heavy."""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, NoReturn

from typing_extensions import override

from heatsoak import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_CODES = """\
exit codes:
  0    steady and frozen, or the command did what it says
  2    wrong usage or bad input
  3    ended without steady state
  4    the workload failed
  5    a device was lost or is unavailable
  130  interrupted: by the user, or because it could not be recorded to its end"""

DEVICES_HELP = (
    "0,2 | NVML UUIDs or their prefixes | all | cpu | synthetic:CARD[xN]; default: the best device"
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of printing the whole usage."""

    @override
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _command(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    """The function, imported only when the command runs."""

    def run(arguments: argparse.Namespace) -> int:
        code: int = getattr(importlib.import_module(module), function)(arguments)
        return code

    return run


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


def build_parser() -> argparse.ArgumentParser:
    """The parser; each command leaves its function in `command`."""
    parser = _Parser(
        prog="heatsoak",
        description="Load training cards with a real workload until they are in thermal steady "
        "state, and freeze what they sustain. Without a command: the screen.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"heatsoak {__version__}")
    parser.set_defaults(command=_command("heatsoak_tui.cli.run", "open_screen"))
    commands = parser.add_subparsers(metavar="COMMAND")
    _add_run(commands)
    _add_sessions(commands)
    _add_lists(commands)
    return parser


def _add_run(commands: argparse._SubParsersAction[_Parser]) -> None:
    run = commands.add_parser(
        "run", help="soak devices until steady", epilog=EXIT_CODES, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    run.set_defaults(command=_command("heatsoak_tui.cli.run", "run"))
    run.add_argument("-w", "--workload", help="name as `heatsoak workloads` lists it")
    run.add_argument("-d", "--devices", help=DEVICES_HELP)
    run.add_argument(
        "--protocol", default="standard", help="smoke, quick, standard (default) or extended"
    )
    recipe = run.add_argument_group("recipe (defaults: `heatsoak workloads`)")
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
    how = run.add_argument_group("how")
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

    attach = commands.add_parser("attach", help="the screen on a run that is going on")
    attach.set_defaults(command=_command("heatsoak_tui.cli.run", "attach"))
    attach.add_argument("session", nargs="?", help="id, name or file; default: the only run")
    attach.add_argument("--headless", action="store_true", help="lines instead of the screen")

    stop = commands.add_parser("stop", help="end a run cleanly")
    stop.set_defaults(command=_command("heatsoak_tui.cli.run", "stop"))
    stop.add_argument("session", nargs="?", help="id, name or file; default: the only run")


def _add_sessions(commands: argparse._SubParsersAction[_Parser]) -> None:
    sessions = commands.add_parser("sessions", help="list the recorded sessions")
    sessions.set_defaults(command=_command("heatsoak_tui.cli.show", "sessions"))
    sessions.add_argument("--json", action="store_true")

    result = commands.add_parser("result", help="what a session found")
    result.set_defaults(command=_command("heatsoak_tui.cli.show", "result"))
    result.add_argument("session", help="session file, id or name")
    result.add_argument("--json", action="store_true", help="heatsoak-result/1")

    judge = commands.add_parser(
        "judge", help="what the judge says of logs and sessions, as if live", allow_abbrev=False
    )
    judge.set_defaults(command=_command("heatsoak_tui.cli.show", "judge"))
    judge.add_argument("files", nargs="+", metavar="FILE", help="session, or CSV log with t_s")
    judge.add_argument("--protocol", help="default: the session's own; standard for a log")
    judge.add_argument("--json", action="store_true", help="one JSON object a device and line")


def _add_lists(commands: argparse._SubParsersAction[_Parser]) -> None:
    for name, text in (
        ("devices", "what can be measured on this machine"),
        ("workloads", "what can be trained, with sizes and defaults"),
    ):
        command = commands.add_parser(name, help=text)
        command.set_defaults(command=_command("heatsoak_tui.cli.show", name))
        command.add_argument("--json", action="store_true")
