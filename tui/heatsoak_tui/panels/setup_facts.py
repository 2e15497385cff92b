"""What is known of the card under the cursor, and what it will not report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from heatsoak_tui.format import number, wrap
from heatsoak_tui.widgets.draft_canvas import DraftCanvas

if TYPE_CHECKING:
    from heatsoak.telemetry.device import DeviceInfo
    from heatsoak.telemetry.sample import DeviceSample
    from heatsoak_tui.widgets.canvas import Line

WORDS = {
    "power_w": "power",
    "energy_j": "energy counter",
    "temperature_c": "temperature",
    "sm_clock_mhz": "clock",
    "mem_clock_mhz": "memory clock",
    "utilization_pct": "load",
    "memory_used_bytes": "memory",
    "fan_pct": "fan",
    "power_limit_w": "power limit",
    "throttle_reasons": "throttle reasons",
}


class SetupFacts(DraftCanvas):
    """Two lines of facts."""

    @override
    def draw(self, width: int, height: int) -> list[Line]:
        """Of the card under the cursor, else of the first chosen one."""
        draft = self.draft
        at = draft.cursor["cards"]
        devices = draft.devices
        if draft.pane != "cards" or at >= len(devices):
            devices, at = draft.chosen_devices, 0
        if at >= len(devices):
            return []
        info = devices[at]
        text = " · ".join(facts(info, draft.samples.get(info.device_id)))
        head = f"  {info.device_id}  "
        lines: list[Line] = [
            [(head if i == 0 else " " * len(head), "muted"), (line, "text")]
            for i, line in enumerate(wrap(text, width - len(head), max(1, height - 1)))
        ]
        missing = [
            WORDS[key]
            for key, why in info.missing.items()
            if key in WORDS and not why.startswith("not a reading of")
        ]
        if missing:
            words = f"not reported: {', '.join(missing)}; the verdict stands on what is"
            lines += [
                [(" " * len(head), "text"), (line, "warn")]
                for line in wrap(words, width - len(head), 2)
            ]
        return lines


def facts(info: DeviceInfo, sample: DeviceSample | None) -> list[str]:
    """What would make one run differ from another."""
    found = [info.name]
    if info.cores is not None:
        found.append(f"{info.cores} cores")
    if info.driver_version is not None:
        found.append(f"driver {info.driver_version}")
    if info.cuda_version is not None:
        found.append(f"CUDA {info.cuda_version}")
    if info.power_limit_w is not None:
        default = info.power_limit_default_w
        note = "" if default is None else " (default)"
        if default is not None and abs(default - info.power_limit_w) > 0.5:
            note = f" (default {number(default, 0)} W)"
        found.append(f"power limit {number(info.power_limit_w, 0)} W{note}")
    if info.ecc_is_on is not None:
        found.append(f"ECC {'on' if info.ecc_is_on else 'off'}")
    if info.temperature_limit_c is not None:
        found.append(f"slows down at {number(info.temperature_limit_c, 0)} °C")
    if info.pcie_gen_max is not None and info.pcie_width_max is not None:
        link = f"PCIe {info.pcie_gen_max} x{info.pcie_width_max}"
        if sample is not None and sample.pcie_width not in (None, info.pcie_width_max):
            link = f"PCIe x{sample.pcie_width} of x{info.pcie_width_max}"
        found.append(link)
    return found
