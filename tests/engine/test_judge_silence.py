"""Nothing freezes of a device that does not answer (case C3), live or judged again."""

from __future__ import annotations

import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS, UNHEARD_S
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

INFO = DeviceInfo("0", "GPU-a", "a card", "nvidia", "measured", power_limit_w=575.0)


def judged(until_s, *, silent_from_s, answers_at_s=None, period_s=1.0):
    """The verdict of a card whose counter goes on while it is silent."""
    judge = Judge(PROTOCOLS["quick"], [INFO])
    judge.add_phase(0.0, "train")
    next_s = 0.0
    for t in range(until_s):
        is_silent = t >= silent_from_s and (answers_at_s is None or t < answers_at_s)
        if not is_silent and t >= next_s:
            next_s = t + period_s
            wobble = (t * 7919) % 13 - 6
            judge.add_sample(
                DeviceSample(float(t), "0", power_w=450.0 + wobble, temperature_c=60.0,
                             sm_clock_mhz=2400.0 + wobble, fan_pct=50.0)
            )  # fmt: skip
        judge.add_steps(float(t), 100.0 * t + (t * 31) % 7)
        judge.evaluate(float(t))
        if judge.is_over:
            break
    (result,) = judge.results()
    return result.verdict


@pytest.mark.parametrize("silent_from_s", [0, 100, 250])
def test_c3_a_card_that_falls_silent_is_not_frozen_though_its_counter_goes_on(silent_from_s):
    usual = judged(2400, silent_from_s=1e9)
    assert usual.state == "steady"
    assert silent_from_s + UNHEARD_S < usual.frozen_at_s
    verdict = judged(2400, silent_from_s=silent_from_s)
    assert verdict.state in ("settling", "holding")
    assert "0 does not answer" in verdict.reason


def test_c3_a_card_that_answers_again_can_be_frozen():
    verdict = judged(2400, silent_from_s=200, answers_at_s=600)
    assert verdict.state == "steady"
    assert verdict.frozen_at_s > 600


def test_c3_a_silence_is_no_window_of_its_own():
    """The first answer after a long silence must not freeze what throughput alone has held."""
    verdict = judged(2400, silent_from_s=100, answers_at_s=900)
    assert verdict.frozen_at_s > 900 + 60
    assert {"power", "clock"} <= set(verdict.channels)


def test_a_log_with_a_reading_every_half_minute_is_not_silent():
    assert judged(2600, silent_from_s=1e9, period_s=30.0).state == "steady"
