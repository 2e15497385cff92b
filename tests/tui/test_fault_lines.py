"""How cards that are silent, unreadable, lost or slices are shown (C1, C3, C4, B3, A25)."""

from __future__ import annotations

import pytest

from heatsoak.recipe import Recipe
from heatsoak.session.rows import Batch, EventRow, JobRow, PhaseRow
from heatsoak.steady_state.verdict import Verdict
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak_tui.cli.headless import device_line
from heatsoak_tui.cli.text import devices_text
from heatsoak_tui.panels.card_table import COMFORTABLE, COMPACT, CardTable, card_line
from heatsoak_tui.panels.header import Header, phase_lines, title_line
from heatsoak_tui.run_view import RunView
from heatsoak_tui.widgets.run_canvas import Shown

RECIPE = Recipe("w", "1B", 4096, 1, 1, "bf16", "auto", False, False, "adamw")
WIDTHS = [(COMFORTABLE, 120), (COMPACT, 80)]
EACH_WIDTH = pytest.mark.parametrize(("columns", "width"), WIDTHS, ids=["wide", "narrow"])


def info(n, **more):
    name = "NVIDIA GeForce RTX 5090"
    return DeviceInfo(str(n), f"GPU-{n}", name, "nvidia", "measured", **more)


def opened(*infos, **rows):
    view = RunView()
    jobs = tuple(
        JobRow(f"job-{i.device_id}", "w", 1, RECIPE, "replica", "tokens", (i.device_id,))
        for i in infos
    )
    view.apply(Batch({"state": "recording", "speed": "1"}, devices=infos, jobs=jobs, **rows))
    return view


def sample(t_s, device_id="0", **more):
    readings = {"power_w": 561.0, "temperature_c": 74.0, "sm_clock_mhz": 2437.0, "fan_pct": 68.0}
    return DeviceSample(t_s, device_id, **(readings | more))


def verdict(device_id, state, reason, t_s=100.0):
    return Verdict(t_s, device_id, state, (), reason, ())


def text(line):
    return "".join(part for part, _ in line)


def roles(line, words):
    return {role for part, role in line if words in part}


@EACH_WIDTH
def test_c3_a_card_that_does_not_answer_says_for_how_long(columns, width):
    view = opened(info(0), info(1), samples=(sample(10.0), sample(10.0, "1"), sample(22.0, "1")))
    line = card_line(view, "0", columns, is_picked=False)
    assert "no answer for 12 s" in text(line)
    assert len(text(line)) <= width
    assert roles(line, "561") == {"muted"}  # history
    other = card_line(view, "1", columns, is_picked=False)
    assert "no answer" not in text(other)
    assert roles(other, "561") == {"power"}


def test_c3_a_card_that_never_answered_is_silent_too():
    view = opened(info(0), info(1), samples=(sample(7.0, "1"),))
    assert view.silence("0") == "no answer for 7 s"
    assert view.silence("1") is None


def test_c3_time_goes_on_even_where_nothing_else_comes():
    view = opened(info(0), samples=(sample(10.0),))
    view.apply(Batch({"state": "recording", "speed": "1", "now_s": "31"}))
    assert view.silence("0") == "no answer for 21 s"
    lines = phase_lines(view, 80, 1)
    assert "no answer for 21 s" in text(lines[0])


@EACH_WIDTH
def test_c4_a_card_that_only_returns_errors_is_not_called_silent(columns, width):
    event = EventRow(11.0, "error", "0: the driver reports an unknown error", "0")
    view = opened(info(0), samples=(sample(10.0),), events=(event,),
                  phases=(PhaseRow(130.0, "job-0", "train"),))  # fmt: skip
    line = card_line(view, "0", columns, is_picked=False)
    assert "cannot be read for 120 s" in text(line)
    assert len(text(line)) <= width
    view.apply(Batch(view.meta, samples=(sample(131.0),)))
    assert view.silence("0") is None


def test_c3_the_phase_line_is_about_a_card_that_answers():
    view = opened(
        info(0), info(1), samples=(sample(10.0), sample(99.0, "1")),
        verdicts=(verdict("0", "warming", "warming up"), verdict("1", "holding", "nearly there")),
    )  # fmt: skip
    assert view.leading_device_id == "1"
    assert "nearly there" in text(phase_lines(view, 120, 1)[0])


def test_c3_where_no_card_answers_the_phase_line_says_so():
    view = opened(info(0), samples=(sample(10.0),), verdicts=(verdict("0", "holding", "soon"),))
    assert "no answer for 90 s" in text(phase_lines(view, 120, 1)[0])


def test_what_the_screen_says_of_its_recorder_is_not_cut():
    shown = Shown(opened(info(0)), device_id="0")
    shown.note = (
        "nothing has come from the recorder for 9 s: its process 1234 is stopped; "
        "kill -CONT 1234 lets it go on"
    )
    lines = [text(line) for line in Header(shown).draw(80, 4)]
    assert "lets it go on" in lines[2]
    assert all(len(line) <= 80 for line in lines)


def test_c1_a_lost_card_says_why_and_its_last_readings_are_history():
    reason = "0 is lost: the GPU is lost (it has fallen off the bus)"
    view = opened(info(0), samples=(sample(10.0),), verdicts=(verdict("0", "lost", reason),))
    line = card_line(view, "0", COMFORTABLE, is_picked=False)
    assert "lost        the GPU is lost" in text(line)
    assert roles(line, "561") == {"muted"}
    assert view.silence("0") is None
    assert "lost" in text(card_line(view, "0", COMPACT, is_picked=False))


@pytest.mark.parametrize("width", [80, 120])
def test_b3_watts_of_a_slice_are_said_to_be_the_cards(width):
    part = info(0, mig_parent_uuid="GPU-9", mig_profile="3g.40gb")
    view = opened(part, samples=(sample(10.0),))
    title = text(title_line(view, width))
    assert "MIG: W, °C OF THE CARD" in title
    assert len(title) <= width
    assert "561 W of the whole card  74.0 °C of the whole card" in device_line(view, "0")
    whole = opened(info(0), samples=(sample(10.0),))
    assert "MIG" not in text(title_line(whole, width))
    assert "of the whole card" not in device_line(whole, "0")


@EACH_WIDTH
def test_a25_four_digits_of_watts_keep_the_columns(columns, width):
    small, large = info(0), info(1)
    view = opened(small, large, samples=(sample(1.0), sample(1.0, "1", power_w=2900.0)))
    texts = [text(card_line(view, i, columns, is_picked=False)) for i in ("0", "1")]
    # The right edges of watts, degrees, clock and fan.
    for thin, thick in (("561", "2\u2009900"), ("74", "74"), ("2\u2009437", "2\u2009437")):
        assert texts[0].index(thin) + len(thin) == texts[1].index(thick) + len(thick)
    assert len(texts[0]) == len(texts[1]) <= width


def test_a25_four_digits_of_watts_keep_the_columns_of_the_list_of_devices():
    rows = [
        {"device_id": str(n), "name": "card", "memory_total_bytes": None, "card": None,
         "reading": {"power_w": watts, "temperature_c": 60.0}}
        for n, watts in enumerate((62.0, 1400.0))
    ]  # fmt: skip
    lines = devices_text(rows, None).splitlines()
    ends = {line.index(word) + len(word) for line, word in zip(lines[1:3], ("62", "1\u2009400"),
                                                               strict=True)}  # fmt: skip
    assert len(ends) == 1
    assert lines[0].index("W") + 1 in ends


def test_b3_the_list_of_devices_says_whose_watts_a_slice_shows():
    row = {"device_id": "0:1", "name": "card MIG 3g.40gb", "memory_total_bytes": None,
           "card": None, "reading": {"power_w": 300.0}}  # fmt: skip
    assert "0:1: MIG slices; W, °C and MHz are those of the whole card" in devices_text(
        [row | {"mig_parent_uuid": "GPU-9"}], None
    )
    assert "MIG slices" not in devices_text([row | {"mig_parent_uuid": None}], None)


def test_the_table_scrolls_with_silent_cards_in_it():
    infos = [info(n) for n in range(16)]
    view = opened(*infos, samples=tuple(sample(90.0 if n else 1.0, str(n)) for n in range(16)))
    table = CardTable(Shown(view, device_id="0"))
    drawn = table.draw(80, 9)
    assert len(drawn) == 9
    assert "no answer for 89 s" in text(drawn[1])
