"""The feed follows a real file from a real thread, whatever happens to the file."""

from __future__ import annotations

import queue
import threading

import pytest

from heatsoak.session.rows import Batch
from heatsoak.session.tail import Tail
from heatsoak.telemetry.sample import DeviceSample
from heatsoak_tui.feed import QUIET_AFTER, Feed
from heatsoak_tui.messages import BatchArrived, FeedTrouble, RecorderGone
from heatsoak_tui.run_view import RunView


@pytest.fixture
def follow():
    feeds = []

    def start(path, is_alive=lambda: True, **more):
        posted = queue.Queue()
        feed = Feed(Tail(path), posted.put, is_alive, poll_s=0.01, **more)
        thread = threading.Thread(target=feed.run)
        thread.start()
        feeds.append((feed, thread))
        return posted, thread

    yield start
    for feed, thread in feeds:
        feed.stop()
        thread.join(10)
        assert not thread.is_alive()


def test_one_message_a_poll_with_everything_new_and_then_the_end(follow, written, tmp_path):
    run = written(60)
    writer = run.open(tmp_path / "a.heatsoak")
    posted, thread = follow(writer.path)
    view = RunView()
    first = posted.get(timeout=10)
    assert isinstance(first, BatchArrived)
    assert not first.can_replace(first)
    view.apply(first.batch)
    writer.write(run.joined())
    view.apply(posted.get(timeout=10).batch)
    assert view.latest("synthetic-0").t_s == 59.0
    writer.close("not-steady")
    while not view.has_ended:
        view.apply(posted.get(timeout=10).batch)
    thread.join(10)
    assert not thread.is_alive()
    assert posted.empty()


def test_a_file_that_cannot_be_read_for_a_while(follow, written, tmp_path):
    run = written(20)
    path = tmp_path / "a.heatsoak"
    run.write(path)
    away = tmp_path / "away"
    path.rename(away)
    posted, _ = follow(path)
    trouble = posted.get(timeout=10)
    assert isinstance(trouble, FeedTrouble)
    assert trouble.text
    away.rename(path)
    assert posted.get(timeout=10).text == ""
    assert isinstance(posted.get(timeout=10), BatchArrived)


def test_a_recorder_that_is_gone_is_told_after_a_while(follow, written, tmp_path):
    writer = written(20).open(tmp_path / "a.heatsoak")
    posted, _ = follow(writer.path, is_alive=lambda: False)
    assert isinstance(posted.get(timeout=10), BatchArrived)
    assert isinstance(posted.get(timeout=10), RecorderGone)
    writer.write(Batch({}, samples=(DeviceSample(99.0, "synthetic-0"),)))
    message = posted.get(timeout=10)
    while isinstance(message, RecorderGone):
        message = posted.get(timeout=10)
    assert message.batch.samples[0].t_s == 99.0


def test_a_recorder_that_is_there_and_writes_nothing_is_told_until_it_writes(
    follow, written, tmp_path
):
    writer = written(20).open(tmp_path / "a.heatsoak")
    posted, _ = follow(writer.path, say_quiet=lambda quiet_s: f"quiet for {quiet_s:.2f} s")
    assert isinstance(posted.get(timeout=10), BatchArrived)
    assert posted.get(timeout=10).text == f"quiet for {QUIET_AFTER * 0.01:.2f} s"
    writer.write(Batch({}, samples=(DeviceSample(99.0, "synthetic-0"),)))
    message = posted.get(timeout=10)
    while message.text.startswith("quiet"):
        message = posted.get(timeout=10)
    assert message.text == ""
    assert isinstance(posted.get(timeout=10), BatchArrived)
