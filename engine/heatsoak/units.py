"""The units of counters and readings. Standard library only, runs on Python 3.9."""

from __future__ import annotations

COUNTED_UNITS = ("tokens", "images", "samples")
"""What a workload's counter `units_done` may count."""

BYTES_PER_MIB = 1024 * 1024
BYTES_PER_GIB = 1024 * BYTES_PER_MIB
JOULES_PER_KWH = 3.6e6

READING_UNITS = {
    "power_w": "W",
    "energy_j": "J",
    "temperature_c": "°C",
    "sm_clock_mhz": "MHz",
    "mem_clock_mhz": "MHz",
    "utilization_pct": "%",
    "memory_used_bytes": "B",
    "fan_pct": "%",
    "power_limit_w": "W",
}
"""The printed unit of each numeric reading of a device sample, by the name of its column."""
