"""Who else is on a card, and what it does before the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heatsoak.doctor.files import read_text
from heatsoak.doctor.finding import Finding, ok, unknown
from heatsoak.units import BYTES_PER_GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Card, Machine
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample
    from heatsoak.telemetry.surroundings import CardUser

_UNSEEN_BYTES = BYTES_PER_GIB
"""A card that nobody uses holds some hundred megabytes for its driver."""
_BUSY_PCT = 5.0
_WARM_MARGIN_C = 25.0
"""This near to its limit before anything runs, a card is hot."""
_WAIT = "wait until they have ended, or take another card"


def users(machine: Machine) -> Iterator[Finding]:
    """Other processes on the card."""
    for card in machine.boards:
        if card.problem is not None or card.reading is None:
            continue
        device_id = card.info.device_id
        computing = [user for user in card.users or () if user.kind == "compute"]
        drawing = [user for user in card.users or () if user.kind == "graphics"]
        if card.soaked_by:
            yield Finding(
                "users", "warning", device_id, "being soaked",
                f"heatsoak run {', '.join(card.soaked_by)} is on it",
                "a second load would spoil both", "wait for it, or heatsoak stop it",
            )  # fmt: skip
        if computing:
            yield Finding(
                "users", "warning", device_id, "in use",
                f"other programs compute on it: {', '.join(map(_named, computing))}",
                "they share its power, memory and heat with the run", _WAIT,
            )  # fmt: skip
        elif (unseen := _unseen(card)) is not None:
            yield unseen
        elif drawing:
            yield Finding(
                "users", "info", device_id, "draws a screen",
                f"a screen is drawn on it: {', '.join(map(_named, drawing))}",
                "a little of its time and memory, more when something moves on the screen",
                "leave the screen alone during the run, or use another card for it",
            )  # fmt: skip
        elif card.users is None:
            yield unknown("users", "other programs", card.users_problem, device_id)
        elif not card.soaked_by:
            yield ok("users", "no other program", "nobody else is on it", device_id)


def load(machine: Machine) -> Iterator[Finding]:
    """Whether the card works before the run, and whether it is still hot from something."""
    for card in machine.boards:
        reading, info = card.reading, card.info
        if reading is None or card.soaked_by:
            continue
        if reading.utilization_pct is not None and reading.utilization_pct > _BUSY_PCT:
            yield Finding(
                "load", "warning", info.device_id, f"busy ({reading.utilization_pct:.0f} %)",
                f"it works at {reading.utilization_pct:.0f} % before the run begins",
                "the run shares it with whatever that is", _WAIT,
            )  # fmt: skip
        now_c, margin_c = reading.temperature_c, _margin_c(reading, info)
        if now_c is not None and margin_c is not None and margin_c < _WARM_MARGIN_C:
            yield Finding(
                "load", "info", info.device_id, f"hot ({now_c:.0f} °C)",
                f"it is at {now_c:.0f} °C before the run, and slows down {margin_c:.0f} °C above",
                "the boost peak at the beginning, which is taken on a cooler card",
                "let it cool down first, and see that its fans turn and its air is cool",
            )  # fmt: skip


def _margin_c(reading: DeviceSample, info: DeviceInfo) -> float | None:
    """Degrees to the temperature at which the card slows down."""
    now_c, limit_c = reading.temperature_c, info.temperature_limit_c
    if now_c is not None and limit_c is not None:
        return limit_c - now_c
    return reading.temperature_margin_c


def _unseen(card: Card) -> Finding | None:
    """Memory that is in use though no process is listed: a container shows only its own."""
    used = card.reading.memory_used_bytes if card.reading else None
    if used is None or used < _UNSEEN_BYTES or card.info.memory_kind == "unified":
        return None
    if card.users or card.soaked_by:
        return None
    return Finding(
        "users", "warning", card.info.device_id, "in use by somebody unseen",
        f"{used / BYTES_PER_GIB:.1f} GiB of its memory are in use, and no process is listed: "
        "another container or user, or one that ended badly",
        "it shares its power, memory and heat with the run",
        "look on the host (nvidia-smi, fuser -v /dev/nvidia*)",
    )  # fmt: skip


def _named(user: CardUser) -> str:
    name = read_text(Path(f"/proc/{user.pid}/comm"))
    words = f"{name} (pid {user.pid})" if name else f"pid {user.pid}"
    if user.memory_bytes is None:
        return words
    return f"{words} with {user.memory_bytes / BYTES_PER_GIB:.1f} GiB"
