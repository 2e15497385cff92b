"""`heatsoak import`, and `heatsoak judge` of another tool's log: what they print and refuse."""

from __future__ import annotations

import json

import pytest

from heatsoak_tui.cli import main
from heatsoak_tui.cli.commands import commands

HEADER = "timestamp, index, power.draw [W], temperature.gpu, utilization.gpu [%]\n"


@pytest.fixture
def log(tmp_path):
    """An idle hour of two cards."""
    path = tmp_path / "idle.csv"
    rows = "".join(
        f"2025/03/01 10:{t // 60:02d}:{t % 60:02d}.000, {card}, {11 + t % 7 / 10} W, 31, 0 %\n"
        for t in range(0, 3600, 5)
        for card in (0, 1)
    )
    path.write_text(HEADER + rows)
    return path


def test_a_log_becomes_a_session_that_opens_like_any_other(log, tmp_path, capsys):
    out = tmp_path / "new.heatsoak"
    assert main(["import", str(log), "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["file"] == str(out)
    assert document["session"]["state"] == "idle"
    assert document["session"]["created_utc"] == "2025-03-01T10:00:00Z"
    assert [d["device_id"] for d in document["devices"]] == ["0", "1"]
    assert {d["provenance"] for d in document["devices"]} == {"imported"}
    assert [d["verdict"]["state"] for d in document["devices"]] == ["idle", "idle"]
    assert all(d["sustained"] is None for d in document["devices"])
    assert document["jobs"] == []
    assert "nvidia-smi --query-gpu CSV" in printed.err
    assert "every 5 s" in printed.err
    assert main(["result", str(out)]) == 0
    assert "IMPORTED" in capsys.readouterr().out
    assert main(["judge", "--json", str(out), str(log)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 4
    for line in lines:
        assert (line["state"], line["provenance"]) == ("idle", "imported")
    assert [line["file"] for line in lines] == [str(out)] * 2 + [str(log)] * 2


def test_nothing_that_exists_is_replaced_unasked(log, tmp_path, capsys):
    out = tmp_path / "new.heatsoak"
    out.write_text("mine")
    for more in ([], ["--force"]):
        assert main(["import", str(log), "--out", str(out), *more]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
        assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "options", "word"),
    [
        (None, [], "no file"),
        ("nothing of the kind\n", [], "--format takes"),
        (HEADER, ["--format", "perfmon"], "unknown format"),
        (HEADER, ["--period", "0"], "--period"),
        ("ClientCalcs,Gflops,Temperature\n4,88,71\n", [], "--period"),
        ("2025/03/01 10:00:00.000, 50 W\n", [], "--columns"),
        (HEADER, ["--columns", "a,b"], "no reading"),
        (HEADER, [], "no reading"),
    ],
)
@pytest.mark.parametrize("command", ["import", "judge"])
def test_bad_input_costs_a_line_and_code_2(tmp_path, capsys, command, content, options, word):
    log = tmp_path / "log.csv"
    if content is not None:
        log.write_text(content)
    out = ["--out", str(tmp_path / "x.heatsoak")] if command == "import" else []
    expected = word
    if command == "judge" and word == "--format takes":
        expected = "no log"
    assert main([command, str(log), *options, *out]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.strip().splitlines()
    assert expected in line
    assert not (tmp_path / "x.heatsoak").exists()


def test_two_recordings_are_two_sessions(log, tmp_path, capsys):
    log.write_text(log.read_text() + log.read_text().replace("03/01", "03/04"))
    assert main(["import", str(log), "--out", str(tmp_path / "a.heatsoak")]) == 0
    assert (tmp_path / "a-2.heatsoak").is_file()
    assert main(["judge", str(log)]) == 0
    assert "recording 2" in capsys.readouterr().out


def test_the_command_is_shown_by_its_name():
    assert "import" in commands()
    assert "import_" not in commands()
