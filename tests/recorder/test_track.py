"""What a job's track tells of its devices beside their figures (cases A2, A14, B3)."""

from __future__ import annotations

import pytest

from heatsoak.recipe import Recipe
from heatsoak.recorder.pending import Pending
from heatsoak.recorder.track import Track
from heatsoak.session.rows import JobRow
from heatsoak.steady_state.protocols import PROTOCOLS
from heatsoak.telemetry.device import DeviceInfo
from heatsoak.telemetry.sample import DeviceSample
from heatsoak.telemetry.sampler import DeviceFault

RECIPE = Recipe("tiny", "1B", 4096, 1, 1, "bf16", "auto", False, False, "adamw")
INFO = DeviceInfo("0", "MIG-a", "a slice", "nvidia", "measured", mig_parent_uuid="GPU-p",
                  mig_profile="3g.40gb")  # fmt: skip


class Job:
    """A job that runs and has nothing to say."""

    failure = None
    stderr_tail = ()
    is_gone = False

    def start(self, t_s):
        """Begin."""

    def poll(self, t_s):
        return ()

    take_log = take_warnings = filenos = lambda self: ()

    def stop(self):
        """Do as asked."""


@pytest.fixture
def track():
    row = JobRow("job-0", "tiny", 1, RECIPE, "replica", "tokens", ("0",))
    one = Track(row, Job(), [INFO], PROTOCOLS["smoke"], {"0": ["1"], "1": ["0"]})
    one.start(0.0, Pending())
    return one


def entry(track):
    pending = Pending()
    track.finish(100.0, pending)
    (row,) = pending.results
    return row.data


def texts(pending):
    return [(event.kind, event.device_id, event.text) for event in pending.events]


def test_a14_a_suspect_sensor_is_an_event_and_stays_on_the_result(track):
    pending = Pending()
    words = "power is suspect: 900 W at a limit of 450 W"
    track.add_fault(DeviceFault(3.0, "0", "suspect", words), pending)
    assert texts(pending) == [("warning", "0", f"0: {words}")]
    assert track.verdicts.get("0") is None  # It is not lost for it.
    assert entry(track)["sensors"]["suspect"] == [words]


def test_a2_a_sensor_without_values_is_told_after_the_first_readings(track):
    pending = Pending()
    for t in range(30):
        track.add_sample(DeviceSample(float(t), "0", power_w=400.0 + t), pending)
    ((kind, device_id, text),) = texts(pending)
    assert (kind, device_id) == ("warning", "0")
    assert "temperature" in text
    assert "power" not in text


def test_b3_busy_slices_are_news_once_and_stay_on_the_result(track):
    pending = Pending()
    track.see_busy(10.0, "0", ["MIG-b"], pending)
    track.see_busy(20.0, "0", ["MIG-b"], pending)
    assert [text for _, _, text in texts(pending)] == [
        "0: MIG-b on the same card is busy: no perf/W meanwhile"
    ]
    mig = entry(track)["mig"]
    assert (mig["busy_siblings"], mig["soaked_with"]) == (["MIG-b"], ["1"])
    assert (mig["parent_uuid"], mig["profile"]) == ("GPU-p", "3g.40gb")
