"""What the devices report, and what they have counted of their own defects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok
from heatsoak.session.warnings import limits_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Machine
    from heatsoak.telemetry.health import DeviceHealth


def readings(machine: Machine) -> Iterator[Finding]:
    """What will be missing, and which verdicts that rules out."""
    for card in (*machine.cards, *machine.others):
        info = card.info
        if not card.is_asked or card.problem is not None:
            continue
        limits = limits_of(info.missing)
        for words in limits:
            yield Finding(
                "readings", "info", info.device_id, "not reported", words,
                "", "",
            )  # fmt: skip
        if info.power_scope == "module":
            yield Finding(
                "readings", "info", info.device_id, "watts of a module",
                "its watts are those of a whole module with its CPU",
                "they do not compare with the watts of a board", "",
            )  # fmt: skip
        if not limits:
            yield ok("readings", "readings", "it reports all that a verdict stands on",
                     info.device_id)  # fmt: skip


def implausible(machine: Machine) -> Iterator[Finding]:
    """Readings that cannot be right."""
    for card in machine.boards:
        rejected = card.reading.rejected if card.reading is not None else ()
        if rejected:
            named = ", ".join(f"{name_of(reading)} ({value:g})" for reading, value in rejected)
            yield Finding(
                "implausible", "warning", card.info.device_id, "a sensor that cannot be right",
                f"what it says cannot be right and is left out: {named}",
                "the verdict stands on fewer signals",
                "update driver and firmware; a broken card may do this too",
            )  # fmt: skip


def defects(machine: Machine) -> Iterator[Finding]:
    """Memory errors and rows that wait to be replaced."""
    for card in machine.boards:
        health, device_id = card.health, card.info.device_id
        if health is None or not _is_told(health):
            continue
        words = _grave(health)
        if words:
            yield Finding(
                "defects", "warning", device_id, "memory defects", f"its memory has {words}",
                "a training may end, or compute wrong numbers",
                "reset the card (nvidia-smi -r, as root) or reboot; if they come back, have the "
                "card replaced",
            )  # fmt: skip
        else:
            yield ok("defects", "no memory defects", "no memory error is uncorrected or pending",
                     device_id)  # fmt: skip


def _is_told(health: DeviceHealth) -> bool:
    return any(
        value is not None
        for value in (
            health.ecc_uncorrected, health.remap_is_pending, health.remap_has_failed,
            health.retirement_is_pending,
        )
    )  # fmt: skip


def _grave(health: DeviceHealth) -> str:
    words = [
        f"{health.ecc_uncorrected} errors that could not be corrected"
        if health.ecc_uncorrected
        else "",
        "a row that waits for a reset to be replaced" if health.remap_is_pending else "",
        "a row that could not be replaced" if health.remap_has_failed else "",
        "a page that waits for a reset to be taken out of use"
        if health.retirement_is_pending
        else "",
    ]
    return ", ".join(filter(None, words))
