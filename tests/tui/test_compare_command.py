"""`heatsoak compare`: what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

from heatsoak_tui.cli import main


@pytest.fixture
def pair(write_session, tmp_path):
    """Two sessions of one card, the second 2 % faster with another driver."""
    a = write_session(tmp_path, "a", "rtx-5090", 9190.0, uuid="x", start_c=31.0)
    b = write_session(
        tmp_path, "b", "rtx-5090", 9374.0, uuid="x", start_c=31.0,
        created_utc="2026-12-01T10:00:00Z", info={"vbios": "98.02"},
    )  # fmt: skip
    return [str(a), str(b)]


def test_what_differs_comes_before_the_figures(pair, capsys):
    assert main(["compare", *pair]) == 0
    out = capsys.readouterr().out
    assert out.index("firmware") < out.index("order: A ran before B") < out.index("tokens/s")
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ")}
    assert rows["tokens/s"].split("  ")[-1] == "faster"
    assert "+2.0 ± 0.6 %" in rows["tokens/s"]
    assert rows["W"].endswith("no difference shown")
    assert "drop: no interval is known for it" in out
    assert "Watts and joules are of the card, without its host." in out
    assert out.count("SYNTHETIC") >= 4  # On the head, on each session, on the comparison.


def test_every_line_fits_80_columns(write_session, tmp_path, capsys):
    files = [
        write_session(
            tmp_path, f"a-rather-long-name-of-a-session-{n}", "rtx-pro-6000-ws", 123456789.0 + n,
            uuid=f"GPU-01234567-89ab-cdef-0123-456789abcdef-{n % 2}", count=2, power_w=5000.0,
            flags=("disturbed", "unsaturated"), created_utc=f"2026-11-{n + 1:02d}T10:00:00Z",
        )
        for n in range(5)
    ]  # fmt: skip
    assert main(["compare", *map(str, files)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    rows = [line for line in out.splitlines() if line.startswith("  tokens/s")]
    assert rows
    assert all(row.endswith(("faster", "slower", "no difference shown")) for row in rows)
    assert "(standard deviation)" in out


def test_json_is_one_document(pair, capsys):
    assert main(["compare", "--json", *pair]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "heatsoak-compare/1"
    assert document["comparisons"][0]["measures"]["throughput"]["word"] == "faster"


@pytest.mark.parametrize(
    ("option", "more"),
    [
        ("--allow-mixed", {"provenance": "measured"}),
        ("--allow-smoke", {"protocol": "smoke"}),
        ("--allow-not-steady", {"state": "not-steady"}),
    ],
)
def test_what_is_refused_unless_asked_for(pair, option, more, write_session, tmp_path, capsys):
    other = str(write_session(tmp_path, "c", "rtx-5090", 9000.0, **more))
    assert main(["compare", pair[0], other]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert option in told.err
    assert told.err.count("\n") == 1
    assert main(["compare", pair[0], other, option]) == 0


def test_each_holds_every_run_alone(pair, write_session, tmp_path, capsys):
    again = write_session(
        tmp_path, "c", "rtx-5090", 9200.0, uuid="x", created_utc="2026-12-02T10:00:00Z"
    )
    assert main(["compare", *pair, str(again)]) == 0
    assert "B against A+C (same device)" in capsys.readouterr().out
    assert main(["compare", *pair, str(again), "--each"]) == 0
    out = capsys.readouterr().out
    assert "B against A (same device)" in out
    assert "C against A (same device)" in out


@pytest.mark.parametrize("times", [1, 2])
def test_one_session_is_too_few_however_often_it_is_named(times, pair, capsys):
    assert main(["compare", *pair[:1] * times]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "heatsoak: compare takes two different sessions at least\n"
