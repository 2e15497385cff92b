"""One reading over time in fixed memory."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKETS = 1024
"""Most buckets of a series over the whole run; a full one doubles its span."""
RECENT = 1200
"""Most points kept undecimated for the zoomed view."""
_NAN = math.nan


class Series:
    """One reading over time: minimum and maximum per bucket from the start of the run to now.

    A bucket without a reading is a gap. The span of a bucket doubles whenever the run outgrows
    `BUCKETS` of them, so memory is fixed and buckets never shift.
    """

    def __init__(self, span_s: float = 1.0) -> None:
        self.span_s = span_s
        """Seconds a bucket."""
        self.last: tuple[float, float] | None = None
        """The newest point, (t_s, value)."""
        self.period_s: float | None = None
        """Typical distance of two points, in seconds."""
        self._low = array("d")
        self._high = array("d")
        # A ring of plain doubles: kept float objects would pin the memory of a whole first batch.
        self._recent_t = array("d")
        self._recent_v = array("d")
        self._oldest = 0

    def add(self, t_s: float, value: float | None) -> None:
        """Take one reading; None and NaN leave a gap."""
        if value is None or not math.isfinite(value) or t_s < 0:
            return
        if self.last is not None and t_s > self.last[0]:
            step_s = t_s - self.last[0]
            if self.period_s is None:
                self.period_s = step_s
            else:
                # A gap must not count as a period, or the next gap would be drawn as a line.
                self.period_s += 0.1 * (min(step_s, 2 * self.period_s) - self.period_s)
        self._put(t_s, value, value)
        self._remember(t_s, value)
        self.last = (t_s, value)

    def add_span(self, start_s: float, span_s: float, low: float, high: float) -> None:
        """Take a stretch of the past of which only the extremes are known."""
        while self.span_s < span_s:
            self._double()
        self._put(start_s, low, high)
        if self.last is None or start_s + span_s > self.last[0]:
            self.last = (start_s + span_s, (low + high) / 2)
        self.period_s = max(self.period_s or 0.0, span_s)

    def _remember(self, t_s: float, value: float) -> None:
        if len(self._recent_t) < RECENT:
            self._recent_t.append(t_s)
            self._recent_v.append(value)
            return
        self._recent_t[self._oldest] = t_s
        self._recent_v[self._oldest] = value
        self._oldest = (self._oldest + 1) % RECENT

    def _put(self, t_s: float, low: float, high: float) -> None:
        while (index := int(t_s / self.span_s)) >= BUCKETS:
            self._double()
        missing = index + 1 - len(self._low)
        if missing > 0:
            self._low.extend([_NAN] * missing)
            self._high.extend([_NAN] * missing)
        # min(new, nan) keeps new: every comparison with NaN is false.
        self._low[index] = min(low, self._low[index])
        self._high[index] = max(high, self._high[index])

    def _double(self) -> None:
        if len(self._low) % 2:
            self._low.append(_NAN)
            self._high.append(_NAN)
        self._low = array("d", map(_lower, self._low[::2], self._low[1::2]))
        self._high = array("d", map(_higher, self._high[::2], self._high[1::2]))
        self.span_s *= 2

    def points(self, since_s: float = 0.0) -> Iterator[tuple[float, float, float]]:
        """(t_s, minimum, maximum) of each bucket with a reading, t_s in its middle.

        Args:
            since_s: Leave out what is older; the finest points known are given for what is not.
        """
        count = len(self._recent_t)
        if count and self._recent_t[self._oldest] <= since_s:
            for index in range(self._oldest, self._oldest + count):
                t_s, value = self._recent_t[index % count], self._recent_v[index % count]
                if t_s >= since_s:
                    yield t_s, value, value
            return
        first = max(0, int(since_s / self.span_s))
        for index in range(first, len(self._low)):
            low = self._low[index]
            if low == low:  # false for NaN
                yield (index + 0.5) * self.span_s, low, self._high[index]

    @property
    def gap_s(self) -> float:
        """Two points further apart than this are not joined."""
        return 4 * max(self.period_s or 0.0, self.span_s)

    def __len__(self) -> int:
        return len(self._low)


def _lower(a: float, b: float) -> float:
    return min(a, b) if a == a else b  # false for NaN


def _higher(a: float, b: float) -> float:
    return max(a, b) if a == a else b  # false for NaN
