"""What stands behind a window beside its figures (cases A2, A20, A21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heatsoak.recorder.evidence import KEPT_BINS, MUTE_READINGS, Evidence
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

INFO = DeviceInfo("0", "GPU-a", "a card", "nvidia", "measured", pcie_gen_max=5, pcie_width_max=16,
                  missing={"fan_pct": "no fan"})  # fmt: skip


def fed(seconds=100, info=INFO, **readings):
    """Evidence of one reading a second; a callable is asked for the value of each."""
    evidence = Evidence(info)
    for t in range(seconds):
        values = {name: give(t) if callable(give) else give for name, give in readings.items()}
        evidence.add(DeviceSample(float(t), "0", **values))
    return evidence


def test_a2_values_are_counted_and_not_readings():
    evidence = fed(power_w=lambda t: 400.0 if t % 2 else None, temperature_c=60.0)
    coverage = evidence.entry(0.0, 100.0)["coverage"]
    assert coverage["power_w"] == pytest.approx(0.5)
    assert coverage["temperature_c"] == 1.0
    assert coverage["sm_clock_mhz"] == 0.0  # The driver knows of it and never gave one.
    assert coverage["fan_pct"] is None


def test_a2_seconds_without_a_reading_count_as_missing():
    evidence = Evidence(INFO)
    for t in range(100):
        if not 40 <= t < 80:
            evidence.add(DeviceSample(float(t), "0", power_w=400.0))
    assert evidence.entry(0.0, 100.0)["coverage"]["power_w"] == pytest.approx(0.6)
    assert evidence.entry(40.0, 40.0)["coverage"]["power_w"] == 0.0


def test_a2_what_has_no_value_in_the_first_readings_is_told_once():
    evidence = Evidence(INFO)
    told = [evidence.add(DeviceSample(float(t), "0", power_w=400.0)) for t in range(30)]
    assert [t for t, is_told in enumerate(told) if is_told] == [MUTE_READINGS - 1]
    assert "temperature_c" in evidence.mute
    assert not {"power_w", "fan_pct"} & set(evidence.mute)


def test_a21_the_link_of_the_window_and_how_long_it_was_whole():
    evidence = fed(pcie_gen=lambda t: 5 if t < 50 else 2, pcie_width=16)
    whole = {"gen": 5, "width": 16, "gen_max": 5, "width_max": 16}
    assert evidence.entry(0.0, 50.0)["pcie"] == {**whole, "at_max_frac": 1.0}
    assert evidence.entry(50.0, 50.0)["pcie"] == {**whole, "gen": 2, "at_max_frac": 0.0}
    assert evidence.entry(20.0, 40.0)["pcie"] == {**whole, "at_max_frac": 0.75}


def test_a20_fewer_lanes_are_not_the_maximum_either():
    evidence = fed(pcie_gen=5, pcie_width=8)
    assert evidence.entry(0.0, 50.0)["pcie"]["at_max_frac"] == 0.0
    assert fed(power_w=1.0).entry(0.0, 50.0)["pcie"] is None


def test_without_a_window_only_the_sensors_are_told():
    entry = fed(power_w=1.0).entry(None, None)
    assert entry == {"coverage": None, "pcie": None, "mig": None,
                     "sensors": {"stuck": [], "suspect": []}}  # fmt: skip
    assert tuple(sorted(entry)) == tuple(sorted(Evidence.KEYS))


def test_a_day_of_readings_takes_no_more_memory_than_an_hour_and_a_half():
    evidence = Evidence(INFO)
    for t in range(0, 86_400, 10):
        evidence.add(DeviceSample(float(t), "0", power_w=1.0))
    assert len(evidence._bins) == KEPT_BINS


def test_b3_slices_of_others_count_while_they_were_busy_in_the_window():
    evidence = Evidence(replace(INFO, mig_parent_uuid="GPU-p", mig_profile="1g.10gb"))
    assert evidence.see_busy(100.0, ["MIG-a", "MIG-b"]) == ["MIG-a", "MIG-b"]
    assert evidence.see_busy(700.0, ["MIG-a"]) == []
    mig = evidence.entry(600.0, 300.0)["mig"]
    assert (mig["parent_uuid"], mig["profile"]) == ("GPU-p", "1g.10gb")
    assert mig["busy_siblings"] == ["MIG-a"]
    assert evidence.entry(None, None)["mig"]["busy_siblings"] == ["MIG-a", "MIG-b"]
