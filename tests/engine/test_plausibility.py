"""Readings that cannot be true make their sensor suspect, told once (cases A5, A14 to A16)."""

from __future__ import annotations

import pytest

from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.plausibility import Plausibility
from heatsoak.telemetry.sample import DeviceSample


def told(samples, **info):
    """What is said of a device over some readings, with the time of each sentence."""
    device = DeviceInfo("0", "GPU-0", "Test card", "nvidia", "measured", **info)
    looks = Plausibility(device)
    return [(sample.t_s, text) for sample in samples for text in looks.look(sample)]


def seconds(count, **readings):
    """One reading a second; what is callable is called with the second."""
    return [
        DeviceSample(
            float(t), "0", **{k: v(t) if callable(v) else v for k, v in readings.items()}
        )
        for t in range(count)
    ]  # fmt: skip


def test_a_sound_card_is_not_suspected():
    samples = seconds(
        600, power_w=lambda t: 500.0 + t % 90, energy_j=lambda t: 545.0 * t, temperature_c=70.0,
        utilization_pct=99.0, power_limit_w=575.0, throttle_reasons=("sw_power_cap",),
    )  # fmt: skip
    assert told(samples) == []


def test_a14_draw_far_above_the_limit_is_suspect_only_when_it_lasts():
    lasting = seconds(100, power_w=752.0, power_limit_w=400.0)
    ((t_s, text),) = told(lasting)
    assert t_s == 10.0
    assert "power sensor is suspect: 752 W" in text
    assert "400 W" in text
    spikes = seconds(100, power_w=lambda t: 752.0 if t % 5 else 390.0, power_limit_w=400.0)
    assert told(spikes) == []


def test_a14_the_limit_of_the_card_stands_in_for_one_that_is_not_read():
    assert len(told(seconds(20, power_w=752.0), power_limit_w=400.0)) == 1
    assert told(seconds(20, power_w=752.0)) == []


def test_a16_a_little_over_the_limit_is_normal():
    assert told(seconds(600, power_w=607.8, power_limit_w=600.0)) == []


def test_a14_a_power_cap_that_stays_while_nothing_runs_is_suspect():
    idle = seconds(100, utilization_pct=0.0, throttle_reasons=("sw_power_cap",), power_w=30.0)
    ((t_s, text),) = told(idle, power_limit_w=400.0)
    assert t_s == 60.0
    assert "while it does nothing" in text
    busy = seconds(100, utilization_pct=5.0, throttle_reasons=("sw_power_cap",))
    unknown = seconds(100, utilization_pct=None, throttle_reasons=("sw_power_cap",))
    free = seconds(100, utilization_pct=0.0, throttle_reasons=())
    assert told(busy) == told(unknown) == told(free) == []


@pytest.mark.parametrize(
    ("readings", "is_suspect"),
    [
        ({"utilization_pct": 99.0}, True),
        ({"power_w": 300.0, "power_limit_w": 400.0}, True),
        ({"utilization_pct": 0.0, "power_w": 20.0, "power_limit_w": 400.0}, False),
    ],
)
def test_a15_no_loaded_card_is_at_0_degrees(readings, is_suspect):
    sentences = told(seconds(60, temperature_c=0.0, **readings))
    assert len(sentences) == is_suspect
    assert told(seconds(60, temperature_c=None, **readings)) == []


def test_a15_what_the_driver_cannot_mean_is_told_once_a_reading():
    odd = (("temperature_c", 255.0), ("power_w", 4294967295.0))
    samples = [DeviceSample(float(t), "0", rejected=odd) for t in range(10)]
    assert told(samples) == [
        (0.0, "its temperature is left out: the driver answers 255"),
        (0.0, "its power is left out: the driver answers 4294967295"),
    ]


def test_a5_a_counter_that_begins_anew_or_jumps_is_told():
    ((t_s, text),) = told(seconds(20, energy_j=lambda t: 400.0 * (t if t < 7 else t - 7)))
    assert t_s == 7.0
    assert "began anew" in text
    jump = seconds(20, energy_j=lambda t: 400.0 * t + (9.8e9 if t >= 7 else 0.0))
    ((t_s, text),) = told(jump, power_limit_w=575.0)
    assert t_s == 7.0
    assert "9800000400 J" in text
    assert told(jump) == []  # without a limit nobody can say


def test_a5_a_counter_that_is_renewed_in_steps_is_sound():
    steps = seconds(100, energy_j=lambda t: 575.0 * (t // 2 * 2))
    assert told(steps, power_limit_w=575.0) == []
