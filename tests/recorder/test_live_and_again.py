"""What was said live, `judge` says of the file: the same freeze, window and numbers."""

from __future__ import annotations

import pytest

from heatsoak.recorder import client
from heatsoak.session.rejudge import judge_file
from heatsoak.session.result import load_result

FIGURES = ("throughput", "power_w", "sm_clock_mhz", "temperature_c", "joules_per_unit")


@pytest.mark.parametrize(
    ("devices", "protocol", "speed"),
    [
        ("synthetic:h100-sxmx2", "smoke", 60.0),
        ("synthetic:h100-sxm+cap,synthetic:h100-sxm+disturb@200", "quick", 200.0),
    ],
)
def test_a_session_judged_again_says_what_was_said_live(begin, devices, protocol, speed):
    run = begin(devices, protocol=protocol, speed=speed)
    client.wait_ended(run, 60.0)
    live = {device["device_id"]: device for device in load_result(run.path)["devices"]}
    again = {line["device"]: line for line in judge_file(run.path)}
    assert live.keys() == again.keys()
    for device_id, device in live.items():
        verdict, line = device["verdict"], again[device_id]
        assert verdict["state"] == "steady", verdict["reason"]
        for key in ("state", "flags", "frozen_at_s", "window_start_s", "window_s", "reason"):
            assert line[key] == verdict[key]
        for name in FIGURES:
            for part in ("mean", "u95"):
                assert line[name][part] == device["sustained"][name][part]
