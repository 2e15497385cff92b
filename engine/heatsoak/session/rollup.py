"""The past in few rows: minimum, maximum and mean per reading over 10 s and over 5 min."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

from heatsoak.telemetry.sample import READINGS

if TYPE_CHECKING:
    from heatsoak.session.rows import PhaseRow, StepsRow
    from heatsoak.telemetry.sample import DeviceSample

SPANS_S = (10, 300)
NUMERIC_READINGS = tuple(r for r in READINGS if r not in ("throttle_reasons", "pstate"))
RATE_WINDOW_S = 5.0
"""A job's rate is its counter's difference over at least this long."""

Row = tuple[int, float, str, str, float, float, float]


class _Bucket:
    __slots__ = ("count", "high", "low", "total")

    def __init__(self) -> None:
        self.low, self.high, self.total, self.count = float("inf"), float("-inf"), 0.0, 0

    def add(self, value: float) -> None:
        self.low = min(self.low, value)
        self.high = max(self.high, value)
        self.total += value
        self.count += 1

    def merge(self, other: _Bucket) -> None:
        self.low = min(self.low, other.low)
        self.high = max(self.high, other.high)
        self.total += other.total
        self.count += other.count


class Rollups:
    """Takes readings as they come and gives back each span's row once the span has passed."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], tuple[int, dict[str, _Bucket]]] = {}
        """By span and owner: index of the span at hand, and a bucket for each reading."""
        self._rate_points: dict[str, deque[tuple[float, float]]] = {}
        self._done: list[Row] = []

    def add_sample(self, sample: DeviceSample) -> None:
        """Take one reading; what is not reported leaves no trace."""
        buckets = self._buckets(SPANS_S[0], sample.device_id, sample.t_s)
        if buckets is None:
            return
        for reading in NUMERIC_READINGS:
            value = getattr(sample, reading)
            if value is not None and math.isfinite(value):
                bucket = buckets.get(reading)
                if bucket is None:
                    bucket = buckets[reading] = _Bucket()
                bucket.add(value)

    def add_phase(self, row: PhaseRow) -> None:
        """A rate is not taken across a change of phase."""
        self._rate_points.pop(row.job_id, None)

    def add_steps(self, row: StepsRow) -> None:
        """Take one record of a job's counter."""
        if not math.isfinite(row.units_done):
            return
        points = self._rate_points.setdefault(row.job_id, deque())
        points.append((row.t_s, row.units_done))
        while len(points) > 2 and row.t_s - points[1][0] >= RATE_WINDOW_S:
            points.popleft()
        first_s, first_units = points[0]
        if row.t_s - first_s >= RATE_WINDOW_S:
            buckets = self._buckets(SPANS_S[0], row.job_id, row.t_s)
            if buckets is None:
                return
            rate = (row.units_done - first_units) / (row.t_s - first_s)
            buckets.setdefault("rate", _Bucket()).add(rate)

    def take(self) -> list[Row]:
        """The rows of the spans that have passed since the last call."""
        done, self._done = self._done, []
        return done

    def finish(self) -> list[Row]:
        """The rows of all spans still open: the session ends."""
        for span_s in SPANS_S:
            for owner in [owner for span, owner in self._open if span == span_s]:
                self._close(span_s, owner)
        return self.take()

    def _buckets(self, span_s: int, owner: str, t_s: float) -> dict[str, _Bucket] | None:
        """The open span that an instant lies in; None for one that has passed already."""
        index = int(t_s // span_s)
        held = self._open.get((span_s, owner))
        if held is not None and held[0] == index:
            return held[1]
        if held is not None:
            if index < held[0]:  # Its row may be in the file: for drawing it is left as it is.
                return None
            self._close(span_s, owner)
        buckets: dict[str, _Bucket] = {}
        self._open[span_s, owner] = (index, buckets)
        return buckets

    def _close(self, span_s: int, owner: str) -> None:
        index, buckets = self._open.pop((span_s, owner))
        start_s = float(index * span_s)
        for reading, bucket in buckets.items():
            mean = bucket.total / bucket.count
            self._done.append((span_s, start_s, owner, reading, bucket.low, bucket.high, mean))
        if span_s == SPANS_S[0]:
            coarse = self._buckets(SPANS_S[1], owner, start_s)
            if coarse is not None:
                for reading, bucket in buckets.items():
                    coarse.setdefault(reading, _Bucket()).merge(bucket)
