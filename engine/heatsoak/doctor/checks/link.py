"""The way to a card and within it: PCIe, and what was measured over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heatsoak.doctor.finding import Finding, ok, unknown
from heatsoak.profiles.cards import card_profiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heatsoak.doctor.machine import Card, Machine

_LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""What one lane of each PCIe generation carries at most, one way (PCI-SIG, encoding taken off)."""
_LINK_LEAST_FRAC = 0.6
"""Pinned copies reach about 0.8 to 0.9 of what the link carries."""
_MEMORY_LEAST_FRAC = 0.6
"""Copies within a card reach about 0.8 to 0.9 of its bandwidth."""
_SPOILS = "transfer-heavy workloads and trainings over several cards; training on one card little"


def pcie(machine: Machine) -> Iterator[Finding]:
    """The link against what card and slot can."""
    for card in machine.boards:
        info = card.info
        if info.integrated or card.problem is not None:
            continue
        gen_max, width_max = info.pcie_gen_max, info.pcie_width_max
        (gen, width), when = _link(card)
        if gen_max is None or width_max is None or gen is None or width is None:
            yield unknown("pcie", "PCIe link", "the driver does not report it", info.device_id)
            continue
        text = f"PCIe gen {gen} x{width} of gen {gen_max} x{width_max} {when}"
        if width < width_max:
            yield Finding(
                "pcie", "warning", info.device_id, f"PCIe x{width} of x{width_max}", text, _SPOILS,
                "try another slot, without a riser; the board's manual says which slots share "
                "lanes",
            )  # fmt: skip
        elif gen < gen_max and when == "under load":
            yield Finding(
                "pcie", "warning", info.device_id, f"PCIe gen {gen} of {gen_max}", text, _SPOILS,
                "look for the slot's PCIe generation in the firmware settings, and for a riser "
                "that cannot keep up",
            )  # fmt: skip
        elif gen < gen_max:
            yield Finding(
                "pcie", "info", info.device_id, "PCIe at rest",
                f"{text}: a link that rests slows down; its speed shows under load",
            )  # fmt: skip
        else:
            yield ok("pcie", "PCIe link", text, info.device_id)


def transfers(machine: Machine) -> Iterator[Finding]:
    """Copies between pinned host memory and the card."""
    for card in machine.boards:
        measures, info = card.measures, card.info
        if measures is None or measures.to_card_bytes_per_s is None or info.integrated:
            continue
        both = [measures.to_card_bytes_per_s, measures.to_host_bytes_per_s or 0.0]
        text = (
            f"pinned memory is copied to it at {both[0] / 1e9:.1f} GB/s and back at "
            f"{both[1] / 1e9:.1f}"
        )
        gen, width = _link(card)[0]
        link = _LANE_BYTES_PER_S.get(gen or 0, 0.0) * (width or 0)
        if not link:
            yield Finding("transfers", "info", info.device_id, "copies", text)
        elif min(both) < _LINK_LEAST_FRAC * link:
            yield Finding(
                "transfers", "warning", info.device_id, "slow copies",
                f"{text}; the link carries {link / 1e9:.0f}", _SPOILS,
                "run the program on the cores of the card's NUMA node, and see whether the memory "
                "of the host has all its channels filled",
            )  # fmt: skip
        else:
            yield ok("transfers", "copies", f"{text}; the link carries {link / 1e9:.0f}",
                     info.device_id)  # fmt: skip


def memory_bandwidth(machine: Machine) -> Iterator[Finding]:
    """Copies within the card's memory against what its profile says."""
    profiles = card_profiles()
    for card in machine.boards:
        measures, info = card.measures, card.info
        if measures is None or measures.within_bytes_per_s is None:
            continue
        rate = measures.within_bytes_per_s
        text = f"copies within its memory read and write {rate / 1e9:.0f} GB/s"
        profile = profiles.get(info.card or "")
        nominal = profile.bandwidth_bytes_per_s if profile else None
        if nominal is None:
            yield Finding("memory-bandwidth", "info", info.device_id, "memory bandwidth", text)
        elif rate < _MEMORY_LEAST_FRAC * nominal:
            yield Finding(
                "memory-bandwidth", "warning", info.device_id, "slow memory",
                f"{text}, {rate / nominal:.0%} of its {nominal / 1e9:.0f}",
                "every workload that memory binds",
                "see whether somebody uses it, or has locked its memory clock (nvidia-smi -rmc)",
            )  # fmt: skip
        else:
            yield ok("memory-bandwidth", "memory bandwidth",
                     f"{text}, {rate / nominal:.0%} of its {nominal / 1e9:.0f}",
                     info.device_id)  # fmt: skip


def _link(card: Card) -> tuple[tuple[int | None, int | None], str]:
    """Generation and width of the link, and when they were read."""
    measures, reading = card.measures, card.reading
    if measures is not None and measures.pcie_gen is not None:
        return (measures.pcie_gen, measures.pcie_width), "under load"
    if reading is None:
        return (None, None), ""
    return (reading.pcie_gen, reading.pcie_width), "at rest"
