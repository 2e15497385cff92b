"""The judge over logs and sessions: the plain CSV form, and the four kinds of field log."""

import json
import random
from dataclasses import replace

import pytest

from heatsoak.errors import UsageError
from heatsoak.session.importers import native_csv
from heatsoak.session.rejudge import judge_file
from heatsoak.session.rows import Batch, EventRow, PhaseRow, StepsRow
from heatsoak.telemetry.discovery import open_devices

HEADER = "t_s,device,power_w,energy_j,temperature_c,sm_clock_mhz,utilization_pct,units_done"


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def only(path, **more):
    (line,) = judge_file(path, **more)
    json.dumps(line, allow_nan=False)
    return line


def test_a_synthetic_soak_is_judged_as_it_was_live(tmp_path):
    (card,) = open_devices("synthetic:rtx-5090", seed=3)
    card.start_load(0.0)
    rows = []
    for t_s in range(1, 5401):
        s = card.read(float(t_s))
        rows.append((t_s, "x", s.power_w, s.energy_j, s.temperature_c, s.sm_clock_mhz,
                     s.utilization_pct, card.units_done(float(t_s))))  # fmt: skip
    line = only(write(tmp_path / "soak.csv", rows))
    truth = card.asymptote()
    assert line["state"] == "steady"
    assert line["throughput"]["mean"] == pytest.approx(truth.rate_per_s, rel=0.01)
    assert line["power_w"]["mean"] == pytest.approx(truth.power_w, rel=0.01)
    assert line["window_start_s"] + line["window_s"] <= line["frozen_at_s"]
    # Causal: what comes after the watch changes nothing.
    end = int(line["frozen_at_s"]) + 700
    assert only(write(tmp_path / "cut.csv", rows[:end]))["throughput"] == line["throughput"]


def test_power_that_never_moves_while_it_heats_is_stuck_not_steady(tmp_path):
    noise = random.Random(1)
    rows = [
        (t, "x", 46.19, "", 32 + min(31, t // 20), 1400 + noise.choice((0, 15)), 99, "")
        for t in range(1, 701)
    ]
    line = only(write(tmp_path / "stuck.csv", rows))
    assert line["state"] != "steady"
    assert "no-throughput" in line["flags"]
    assert "power" in line["reason"]


def test_a_frozen_log_is_stuck(tmp_path):
    rows = [(t, "x", 287.3, "", 64, 1725, 98, "") for t in range(1, 3190)]
    assert only(write(tmp_path / "frozen.csv", rows))["state"] == "stuck"


def test_a_false_first_plateau_is_not_frozen(tmp_path):
    noise = random.Random(2)
    rows = [
        (t, "x", round((48 if t < 40 else 38) + noise.gauss(0, 0.3), 2), "",
         round(40 + min(t, 40) * 0.6), 1500 if t < 40 else 1290, 99, "")
        for t in range(1, 301)
    ]  # fmt: skip
    line = only(write(tmp_path / "two-stage.csv", rows))
    assert line["frozen_at_s"] is None


def test_a_rate_that_falls_all_the_time_is_never_steady(tmp_path):
    rows, units = [], 0.0
    for t in range(1, 5401):
        units += 91 - 12 * t / 5400
        rows.append((t, "x", "", "", round(70 + 13 * t / 5400), "", "", round(units, 2)))
    line = only(write(tmp_path / "falling.csv", rows))
    assert line["state"] == "not-steady"
    assert line["blocked_by"] is not None


def test_pauses_are_taken_from_the_share_of_each_second(tmp_path):
    rows = [(1, 0), (2, 0.25), (3, 1), (4, 0.5), (5, 0)]
    path = write(tmp_path / "p.csv", rows, "t_s,paused_frac")
    (log,) = native_csv.read(path)
    assert log.phases == [(0.0, "train"), (1.75, "eval"), (3.5, "train")]


def test_absent_columns_are_not_reported_and_bad_cells_cost_only_themselves(tmp_path):
    path = write(tmp_path / "a.csv", [(1, "n/a"), ("x", 5), (3, "")], "t_s,power_w")
    (log,) = native_csv.read(path)
    assert [(s.t_s, s.power_w) for s in log.samples] == [(1.0, None), (3.0, None)]
    assert log.skipped_rows == 1
    assert log.samples[0].throttle_reasons is None
    assert log.steps == []


def test_devices_of_one_log_are_judged_apart(tmp_path):
    rows = [
        (t, device, 100 + t % 3, "", 50, 1000, 99, t * 10) for t in range(1, 90) for device in "ab"
    ]
    assert [line["device"] for line in judge_file(write(tmp_path / "two.csv", rows))] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.csv", b""), ("no-time.csv", b"power_w\n1\n"), ("head.csv", b"t_s\n"),
     ("bin.csv", bytes(range(256)))],
)  # fmt: skip
def test_what_is_no_log_is_refused_in_words(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=name):
        list(judge_file(tmp_path / name))


def test_an_unknown_protocol_is_refused(tmp_path):
    path = write(tmp_path / "a.csv", [(1, 5)], "t_s,power_w")
    with pytest.raises(UsageError, match="standard"):
        list(judge_file(path, "eternal"))


def test_a_row_with_a_stamp_far_ahead_costs_only_itself(tmp_path):
    rows = [(t, "x", 300 + t % 7, "", 50, 1000, 99, t * 10) for t in range(1, 1000)]
    plain = only(write(tmp_path / "plain.csv", rows))
    broken = [(1e9, *rows[0][1:]), *rows[:500], (4e9, *rows[500][1:]), *rows[500:]]
    line = only(write(tmp_path / "broken.csv", broken))
    assert line | {"file": plain["file"]} == plain
    (log,) = native_csv.read(tmp_path / "broken.csv")
    assert log.skipped_rows == 2
    assert len(log.samples) == len(log.steps) == 999


def record(sessions, path, batches, **meta):
    writer = sessions.create(path, **meta)
    for batch in batches:
        writer.write(batch)
    writer.close("not-steady")
    return path


def drifting(sessions, seconds):
    """A rate that doubles: never steady."""
    yield Batch({}, phases=(PhaseRow(0.0, "job-0", "train"),),
                events=(EventRow(0.0, "start", "starts", job_id="job-0"),))  # fmt: skip
    units = 0.0
    for t in range(1, seconds):
        units += 100 + t / 4
        yield Batch({}, samples=(sessions.sample(float(t)),),
                    steps=(StepsRow(float(t), "job-0", units, t, None),))  # fmt: skip


def test_more_time_that_was_asked_for_counts_again(sessions, tmp_path):
    batches = list(drifting(sessions, 400))
    path = record(sessions, tmp_path / "a.heatsoak", batches, protocol="smoke")
    assert "not steady after 4 min" in only(path)["reason"]
    asked = EventRow(100.0, "extend", "60 s more", data={"seconds": 60.0})
    batches[100] = replace(batches[100], events=(asked,))
    path = record(sessions, tmp_path / "b.heatsoak", batches, protocol="smoke")
    assert "not steady after 5 min" in only(path)["reason"]


@pytest.mark.parametrize("state", ["lost", "failed", "interrupted"])
def test_how_a_session_ended_is_said_again(sessions, tmp_path, state):
    batches = list(drifting(sessions, 200))
    end = replace(sessions.verdict(150.4, state=state), reason="as it was said")
    batches[150] = replace(batches[150], verdicts=(end,))
    line = only(record(sessions, tmp_path / "a.heatsoak", batches))
    assert (line["state"], line["reason"]) == (state, "as it was said")


def test_a_run_that_never_finished_a_unit_had_a_counter(sessions, tmp_path):
    batches = [
        replace(batch, steps=tuple(replace(row, units_done=0.0) for row in batch.steps))
        for batch in drifting(sessions, 400)
    ]
    line = only(record(sessions, tmp_path / "a.heatsoak", batches, protocol="smoke"))
    assert line["state"] == "failed"
    assert "no-throughput" not in line["flags"]
