"""What a reader of a result has to know before using its numbers, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heatsoak.steady_state.verdict import FINAL_STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heatsoak.session.rows import JobRow

ENERGY_GAP_FRAC = 0.05
"""The energy counter and the integral of power should agree better than this."""
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
    meta: dict[str, str], jobs: Sequence[JobRow], devices: Sequence[dict[str, Any]]
) -> list[str]:
    """The sentences of `warnings[]`, the gravest first.

    Args:
        meta: of the session.
        jobs: its jobs.
        devices: the entries of `devices[]`.
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
    return found


def _of_device(device: dict[str, Any]) -> Iterator[str]:
    verdict = device["verdict"]
    if device["provenance"] != "measured":
        yield f"{device['provenance']} figures; not measured on a real card"
    if verdict and verdict["state"] in FINAL_STATES and not device["sustained"]:
        yield f"{verdict['state']}, so nothing was frozen: {verdict['reason']}"
    for flag in verdict["flags"] if verdict else ():
        if flag in FLAG_WORDS:
            yield FLAG_WORDS[flag]
    sustained = device["sustained"]
    if sustained and not sustained["joules_per_unit"]:
        why = "power is not reported" if not sustained["power_w"] else "no units were counted"
        yield f"no energy a unit: {why}"
    gap = device["energy"]["gap_frac"] if device["energy"] else None
    if gap is not None and abs(gap) > ENERGY_GAP_FRAC:
        yield f"energy counter and integral of power differ by {gap:+.0%}"
