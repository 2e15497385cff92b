from __future__ import annotations

import pytest

from heatsoak.errors import UsageError
from heatsoak_tui.app import needs_ascii, run_app, theme_name


@pytest.mark.parametrize(
    ("environment", "encoding", "is_ascii"),
    [
        ({}, "utf-8", False),
        ({}, "ascii", True),
        ({}, None, True),
        ({"LANG": "de_DE.UTF-8"}, "utf-8", False),
        ({"LANG": "de_DE.ISO-8859-1"}, "utf-8", True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "utf-8", True),
        ({"LC_CTYPE": "C.UTF-8"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, "utf-8", False),
        ({"LC_ALL": "C.UTF-8", "LANG": "C"}, "utf-8", False),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "C", "HEATSOAK_ASCII": "0"}, "utf-8", False),
        ({"LANG": "en_US.UTF-8", "HEATSOAK_ASCII": "1"}, "utf-8", True),
    ],
)
def test_ascii_where_the_locale_says_so(environment, encoding, is_ascii):
    assert needs_ascii(environment, encoding) is is_ascii


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm-256color"}, "dark"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "dark"),
        ({"TERM": "xterm"}, "16"),
        ({}, "16"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "16"),
        ({"TERM": "xterm-256color", "COLORFGBG": "0;15"}, "light"),
        ({"TERM": "xterm-256color", "COLORFGBG": "15;0"}, "dark"),
        ({"TERM": "xterm", "HEATSOAK_THEME": "light"}, "light"),
        ({"TERM": "xterm-256color", "HEATSOAK_THEME": "nonsense"}, "dark"),
    ],
)
def test_colours_by_what_the_terminal_says(environment, theme):
    assert theme_name(environment) == f"heatsoak-{theme}"


def test_a_file_that_is_no_session_is_an_error_before_there_is_a_screen(tmp_path):
    path = tmp_path / "notes.txt"
    with pytest.raises(UsageError):
        run_app(path)
    path.write_text("not a session")
    with pytest.raises(UsageError):
        run_app(path)
