"""The lines of a log as text: encoding by its mark, never the whole in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LINE_CHARS = 200_000
"""A longer line is no row of any log."""
PROGRESS_EVERY = 4096
"""Lines between two words about progress."""


def encoding_of(path: Path) -> str:
    """The encoding by the byte-order mark, or by the zeros of a UTF-16 without one.

    Raises:
        UsageError: the file cannot be read or is no text.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = head.count(0)
    if zeros and zeros >= len(head) // 3:
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    if zeros:
        raise UsageError(f"{path} is no log: it is not text")
    return "utf-8-sig"


def lines(path: Path, progress: Callable[[float], None] | None = None) -> Iterator[str]:
    r"""Every line that has its end, without it; what follows the last end was cut off.

    What is not UTF-8 is read as Latin-1, line by line. A carriage return ends a line, too.

    Args:
        path: the log.
        progress: told now and then which share of the file has been read.

    Yields:
        Lines; the cut-off last one as `"\0"` alone, so that it can be counted.

    Raises:
        UsageError: the file cannot be read or is no text.
    """
    encoding = encoding_of(path)
    errors = "surrogateescape" if encoding == "utf-8-sig" else "replace"
    try:
        total = max(1, path.stat().st_size)
        with path.open("rb") as raw, open(raw.fileno(), encoding=encoding, errors=errors,
                                          closefd=False) as file:  # fmt: skip
            count = 0
            while line := file.readline(LINE_CHARS):
                count += 1
                if progress is not None and count % PROGRESS_EVERY == 0:
                    progress(min(1.0, raw.tell() / total))
                if "\0" in line or (len(line) >= LINE_CHARS and line[-1] != "\n"):
                    raise UsageError(f"{path} is no log: line {count} is not text")
                if line[-1] != "\n":
                    yield "\0"
                    return
                yield _readable(line[:-1])
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def _readable(line: str) -> str:
    if line.isascii():
        return line
    try:
        line.encode()
    except UnicodeEncodeError:
        return line.encode("utf-8", "surrogateescape").decode("latin-1")
    return line
