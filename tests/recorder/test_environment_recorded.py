"""Every run records what the machine was like when it began."""

from __future__ import annotations

from heatsoak.recorder import client
from heatsoak.session.result import load_result


def test_a_run_on_a_card_records_driver_settings_and_warnings(nvml, tiny, begin, until):
    nvml.play("one-card", "card 0 nvmlDeviceGetEnforcedPowerLimit 450000")
    run = begin("0", workload="tiny")
    until(lambda: client.status(run)["jobs"][0]["units_done"])
    seen = load_result(run.path)["session"]["environment"]
    assert seen["driver"]["version"] == "580.95.05"
    assert seen["host"]["usable_cores"] >= 1
    assert seen["training"]["python"]
    assert [device["power_limit_w"] for device in seen["devices"]] == [450.0]
    assert ("power-limit", "0") in {(f["id"], f["device_id"]) for f in seen["findings"]}
