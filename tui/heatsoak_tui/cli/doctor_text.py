"""What doctor found, for people: the gravest first, what is fine in one paragraph at the end."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from heatsoak.doctor.finding import fine_words, summary, told
from heatsoak_tui.cli.text import printable
from heatsoak_tui.format import wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heatsoak.doctor.finding import Finding, Told

MOST_LINES = 100
"""Of one sentence: never reached, for `wrap` wants a bound."""
_WORDS = {"error": "error", "warning": "warning", "info": "note"}
_INDENT = 9


def doctor_text(findings: Sequence[Finding], width: int | None = None) -> str:
    """The whole list.

    Args:
        findings: ranked.
        width: of the lines; None: the terminal's.
    """
    columns = min(width or shutil.get_terminal_size((100, 24)).columns, 120)
    lines = [f"doctor: {summary(findings)}"]
    for one in told(findings):
        lines += ["", *_lines(one, columns)]
    fine = fine_words(findings)
    if fine:
        lines += ["", *_flow("fine", fine, columns)]
    return printable("\n".join(lines))


def _lines(one: Told, width: int) -> list[str]:
    lines = _flow(_WORDS[one.severity], one.words, width)
    if one.spoils:
        lines += _flow("", f"spoils: {one.spoils}", width)
    if one.remedy:
        lines += _flow("", f"mend: {one.remedy}", width)
    return lines


def _flow(word: str, text: str, width: int) -> list[str]:
    """The text beside its word, wrapped, printable."""
    clean = "".join(char if char.isprintable() else "?" for char in text)
    heads = [f"{word:<{_INDENT}}"]
    return [
        f"{heads.pop() if heads else ' ' * _INDENT}{line}".rstrip()
        for line in wrap(clean, max(20, width - _INDENT), MOST_LINES)
    ]
