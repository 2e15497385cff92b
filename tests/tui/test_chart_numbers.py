from __future__ import annotations

import math

import pytest

from heatsoak_tui.widgets import raster


def dots(grid):
    """The lit (column, row) of a grid of cells."""
    return {
        (2 * x + column, 4 * y + row)
        for y, line in enumerate(grid)
        for x, cell in enumerate(line)
        for column in (0, 1)
        for row in range(4)
        if cell & raster._DOTS[column][row]
    }


def test_columns_keep_minimum_and_maximum():
    points = [(t, float(t % 10), float(t % 10) + 0.5) for t in range(100)]
    found = raster.columns(points, 0.0, 100.0, 10)
    assert found == {c: [0.0, 9.5] for c in range(10)}


def test_a_column_without_a_reading_is_absent():
    found = raster.columns([(5.0, 1.0, 1.0), (95.0, 2.0, 2.0)], 0.0, 100.0, 10)
    assert sorted(found) == [0, 9]
    nan = math.nan
    assert raster.columns([(5.0, nan, nan)], 0.0, 100.0, 10) == {}


def test_the_last_instant_belongs_to_the_last_column_and_nothing_lies_outside():
    found = raster.columns([(t, 1.0, 1.0) for t in (-1.0, 0.0, 100.0, 100.1)], 0.0, 100.0, 10)
    assert sorted(found) == [0, 9]


def test_a_constant_series_is_one_unbroken_line():
    found = {c: [5.0, 5.0] for c in range(20)}
    low, high = raster.value_range(found, [], 1.0, is_whole=True)
    lit = dots(raster.plot(found, low, high, 10, 3, 1))
    assert {column for column, _ in lit} == set(range(20))
    assert len({row for _, row in lit}) == 1


def test_the_extremes_lie_on_the_first_and_last_row():
    lit = dots(raster.plot({0: [0.0, 0.0], 1: [10.0, 10.0]}, 0.0, 10.0, 1, 2, 1))
    assert (0, 7) in lit
    assert (1, 0) in lit


def test_neighbours_touch_and_gaps_stay_empty():
    steep = dots(raster.plot({0: [0.0, 0.0], 1: [10.0, 10.0]}, 0.0, 10.0, 1, 2, 1))
    assert {row for _, row in steep} == set(range(8))
    apart = {0: [5.0, 5.0], 6: [5.0, 5.0]}
    assert {c for c, _ in dots(raster.plot(apart, 0.0, 10.0, 4, 2, 3))} == {0, 6}
    assert {c for c, _ in dots(raster.plot(apart, 0.0, 10.0, 4, 2, 6))} == set(range(7))


def test_values_outside_are_drawn_at_the_edge():
    assert raster.dot_row(-5.0, 0.0, 10.0, 3) == 11
    assert raster.dot_row(15.0, 0.0, 10.0, 3) == 0
    assert 0 <= raster.dot_row(5.0, 7.0, 7.0, 3) <= 11


@pytest.mark.parametrize("width", [0, 1, 2, 7, 80])
@pytest.mark.parametrize("height", [0, 1, 2, 9])
@pytest.mark.parametrize(
    "values", [[], [3.0], [3.0, math.nan], [1e300, -1e300], [0.0] * 50, [1e-9, 2e-9]]
)
def test_any_series_at_any_size(width, height, values):
    points = [(float(t), v, v) for t, v in enumerate(values)]
    found = raster.columns(points, 0.0, 60.0, 2 * width)
    low, high = raster.value_range(found, [], 0.0, is_whole=True)
    assert low <= high
    grid = raster.plot(found, low, high, width, height, 5)
    assert [len(row) for row in grid] == [width] * height


def test_the_axis_holds_the_run_and_grows_in_steps():
    ends = []
    for now_s in range(0, 100_000, 7):
        end_s = raster.axis_end_s(now_s)
        assert now_s <= end_s <= max(60.0, 1.5 * now_s + 30)
        ends.append(end_s)
    assert ends == sorted(ends)
    assert len(set(ends)) < 25


def test_a_zoomed_axis_moves_in_quarters_and_holds_now():
    seen = set()
    for now_s in range(700, 2000):
        t0_s, t1_s = raster.zoomed_s(now_s, 600.0)
        assert t1_s - t0_s == 600.0
        assert t0_s <= now_s <= t1_s
        seen.add(t0_s)
    assert len(seen) == 10


def test_the_scale_is_at_round_numbers_and_ignores_a_short_run_up():
    found = {c: [9400.0 + c % 7, 9420.0 + c % 7] for c in range(100)} | {0: [0.0, 100.0]}
    low, high = raster.value_range(found, [9812.0], 100.0, is_whole=False)
    assert low > 9000
    assert high >= 9812
    assert low % 50 == high % 50 == 0
    assert raster.value_range(found, [], 100.0, is_whole=True)[0] <= 0


def test_noise_is_not_made_to_look_big():
    found = {c: [100.0, 100.1] for c in range(50)}
    low, high = raster.value_range(found, [], 20.0, is_whole=True)
    assert high - low >= 20


def test_ticks_never_stand_closer_than_a_label():
    for length_s in (60, 90, 600, 7200, 86_400, 10 * 86_400):
        for width in (20, 55, 140):
            step_s = raster.tick_step_s(length_s, width)
            assert step_s * width / length_s >= 8 - 1e-9
