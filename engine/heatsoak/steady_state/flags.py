"""Flags: what a reader must know beside the numbers."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

import numpy as np

from heatsoak.steady_state.bins import nan_mean
from heatsoak.steady_state.channels import HARDWARE
from heatsoak.steady_state.protocols import (
    BARE_BINS,
    CAPPED_DUTY,
    EXTERNAL_CAP_FRAC,
    FAN_SPENT_POINTS,
    IDLE_BINS,
    IDLE_POWER_FRAC,
    IDLE_UTILIZATION_PCT,
    STARVED_UTILIZATION_PCT,
    THROTTLED_DUTY,
    UNSATURATED_FRAC,
)

if TYPE_CHECKING:
    from heatsoak.steady_state.readings import Readings
    from heatsoak.steady_state.subject import Subject
    from heatsoak.steady_state.verdict import Flag, State


def all_flags(
    subject: Subject,
    state: State,
    window: tuple[int, int],
    *,
    is_disturbed: bool,
    is_cycling: bool,
    is_noise_limited: bool,
) -> list[Flag]:
    """The flags of a device in a state, for a window of bins `(start, end)`."""
    out: list[Flag] = ["disturbed"] if is_disturbed else []
    if state == "warming":
        return out
    if is_cycling:
        out.append("cycling")
    out += power_flags(subject.readings, *window)
    if is_noise_limited:
        out.append("noise-limited")
    if is_headroom_unknown(subject):
        out.append("headroom-unknown")
    return out


def power_flags(readings: Readings, start: int, end: int) -> list[Flag]:
    """What held the device back over bins `start` to `end`: heat, its limit, its surroundings."""
    flags: list[Flag] = []
    thermal = nan_mean(readings.bins.get("thermal", start, end))
    capped = nan_mean(readings.bins.get("capped", start, end))
    power = nan_mean(readings.bins.get("power", start, end))
    limit = readings.power_limit_w
    share = power / limit if limit else nan
    if thermal > THROTTLED_DUTY:
        flags.append("throttled")
    if capped > CAPPED_DUTY:
        flags.append("external-cap" if share < EXTERNAL_CAP_FRAC else "power-capped")
    elif not thermal > THROTTLED_DUTY and (
        share < UNSATURATED_FRAC or is_starved(readings, start, end)
    ):
        flags.append("unsaturated")
    return flags


def is_starved(readings: Readings, start: int, end: int) -> bool:
    """Whether a card waits for its workload a good part of the time (a host CPU has other work)."""
    if readings.info.kind == "cpu":
        return False
    return nan_mean(readings.bins.get("utilization", start, end)) < STARVED_UTILIZATION_PCT


def is_spent(subject: Subject, end: int) -> bool:
    """Whether its fan is at its end and no temperature tells how near the limit is."""
    if "temperature" in subject.channels or "fan" not in subject.channels:
        return False
    top = subject.info.fan_max_pct if subject.info.fan_max_pct is not None else 100.0
    fan = nan_mean(subject.readings.bins.get("fan", end - IDLE_BINS, end))
    return fan >= top - FAN_SPENT_POINTS


def is_headroom_unknown(subject: Subject) -> bool:
    """No temperature, no fan and no limit: nobody can say what it has left."""
    seen = subject.channels
    return (
        "temperature" not in seen
        and "fan" not in seen
        and subject.readings.temperature_limit_c is None
        and subject.readings.power_limit_w is None
    )


def is_bare(readings: Readings, end: int) -> bool:
    """Whether the device has lately reported no hardware channel at all."""
    bins = readings.bins
    return not any(np.isfinite(bins.get(name, end - BARE_BINS, end)).any() for name in HARDWARE)


def is_idle(readings: Readings, end: int) -> bool:
    """Whether the hardware says that the device lately does nothing."""
    utilization = nan_mean(readings.bins.get("utilization", end - IDLE_BINS, end))
    if np.isfinite(utilization):
        return utilization < IDLE_UTILIZATION_PCT
    power = nan_mean(readings.bins.get("power", end - IDLE_BINS, end))
    limit = readings.power_limit_w
    return bool(limit is not None and power < IDLE_POWER_FRAC * limit)
