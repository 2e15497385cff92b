"""What the command says beside its data: lines on stderr."""

from __future__ import annotations

import sys

from heatsoak.recorder import client


def say(text: str) -> None:
    """One line of narration."""
    print(text, file=sys.stderr, flush=True)


def tell_crashed() -> None:
    """Close the sessions that crashed runs have left open, and say so."""
    for notice in client.clear_crashed():
        say(notice)
