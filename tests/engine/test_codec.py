"""Rows to SQLite's values and back, with the numbers and texts that come in practice."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from heatsoak.session import codec
from heatsoak.session.rows import EventRow, JobRow, ResultRow
from heatsoak.steady_state.verdict import Verdict
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import READINGS, DeviceSample


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 0, "b": None, "c": 0.0}, '{"a":0,"b":null,"c":0.0}'),
        ([np.float32(0.5), np.int64(3), np.bool_(True)], "[0.5,3,true]"),
        (np.array([1.0, 2.0]), "[1.0,2.0]"),
        (float("nan"), "null"),
        ({"a": [1, float("inf"), {"b": np.float64("nan")}]}, '{"a":[1,null,{"b":null}]}'),
        ("Füße \udcff", '"F\\u00fc\\u00dfe \\udcff"'),
    ],
)
def test_json(value, expected):
    assert codec.to_json(value) == expected


def test_what_is_no_json_is_refused():
    with pytest.raises(TypeError, match="object is not JSON"):
        codec.to_json({"a": object()})


def test_a_verdict_comes_back_with_its_bounds(sessions):
    plain = sessions.verdict(1.0)
    bare = Verdict(2.0, "0", "warming", (), "", ())
    whole = sessions.verdict(
        3.0, "0", "steady", blocked_by="fan", window_start_s=0.0, window_s=300.0, frozen_at_s=3.0,
        time_left_s=(0.0, 12.5),
    )  # fmt: skip
    for verdict in (plain, bare, whole):
        assert codec.verdict_of(codec.verdict_values(verdict)) == verdict
    assert whole.bounds[0].is_ok is codec.verdict_of(codec.verdict_values(whole)).bounds[0].is_ok
    assert len(codec.verdict_values(whole)) == len(fields(Verdict))


def test_a_sample_comes_back_and_nothing_reported_stays_nothing(sessions):
    reasons = [None, (), ("sw_power_cap",), ("sw_power_cap", "0x400")]
    samples = [sessions.sample(1.0), DeviceSample(0.0, "cpu")]
    samples += [DeviceSample(1.0, "0", throttle_reasons=reason) for reason in reasons]
    for sample in samples:
        values = codec.sample_values(sample)
        assert codec.sample_of(values) == sample
        assert len(values) == len(READINGS) + 2
    assert codec.sample_values(DeviceSample(0.0, "cpu"))[2:] == (None,) * len(READINGS)


def test_a_device_of_a_later_version_loses_only_what_is_not_known(sessions):
    (info,) = sessions.devices()
    values = codec.device_values(info)
    assert codec.device_of(values[-1]) == info
    later = json.loads(values[-1]) | {"colour": "black"}
    assert codec.device_of(json.dumps(later)) == info
    assert values[:6] == ("0", "GPU-0", info.name, "rtx-5090", "nvidia", "measured")
    assert {f.name for f in fields(DeviceInfo)} == json.loads(values[-1]).keys()


def test_jobs_events_and_results_come_back(sessions):
    job = JobRow("job-0", "w", 3, sessions.RECIPE, "fsdp", "images", ("1", "0"), {"x": None})
    assert codec.job_of(codec.job_values(job), ("1", "0")) == job
    for event in (EventRow(0.0, "mark", "t"), EventRow(1.0, "lost", "t", "0", "j", {"a": [0]})):
        assert codec.event_of(codec.event_values(event)) == event
    result = ResultRow(0.0, "0", "job-0", {"a": {"b": None, "c": 0}})
    assert codec.result_of(codec.result_values(result)) == result


def test_text_that_is_no_utf8_becomes_text_that_is():
    assert codec.to_text("caf\udce9 ü") == "caf? ü"
