"""What the screens of a result share beside the run itself: its document and the advice on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heatsoak.economics.advice import Advice


@dataclass(slots=True)
class Findings:
    """Read from the session file by a thread; empty before."""

    document: dict[str, Any] | None = None
    """The session as `heatsoak-result/1`, with what its figures mean in money."""
    advice: tuple[Advice, ...] = ()
    """One for every archetype; empty where there is none, and the note says why."""
    advice_note: str = ""
