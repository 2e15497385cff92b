"""Why a card's clock is held down: NVML's bit mask in the names of `THROTTLE_REASONS`."""

from __future__ import annotations

REASONS = {
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake_slowdown",
    0x200: "board_limit",
    0x400: "reliability",
}
APPLICATION_CLOCKS = 0x002
STATE_BITS = 0x001 | APPLICATION_CLOCKS | 0x100
"""Idle, application clocks, display clock: states, not throttling."""


def decode_reasons(mask: int) -> tuple[str, ...]:
    """Names of the reasons in a clock event mask; unknown bits as hex, states left out."""
    names = _KNOWN.get(mask)
    if names is None:
        names = _KNOWN[mask] = _decode(mask)
    return names


def _decode(mask: int) -> tuple[str, ...]:
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return tuple(REASONS.get(bit, hex(bit)) for bit in bits if not bit & STATE_BITS)


_KNOWN: dict[int, tuple[str, ...]] = {}
"""Masks decoded so far: a card shows a handful."""
