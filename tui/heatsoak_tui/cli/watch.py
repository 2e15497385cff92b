"""Watching a run from the command line: the screen, or lines where none can be drawn."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from heatsoak.errors import UsageError
from heatsoak.recorder import client
from heatsoak.session.library import find_session
from heatsoak.session.result import exit_code, load_result
from heatsoak_tui.cli import headless
from heatsoak_tui.cli.narration import say, tell_crashed
from heatsoak_tui.cli.text import print_json, result_text

if TYPE_CHECKING:
    from pathlib import Path


def has_screen() -> bool:
    """Whether a screen can be drawn: a terminal that can move its cursor on all three ends.

    Textual draws on stderr, so one that goes to a file would get the screen.
    """
    terminal = os.environ.get("TERM", "")
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(stream.isatty() for stream in streams) and terminal not in ("", "dumb")


def open_screen() -> int:
    """`heatsoak`: the setup screen."""
    if not has_screen():
        raise UsageError("no terminal for the screen; `heatsoak run --headless` works without one")
    return show(None)


def find_running(reference: str | None) -> client.Running:
    """The run that is meant; None: the only one.

    Raises:
        UsageError: there is no such run going on.
    """
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


def follow(running: client.Running, *, as_json: bool) -> int:
    """Print lines until the run has ended, then its result; returns its exit code."""
    say(f"recording to {running.path}")
    headless.follow(running)
    document = load_result(running.path)
    if as_json:
        print_json(document)
    else:
        print(result_text(document, running.path))
    code = exit_code(document["session"]["state"])
    if code is None:
        raise UsageError(f"{running.path} is still being recorded; `heatsoak attach {running.id}`")
    return code


def show(session: Path | None) -> int:
    """The screen on a session, or on the choice of what to soak."""
    from heatsoak_tui.app import run_app  # textual only when a screen is drawn

    return run_app(session)
