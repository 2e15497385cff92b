"""What one cell of a log says: a number in SI units, an instant, or nothing.

A tool that has no reading writes a word for it: `N/A`, `[Not Supported]`, `[Unknown Error]`,
`ERR!`, `??`, `-`, `[GPU is lost]`, `[Requested functionality has been deprecated]` and what parsers
have cut it to. No such word is a number: whatever is not wholly a number is None, never 0.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from heatsoak.units import BYTES_PER_GIB, BYTES_PER_MIB

UNITS: dict[str, tuple[str, float, float]] = {
    "w": ("w", 1.0, 0.0), "mw": ("w", 1e-3, 0.0), "kw": ("w", 1e3, 0.0),
    "c": ("c", 1.0, 0.0), "°c": ("c", 1.0, 0.0), "℃": ("c", 1.0, 0.0), "degc": ("c", 1.0, 0.0),
    "°f": ("c", 5 / 9, -160 / 9),
    "mhz": ("mhz", 1.0, 0.0), "ghz": ("mhz", 1e3, 0.0), "khz": ("mhz", 1e-3, 0.0),
    "mib": ("bytes", BYTES_PER_MIB, 0.0), "gib": ("bytes", BYTES_PER_GIB, 0.0),
    # The tools that write MB and GB mean powers of two.
    "mb": ("bytes", BYTES_PER_MIB, 0.0), "gb": ("bytes", BYTES_PER_GIB, 0.0),
    "%": ("pct", 1.0, 0.0),
}  # fmt: skip
"""By the printed unit, in small letters: its kind (the suffix of a reading), factor and offset."""
_NUMBER = re.compile(r"([-+]?[\d.,]+)\s*(%|[^\W\d_]+|°\s?[CcFf]|℃)?")
_TIME = re.compile(r"(?:(\S+?)[ T]+)?(\d{1,2}):(\d\d):(\d\d)(?:[.,:](\d+))?\s*([AaPp][Mm])?"
                   r"(?:Z|[+-]\d\d:?\d\d)?")  # fmt: skip
EPOCH_S = 1e9
"""A number from here on is seconds since 1970, from a thousand times this on milliseconds."""
DAY_S = 86400.0


def number(cell: str, kind: str, unit: str = "") -> float | None:
    """The number of a cell in the unit of its reading; None where it holds none.

    Args:
        cell: such as `46.19 W`, `46,19`, `[N/A]`.
        kind: suffix of the reading, such as `w`; empty for what has no unit.
        unit: what the header says, where the cell itself says none.

    Raises:
        ValueError: it is a number, but its unit is of another kind, or what it means is ambiguous.
    """
    match = _NUMBER.fullmatch(cell.strip())
    if match is None:
        return None
    value = _value(match[1])
    if value is None:
        return None
    said = (match[2] or unit).replace(" ", "").lower()
    if not kind:
        return value
    if not said:
        return value * (BYTES_PER_MIB if kind == "bytes" else 1.0)  # nounits: memory is in MiB
    found = UNITS.get(said)
    if found is None or found[0] != kind:
        raise ValueError(f"{said} is no unit of it")
    return value * found[1] + found[2]


def _value(digits: str) -> float | None:
    """A number with a decimal point or comma.

    Raises:
        ValueError: `1,350` may be either.
    """
    if "," in digits:
        if "." in digits:
            drop = "," if digits.rindex(".") > digits.rindex(",") else "."
            digits = digits.replace(drop, "").replace(",", ".")
        else:
            whole, _, rest = digits.partition(",")
            if len(rest) == 3 and whole.lstrip("+-0"):
                raise ValueError(f"{digits} may be thousands or thousandths")
            digits = digits.replace(",", ".")
    try:
        return float(digits)
    except ValueError:
        return None


def instant(cell: str) -> tuple[float, bool] | None:
    """Seconds and whether they know their day; None where the cell is no time.

    Only differences count: the time zone is left out.
    """
    cell = cell.strip()
    match = _TIME.fullmatch(cell)
    if match is None:
        try:
            seconds = float(cell)
        except ValueError:
            return None
        if EPOCH_S <= seconds < 1e14:
            return (seconds / 1000 if seconds >= EPOCH_S * 1000 else seconds), True
        return None
    day_s = 0.0
    if match[1] is not None:
        day = _day_s(match[1])
        if day is None:
            return None
        day_s = day
    hour, minute, second = int(match[2]), int(match[3]), int(match[4])
    if match[6]:
        hour = hour % 12 + 12 * (match[6].lower() == "pm")
    if hour > 23 or minute > 59 or second > 60:
        return None
    fraction = float(f"0.{match[5]}") if match[5] else 0.0
    return day_s + hour * 3600 + minute * 60 + second + fraction, match[1] is not None


@lru_cache(maxsize=64)
def _day_s(text: str) -> float | None:
    """Seconds from 1970 to a day: year first, `d.m.yyyy`, or `m/d/yyyy` (`d/m` where it must)."""
    parts = re.fullmatch(r"(\d+)([-/.])(\d+)\2(\d+)", text)
    if parts is not None:
        first, mid, last = parts[1], parts[3], parts[4]
        if len(first) == 4:
            ymd = (int(first), int(mid), int(last))
        elif parts[2] == "/" and int(first) <= 12:
            ymd = (int(last), int(first), int(mid))
        else:
            ymd = (int(last), int(mid), int(first))
    elif re.fullmatch(r"\d{8}", text):
        ymd = (int(text[:4]), int(text[4:6]), int(text[6:]))
    else:
        return None
    try:
        return datetime(*ymd, tzinfo=UTC).timestamp()
    except ValueError:
        return None
