"""What a relay counts for its operator: refusals, and bytes of the last minute."""

from node.circuits.quotas import RecentBytes
from node.relay.refusals import FILE, OTHER, TOPIC, Refusal, RefusalCount, Refusals
from protocol.limits.peers import RELAY_REFUSALS_MAX
from storage.relay.quotas import STRANGER


def test_refusals_are_counted_with_their_last_time() -> None:
    now = 5
    refusals = Refusals(lambda: now)
    refusals.count(TOPIC, STRANGER, "peer_full", 3)
    now = 9
    refusals.count(TOPIC, STRANGER, "peer_full")
    refusals.count(FILE, STRANGER, "peer_full")
    assert refusals.counts == {
        Refusal(TOPIC, STRANGER, "peer_full"): RefusalCount(4, 9),
        Refusal(FILE, STRANGER, "peer_full"): RefusalCount(1, 9),
    }


def test_no_more_kinds_of_refusals_are_remembered_than_there_may_be() -> None:
    refusals = Refusals(lambda: 0)
    for number in range(RELAY_REFUSALS_MAX + 2):
        refusals.count(FILE, STRANGER, str(number))
    assert len(refusals.counts) == RELAY_REFUSALS_MAX + 1
    assert refusals.counts[Refusal(FILE, STRANGER, OTHER)].count == 2


def test_a_rate_is_of_the_last_minute() -> None:
    recent = RecentBytes(0.0)
    assert recent.per_second(0.0) == 0
    recent.add(50, 1.0)
    recent.add(50, 9.0)
    assert recent.per_second(10.0) == 10
    for second in range(60, 660):
        recent.add(7, float(second))
    assert recent.per_second(659.9) == 7
    assert recent.per_second(800.0) == 0
