"""Which instants to believe: a clock that jumps for one row and comes back told nothing.

A machine that was suspended jumps too, but goes on from where it has come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from heatsoak.steady_state.protocols import JUMP_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Row = TypeVar("Row")


class Times:
    """The instants of one source - a device, a counter - as they come."""

    def __init__(self, origin_s: float) -> None:
        """Begin with the run, at `origin_s`."""
        self._last_s = origin_s
        self._jumped_s: float | None = None

    def accept(self, t_s: float) -> bool:
        """Whether to take in what happened at `t_s`.

        Not what goes back in time, nor a jump ahead, until the instant after it goes on from
        there.
        """
        if t_s < self._last_s:
            return False
        if t_s > self._last_s + JUMP_S and not _goes_on(self._jumped_s, t_s):
            self._jumped_s = t_s
            return False
        self._last_s, self._jumped_s = t_s, None
        return True


def in_time(rows: Iterable[Row], t_s_of: Callable[[Row], float]) -> Iterator[Row]:
    """The rows of a log whose time goes on, with the first of those behind a lasting jump.

    Unlike `Times` it looks one row ahead: a log may begin with a clock that was not set yet.
    """
    last_s: float | None = None
    held: tuple[float, Row] | None = None
    for row in rows:
        t_s = t_s_of(row)
        if held is not None:
            if _goes_on(held[0], t_s):
                last_s = held[0]
                yield held[1]
            held = None
        if last_s is None or t_s > last_s + JUMP_S:
            held = (t_s, row)
        elif t_s >= last_s:
            last_s = t_s
            yield row
    if held is not None and last_s is None:
        yield held[1]


def _goes_on(from_s: float | None, t_s: float) -> bool:
    return from_s is not None and from_s <= t_s <= from_s + JUMP_S
