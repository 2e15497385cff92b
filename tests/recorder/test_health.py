"""Defects that a device counts, before and after (case C7), from devices that may hang."""

from __future__ import annotations

import threading

from heatsoak.recorder import health
from heatsoak.recorder.health import HealthWatch
from heatsoak.telemetry.device import DeviceInfo, DeviceLostError
from heatsoak.telemetry.health import DeviceHealth


class Card:
    """A card that answers from a script, and for ever with its last answer."""

    def __init__(self, device_id, *answers):
        self.info = DeviceInfo(device_id, f"GPU-{device_id}", "a card", "nvidia", "measured")
        self.answers = list(answers)
        self.asked = 0

    def health(self):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer() if callable(answer) else answer


def stopped(watch):
    watch.start()
    watch.stop()
    return list(watch.news())


def test_c7_what_got_worse_during_the_run_is_news_and_stays_in_the_entry():
    card = Card("0", DeviceHealth(ecc_uncorrected=3, xids=()),
                DeviceHealth(ecc_uncorrected=5, xids=(48,)))  # fmt: skip
    watch = HealthWatch([card])
    news = stopped(watch)
    assert [words for _, words in news] == [
        "2 memory errors could not be corrected",
        "the driver reported Xid 48",
    ]
    entry = watch.entry("0")
    assert entry["before"]["ecc_uncorrected"] == 3
    assert entry["after"]["ecc_uncorrected"] == 5
    assert entry["worse"] == [words for _, words in news]


def test_c7_a_card_is_asked_again_and_again(until):
    answers = [DeviceHealth(ecc_corrected=n) for n in range(4)]
    watch = HealthWatch([Card("0", *answers)], every_s=0.01)
    watch.start()
    news = []
    until(lambda: news.extend(watch.news()) or len(news) == 3)
    watch.stop()
    assert {words for _, words in news} == {"1 memory error was corrected"}


def test_c7_devices_that_count_nothing_are_not_asked_twice():
    card = Card("0", None)
    watch = HealthWatch([card])
    assert stopped(watch) == []
    assert watch.entry("0") is None
    assert card.asked == 1


def test_c7_a_card_that_hangs_or_is_lost_keeps_its_newest_answer(monkeypatch):
    monkeypatch.setattr(health, "LAST_WITHIN_S", 0.2)
    release = threading.Event()

    def lose():
        raise DeviceLostError("gone")

    cards = [Card("0", DeviceHealth(ecc_corrected=1), release.wait),
             Card("1", DeviceHealth(ecc_corrected=1), lose)]  # fmt: skip
    watch = HealthWatch(cards)
    assert stopped(watch) == []  # and not never
    for device_id in ("0", "1"):
        assert watch.entry(device_id)["after"]["ecc_corrected"] == 1
    cards[0].answers = [None]
    release.set()


def test_b3_busy_slices_of_the_same_card_are_seen(until):
    card = Card("0:1", DeviceHealth())
    card.busy_siblings = lambda: ("MIG-a",)
    watch = HealthWatch([card])
    stopped(watch)
    assert set(watch.busy_siblings()) == {("0:1", ("MIG-a",))}
