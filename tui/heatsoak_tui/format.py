"""Numbers, times and words as they are printed. Pure; imports nothing that draws."""
# ruff: noqa: RUF001, RUF002 - typographic glyphs are what this file is about

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DASH = "—"
"""What stands where nothing is known."""
THIN = "\u2009"
"""Thin space between thousands."""
MINUS = "−"
"""The real minus sign, as wide as a plus."""

_UNIT_SINGULAR = {"tokens": "token", "images": "image", "samples": "sample"}
_ASCII = str.maketrans(
    {
        DASH: "-", THIN: " ", MINUS: "-", "±": "~", "°": " ", "·": "|", "×": "x", "…": ".",
        "─": "-", "┄": "~", "│": "|", "▒": "#", "▸": ">", "•": "*", "●": "*", "○": "o", "◆": "*",
        "▲": "^", "▼": "v", "←": "<", "→": ">", "↑": "^", "↓": "v", "‹": "<", "›": ">", "✓": "+",
        "█": "#", "▏": "|", "µ": "u",
    }
)  # fmt: skip
_BRAILLE_FIRST, _BRAILLE_LAST = 0x2800, 0x28FF
_DOT_ROWS = (0b0000_1001, 0b0001_0010, 0b0010_0100, 0b1100_0000)
"""The two dots of each of the four rows of a braille cell, top first."""
_ROW_GLYPHS = {
    0b0000: " ", 0b0001: "'", 0b0010: "-", 0b0011: "\"", 0b0100: "-", 0b0101: ":", 0b0110: "=",
    0b0111: "!", 0b1000: ".", 0b1001: ":", 0b1010: ":", 0b1011: "|", 0b1100: "_", 0b1101: "|",
    0b1110: "i", 0b1111: "|",
}  # fmt: skip
"""One ASCII glyph for each set of dot rows that are lit."""


def number(value: float | None, decimals: int | None = None) -> str:
    """A number with thin spaces between thousands; an em dash for None, NaN and infinity.

    Args:
        value: What to print.
        decimals: Digits after the point; None: three significant digits, none from 100 up.
    """
    if value is None or not math.isfinite(value):
        return DASH
    if decimals is None:
        decimals = _decimals_for(abs(value))
    text = f"{abs(value):,.{decimals}f}".replace(",", THIN)
    is_negative = value < 0 and any(digit in text for digit in "123456789")
    return MINUS + text if is_negative else text


def _decimals_for(magnitude: float) -> int:
    if magnitude == 0 or magnitude >= 100:
        return 0
    return min(8, max(1, 2 - math.floor(math.log10(magnitude))))


def decimals_of(mean: float | None, u95: float | None) -> int:
    """Digits after the point that an interval leaves meaningful: at most one beyond the first."""
    if mean is None or not math.isfinite(mean):
        return 0
    if u95 is None or not math.isfinite(u95) or u95 <= 0:
        return _decimals_for(abs(mean))
    return min(8, max(0, -math.floor(math.log10(u95))))


def uncertainty(mean: float | None, u95: float | None) -> str:
    """`± 38`, to the same digit as `number(mean, decimals_of(mean, u95))`; empty when unknown."""
    if mean is None or u95 is None or not math.isfinite(u95):
        return ""
    return f"± {number(u95, decimals_of(mean, u95))}"


def percent(frac: float | None, decimals: int = 1, *, signed: bool = False) -> str:
    """A fraction as a percentage: `−4.2 %`."""
    if frac is None or not math.isfinite(frac):
        return DASH
    text = number(frac * 100, decimals)
    has_sign = signed and frac > 0 and any(digit in text for digit in "123456789")
    return f"{'+' if has_sign else ''}{text} %"


def significant(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, thousands apart: `4 120`, `0.0031`."""
    if value == 0 or not math.isfinite(value):
        return number(value)
    place = digits - 1 - math.floor(math.log10(abs(value)))
    return number(round(value, place), max(0, min(9, place)))


def as_entered(value: float) -> str:
    """A number as a user gave it, thousands apart: `2 899`, `0.187`, `2 899.50`."""
    whole, _, rest = f"{value:.10f}".rstrip("0").partition(".")
    if not rest:
        return number(float(whole), 0)
    return number(value, 2 if len(rest) == 1 and abs(value) >= 100 else len(rest))


def money(amount: float, currency: str, u95: float | None = None) -> str:
    """An amount that was computed: `USD 4 120`.

    Args:
        amount: How much.
        currency: ISO 4217.
        u95: Half-width of its interval, which decides the digits; None: three that count.
    """
    is_known = u95 is not None and u95 > 0
    text = number(amount, decimals_of(amount, u95)) if is_known else significant(amount)
    return f"{currency} {text}"


def input_words(value: float, unit: str) -> str:
    """An input as it was entered: `USD 2 899`, `0.187 USD/kWh`, `50 %`, `3 years`, `1.54`."""
    if unit == "frac":
        return f"{as_entered(value * 100)} %"
    if unit.isupper() and len(unit) == 3:
        return f"{unit} {as_entered(value)}"
    return f"{as_entered(value)} {unit}".rstrip()


def duration(t_s: float | None) -> str:
    """Session time or a length of time as `0:14:32`."""
    if t_s is None or not math.isfinite(t_s):
        return DASH
    seconds = max(0, int(t_s))
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def span(seconds: float | None) -> str:
    """A length of time in words: `42 s`, `14 min`, `2 h 5 min`."""
    if seconds is None or not math.isfinite(seconds):
        return DASH
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def span_range(low_s: float, high_s: float) -> str:
    """`6 to 25 min`; one span when both ends read the same."""
    low, high = span(low_s), span(high_s)
    if low == high:
        return high
    low_number, _, low_unit = low.partition(" ")
    if low_unit == high.partition(" ")[2]:
        return f"{low_number} to {high}"
    return f"{low} to {high}"


def gibibytes(count: float | None, decimals: int = 1) -> str:
    """Bytes as `21.4 GiB`."""
    return DASH if count is None else f"{number(count / 1024**3, decimals)} GiB"


def short_name(name: str) -> str:
    """A card's name without the words that say nothing on a line of its own."""
    for word in ("SYNTHETIC ", "NVIDIA ", "GeForce ", "AMD ", "Intel(R) "):
        name = name.replace(word, "")
    return " ".join(name.split())


def card_mark(device_id: str) -> str:
    """`0` for `0` and for `synthetic-0`, `cpu` for the CPU: what the number keys pick."""
    return device_id.rpartition("-")[2]


def per_unit(unit: str) -> str:
    """`J per 1k tokens` counts in thousands; images and samples one by one."""
    return "1k tokens" if unit == "tokens" else _UNIT_SINGULAR.get(unit, unit)


def per_unit_factor(unit: str) -> float:
    """How many units `per_unit` speaks of."""
    return 1000.0 if unit == "tokens" else 1.0


def recipe_words(recipe: Mapping[str, object]) -> list[str]:
    """What a recipe trains, most telling first: `1B`, `4096`, `bf16`, `flash`, `compiled`."""
    words = [str(recipe.get("size") or "")]
    if recipe.get("context"):
        words.append(str(recipe["context"]))
    words.append(str(recipe.get("precision") or ""))
    attention = str(recipe.get("attention") or "")
    words.append("" if attention in ("none", "auto") else attention)
    words.append("compiled" if recipe.get("compile") else "")
    words.append("checkpointing" if recipe.get("checkpointing") else "")
    return [word for word in words if word]


def short_path(path: Path) -> str:
    """The path with `~` for the home folder."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def to_ascii(text: str) -> str:
    """The text with every glyph replaced one for one by an ASCII character."""
    if text.isascii():
        return text
    return "".join(map(_ascii_glyph, text.translate(_ASCII)))


def _ascii_glyph(char: str) -> str:
    code = ord(char)
    if code < 128:
        return char
    if _BRAILLE_FIRST <= code <= _BRAILLE_LAST:
        dots = code - _BRAILLE_FIRST
        rows = sum(1 << row for row, mask in enumerate(_DOT_ROWS) if dots & mask)
        return _ROW_GLYPHS[rows]
    return "?"


def wrap(text: str, width: int, max_lines: int) -> list[str]:
    """The text cut at spaces into lines of at most `width`; the last ends with … if cut short."""
    lines: list[str] = []
    rest: Sequence[str] = text.split()
    while rest and len(lines) < max_lines and width > 0:
        line, *rest = rest
        while rest and len(line) + 1 + len(rest[0]) <= width:
            line, rest = f"{line} {rest[0]}", rest[1:]
        if rest and len(lines) == max_lines - 1:
            line = f"{line} {rest[0]}"
        lines.append(fit(line, width))
    return lines


def fit(text: str, width: int) -> str:
    """The text, cut to `width` characters with an ellipsis."""
    if len(text) <= width:
        return text
    return text[: width - 1].rstrip() + "…" if width > 1 else text[: max(0, width)]
