"""How far a transfer is: its rate follows the line, and a number that nothing comes of gives no time."""

import pytest

from node.sync.sync_progress import RATED_TOPICS_MAX, TransferRates, progress_of, seconds_left
from protocol.ids import TopicKey
from protocol.limits.peers import STATED_COUNT_MAX

TOPIC = TopicKey(b"t" * 32)


def _noted(interval: float, batches: int, size: int = 100) -> TransferRates:
    """After so many batches, of which the first came at the time 0."""
    rates = TransferRates()
    for number in range(batches):
        rates.note(TOPIC, number * size, 10_000, number * interval)
    return rates


def test_a_rate_is_that_of_the_last_seconds() -> None:
    rates = _noted(0.1, 100)
    assert rates.rate(TOPIC, 9.9) == pytest.approx(1000)
    for number in range(400):  # then the line is a tenth as fast
        rates.note(TOPIC, 9900 + 10 * number, 10_000, 10 + 0.1 * number)
    assert rates.rate(TOPIC, 50) == pytest.approx(100, rel=0.05)


def test_of_one_batch_there_is_no_rate() -> None:
    rates = _noted(1, 1)
    assert rates.rate(TOPIC, 5) is None
    assert TransferRates().rate(TOPIC, 0) is None


def test_nothing_for_ten_seconds_is_told_as_none_and_a_new_beginning_as_unknown() -> None:
    rates = _noted(0.1, 50)
    assert rates.rate(TOPIC, 14.8) != 0
    assert rates.rate(TOPIC, 15.1) == 0
    rates.note(TOPIC, 5100, 10_000, 60)
    assert rates.rate(TOPIC, 60) is None
    rates.note(TOPIC, 5200, 10_000, 61)
    assert rates.rate(TOPIC, 61) == pytest.approx(100)


def test_on_a_slow_line_the_time_between_two_batches_is_no_silence() -> None:
    rates = _noted(40, 5)
    assert rates.rate(TOPIC, 200) == pytest.approx(2)
    assert rates.rate(TOPIC, 160 + 121) == 0


def test_a_batch_that_brings_nothing_new_does_not_count() -> None:
    rates = _noted(1, 3)
    for at in range(3, 700):
        rates.note(TOPIC, 200, 10_000, at)
    assert (rates.rate(TOPIC, 700), rates.last_at(TOPIC)) == (0, 2)


def test_what_is_done_is_forgotten_and_of_many_topics_the_latest_are_rated() -> None:
    rates = _noted(1, 3)
    rates.note(TOPIC, 300, 0, 3)
    assert (rates.rate(TOPIC, 3), rates.last_at(TOPIC), TransferRates().last_at(TOPIC)) == (None, 3, None)
    topics = [TopicKey(number.to_bytes(32, "big")) for number in range(RATED_TOPICS_MAX + 1)]
    for topic in topics:
        rates.note(topic, 0, 9, 4)
        rates.note(topic, 1, 8, 5)
    assert [rates.rate(topic, 5) for topic in topics] == [None] + [1.0] * RATED_TOPICS_MAX
    assert rates.last_at(topics[0]) == 5, "of the connection"


def test_the_time_left_is_told_where_something_tells_it() -> None:
    assert (seconds_left(1000, 100), seconds_left(1001, 100)) == (10, 11)
    assert seconds_left(1000, None) is seconds_left(1000, 0) is None
    assert seconds_left(STATED_COUNT_MAX, 1e9) is None
    assert (seconds_left(30 * 86_400, 1), seconds_left(30 * 86_400 + 1, 1)) == (30 * 86_400, None)


def test_after_a_cut_it_is_told_from_where_it_goes_on() -> None:
    assert progress_of(25_000, 35_000, 5000.5, is_receiving=True) == {
        "direction": "receiving",
        "done": 25_000,
        "total": 60_000,
        "rate": 5001,
        "seconds_left": 7,
    }
    assert progress_of(60_000, 35_000, None, is_receiving=False) == {
        "direction": "sending",
        "done": 25_000,
        "total": 60_000,
        "rate": None,
        "seconds_left": None,
    }


def test_a_total_that_no_peer_has_is_told_as_unknown() -> None:
    progress = progress_of(7, STATED_COUNT_MAX, 1000, is_receiving=True)
    assert (progress["done"], progress["total"], progress["seconds_left"]) == (7, None, None)
