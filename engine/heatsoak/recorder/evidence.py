"""What stands behind a window beside its figures: how many values came, and the link they came by.

A device may answer every second and say nothing: values are counted, not readings.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample

COUNTED = (
    "power_w", "energy_j", "temperature_c", "sm_clock_mhz", "fan_pct", "utilization_pct",
    "throttle_reasons",
)  # fmt: skip
"""Readings that a verdict or a figure stands on."""
BIN_S = 10.0
KEPT_BINS = 540
"""An hour and a half: longer than any window of the judge."""
PERIOD_S = 1.0
"""Session seconds between two readings, as the sampler takes them."""
MUTE_READINGS = 10
"""A reading without a value in the first so many is not to be expected any more."""


class Evidence:
    """Counts the values of one device in bins, over the last hour and a half."""

    KEYS = ("coverage", "pcie", "sensors", "mig")

    def __init__(self, info: DeviceInfo) -> None:
        """Begin without readings."""
        self.stuck: frozenset[str] = frozenset()
        """Channels of the judge that do not move now."""
        self.suspect: list[str] = []
        """What the device said that cannot be, a sentence each."""
        self.soaked_with: tuple[str, ...] = ()
        """For a MIG slice: devices of this run that are slices of the same card."""
        self._busy: dict[str, float] = {}
        """By UUID of another slice of the card, not of this run: when it was last seen busy."""
        self._info = info
        self._bins: dict[int, tuple[Counter[str], Counter[tuple[int, int]]]] = {}
        self._readings = 0
        self._seen: set[str] = set()

    def add(self, sample: DeviceSample) -> bool:
        """Count one reading; true when it is the one after which `mute` can be told."""
        index = int(sample.t_s // BIN_S)
        if index not in self._bins:
            self._bins[index] = (Counter(), Counter())
            if len(self._bins) > KEPT_BINS:
                del self._bins[next(iter(self._bins))]
        values, links = self._bins[index]
        present = [name for name in COUNTED if getattr(sample, name) is not None]
        values.update(present)
        self._seen.update(present)
        if sample.pcie_gen is not None and sample.pcie_width is not None:
            links[sample.pcie_gen, sample.pcie_width] += 1
        self._readings += 1
        return self._readings == MUTE_READINGS

    def see_busy(self, t_s: float, uuids: Iterable[str]) -> list[str]:
        """Other slices of the card are in use at `t_s`; those of which that is news."""
        fresh = [uuid for uuid in uuids if uuid not in self._busy]
        self._busy |= dict.fromkeys(uuids, t_s)
        return fresh

    @property
    def mute(self) -> tuple[str, ...]:
        """Readings that the device was thought to report and has given no value of so far."""
        expected = (name for name in COUNTED if name not in self._info.missing)
        return tuple(name for name in expected if name not in self._seen)

    def entry(self, start_s: float | None, length_s: float | None) -> dict[str, Any]:
        """The keys `KEYS` of the device's entry, for a window.

        Args:
            start_s: where it begins, session time; None: there is no window.
            length_s: how long it is; taken to the nearest 10 s.
        """
        sensors = {"stuck": sorted(self.stuck), "suspect": self.suspect}
        known: dict[str, Any] = {"coverage": None, "pcie": None, "sensors": sensors, "mig": None}
        if self._info.mig_parent_uuid is not None:
            known["mig"] = {
                "parent_uuid": self._info.mig_parent_uuid,
                "profile": self._info.mig_profile,
                "soaked_with": list(self.soaked_with),
                "busy_siblings": sorted(
                    uuid for uuid, last_s in self._busy.items() if last_s >= (start_s or 0.0)
                ),
            }
        if start_s is None or length_s is None:
            return known
        return known | self._of_window(start_s, length_s)

    def _of_window(self, start_s: float, length_s: float) -> dict[str, Any]:
        values: Counter[str] = Counter()
        links: Counter[tuple[int, int]] = Counter()
        first = round(start_s / BIN_S)
        last = round((start_s + length_s) / BIN_S)
        for index in range(first, last):
            if index in self._bins:
                values += self._bins[index][0]
                links += self._bins[index][1]
        expected = max(1.0, (last - first) * BIN_S / PERIOD_S)
        coverage = {
            name: min(1.0, values[name] / expected)
            if name in self._seen or name not in self._info.missing
            else None
            for name in COUNTED
        }
        return {"coverage": coverage, "pcie": self._pcie(links)}

    def _pcie(self, links: Counter[tuple[int, int]]) -> dict[str, Any] | None:
        if not links:
            return None
        info = self._info
        ((gen, width), _), *_ = links.most_common(1)
        at_max = None
        if info.pcie_gen_max is not None and info.pcie_width_max is not None:
            full = (info.pcie_gen_max, info.pcie_width_max)
            reached = sum(n for link, n in links.items() if link >= full and link[1] >= full[1])
            at_max = reached / links.total()
        return {
            "gen": gen,
            "width": width,
            "gen_max": info.pcie_gen_max,
            "width_max": info.pcie_width_max,
            "at_max_frac": at_max,
        }
