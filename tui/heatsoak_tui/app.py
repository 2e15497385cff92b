"""The screen as a whole: which screens there are, colours, and leaving the terminal as it was."""

from __future__ import annotations

import os
import select
import signal
import sqlite3
import sys
import termios
import threading
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.theme import Theme
from typing_extensions import override

from heatsoak.errors import UsageError
from heatsoak.profiles.files import read_yaml, user_folder
from heatsoak.session.result import exit_code
from heatsoak.session.tail import Tail
from heatsoak_tui.format import number
from heatsoak_tui.run_view import RunView
from heatsoak_tui.screens.base import Blank
from heatsoak_tui.screens.control import Control
from heatsoak_tui.screens.live import LiveScreen
from heatsoak_tui.screens.setup import SetupScreen
from heatsoak_tui.widgets.canvas import Canvas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from textual.screen import Screen

    from heatsoak_tui.messages import NewSoak, RunStarted

    Environment = Mapping[str, str]

DARK = Theme(
    name="heatsoak-dark", dark=True,
    primary="#7aa7e8", accent="#f2f5f9", foreground="#c9d1db", background="#12151a",
    surface="#1b2027", panel="#1b2027", success="#86c98a", warning="#e3bd62", error="#ef7b7b",
    variables={
        "muted": "#7f8b99", "rule": "#343c47", "judged": "#232c37",
        "rate": "#5fc7bd", "power": "#b9a1f2", "temperature": "#f0986b", "clock": "#79aef5",
        "fan": "#9fb3c2",
    },
)  # fmt: skip
LIGHT = Theme(
    name="heatsoak-light", dark=False,
    primary="#2b5fa8", accent="#0b0f14", foreground="#2b333d", background="#fbfbf9",
    surface="#efefec", panel="#efefec", success="#2c7a3a", warning="#8a6100", error="#b3282d",
    variables={
        "muted": "#6b7580", "rule": "#c9cdd1", "judged": "#e6eaee",
        "rate": "#0b7a70", "power": "#6a45b8", "temperature": "#b34d14", "clock": "#1f5fb0",
        "fan": "#4f6272",
    },
)  # fmt: skip
SIXTEEN = Theme(
    name="heatsoak-16", ansi=True, dark=True,
    primary="ansi_blue", accent="ansi_default", foreground="ansi_default",
    background="ansi_default", surface="ansi_default", panel="ansi_default",
    success="ansi_green", warning="ansi_yellow", error="ansi_red",
    variables={
        "muted": "ansi_default", "rule": "ansi_default", "judged": "ansi_default",
        "rate": "ansi_cyan", "power": "ansi_bright_magenta", "temperature": "ansi_bright_red",
        "clock": "ansi_bright_blue", "fan": "ansi_default",
        "ansi-background": "ansi_default", "ansi-foreground": "ansi_default",
        "input-cursor-background": "ansi_default", "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_default", "input-selection-foreground": "ansi_default",
    },
)  # fmt: skip
"""The terminal's own colours, on the terminal's own background."""

RESTORE = (
    b"\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?1004l\x1b[<u\x1b[0m\x1b[?2026l\x1b[?1049l\x1b[?25h"
)
"""Ends bracketed paste, size reports, mouse and focus reports, the keyboard protocol, colours,
synchronised output and the alternate screen; shows the cursor and wraps lines again."""


class HeatsoakApp(App[None]):
    """Setup, or the run of one session file."""

    CSS_PATH = Path(__file__).with_name("app.tcss")
    TITLE = "heatsoak"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = []

    def __init__(
        self,
        session: Path | None = None,
        *,
        is_ascii: bool = False,
        control: Callable[[Path], Control] = Control,
        setup: Callable[[], Screen[None]] = SetupScreen,
        first: tuple[Tail, RunView] | None = None,
    ) -> None:
        """Follow a session, or set one up.

        Args:
            session: A session file; None opens Setup.
            is_ascii: Draw with ASCII characters only.
            control: Makes what asks the recorder of a session.
            setup: Makes the screen that opens without a session.
            first: What was read of `session` already, and the place where that ends.
        """
        super().__init__()
        self._control = control
        self._setup = setup
        self._first = first
        self.session = session
        """The session file that is followed; None while there is none."""
        self.view: RunView | None = None
        self.animation_level = "none"
        Canvas.is_ascii = is_ascii
        self.set_class(is_ascii, "-ascii")
        for theme in (DARK, LIGHT, SIXTEEN):
            self.register_theme(theme)
        self.theme = theme_name(os.environ)
        keymap, self._keys_problem = user_keymap(os.environ)
        self.set_keymap(keymap)

    @override
    def get_default_screen(self) -> Screen[None]:
        """What lies under every other screen."""
        return Blank()

    def on_mount(self) -> None:
        """Show the run, or ask what to run."""
        # Back from the shell the terminal shows nothing of ours.
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))
        if self._keys_problem is not None:
            self.notify(self._keys_problem, severity="warning", timeout=10)
        if self.session is None:
            self.push_screen(self._setup())
        else:
            self._follow(self.session)

    def on_run_started(self, message: RunStarted) -> None:
        """Setup has started a run."""
        for notice in message.notices:
            self.notify(notice, timeout=10)
        self._follow(message.path)

    async def on_new_soak(self, _: NewSoak) -> None:
        """Let go of this run, which goes on, and set up another."""
        self.session = self.view = None
        while len(self.screen_stack) > 1:
            await self.pop_screen()
        self.push_screen(self._setup())

    def _follow(self, path: Path) -> None:
        tail, view = self._first or (Tail(path), RunView())
        self._first = None
        live = LiveScreen(tail, self._control(path), view)
        self.session, self.view = path, live.shown.view
        if isinstance(self.screen, SetupScreen):
            self.switch_screen(live)
        else:
            self.push_screen(live)

    def parting_line(self) -> str:
        """What the user must know when the screen is gone; empty when there was no run."""
        if self.session is None or self.view is None:
            return ""
        if self.view.has_ended:
            return f"{result_words(self.view)}; {self.session}"
        ref = self.view.meta.get("id", str(self.session))
        return f"the run goes on; `heatsoak attach {ref}` shows it, `heatsoak stop {ref}` ends it"

    def exit_status(self) -> int:
        """Exit code of the command: the run's once it has ended, 0 when it was left going on."""
        return (exit_code(self.view.session_state) if self.view is not None else None) or 0


def result_words(view: RunView) -> str:
    """`steady: 9 402 tokens/s on 0` in the words of the session's end."""
    found = []
    for device_id in view.device_ids:
        sustained = (view.result(device_id) or {}).get("sustained") or {}
        rate = sustained.get("throughput")
        if rate:
            found.append(f"{number(rate['mean'])} {view.unit(device_id)}/s on {device_id}")
    words = [view.session_state, *view.warnings]
    return f"{' '.join(words)}: {', '.join(found) or 'nothing frozen'}"


def run_app(
    session: Path | None = None, *, opening: Callable[[], Screen[None]] = SetupScreen
) -> int:
    """Show the screen until the user leaves it.

    Args:
        session: A session file to follow; None opens the opening screen.
        opening: Makes that screen.

    Returns:
        Exit code of the command: that of the run if it has ended, 0 if it goes on.

    Raises:
        UsageError: `session` is no session file.
    """
    # Read before the screen is made: what the first batch leaves free is used by it, and a file
    # that is no session is an error of the command.
    first = read_first(session) if session is not None else None
    is_ascii = needs_ascii(os.environ, sys.stdout.encoding)
    app = HeatsoakApp(session, is_ascii=is_ascii, setup=opening, first=first)
    stderr = sys.__stderr__
    if stderr is None or not stderr.isatty():
        # Textual draws on stderr; with that redirected, the screen belongs on stdout.
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]
    try:
        with RestoredTerminal(app):
            app.run(mouse=False)
    finally:
        sys.__stderr__ = stderr  # type: ignore[misc]
    line = app.parting_line()
    if line:
        print(f"heatsoak: {line}", file=sys.stderr)  # noqa: T201 - said after the screen is gone
    return app.return_code or app.exit_status()


def read_first(session: Path) -> tuple[Tail, RunView]:
    """Everything in a session file so far.

    Raises:
        UsageError: the file is not there, no session, or of a newer version.
    """
    tail, view = Tail(session), RunView()
    try:
        batch = tail.poll()
    except sqlite3.Error:
        batch = None  # Locked for a moment; the feed tries again.
    if batch is not None:
        view.apply(batch)
    return tail, view


class RestoredTerminal:
    """Leaves the terminal as it was when a signal ends the screen, or the terminal is gone.

    Textual restores it at a normal end and after an exception only. The recorder is another
    process in another session: whatever happens here, the run goes on.
    """

    def __init__(self, app: HeatsoakApp) -> None:
        self._app = app

    def __enter__(self) -> None:
        self._tty = os.dup(sys.__stderr__.fileno())  # type: ignore[union-attr]
        try:
            self._attributes: list[object] | None = termios.tcgetattr(self._tty)
        except termios.error:
            self._attributes = None
        self._before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGHUP, signal.SIGTERM)
        }
        # With SIGHUP ignored (nohup) a lost terminal shows itself as a hang-up of the descriptor
        # only; Textual would read end-of-file from it for ever.
        threading.Thread(target=self._watch, daemon=True, name="hang-up").start()

    def __exit__(self, *_: object) -> None:
        for number_, handler in self._before.items():
            signal.signal(number_, handler)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._tty, 0)
        poll.poll()
        os.kill(os.getpid(), signal.SIGHUP)

    def _on_signal(self, number_: int, _frame: FrameType | None) -> None:
        # Frames still queued for the terminal must not follow what is written here.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.__stderr__.fileno())  # type: ignore[union-attr]
        line = self._app.parting_line()
        text = f"heatsoak: {line}\r\n" if line else ""
        try:
            os.write(self._tty, RESTORE + text.encode())
            if self._attributes is not None:
                termios.tcsetattr(self._tty, termios.TCSANOW, self._attributes)  # type: ignore[arg-type]
        except (OSError, termios.error):
            pass  # The terminal is gone: nobody is left to be told.
        signal.signal(number_, signal.SIG_DFL)
        os.kill(os.getpid(), number_)


def needs_ascii(environment: Environment, encoding: str | None) -> bool:
    """Whether the terminal can be trusted with ASCII only.

    Args:
        environment: `HEATSOAK_ASCII` decides where it is set, else terminal and locale.
        encoding: What Python writes to the terminal.
    """
    wanted = environment.get("HEATSOAK_ASCII", "")
    if wanted:
        return wanted != "0"
    # The font of the Linux console has no braille.
    if environment.get("TERM") == "linux" or (encoding or "ascii").lower() not in ("utf-8", "utf8"):
        return True
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        value = environment.get(name, "")
        # Python sets LC_CTYPE to this in the C locale, which says nothing of the terminal.
        if value and (name, value) != ("LC_CTYPE", "C.UTF-8"):
            return "utf" not in value.lower()
    return False


def theme_name(environment: Environment) -> str:
    """The colours for this terminal: its own sixteen, or ours for dark or for light."""
    wanted = environment.get("HEATSOAK_THEME", "")
    if wanted in ("dark", "light", "16"):
        return f"heatsoak-{wanted}"
    term = environment.get("TERM", "")
    is_rich = environment.get("COLORTERM", "") in ("truecolor", "24bit") or "256" in term
    if environment.get("NO_COLOR") or not is_rich:
        return SIXTEEN.name
    # Set by some terminals as foreground;background, the background 7 or 15 on a light one.
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name


def user_keymap(environment: Environment) -> tuple[dict[str, str], str | None]:
    """`keys.yaml` of the settings folder: key by binding id, and what is wrong with the file."""
    path = user_folder(environment) / "keys.yaml"
    if not path.exists():
        return {}, None
    try:
        found = read_yaml(path, "keys")
    except UsageError as error:
        return {}, str(error)
    if not isinstance(found, dict):
        return {}, f"keys {path} must map binding ids to keys, such as zoom: f"
    return {str(k): str(v) for k, v in found.items()}, None
