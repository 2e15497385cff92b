"""The judge on seeded numbers: what may freeze, what must not, and what it says."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample

RATE = 10_000.0
POWER = 400.0


def card(device_id="0", **fields):
    return DeviceInfo(device_id, f"GPU-{device_id}", "Test card", "nvidia", "measured", **fields)


class Soak:
    """One card whose channels approach their end exponentially, with seeded noise."""

    def __init__(self, seed=1, *, case_c=0.0, case_tau_s=1200.0, drift=0.0, noise=0.003, cards=1):
        self.rng = np.random.default_rng(seed)
        self.case_c, self.case_tau_s, self.drift, self.noise = case_c, case_tau_s, drift, noise
        self.ids = [str(i) for i in range(cards)]
        self.units = 0.0
        self.t_s = 0

    def rate(self, t_s):
        return RATE * (1 + self.drift * math.exp(-t_s / self.case_tau_s))

    def second(self):
        self.t_s += 1
        t = self.t_s
        normal = self.rng.normal
        rise = 1 - math.exp(-t / 60)
        case = self.case_c * (1 - math.exp(-t / self.case_tau_s))
        samples = []
        for i, device_id in enumerate(self.ids):
            watts = POWER * (1 - 0.03 * math.exp(-t / 60)) * (1 + self.noise * normal())
            samples.append(
                DeviceSample(
                    float(t),
                    device_id,
                    power_w=round(watts, 2),
                    energy_j=round(POWER * t, 1),
                    temperature_c=float(round(30 + 35 * rise + case + i + 0.2 * normal())),
                    sm_clock_mhz=float(
                        15
                        * round(
                            (
                                1800 * (1 + self.drift * math.exp(-t / self.case_tau_s))
                                + 8 * normal()
                            )
                            / 15
                        )
                    ),
                    fan_pct=50.0,
                    power_limit_w=450.0,
                    throttle_reasons=(),
                )
            )
        self.units += self.rate(t) * (1 + self.noise * normal())
        return samples, self.units


def soak(judge, source, seconds, change=None, *, counter=True):
    """Feed `seconds` of readings; `change(sample)` may alter or drop each."""
    verdicts = ()
    for _ in range(seconds):
        samples, units = source.second()
        for sample in samples:
            altered = sample if change is None else change(sample)
            if altered is not None:
                judge.add_sample(altered)
        if counter:
            judge.add_steps(float(source.t_s), units)
        verdicts = judge.evaluate(float(source.t_s))
    return verdicts


def test_a_steady_card_freezes_and_the_interval_covers_the_truth():
    judge = Judge(PROTOCOLS["standard"], [card()])
    (verdict,) = soak(judge, Soak(), 1200)
    assert verdict.state == "steady", verdict.reason
    assert 300 <= verdict.frozen_at_s <= 1000
    (result,) = judge.results()
    rate, power = result.numbers.throughput, result.numbers.power_w
    assert abs(rate.mean - RATE) <= rate.u95 < 0.01 * RATE
    assert abs(power.mean - POWER) <= power.u95 + 0.05
    assert result.numbers.energy_method == "counter"
    assert result.numbers.joules_per_unit.mean == pytest.approx(POWER / RATE, rel=0.01)
    assert set(verdict.channels) == {"rate", "power", "clock", "temperature", "fan"}


def test_a_card_whose_case_still_heats_is_not_frozen():
    judge = Judge(PROTOCOLS["standard"], [card()])
    source = Soak(case_c=18.0, case_tau_s=1500.0, drift=0.06)
    (verdict,) = soak(judge, source, 900)
    assert verdict.state == "settling"
    assert verdict.blocked_by is not None
    assert "to come" in verdict.reason
    low, high = verdict.time_left_s
    assert 0 < low < high


def test_warming_says_what_it_waits_for():
    judge = Judge(PROTOCOLS["smoke"], [card()])
    assert judge.evaluate(0.0)[0].reason.startswith("no progress yet")
    judge.add_phase(0.5, "compile")
    (verdict,) = judge.evaluate(20.0)
    assert (verdict.state, verdict.reason) == ("warming", "compiling")
    (verdict,) = soak(Judge(PROTOCOLS["smoke"], [card()]), Soak(), 40)
    assert verdict.reason == "waiting for the first 60 s of soak"


def test_time_out_says_what_blocked():
    protocol = dataclasses.replace(PROTOCOLS["standard"], timeout_s=900.0)
    judge = Judge(protocol, [card()])
    (verdict,) = soak(judge, Soak(case_c=20.0, case_tau_s=2000.0), 1000)
    assert verdict.state == "not-steady"
    assert verdict.blocked_by == "temperature"
    assert "°C to come" in verdict.reason
    assert judge.is_over
    (result,) = judge.results()
    assert result.numbers.throughput.mean == pytest.approx(RATE, rel=0.01)


def test_extend_puts_off_the_time_out():
    protocol = dataclasses.replace(PROTOCOLS["standard"], timeout_s=600.0)
    judge = Judge(protocol, [card()])
    judge.extend(600.0)
    (verdict,) = soak(judge, Soak(case_c=20.0, case_tau_s=2000.0), 700)
    assert verdict.state == "settling"


def test_close_ends_from_outside_and_keeps_the_last_window():
    judge = Judge(PROTOCOLS["standard"], [card()])
    soak(judge, Soak(), 350)
    (verdict,) = judge.close(350.0, "lost", "GPU is lost", "0")
    assert (verdict.state, verdict.reason) == ("lost", "GPU is lost")
    assert judge.is_over
    assert judge.results()[0].numbers is not None


def test_evaluate_returns_the_same_objects_between_bins():
    judge = Judge(PROTOCOLS["standard"], [card()])
    source = Soak()
    soak(judge, source, 400)
    first = judge.evaluate(404.0)
    assert judge.evaluate(405.0) is first
