"""Every state and flag, reached by a synthetic card; what freezes is what the card ends up at."""

from __future__ import annotations

from typing import get_args

import pytest

from heatsoak.errors import UsageError
from heatsoak.launch.catalog import find_workload, make_recipe
from heatsoak.launch.synthetic import SyntheticJob
from heatsoak.progress import Failed, Phase, Steps
from heatsoak.steady_state.judge import Judge
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.steady_state.verdict import Flag, State
from heatsoak.telemetry.device import DeviceLostError
from heatsoak.telemetry.discovery import open_devices
from heatsoak.telemetry.synthetic_spec import WORDS, FaultKind, parse_spec


class Run:
    """A synthetic card and its job under a judge, second by second."""

    def __init__(self, words, protocol="standard", *, counts=True, seed=1):
        (self.card,) = open_devices(f"synthetic:{words}", seed=seed)
        recipe = make_recipe("synthetic", self.card.info, {})
        size = find_workload("synthetic").sizes[recipe.size]
        self.job = SyntheticJob(self.card, recipe, size)
        self.judge = Judge(PROTOCOLS[protocol], [self.card.info], has_counter=counts)
        self.job.start(0.0)
        self.counts = counts
        self.t_s = 0.0
        self.states, self.flags = [], set()
        self.verdict = None

    def until(self, *states, most_s=11_000.0):
        """Go on to one of these states (none: until it is over); the result."""
        while not self.judge.is_over and self.t_s < most_s:
            self.t_s += 1.0
            self.second(self.t_s)
            (self.verdict,) = self.judge.evaluate(self.t_s)
            if not self.states or self.states[-1] != self.verdict.state:
                self.states.append(self.verdict.state)
            self.flags.update(self.verdict.flags)
            if self.verdict.state in states:
                break
        (result,) = self.judge.results()
        self.verdict = result.verdict
        return result

    def second(self, t_s):
        try:
            self.judge.add_sample(self.card.read(t_s))
        except DeviceLostError as error:
            self.judge.close(t_s, "lost", str(error), self.card.info.device_id)
        for at_s, record in self.job.poll(t_s):
            if isinstance(record, Failed):
                self.judge.close(at_s, "failed", record.text)
            elif isinstance(record, Phase) and self.counts:
                self.judge.add_phase(at_s, record.phase)
            elif isinstance(record, Steps) and self.counts:
                self.judge.add_steps(at_s, record.units_done)


CASES = {
    "rtx-5090": {"power-capped"},
    "h100-sxm": set(),
    "rtx-5090+cap": {"external-cap"},
    "rtx-5090+light": {"unsaturated"},
    "rtx-5090+soft-limit": {"throttled"},
    "rtx-5090+hot-limit": {"throttled", "cycling"},
    "rtx-5090+noise": {"noise-limited"},
    "rtx-5090+blind": {"headroom-unknown"},
    "rtx-5090+disturb@400": {"disturbed"},
    "rtx-5090+limit@400": {"disturbed", "power-capped"},
    "rtx-5090+throttle@400": {"disturbed", "throttled"},
    "rtx-5090+fan-stop": {"throttled"},
    "rtx-5090+light+fan-pause": {"unsaturated"},
    "rtx-5090+fan-ceiling": set(),
    "rtx-5090+fan-steps": set(),
    "rtx-5090+fan-target": set(),
    "rtx-5090+bins": set(),
    "rtx-5090+warm-air@200": set(),
    "rtx-5090+eval": set(),
    "h100-sxm+hot-limit": {"throttled", "cycling"},
}


@pytest.mark.parametrize("words", CASES)
def test_what_freezes_is_where_the_card_ends_up(words):
    run = Run(words)
    result = run.until("steady")
    assert run.verdict.state == "steady", run.verdict.reason
    assert CASES[words] <= set(run.verdict.flags)
    truth, numbers = run.card.asymptote(), result.numbers
    assert numbers.throughput.mean == pytest.approx(truth.rate_per_s, rel=0.01)
    assert numbers.power_w.mean == pytest.approx(truth.power_w, rel=0.01)
    assert numbers.sm_clock_mhz.mean == pytest.approx(truth.sm_clock_mhz, rel=0.01)
    if numbers.temperature_c is not None:
        assert numbers.temperature_c.mean == pytest.approx(truth.temperature_c, abs=3.0)
    assert (run.verdict.cycle is not None) == ("cycling" in run.verdict.flags)


def test_a_card_alone_is_not_flagged():
    run = Run("h100-sxm")
    run.until("steady")
    assert run.verdict.flags == ()
    assert [*dict.fromkeys(run.states)] == ["warming", "settling", "holding", "steady"]


def test_a_cycle_is_told_with_period_and_swing():
    run = Run("rtx-5090+hot-limit")
    run.until("steady")
    cycle = run.verdict.cycle
    assert 10.0 <= cycle.period_s <= 600.0
    assert cycle.swing > 3.0
    assert "cycling every" in run.verdict.reason


def test_an_evaluation_is_paused_and_all_in_counts_it():
    run = Run("rtx-5090+eval")
    numbers = run.until("steady").numbers
    share = numbers.all_in_throughput.mean / numbers.throughput.mean
    assert share == pytest.approx(0.9, abs=0.03)


def test_without_a_counter_the_hardware_is_judged():
    run = Run("h100-sxm", counts=False)
    result = run.until("steady")
    assert run.verdict.flags == ("no-throughput",)
    assert result.numbers.throughput is None
    assert result.numbers.power_w.mean == pytest.approx(run.card.asymptote().power_w, rel=0.01)


def test_smoke_is_flagged():
    run = Run("rtx-5090", "smoke")
    run.until()
    assert run.verdict.state == "steady"
    assert "smoke" in run.verdict.flags


def test_what_moves_after_the_freeze_is_superseded():
    frozen_at_s = Run("rtx-5090").until("steady").verdict.frozen_at_s
    run = Run(f"rtx-5090+disturb@{frozen_at_s + 100:.0f}")
    run.until()
    assert run.verdict.state == "steady"
    assert run.verdict.frozen_at_s == frozen_at_s
    assert "superseded" in run.verdict.flags


@pytest.mark.parametrize(
    ("words", "state", "reason"),
    [
        ("rtx-5090+wander", "not-steady", "not steady after 1.5 h"),
        ("rtx-5090+stall@400", "stuck", "the counter has not advanced for 10 min"),
        ("rtx-5090+idle@400", "idle", "the counter has not advanced for 10 min"),
        ("rtx-5090+lost@400", "lost", "told to be lost"),
        ("rtx-5090+crash@400.5", "failed", "told to crash"),
    ],
)
def test_what_ends_otherwise_says_so(words, state, reason):
    run = Run(words)
    result = run.until()
    assert run.verdict.state == state
    assert reason in run.verdict.reason
    assert run.verdict.frozen_at_s is None
    assert result.numbers is not None, "the last window is kept"


def test_interrupted_keeps_the_last_window():
    run = Run("rtx-5090")
    run.until(most_s=500.0)
    (verdict,) = run.judge.close(500.5, "interrupted", "stopped by the user")
    assert verdict.state == "interrupted"
    assert run.judge.results()[0].numbers is not None


def test_the_cases_here_are_the_whole_vocabulary():
    reached = set().union(*CASES.values()) | {"no-throughput", "smoke", "superseded"}
    assert reached == set(get_args(Flag))
    states = {"warming", "settling", "holding", "steady", "not-steady", "stuck", "idle", "lost"}
    assert states | {"failed", "interrupted"} == set(get_args(State))


def test_every_word_is_explained_and_every_state_of_a_card_can_be_asked_for():
    assert set(WORDS) == set(get_args(FaultKind))
    for kind in WORDS:
        (fault,) = parse_spec(f"synthetic:rtx-5090+{kind}@30").faults
        assert (fault.kind, fault.t_s) == (kind, 30.0)


def test_a_word_without_a_time_holds_from_the_start():
    (fault,) = parse_spec("synthetic:rtx-5090+hot-limit").faults
    assert (fault.t_s, fault.duration_s) == (0.0, None)
    (card,) = open_devices("synthetic:rtx-5090+hot-limit")
    (spent,) = open_devices("synthetic:rtx-5090+fan-ceiling")
    expected = spent.asymptote().temperature_c - 3
    assert card.info.temperature_limit_c == pytest.approx(expected, abs=1.0)
    assert card.info.fan_max_pct == 45.0


def test_a_passive_card_has_no_fan_to_turn():
    with pytest.raises(UsageError, match="passive"):
        open_devices("synthetic:h100-sxm+fan-stop@3")


def test_what_was_told_ends_when_it_was_told_to():
    (card,) = open_devices("synthetic:rtx-5090+cap@300:60")
    card.start_load(0.0)
    watts = [card.read(float(t)).power_w for t in range(500)]
    assert watts[340] < 0.65 * watts[280]
    assert watts[420] == pytest.approx(watts[280], rel=0.05)
    assert card.read(340.0).power_limit_w == card.info.power_limit_w
