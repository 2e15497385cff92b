"""MIG slices of one card: they share its power, so no slice beside a busy one has its own perf/W.

Where all busy slices of a card were soaked together, the card's watts over the sum of their rates
is a figure again: one for all of them.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

POWER_APART_FRAC = 0.02
"""Windows of two slices in which the card drew power this different saw different loads."""


def is_shared(mig: Mapping[str, Any] | None) -> bool:
    """Whether other slices of the same card were busy too."""
    return mig is not None and bool(mig["soaked_with"] or mig["busy_siblings"])


def shared_power(devices: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries of `shared_power[]`: one a card of which several slices were soaked together.

    Args:
        devices: the entries of `devices[]`.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for device in devices:
        if device["mig"] is not None:
            groups.setdefault(device["mig"]["parent_uuid"], []).append(device)
    return [_entry(uuid, group) for uuid, group in groups.items() if len(group) > 1]


def _entry(parent_uuid: str, group: Sequence[dict[str, Any]]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "parent_uuid": parent_uuid,
        "devices": [device["device_id"] for device in group],
        "power_w": None,
        "all_in_throughput": None,
        "joules_per_unit": None,
        "reason": _obstacle(group),
    }
    if entry["reason"] is not None:
        return entry
    watts = [device["sustained"]["power_w"] for device in group]
    rates = [device["sustained"]["all_in_throughput"] for device in group]
    power = sum(figure["mean"] for figure in watts) / len(watts)
    rate = sum(figure["mean"] for figure in rates)
    # The same watts were read for each slice: their errors do not average out.
    power_u95 = max((figure["u95"] or 0.0) for figure in watts)
    rate_u95 = hypot(*((figure["u95"] or 0.0) for figure in rates))
    is_known = all(figure["u95"] is not None for figure in (*watts, *rates))
    joules = power / rate
    joules_u95 = joules * hypot(power_u95 / power, rate_u95 / rate)
    unit = rates[0]["unit"]
    entry["power_w"] = _figure(power, power_u95 if is_known else None, "W")
    entry["all_in_throughput"] = _figure(rate, rate_u95 if is_known else None, unit)
    counted = unit.removesuffix("/s").removesuffix("s")
    entry["joules_per_unit"] = _figure(joules, joules_u95 if is_known else None, f"J/{counted}")
    return entry


def _obstacle(group: Sequence[dict[str, Any]]) -> str | None:
    """Why these slices have no perf/W together, or None."""
    if not all(device["sustained"] for device in group):
        return "not every slice of this run is steady"
    if len({device["unit"] for device in group}) > 1:
        return "the slices count different units"
    if any(device["mig"]["busy_siblings"] for device in group):
        return "a slice that is not of this run was busy too"
    watts = [device["sustained"]["power_w"] for device in group]
    rates = [device["sustained"]["all_in_throughput"] for device in group]
    if not all(watts) or not all(rates):
        return "power or throughput is not known"
    means = [figure["mean"] for figure in watts]
    if min(means) <= 0 or sum(figure["mean"] for figure in rates) <= 0:
        return "power or throughput is not known"
    if max(means) / min(means) - 1 > POWER_APART_FRAC:
        return "the card drew different power in the windows of its slices"
    return None


def _figure(mean: float, u95: float | None, unit: str) -> dict[str, Any]:
    return {"mean": mean, "u95": u95, "n_eff": None, "unit": unit}
