# ruff: noqa: RUF001 - the minus sign
from __future__ import annotations

import math

import pytest

from heatsoak_tui import format as fmt


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (9431.2, None, "9\u2009431"),
        (1_234_567.0, 0, "1\u2009234\u2009567"),
        (59.74, None, "59.7"),
        (1.234, None, "1.23"),
        (0.00312, None, "0.00312"),
        (0.0, None, "0"),
        (-4.21, 1, "−4.2"),
        (-0.04, 1, "0.0"),
        (None, None, "—"),
        (math.nan, 1, "—"),
        (math.inf, None, "—"),
    ],
)
def test_number(value, decimals, text):
    assert fmt.number(value, decimals) == text


@pytest.mark.parametrize(
    ("mean", "u95", "text"),
    [
        (9402.3, 38.2, "9\u2009402 ± 38"),
        (561.2, 2.1, "561 ± 2"),
        (59.74, 0.31, "59.7 ± 0.3"),
        (0.1234, 0.0021, "0.123 ± 0.002"),
        (9402.3, 0.0, "9\u2009402 ± 0"),
        (12.0, None, "12.0 "),
    ],
)
def test_an_interval_decides_how_many_digits_stand(mean, u95, text):
    shown = f"{fmt.number(mean, fmt.decimals_of(mean, u95))} {fmt.uncertainty(mean, u95)}"
    assert shown == text


def test_times_in_words():
    assert fmt.duration(872.9) == "0:14:32"
    assert fmt.duration(None) == "—"
    assert fmt.span(42) == "42 s"
    assert fmt.span(7500) == "2 h 5 min"
    assert fmt.span_range(360, 1500) == "6 to 25 min"
    assert fmt.span_range(30, 1500) == "30 s to 25 min"
    assert fmt.span_range(3600, 9000) == "60 min to 2 h 30 min"


def test_ascii_mode_replaces_every_glyph_one_for_one():
    text = "⠉⣀⣿⠒⢸ 9\u2009402 ± 38 °C — ▸ ┄┄ −4.2 漢"
    plain = fmt.to_ascii(text)
    assert plain.isascii()
    assert len(plain) == len(text)
    assert plain.startswith("'.|-|")


def test_wrap_cuts_at_spaces_and_says_that_it_cut():
    assert fmt.wrap("one two three four", 9, 3) == ["one two", "three", "four"]
    assert fmt.wrap("one two three four", 9, 2) == ["one two", "three fo…"]
    assert fmt.wrap("", 9, 2) == []
    assert fmt.fit("abcdef", 4) == "abc…"
    assert fmt.fit("abcdef", 0) == ""


def test_recipe_words_leave_out_what_says_nothing():
    recipe = {"size": "1B", "context": 0, "precision": "bf16", "attention": "none", "compile": True}
    assert fmt.recipe_words(recipe) == ["1B", "bf16", "compiled"]
