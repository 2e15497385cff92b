"""What the feed tells the screen. None of these may be replaced by a newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from pathlib import Path

    from heatsoak.session.rows import Batch


class BatchArrived(Message):
    """Everything that came into the session file since the last poll."""

    def __init__(self, batch: Batch) -> None:
        super().__init__()
        self.batch = batch


class FeedTrouble(Message):
    """The file could not be read for a while; an empty text: it can be again."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class RecorderGone(Message):
    """The recorder ended without closing its session."""


class RunStarted(Message):
    """Setup has started a run: show it."""

    def __init__(self, path: Path, notices: tuple[str, ...]) -> None:
        super().__init__()
        self.path = path
        self.notices = notices


class NewSoak(Message):
    """The user wants to set up another run."""
