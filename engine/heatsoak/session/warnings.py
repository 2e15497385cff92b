"""What a reader of a result has to know before using its numbers, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak.steady_state.verdict import FINAL_STATES
from heatsoak.telemetry.sample import READING_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from heatsoak.session.rows import JobRow

ENERGY_GAP_FRAC = 0.05
"""The energy counter and the integral of power should agree better than this."""
COVERAGE_LEAST_FRAC = 0.9
"""A window with values for less of it is told: a mean of what is there may mean something else."""
LINK_LEAST_FRAC = 0.95
"""Under load a link stays at its maximum; a few readings may fall into a pause."""
LIMITS = {
    "power_w": ("no power", "no watts, no perf/W, and no telling whether a limit holds it down"),
    "energy_j": ("no energy counter", "its energy is the integral of its power"),
    "temperature_c": ("no temperature", "thermal steady state is judged without it"),
    "sm_clock_mhz": ("no clock", "a clock that falls is seen in the throughput alone"),
    "power_limit_w": ("no power limit", "how near its power is to it cannot be told"),
    "throttle_reasons": ("no throttle reasons", "what holds its clock down cannot be told"),
}
"""By reading: what is missing without it, and what that makes impossible."""
_HARDWARE = frozenset({"power_w", "temperature_c", "sm_clock_mhz"})
FLAG_WORDS = {
    "disturbed": "it was disturbed; what was learned before the disturbance does not count",
    "cycling": "its readings go up and down in a cycle; the figures are means over whole cycles",
    "throttled": "it slowed itself down because it was hot; better cooling would give more",
    "external-cap": "something other than heat or its power limit holds it down",
    "unsaturated": "the workload does not load it fully; the figures are no measure of the card",
    "noise-limited": "its readings are too noisy for a closer judgement",
    "headroom-unknown": "how far it is from its limits is not known; it may slow down later",
    "no-throughput": "no throughput was counted; judged on its sensors alone",
    "superseded": "the rate moved on after the freeze; soak again, longer",
}
"""Flags that change what the numbers may be used for."""


def warnings_of(
    meta: dict[str, str],
    jobs: Sequence[JobRow],
    devices: Sequence[dict[str, Any]],
    together: Sequence[dict[str, Any]] = (),
) -> list[str]:
    """The sentences of `warnings[]`, the gravest first.

    Args:
        meta: of the session.
        jobs: its jobs.
        devices: the entries of `devices[]`.
        together: the entries of `shared_power[]`.
    """
    found = []
    if meta["protocol"] == "smoke":
        found.append("protocol smoke: a demonstration, never a sustained result")
    states = {d["verdict"]["state"] if d["verdict"] else None for d in devices}
    if meta["state"] == "recording":
        found.append("the session has not come to its end; nothing here is final")
    elif not states <= FINAL_STATES:
        found.append("some devices have no verdict; the session ended before")
    for job in jobs:
        checked = job.facts.get("integrity") or {}
        if checked.get("failures"):
            found.append(
                f"{job.job_id}: {checked['failures']} of {checked['checks']} checks of its "
                "arithmetic failed; trust none of its numbers"
            )
    for device in devices:
        found += [f"{device['device_id']}: {words}" for words in _of_device(device)]
    found += [_of_card(card) for card in together]
    return found


def limits_of(missing: Mapping[str, str]) -> list[str]:
    """What a device without these readings cannot be told, a sentence each.

    Args:
        missing: readings it does not report, each with the reason.
    """
    if missing.keys() >= _HARDWARE:
        return [
            f"it reports no power, temperature or clock ({missing['power_w']}): it is judged on "
            "throughput alone, has no perf/W, and how near it is to its limits is not known"
        ]
    # Without power there is no energy to speak of either.
    told = [name for name in LIMITS if name in missing]
    if "power_w" in told:
        told = [name for name in told if name != "energy_j"]
    return [f"{LIMITS[name][0]} ({missing[name]}): {LIMITS[name][1]}" for name in told]


def _of_device(device: dict[str, Any]) -> Iterator[str]:
    verdict = device["verdict"]
    if device["provenance"] != "measured":
        yield f"{device['provenance']} figures; not measured on a real card"
    if verdict and verdict["state"] in FINAL_STATES and not device["sustained"]:
        yield f"{verdict['state']}, so nothing was frozen: {verdict['reason']}"
    for flag in verdict["flags"] if verdict else ():
        if flag in FLAG_WORDS:
            yield FLAG_WORDS[flag]
    yield from limits_of(device["missing"])
    yield from _of_energy(device)
    yield from _of_sensors(device)
    yield from _of_link(device["pcie"])
    yield from _of_health(device["health"])


def _of_energy(device: dict[str, Any]) -> Iterator[str]:
    sustained, energy, mig = device["sustained"], device["energy"], device["mig"]
    if mig is not None:
        yield (
            f"a MIG slice ({mig['profile'] or 'of unknown size'}): power, temperature and clocks "
            f"are those of the whole card {mig['parent_uuid']}"
        )
        for what, names in (("soaked too", mig["soaked_with"]), ("busy", mig["busy_siblings"])):
            if names:
                yield f"no perf/W of its own: {', '.join(names)} on the same card was {what}"
    elif sustained and not sustained["joules_per_unit"] and "power_w" not in device["missing"]:
        why = "power is not reported" if not sustained["power_w"] else "no units were counted"
        if "power" in (device["sensors"] or {"stuck": ()})["stuck"]:
            why = "its power cannot be believed"
        yield f"no energy a unit: {why}"
    if energy is None:
        return
    if energy["scope"] == "module":
        yield (
            "its watts and joules are the whole module's, CPU and memory included; they do not "
            "compare with the watts of a board"
        )
    gap = energy["gap_frac"]
    if gap is not None and abs(gap) > ENERGY_GAP_FRAC:
        yield f"energy counter and integral of power differ by {gap:+.0%}"


def _of_sensors(device: dict[str, Any]) -> Iterator[str]:
    sensors = device["sensors"] or {"stuck": (), "suspect": ()}
    for channel in sensors["stuck"]:
        yield f"its {channel} sensor is stuck; what it says is left out"
    yield from sensors["suspect"]
    if device["provenance"] != "measured" or not device["coverage"]:
        return
    for reading, share in device["coverage"].items():
        if share is not None and share < COVERAGE_LEAST_FRAC and reading not in device["missing"]:
            yield f"only {share:.0%} of the window has a value of its {name_of(reading)}"


def _of_health(health: dict[str, Any] | None) -> Iterator[str]:
    for words in health["worse"] if health is not None else ():
        yield f"during the run {words}"


def _of_link(pcie: dict[str, Any] | None) -> Iterator[str]:
    if pcie is None or pcie["at_max_frac"] is None or pcie["at_max_frac"] >= LINK_LEAST_FRAC:
        return
    yield (
        f"its PCIe link ran at gen {pcie['gen']} x{pcie['width']} under load; card and slot can "
        f"gen {pcie['gen_max']} x{pcie['width_max']}"
    )


def _of_card(card: dict[str, Any]) -> str:
    names = " and ".join(card["devices"])
    if card["reason"] is not None:
        return f"{names} share the card {card['parent_uuid']}: no perf/W for them: {card['reason']}"
    joules = card["joules_per_unit"]
    return (
        f"{names} share the card {card['parent_uuid']}: its power is for all of them together, "
        f"{joules['mean']:.4g} {joules['unit']}"
    )


def name_of(reading: str) -> str:
    """`power_w` as one says it."""
    return READING_NAMES.get(reading, reading)
