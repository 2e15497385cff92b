"""However the screen ends, the terminal is as it was and the run goes on."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pyte
import pytest

from heatsoak.recorder import client
from heatsoak.recorder.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

DEADLINE_S = 30.0
SCREEN = "import sys, pathlib; from heatsoak_tui.app import run_app; sys.exit(run_app({session}))"


class Terminal:
    """A pseudo-terminal with the screen running in it."""

    def __init__(self, session: Path | None, environment: dict[str, str], **popen) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(self.master, (24, 80))
        self.before = termios.tcgetattr(slave)
        code = SCREEN.format(session=f"pathlib.Path({str(session)!r})" if session else None)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
            **popen,
        )  # fmt: skip
        self.slave = slave
        self.output = b""
        self.emulator = pyte.Screen(80, 24)
        self.stream = pyte.ByteStream(self.emulator)

    def pump(self, seconds: float = 0.05) -> bool:
        """Take what was written; false when there is nothing more to come."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data
        # pyte takes the query of a private mode, and the keyboard protocol, for text.
        for unknown in (b"\x1b[>25u", b"\x1b[<u", b"\x1b[?2026$p", b"\x1b[?2048$p"):
            data = data.replace(unknown, b"")
        self.stream.feed(data)
        return bool(data)

    def wait_for(self, text: str, *, is_there: bool = True) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while any(text in line for line in self.emulator.display) != is_there:
            assert time.monotonic() < deadline, "\n".join(self.emulator.display)
            assert self.process.poll() is None, self.output[-3000:].decode(errors="replace")
            self.pump()

    def wait(self) -> int:
        """The exit status, all output taken."""
        deadline = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self.pump()
        while select.select([self.master], [], [], 0)[0] and self.pump():
            pass
        return self.process.returncode

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)


@pytest.fixture
def environment(tmp_path, monkeypatch):
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(name, str(folder))
    return dict(os.environ, TERM="xterm-256color", LANG="C.UTF-8", PYTHONUTF8="1")


@pytest.fixture
def running(environment):
    run = client.start(Plan(devices="synthetic:rtx-5090", protocol="standard"))
    yield run
    with contextlib.suppress(client.NotAnsweringError):
        client.stop(run)
    client.wait_ended(run)


@pytest.fixture
def open_terminal():
    opened = []

    def make(*args, **kwargs):
        opened.append(Terminal(*args, **kwargs))
        return opened[-1]

    yield make
    for terminal in opened:
        terminal.close()


def assert_restored(terminal: Terminal) -> None:
    modes = terminal.output
    for on, off in (
        (b"\x1b[?1049h", b"\x1b[?1049l"),
        (b"\x1b[?25l", b"\x1b[?25h"),
        (b"\x1b[?2004h", b"\x1b[?2004l"),
        (b"\x1b[?1004h", b"\x1b[?1004l"),
        (b"\x1b[>", b"\x1b[<u"),
    ):
        assert modes.rfind(on) < modes.rfind(off), off
    assert b"\x1b[?1000h" not in modes, "the mouse is left alone"
    assert termios.tcgetattr(terminal.slave) == terminal.before
    assert b"Traceback" not in modes


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_restores_the_terminal_and_the_run_goes_on(
    number, running, environment, open_terminal
):
    terminal = open_terminal(running.path, environment)
    terminal.wait_for("recording")
    terminal.wait_for("SYNTHETIC")
    terminal.process.send_signal(number)
    assert terminal.wait() == -number
    assert_restored(terminal)
    after = terminal.output.rpartition(b"\x1b[?25h")[2].decode()
    assert after.strip() == (
        f"heatsoak: the run goes on; `heatsoak attach {running.id}` shows it, "
        f"`heatsoak stop {running.id}` ends it"
    )
    assert client.is_alive(running)


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_terminal_that_is_gone_ends_the_screen_only(
    is_ignored, running, environment, open_terminal
):
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    terminal = open_terminal(running.path, environment, preexec_fn=ignore if is_ignored else None)
    terminal.wait_for("SYNTHETIC")
    os.close(terminal.slave)
    os.close(terminal.master)
    assert terminal.process.wait(DEADLINE_S) == -signal.SIGHUP
    assert client.is_alive(running)


def test_detaching_leaves_the_run_and_says_how_to_come_back(running, environment, open_terminal):
    terminal = open_terminal(running.path, environment)
    terminal.wait_for("SYNTHETIC")
    terminal.press("d")
    assert terminal.wait() == 0
    assert_restored(terminal)
    assert f"heatsoak attach {running.id}".encode() in terminal.output
    assert client.is_alive(running)


def test_stopping_from_the_screen_ends_the_run_and_shows_the_result(
    running, environment, open_terminal
):
    terminal = open_terminal(running.path, environment)
    terminal.wait_for("SYNTHETIC")
    terminal.press("s")
    terminal.wait_for("End this run?")
    terminal.press("s")
    terminal.wait_for("INTERRUPTED")
    terminal.wait_for("FOR WHOM")
    terminal.press("q")
    assert terminal.wait() == 130
    assert_restored(terminal)
    assert b"interrupted SYNTHETIC: nothing frozen" in terminal.output
    client.wait_ended(running)


def test_a_locale_without_utf8_gets_ascii_only(running, environment, open_terminal):
    environment = {k: v for k, v in environment.items() if k not in ("LC_CTYPE", "PYTHONUTF8")}
    terminal = open_terminal(running.path, environment | {"LC_ALL": "C", "TERM": "xterm"})
    terminal.wait_for("* recording")
    terminal.wait_for("z zoom")
    terminal.press("?")
    terminal.wait_for("KEYS OF LIVE")
    terminal.press("q")
    terminal.wait_for("KEYS OF LIVE", is_there=False)
    terminal.press("x")
    terminal.wait_for("15 more minutes")
    terminal.press("q")
    terminal.wait_for("Leave the screen?")
    terminal.press("d")
    assert terminal.wait() == 0
    assert terminal.output.isascii()
    # Sixteen colours: no shade of 256, no RGB.
    assert b"38;5;" not in terminal.output
    assert b"38;2;" not in terminal.output


def test_setup_leaves_without_a_word(environment, open_terminal):
    terminal = open_terminal(None, environment)
    terminal.wait_for("CARDS")
    terminal.press("q")
    assert terminal.wait() == 0
    assert_restored(terminal)
    assert terminal.output.rpartition(b"\x1b[?1004l")[2].strip() == b""


def test_a_recorder_that_is_killed_ends_as_interrupted_with_what_was_recorded(
    running, environment, open_terminal
):
    terminal = open_terminal(running.path, environment)
    terminal.wait_for("0:00:02")
    os.kill(running.pid, signal.SIGKILL)
    terminal.wait_for("INTERRUPTED  the recorder ended")
    terminal.press("q")
    assert terminal.wait() == 130
    assert_restored(terminal)
