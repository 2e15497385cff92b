"""`heatsoak`, `run`, `attach` and `stop`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsoak.errors import UsageError
from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan
from heatsoak.session.library import find_session
from heatsoak.session.result import exit_code, load_result
from heatsoak.telemetry.discovery import best_device
from heatsoak_tui.cli import headless
from heatsoak_tui.cli.narration import say, tell_crashed
from heatsoak_tui.cli.text import result_text

if TYPE_CHECKING:
    import argparse

RECIPE_OPTIONS = (
    "size", "context", "micro_batch", "accumulate", "precision", "attention", "compile",
    "optimizer",
)  # fmt: skip


def has_screen() -> bool:
    """Whether a screen can be drawn: a terminal that can move its cursor on all three ends.

    Textual draws on stderr, so one that goes to a file would get the screen.
    """
    terminal = os.environ.get("TERM", "")
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and terminal not in ("", "dumb")


def open_screen(_: argparse.Namespace) -> int:
    """`heatsoak`: the setup screen."""
    if not has_screen():
        raise UsageError("no terminal for the screen; `heatsoak run --headless` works without one")
    return _screen(None)


def run(arguments: argparse.Namespace) -> int:
    """`heatsoak run`."""
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
        return _follow(running, as_json=arguments.json)
    return _screen(running.path)


def attach(arguments: argparse.Namespace) -> int:
    """`heatsoak attach`."""
    running = _find_running(arguments.session)
    if arguments.headless or not has_screen():
        return _follow(running, as_json=False)
    return _screen(running.path)


def stop(arguments: argparse.Namespace) -> int:
    """`heatsoak stop`."""
    running = _find_running(arguments.session)
    client.stop(running)
    client.wait_ended(running)
    print(f"stopped {running.id}; {running.path}")
    return 0


def _find_running(reference: str | None) -> client.Running:
    tell_crashed()
    try:
        return client.find_running(reference)
    except UsageError:
        if reference is None:
            raise
        try:
            state = load_result(find_session(reference))["session"]["state"]
        except UsageError:
            state = None  # No session either: that no such run is going on says it all.
        if state in (None, "recording"):
            raise
        raise UsageError(
            f"{reference} has ended ({state}); `heatsoak result {reference}` shows what it found"
        ) from None


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan of the command line; nothing is checked here, the recorder's client does."""
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


def _follow(running: client.Running, *, as_json: bool) -> int:
    say(f"recording to {running.path}")
    headless.follow(running)
    document = load_result(running.path)
    if as_json:
        json.dump(document, sys.stdout, indent=2)
        print()
    else:
        print(result_text(document, running.path))
    code = exit_code(document["session"]["state"])
    if code is None:
        raise UsageError(f"{running.path} is still being recorded; `heatsoak attach {running.id}`")
    return code


def _screen(session: Path | None) -> int:
    from heatsoak_tui.app import run_app  # textual only when a screen is drawn

    return run_app(session)
