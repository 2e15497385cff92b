"""A run watched as lines: one whenever a state changes and one every ten seconds, on stderr."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from heatsoak.clock import monotonic_s
from heatsoak.recorder import client
from heatsoak.session import store
from heatsoak.session.tail import Tail
from heatsoak.steady_state.verdict import FINAL_STATES
from heatsoak_tui.cli.narration import say
from heatsoak_tui.format import DASH, duration, number
from heatsoak_tui.run_view import RunView

if TYPE_CHECKING:
    from types import FrameType

POLL_S = 0.5
LINE_EVERY_S = 10.0
QUIET_S = 5.0
"""A recorder writes every second; after so long without anything new the last line is history."""


class Interrupts:
    """Ctrl-C asks the recorder to stop, the second ends the run at once.

    SIGTERM and SIGHUP end only this watcher, and say that the run goes on.
    """

    def __init__(self, running: client.Running) -> None:
        self._running = running
        self._wake = threading.Event()
        self.count = 0

    def __enter__(self) -> Interrupts:
        self._before = {signal.SIGINT: signal.signal(signal.SIGINT, self._on_signal)}
        for which in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(which) != signal.SIG_IGN:  # as under nohup
                self._before[which] = signal.signal(which, self._on_leave)
        return self

    def __exit__(self, *_: object) -> None:
        for which, before in self._before.items():
            signal.signal(which, before)

    def _on_leave(self, which: int, _frame: FrameType | None) -> None:
        run = self._running.id
        # Not through sys.stderr, which the signal may have interrupted in a write.
        words = f"the run goes on: heatsoak attach {run} shows it, heatsoak stop {run} ends it\n"
        with suppress(OSError):
            os.write(2, words.encode())
        signal.signal(which, signal.SIG_DFL)
        signal.raise_signal(which)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self._wake.set()

    def wait(self, seconds: float) -> None:
        """Wait, or until Ctrl-C; then act on it."""
        if not self._wake.wait(seconds):
            return
        self._wake.clear()
        try:
            if self.count == 1:
                say("stopping; Ctrl-C again ends it at once")
                client.stop(self._running)
            else:
                say("ending it at once")
                client.kill(self._running)
        except client.NotAnsweringError:
            say("the run is ending already")


def follow(running: client.Running) -> None:
    """Print lines until the run is over; Ctrl-C stops it."""
    tail = Tail(running.path)
    view = RunView()
    states: dict[str, str] = {}
    told_s = float("-inf")
    heard_s = monotonic_s()
    is_quiet = False
    with Interrupts(running) as interrupts:
        while True:
            batch = tail.poll()
            if batch is not None:
                heard_s = monotonic_s()
                view.apply(batch)
                for event in batch.events:
                    if event.kind not in ("state", "start"):
                        say(f"{duration(event.t_s)}  {event.text}")
            now_s = monotonic_s()
            due = now_s - told_s >= LINE_EVERY_S
            was_quiet, is_quiet = is_quiet, now_s - heard_s >= QUIET_S
            if is_quiet and (due or not was_quiet):
                say(client.say_quiet(running, now_s - heard_s))
                told_s, due = now_s, False
            for device_id in () if is_quiet else view.device_ids:
                state = view.state(device_id)
                if due or states.get(device_id) != state:
                    say(device_line(view, device_id))
                    states[device_id] = state
            if due:
                told_s = now_s
            if tail.state != "recording":
                return
            if not client.is_alive(running):
                # It may have ended between the two looks; only what is still open was a crash.
                if store.close_crashed(running.path):
                    say("the recorder ended without closing its session; closed it as interrupted")
                continue
            interrupts.wait(POLL_S)


def device_line(view: RunView, device_id: str) -> str:
    """`0:01:20  settling  0 SYNTHETIC GeForce RTX 5090  9 431 tokens/s  561 W ...`."""
    sample = view.latest(device_id)
    verdict = view.verdict(device_id)
    info = view.device(device_id)
    whose = "" if info.mig_parent_uuid is None else " of the whole card"
    if view.state(device_id) in FINAL_STATES:
        figures = []  # The load may be gone: readings of now would pass for the frozen numbers.
    elif (silence := view.silence(device_id)) is not None:
        figures = [silence]
    else:
        figures = [
            _figure(view.rate(device_id), f"{view.unit(device_id)}/s"),
            _figure(sample.power_w if sample else None, f"W{whose}"),
            _figure(sample.temperature_c if sample else None, f"°C{whose}"),
            _figure(sample.sm_clock_mhz if sample else None, "MHz"),
        ]
    known = "  ".join(filter(None, figures)) or DASH
    reason = f"  {verdict.reason}" if verdict else ""
    label = f"{view.state(device_id):10s}  {device_id} {info.name}"
    return f"{duration(view.now_s)}  {label}  {known}{reason}"


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{number(value)} {unit}"
