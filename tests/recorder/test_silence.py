"""Devices that do not answer, or only with errors (cases C3, C4)."""

from __future__ import annotations

from heatsoak.recorder.silence import GIVEN_UP_REAL_S, GIVEN_UP_S, SILENT_S, Silence


def kinds(silence, t_s, silent_s, gone=()):
    return [(change.device_id, change.kind) for change in silence.look(t_s, silent_s, gone)]


def test_c3_a_silent_device_is_told_once_and_again_when_it_answers():
    silence = Silence(1.0)
    assert kinds(silence, 10.0, {"0": 1.0, "1": SILENT_S + 0.5}) == [("1", "silent")]
    assert silence.devices == silence.unheard == {"1"}
    assert kinds(silence, 11.0, {"0": 1.0, "1": SILENT_S + 1.5}) == []
    assert kinds(silence, 12.0, {"0": 1.0, "1": 0.2}) == [("1", "silent")]
    assert silence.devices == set()


def test_c3_a_device_that_never_answers_is_given_up_and_then_left_alone():
    silence = Silence(1.0)
    assert kinds(silence, 10.0, {"0": 10.0}) == [("0", "silent")]
    assert kinds(silence, GIVEN_UP_S, {"0": GIVEN_UP_S}) == []
    (change,) = silence.look(GIVEN_UP_S + 1, {"0": GIVEN_UP_S + 1}, ())
    assert (change.kind, "no answer for 301 s" in change.text) == ("given-up", True)
    assert kinds(silence, 400.0, {"0": 400.0}, gone={"0"}) == []
    assert silence.devices == set()


def test_c3_under_speed_a_busy_machine_is_no_lost_card():
    silence = Silence(400.0)
    assert kinds(silence, 900.0, {"0": 399.0}) == []
    assert kinds(silence, 5000.0, {"0": 400.0 * GIVEN_UP_REAL_S - 1}) == [("0", "silent")]
    assert kinds(silence, 5000.0, {"0": 400.0 * GIVEN_UP_REAL_S + 1}) == [("0", "given-up")]


def test_c4_a_device_that_returns_only_errors_is_explained_once():
    silence = Silence(1.0)
    silence.erred(10.0, "0", "NVML error 999")
    assert kinds(silence, 11.0, {"0": 0.1}) == []
    # Nobody waits for its readings, but it does answer: its workload is still judged.
    assert (silence.devices, silence.unheard) == (set(), {"0"})
    (change,) = silence.look(16.0, {"0": 0.1}, ())
    assert change.kind == "unreadable"
    assert "NVML error 999" in change.text
    assert "its workload goes on" in change.text
    assert "container" in change.text
    silence.erred(17.0, "0", "NVML error 4")
    assert kinds(silence, 18.0, {"0": 0.1}) == []
    silence.answered("0")
    assert kinds(silence, 19.0, {"0": 0.1}) == [("0", "unreadable")]
    assert silence.unheard == set()


def test_c4_one_failed_reading_is_no_news():
    silence = Silence(1.0)
    silence.erred(10.0, "0", "NVML error 999")
    silence.answered("0")
    assert kinds(silence, 30.0, {"0": 0.1}) == []
