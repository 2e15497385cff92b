"""Readings without a chart of their own, beside the charts."""

from __future__ import annotations

import pytest

from heatsoak.session.rows import Batch
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak_tui.panels.aside import reading_lines
from heatsoak_tui.run_view import RunView

INFO = DeviceInfo("0", "GPU-1", "NVIDIA GeForce RTX 5090", "nvidia", "measured")
ALL = {
    "power_instant_w": 543.4, "memory_temperature_c": 84.0, "pstate": 1, "pcie_gen": 5,
    "pcie_width": 16,
}  # fmt: skip


def texts(width=40, **readings):
    view = RunView()
    sample = DeviceSample(1.0, "0", power_w=541.0, **readings)
    view.apply(Batch({"state": "recording"}, devices=(INFO,), samples=(sample,)))
    return ["".join(text for text, _ in line) for line in reading_lines(view, "0", width)]


def test_what_is_polled_is_shown():
    shown = " ".join(" ".join(texts(80, **ALL)).split())
    assert shown == "SENSORS instant 543 W, memory 84 °C, P1, PCIe 5 x16"


@pytest.mark.parametrize("width", [24, 30, 38, 80])
def test_it_fits(width):
    lines = texts(width, **ALL)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 5
    assert any("memory 84 °C" in line for line in lines)  # never broken


def test_what_is_not_reported_is_not_there():
    assert texts() == []
    assert texts(pcie_gen=5) == []
    assert texts(pstate=0) == ["", "SENSORS   P0"]
