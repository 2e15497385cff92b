"""Synthetic cards: their physics, their faults, and that they say what they are."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from heatsoak.errors import UsageError
from heatsoak.profiles.cards import card_profiles
from heatsoak.telemetry.device import DeviceLostError
from heatsoak.telemetry.sample import READINGS
from heatsoak.telemetry.synthetic_spec import Fault, parse_spec
from heatsoak.telemetry.thermal_model import STEP_S, ThermalModel
from heatsoak.telemetry.vendors.synthetic import SyntheticCard


def card(card_id="rtx-5090", *, ordinal=0, seed=1, faults=()):
    return SyntheticCard(card_profiles()[card_id], ordinal, seed, faults)


def mean(samples, reading):
    return sum(getattr(sample, reading) for sample in samples) / len(samples)


def run(device, until_s, *, from_s=0, period_s=1.0):
    """Samples and counter, once a period, of a card whose load began at `from_s`."""
    device.start_load(from_s)
    ticks = [from_s + k * period_s for k in range(int((until_s - from_s) / period_s) + 1)]
    both = [(device.read(t_s), device.units_done(t_s)) for t_s in ticks]
    return [sample for sample, _ in both], [units for _, units in both]


def test_it_says_that_it_is_synthetic():
    info = card(ordinal=1).info
    assert info.device_id == "synthetic-1"
    assert info.uuid == "SYNTHETIC-RTX-5090-1"
    assert info.name == "SYNTHETIC GeForce RTX 5090"
    assert (info.kind, info.provenance, info.card) == ("synthetic", "synthetic", "rtx-5090")
    assert info.power_limit_w == 575
    assert info.missing == {}


@pytest.mark.parametrize("card_id", ["rtx-5090", "h100-sxm", "rtx-pro-6000-ws"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_noisy_run_ends_at_the_asymptote(card_id, seed):
    device = card(card_id, seed=seed)
    asymptote = device.asymptote()
    device.start_load(0.0)
    device.read(12_000.0)
    before = device.units_done(12_000.0)
    samples = [device.read(12_000.0 + k) for k in range(3600)]
    rate = (device.units_done(15_600.0) - before) / 3600
    assert rate == pytest.approx(asymptote.rate_per_s, rel=0.003)
    assert mean(samples, "power_w") == pytest.approx(asymptote.power_w, rel=0.003)
    assert mean(samples, "sm_clock_mhz") == pytest.approx(asymptote.sm_clock_mhz, rel=0.003)
    assert mean(samples, "temperature_c") == pytest.approx(asymptote.temperature_c, abs=0.7)
    counter_w = (samples[-1].energy_j - samples[0].energy_j) / 3599
    assert counter_w == pytest.approx(asymptote.power_w, rel=0.003)


def test_a_naive_rule_fails_on_it_and_a_patient_one_does_not():
    device = card()
    sustained = device.asymptote().rate_per_s
    _, units = run(device, 1800)

    def rate(start_s, end_s):
        return (units[end_s] - units[start_s]) / (end_s - start_s)

    assert rate(10, 40) > 1.04 * sustained
    assert rate(180, 300) > 1.01 * sustained
    assert abs(rate(1200, 1500) / sustained - 1) < 0.008
    # Between, the case still heats: the rate falls by something one can see.
    assert rate(300, 420) > 1.005 * rate(1500, 1620)


def test_three_time_constants_show():
    device = card("h100-sxm")
    samples, _ = run(device, 4000)
    t_c = [sample.temperature_c for sample in samples]
    idle_c, final_c = t_c[0], mean(samples[-300:], "temperature_c")
    rise_c = final_c - idle_c
    assert 0.2 < (t_c[3] - idle_c) / rise_c < 0.4
    # The heat sink has settled after four of its time constants, the case has hardly begun.
    assert 0.8 < (t_c[200] - idle_c) / rise_c < 0.95
    assert mean(samples[580:620], "temperature_c") < final_c - 1
    assert all(value == int(value) for value in t_c)


def test_clock_falls_as_leakage_grows_under_the_power_limit():
    device = card()
    samples, _ = run(device, 1500)
    assert mean(samples[30:60], "sm_clock_mhz") > 1.02 * mean(samples[1200:], "sm_clock_mhz")
    assert mean(samples[60:90], "power_w") == pytest.approx(575, rel=0.01)
    assert samples[900].throttle_reasons == ("sw_power_cap",)
    assert all(sample.sm_clock_mhz % 15 == 0 for sample in samples)
    assert samples[600].fan_pct > samples[5].fan_pct + 20
    noise = [sample.power_w / 575 - 1 for sample in samples[600:]]
    spread = (sum(value * value for value in noise) / len(noise)) ** 0.5
    assert 0.004 < spread < 0.012


def test_the_fan_comes_down_later_than_it_went_up():
    device = card()
    model = ThermalModel(device._parameters)
    model.has_load = True

    def cap(frac, seconds):
        model.parameters = replace(model.parameters, clock_cap_frac=frac)
        for _ in range(int(seconds / STEP_S)):
            model.step()
        return model.fan_pct, model.die_c

    hot_pct, hot_c = cap(1.0, 10_000)
    # A little cooler: the fan stays as it is. Much cooler: it follows. And up again at once.
    same_pct, cooler_c = cap(0.9, 20)
    assert 1.0 < hot_c - cooler_c < 4.0
    assert same_pct == pytest.approx(hot_pct, abs=0.01)
    low_pct, low_c = cap(0.7, 300)
    assert low_c < hot_c - 8
    assert low_pct < hot_pct - 8
    high_pct, high_c = cap(0.9, 300)
    assert high_c > low_c
    assert low_pct < high_pct < hot_pct


def test_without_load_it_idles_and_counts_nothing():
    device = card()
    sample = device.read(600.0)
    assert device.units_done(600.0) == 0
    assert sample.power_w < 60
    assert sample.utilization_pct == 0
    assert sample.throttle_reasons == ()
    assert sample.sm_clock_mhz == 210
    device.start_load(600.0)
    assert device.units_done(600.0) == 0
    assert device.units_done(660.0) > 0
    device.stop_load(660.0)
    done = device.units_done(661.0)
    assert device.units_done(900.0) == done
    assert device.read(900.0).sm_clock_mhz == 210


def test_the_counter_advances_in_whole_steps_and_never_back():
    device = card()
    device.start_load(0.0)
    ticks = [30 + 0.0137 * k for k in range(5000)]
    counts = [device.units_done(t_s) for t_s in ticks]
    assert counts == sorted(counts)
    assert all(count % device.units_per_step == 0 for count in counts)
    assert len(set(counts)) > 300
    rate = (counts[-1] - counts[0]) / (ticks[-1] - ticks[0])
    assert rate == pytest.approx(15_000, rel=0.05)
    assert device.units_done(ticks[-1] - 0.3) <= counts[-1]


def test_the_counter_is_exact_although_the_sensors_are_read_ahead_of_it():
    ahead, alone = card(), card()
    for device in (ahead, alone):
        device.start_load(0.0)
    for k in range(10_000):
        if k % 100 == 0:
            ahead.read(k + 120.0)
        assert ahead.units_done(float(k)) == alone.units_done(float(k))


def test_a_seed_fixes_everything_however_often_it_is_read():
    often, seldom, other = card(seed=7), card(seed=7), card(seed=8)
    for device in (often, seldom, other):
        device.start_load(0.0)
    for k in range(100):
        often.read(6.0 * k)
    assert often.units_done(600.0) == seldom.units_done(600.0)
    assert often.read(600.0).energy_j == seldom.read(600.0).energy_j
    assert other.read(600.0).energy_j != seldom.read(600.0).energy_j


def test_two_cards_of_a_run_are_not_alike():
    assert card(ordinal=0).asymptote() != card(ordinal=1).asymptote()


def test_the_rate_scales_with_the_measured_rate_else_with_bandwidth():
    measured = card_profiles()["rtx-5090"].bf16_gemm_measured_flops
    expected = 0.4 * sum(measured) / 2 / 6e9
    assert card().asymptote().rate_per_s == pytest.approx(expected, rel=0.1)
    assert card_profiles()["rtx-6000-ada"].bf16_gemm_measured_flops is None
    expected = 0.4 * 960e9 * 150 / 6e9
    assert card("rtx-6000-ada").asymptote().rate_per_s == pytest.approx(expected, rel=0.1)


def test_a_passive_card_has_no_fan_and_says_so():
    device = card("a100-sxm-80")
    assert device.read(5.0).fan_pct is None
    assert "fan_pct" in device.info.missing


def test_lost():
    device = card(faults=[Fault("lost", 100.0)])
    run(device, 99)
    with pytest.raises(DeviceLostError):
        device.read(100.0)
    assert device.units_done(400.0) == device.units_done(101.0)


def test_hang_blocks_the_reading_and_not_the_counter():
    device = card(faults=[Fault("hang", 100.0)])
    run(device, 99)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(device.read(100.0)), daemon=True)
    thread.start()
    assert device.units_done(200.0) > device.units_done(100.0) > 0
    assert not answers
    assert thread.is_alive()
    device.close()
    thread.join(20.0)
    assert not thread.is_alive()


def test_stuck_freezes_every_sensor_while_the_work_goes_on():
    device = card(faults=[Fault("stuck", 100.0, 50.0)])
    samples, units = run(device, 200)
    frozen = {tuple(getattr(sample, name) for name in READINGS) for sample in samples[100:150]}
    assert len(frozen) == 1
    assert [sample.t_s for sample in samples[100:150]] == list(range(100, 150))
    assert units[149] > units[100]
    assert samples[151].energy_j > samples[149].energy_j
    assert len({sample.power_w for sample in samples[151:]}) > 10


def test_dropout_reports_nothing():
    device = card(faults=[Fault("dropout", 100.0, 20.0)])
    samples, _ = run(device, 140)
    for t_s, sample in enumerate(samples):
        absent = all(getattr(sample, name) is None for name in READINGS)
        assert absent == (100 <= t_s < 120)


def test_throttle_lowers_clock_and_rate_and_gives_its_reason():
    device = card(faults=[Fault("throttle", 300.0, 60.0)])
    samples, units = run(device, 420)
    assert "sw_thermal_slowdown" in samples[330].throttle_reasons
    assert "sw_thermal_slowdown" not in samples[290].throttle_reasons
    assert mean(samples[310:350], "sm_clock_mhz") < 0.9 * mean(samples[250:290], "sm_clock_mhz")
    assert units[350] - units[310] < 0.9 * (units[290] - units[250])
    assert units[410] - units[370] > 0.98 * (units[290] - units[250])


def test_disturb_takes_a_fifth_of_the_rate():
    device = card(faults=[Fault("disturb", 300.0, 60.0)])
    _, units = run(device, 420)
    assert (units[355] - units[305]) / (units[295] - units[245]) == pytest.approx(0.8, abs=0.02)


def test_an_hour_costs_little():
    device = card()
    device.start_load(0.0)
    began = time.process_time()
    device.read(3600.0)
    assert time.process_time() - began < 0.5
    began = time.process_time()
    device.asymptote()
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("text", "name", "count", "faults"),
    [
        ("synthetic:rtx-5090", "rtx-5090", 1, ()),
        ("synthetic:rtx-5090x2", "rtx-5090", 2, ()),
        ("synthetic:h100-sxmx16", "h100-sxm", 16, ()),
        (
            "synthetic:rtx-5090x2+lost@600+throttle@60.5:30",
            "rtx-5090",
            2,
            (Fault("lost", 600.0), Fault("throttle", 60.5, 30.0)),
        ),
    ],
)
def test_specifications(text, name, count, faults):
    spec = parse_spec(text)
    assert (spec.card, spec.count, spec.faults) == (name, count, faults)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("synthetic", "name a card"),
        ("synthetic:", "name a card"),
        ("synthetic:rtx-5090x0", "between 1 and 64"),
        ("synthetic:rtx-5090x65", "between 1 and 64"),
        ("synthetic:rtx-5090+melt@3", "unknown word 'melt'"),
        ("synthetic:rtx-5090+lost", "lost needs a time; it must read like lost@600"),
        ("synthetic:rtx-5090+lost@3:9", "takes no duration"),
        ("synthetic:rtx-5090+throttle@a", "must read like"),
    ],
)
def test_bad_specifications_are_refused_in_one_line(text, words):
    with pytest.raises(UsageError, match=words) as caught:
        parse_spec(text)
    assert "\n" not in str(caught.value)
