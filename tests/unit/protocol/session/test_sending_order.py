"""Topics with much to send: those of one group go one after the other, the oldest first."""

from array import array

import pytest

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import Digest, SessionId, TopicKey
from protocol.session.events import BatchLoaded, MessageReceived, PlanLoaded, SummaryLoaded, TopicFollowed
from protocol.session.messages import Announce, Receipt, Refused, Summary
from protocol.session.outputs import LoadBatch, Output
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
NOTHING = Digest(bytes(32))
OLDER, LATER, LAST, OTHER = (TopicKey(bytes([number]) * 32) for number in range(4))
_EACH = 8
"""Commits to send on each topic, two in a batch: four batches, of which three may be without a receipt."""


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two commits."""
    monkeypatch.setattr("protocol.session.transfer.BATCH_COUNT_MAX", 2)


def _plan(session: Session, *topics: TopicKey) -> list[Output]:
    """Both say that they hold nothing, and then there is something to send."""
    outputs: list[Output] = []
    for topic in topics:
        group = None if topic == OTHER else 7
        session.handle(TopicFollowed(topic, is_own=False, order=topic[0], group=group))
        name = announced_topic(topic, SESSION_ID, by_dialer=False)
        session.handle(MessageReceived(Announce((name,))))
        session.handle(SummaryLoaded(topic, (), 0, NOTHING, 0))
        session.handle(MessageReceived(Summary(blind_topic(topic, SESSION_ID), 0, (), 0, NOTHING)))
        outputs += session.handle(PlanLoaded(topic, array("q", range(1, _EACH + 1)), 100))
    return outputs


def _send_all(session: Session, outputs: list[Output]) -> list[TopicKey]:
    """Read and confirm batches, the oldest first; return the topics of the batches in the order in which they were read."""
    loads = [one for one in outputs if isinstance(one, LoadBatch)]
    order = [one.topic for one in loads]
    while loads:
        load = loads.pop(0)
        further = session.handle(BatchLoaded(load.topic, (b"x",) * len(load.nums)))
        further += session.handle(MessageReceived(Receipt(blind_topic(load.topic, SESSION_ID))))
        loads += [one for one in further if isinstance(one, LoadBatch)]
        order += [one.topic for one in further if isinstance(one, LoadBatch)]
    return order


def test_the_next_of_a_group_begins_when_all_of_the_one_before_is_sent() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    order = _send_all(session, _plan(session, OLDER, LATER, LAST))
    assert order == [OLDER] * 4 + [LATER] * 4 + [LAST] * 4


def test_who_is_of_no_group_uses_the_room_that_is_left() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    outputs = _plan(session, OLDER, LATER, OTHER)
    assert [one.topic for one in outputs if isinstance(one, LoadBatch)] == [OLDER, OTHER]
    order = _send_all(session, outputs)
    assert [one for one in order if one != OTHER] == [OLDER] * 4 + [LATER] * 4


def test_an_older_one_that_is_compared_later_goes_first_from_then_on() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    began = _plan(session, LATER, LAST)
    order = _send_all(session, [*began, *_plan(session, OLDER)])
    assert order.index(OLDER) < order.index(LAST)
    assert [one for one in order if one != LATER] == [OLDER] * 4 + [LAST] * 4
    assert order.count(LATER) == 4
    assert order[-5:] == [LATER, *[LAST] * 4]


def test_the_others_go_on_where_the_peer_takes_no_more_of_one() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    _plan(session, OLDER, LATER)
    outputs = session.handle(MessageReceived(Refused(blind_topic(OLDER, SESSION_ID), "topic_full")))
    outputs += session.handle(BatchLoaded(OLDER, (b"x", b"x")))  # it was being read
    assert _send_all(session, outputs) == [LATER] * 4
