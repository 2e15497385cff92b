"""Following a session file: every row once, whatever its writer is doing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from heatsoak.clock import monotonic_s
from heatsoak.errors import UsageError
from heatsoak.session import access, tail
from heatsoak.session.rows import Batch, EventRow, JobRow, LogRow, PhaseRow, ResultRow, StepsRow
from heatsoak.session.tail import Tail
from heatsoak.telemetry.sample import DeviceSample

TABLES = ("samples", "steps", "phases", "events", "verdicts", "results", "logs")


def test_what_is_written_is_read_and_none_stays_none(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    readings = (
        "power_w", "energy_j", "temperature_c", "sm_clock_mhz", "mem_clock_mhz", "utilization_pct",
        "fan_pct", "power_limit_w",
    )  # fmt: skip
    zeros = dict.fromkeys(readings, 0.0)
    whole = dict.fromkeys(("memory_used_bytes", "pcie_gen", "pcie_width", "pstate"), 0)
    window = {"window_start_s": 1.0, "window_s": 2.0, "frozen_at_s": 3.5}
    batch = Batch(
        {},
        samples=(
            DeviceSample(0.5, "0"),
            DeviceSample(1.5, "0", throttle_reasons=(), **zeros, **whole),
            DeviceSample(2.5, "0", throttle_reasons=("sw_power_cap", "0x400")),
            sessions.sample(3.0),
        ),
        steps=(StepsRow(1.0, "job-0", 0.0, 0, None), StepsRow(2.0, "job-0", 0.5, 1, 0.0)),
        phases=(PhaseRow(0.5, "job-0", "compile"),),
        events=(EventRow(0.5, "mark", "a | b\n", "0", "job-0", {"x": [1, None, 0.0]}),
                EventRow(0.5, "end", "c")),
        verdicts=(
            sessions.verdict(1.0),
            sessions.verdict(2.0, blocked_by="power", time_left_s=(0.0, 1.5), **window),
        ),
        results=(ResultRow(3.5, "0", "job-0", {"sustained": None, "zero": 0}),),
        logs=(LogRow(0.5, "job-0", "stderr", "\x00 Füße"),),
    )  # fmt: skip
    writer.write(batch)
    read = Tail(path).poll()
    for table in TABLES:
        assert getattr(read, table) == getattr(batch, table), table
    assert read.devices == sessions.devices()
    assert read.jobs == sessions.jobs(sessions.devices())
    assert read.meta == sessions.meta()
    assert [type(s.memory_used_bytes) for s in read.samples] == [type(None), int, type(None), int]
    writer.close("interrupted")


def test_nothing_new_is_none_and_news_come_once(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    follower = Tail(path)
    assert follower.state is None
    assert follower.poll().samples == ()
    assert follower.state == "recording"
    assert follower.poll() is None
    writer.write(sessions.second(0))
    writer.write(sessions.second(1))
    assert [s.t_s for s in follower.poll().samples] == [0.0, 1.0]
    assert follower.poll() is None
    writer.write(Batch({"end_reason": "enough"}))
    news = follower.poll()
    assert news.meta["end_reason"] == "enough"
    assert (news.jobs, news.devices, news.samples) == ((), (), ())
    writer.close("not-steady")
    assert follower.poll().meta["state"] == "not-steady"
    assert follower.state == "not-steady"
    assert follower.poll() is None


def test_a_job_that_changes_is_given_again(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path, 2)
    follower = Tail(path)
    follower.poll()
    job = JobRow("job-0", "synthetic", 1, sessions.RECIPE, "ddp", "images", ("1", "0"), {"a": 0})
    writer.write(Batch({}, jobs=(job,)))
    assert follower.poll().jobs == (job, *sessions.jobs(sessions.devices(2))[1:])
    assert follower.poll() is None
    writer.close("interrupted")


WRITE_AND_CLOSE = (
    "import sys\n"
    "from pathlib import Path\n"
    "sys.path.insert(0, sys.argv[2])\n"
    "from conftest import Sessions\n"
    "sessions = Sessions()\n"
    "for n in range(int(sys.argv[3])):\n"
    "    sys.stdin.readline()\n"
    "    writer = sessions.create(Path(sys.argv[1]) / f'{n}.heatsoak', 2)\n"
    "    print(n, flush=True)\n"
    "    for t in range(60):\n"
    "        writer.write(sessions.second(t, 2))\n"
    "    writer.close('steady')\n"
)


def test_while_it_is_written_and_closed_each_row_comes_once(tmp_path):
    """Reader and writer as fast as they can: every state a look can meet is met."""
    count = 8
    command = [
        sys.executable, "-c", WRITE_AND_CLOSE, str(tmp_path), str(Path(__file__).parent),
        str(count),
    ]  # fmt: skip
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as child:
        for n in range(count):
            child.stdin.write("next\n")
            child.stdin.flush()
            assert child.stdout.readline() == f"{n}\n"
            follower = Tail(tmp_path / f"{n}.heatsoak")
            samples, steps, events = [], [], []
            until_s = monotonic_s() + 20.0
            while (batch := follower.poll()) is not None or follower.state == "recording":
                assert monotonic_s() < until_s
                if batch is not None:
                    samples += [(s.t_s, s.device_id) for s in batch.samples]
                    steps += [(s.t_s, s.job_id) for s in batch.steps]
                    events += [e.t_s for e in batch.events]
            assert samples == [(float(t), i) for t in range(60) for i in "01"]
            assert steps == [(float(t), f"job-{i}") for t in range(60) for i in "01"]
            assert events == [float(t) for t in range(0, 60, 10)]
    assert child.returncode == 0
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [f"{n}.heatsoak" for n in range(count)]


def test_a_file_locked_for_a_moment_has_nothing_new(sessions, tmp_path, monkeypatch):
    monkeypatch.setattr(access, "BUSY_WITHIN_S", 0.0)
    path = tmp_path / "s.heatsoak"
    sessions.create(path).close("interrupted")
    follower = Tail(path)
    follower.poll()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert follower.poll() is None
    with pytest.raises(UsageError, match="cannot be read: database is locked"):
        Tail(path).poll()  # There is no state yet that could be told.
    other.execute("INSERT INTO phases VALUES (9.0, 'job-0', 'train')")
    other.execute("COMMIT")
    other.close()
    assert follower.poll().phases == (PhaseRow(9.0, "job-0", "train"),)


def test_another_session_in_its_place_is_read_from_its_start(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path)
    writer.write(sessions.second(0))
    writer.close("interrupted")
    follower = Tail(path)
    follower.poll()
    writer = sessions.create(path, 2, force=True, id="new1")
    writer.write(sessions.second(5))
    news = follower.poll()
    assert [s.t_s for s in news.samples] == [5.0]
    assert len(news.devices) == 2
    writer.close("interrupted")


def test_a_file_that_went_says_so(sessions, tmp_path):
    path = tmp_path / "s.heatsoak"
    sessions.create(path).close("interrupted")
    follower = Tail(path)
    follower.poll()
    path.unlink()
    with pytest.raises(UsageError, match="there is no file"):
        follower.poll()


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_long_past_comes_as_rollups_and_the_rest_reading_by_reading(
    sessions, tmp_path, monkeypatch, is_closed
):
    monkeypatch.setattr(tail, "LONG_S", 900.0)
    monkeypatch.setattr(tail, "RECENT_S", 400.0)
    path = tmp_path / "s.heatsoak"
    writer = sessions.create(path, 2)
    for start in range(0, 1500, 50):
        seconds = [sessions.second(t, 2) for t in range(start, start + 50)]
        joined = {n: tuple(r for s in seconds for r in getattr(s, n)) for n in TABLES}
        writer.write(Batch({}, **joined))
    if is_closed:
        writer.close("interrupted")
    first = Tail(path).poll()
    recent_s = 1499.0 - 400.0
    assert first.samples[0].t_s == recent_s
    assert first.steps[0].t_s == recent_s
    assert [s.t_s for s in first.samples if s.device_id == "0"][-1] == 1499.0
    assert len(first.events) == 150  # Few, and each matters.
    power = [r for r in first.rollups if r.owner == "1" and r.reading == "power_w"]
    assert [r.start_s for r in power] == [10.0 * n for n in range(110)]  # Up to recent_s.
    assert power[0].minimum == pytest.approx(450.0)
    assert power[0].maximum == pytest.approx(450.6)
    rates = {round(r.mean) for r in first.rollups if r.reading == "rate"}
    assert rates == {9400}
    assert not [r for r in first.rollups if r.reading == "fan_pct"]  # Never reported.

    monkeypatch.setattr(tail, "MOST_ROLLUPS", 10)
    coarse = Tail(path).poll()
    assert {r.span_s for r in coarse.rollups} == {300}
    assert coarse.rollups[-1].start_s + 300 >= recent_s
    if not is_closed:
        writer.close("interrupted")
