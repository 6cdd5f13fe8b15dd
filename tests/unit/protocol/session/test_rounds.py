"""Later rounds of topics that stay in doubt: a connection may last for years, so their rate is bounded, not their number."""

from array import array

import pytest

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import BlockId, CommitId, Digest, SessionId, ShortId, TopicKey
from protocol.limits.peers import (
    LATER_ROUND_CHECKS,
    LATER_ROUND_DOUBLINGS_MAX,
    LATER_ROUNDS_AT_ONCE_MAX,
    LATER_ROUNDS_PER_CHECK,
)
from protocol.session.events import (
    BatchIngested,
    CheckDue,
    MessageReceived,
    PlanLoaded,
    Reconciled,
    RoomWanted,
    RoundWanted,
    SummaryLoaded,
    TopicFollowed,
)
from protocol.session.messages import Announce, Publications, Reconcile, Summary
from protocol.session.outputs import Close, LoadPlan, LoadSummary, OpenReconciliation, Output, Send
from protocol.session.session import Session

SESSION_ID = SessionId(b"s" * 32)
ONE, TWO = TopicKey(b"1" * 32), TopicKey(b"2" * 32)
SMALLER, LARGER = (1, Digest(b"a" * 32)), (2, Digest(b"b" * 32))
PLAN = array("q")
_MOST_CHECKS = LATER_ROUND_CHECKS << LATER_ROUND_DOUBLINGS_MAX


def _joined(*topics: TopicKey) -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    for topic in topics:
        session.handle(TopicFollowed(topic, is_own=False))
        session.handle(MessageReceived(Announce((announced_topic(topic, SESSION_ID, by_dialer=False),))))
    return session


def _hear(topic: TopicKey, number: int, size: tuple[int, Digest]) -> MessageReceived:
    return MessageReceived(Summary(blind_topic(topic, SESSION_ID), number, (), *size))


def _play(session: Session, topic: TopicKey, number: int, by_ranges: bool) -> None:
    """Play a round in which this side holds more: the peer lacks the same again."""
    count, digest = LARGER
    session.handle(SummaryLoaded(topic, (), count, digest, 0))
    session.handle(_hear(topic, number, SMALLER))
    opened = session.handle(PlanLoaded(topic, PLAN, 0, is_exact=False))
    assert opened == [OpenReconciliation(topic, by_ranges)]
    session.handle(Reconciled(topic, ((0, b"first"),), ()))
    session.handle(MessageReceived(Reconcile(blind_topic(topic, SESSION_ID), 7, b"")))
    session.handle(Reconciled(topic, (), (), is_over=True))


def _play_first(session: Session, *topics: TopicKey) -> None:
    for topic in topics:
        _play(session, topic, 0, by_ranges=False)
    for number in (1, 2):
        assert session.handle(CheckDue()) == [LoadSummary(topic) for topic in topics]
        for topic in topics:
            _play(session, topic, number, by_ranges=number == 2)


def _begun(session: Session, checks: int) -> list[Output]:
    return [output for _ in range(checks) for output in session.handle(CheckDue())]


def test_a_topic_that_stays_in_doubt_is_compared_again_more_and_more_seldom_and_without_end() -> None:
    session = _joined(ONE)
    _play_first(session, ONE)
    for number, hours in enumerate((1, 2, 4, 8, 16, 16, 16), 3):
        assert _begun(session, hours * LATER_ROUND_CHECKS - 1) == []
        assert session.handle(RoomWanted()) == []
        assert session.handle(CheckDue()) == [LoadSummary(ONE)]
        _play(session, ONE, number, by_ranges=True)


def test_heads_are_forgotten_once_the_plan_is_asked_for() -> None:
    session = _joined(ONE)
    session.handle(SummaryLoaded(ONE, (CommitId(BlockId(b"h" * 32)),), *LARGER, 0))
    heads = (ShortId(b"g" * 16), ShortId(b"h" * 16))
    came = session.handle(MessageReceived(Summary(blind_topic(ONE, SESSION_ID), 0, heads, *SMALLER)))
    assert came == [LoadPlan(ONE, heads)]
    progress = session.progress_of(ONE)
    assert progress is not None
    own, peer = progress.rounds.own, progress.rounds.peer
    assert own is not None
    assert peer is not None
    assert (own.heads, peer.heads) == ((), ()), "a topic with many branches has many, on each connection"
    assert (own.count, own.digest, peer.count, peer.digest) == (*LARGER, *SMALLER)
    assert session.handle(PlanLoaded(ONE, PLAN, 0, is_exact=False)) == [OpenReconciliation(ONE, False)]


def test_who_hears_an_equal_summary_first_says_none_of_its_heads() -> None:
    heads, short = (CommitId(BlockId(b"h" * 32)),), (ShortId(b"h" * 16),)
    (early, late) = (_joined(ONE), _joined(ONE))
    (said,) = early.handle(SummaryLoaded(ONE, heads, *LARGER, 0))
    assert said == Send(Summary(blind_topic(ONE, SESSION_ID), 0, short, *LARGER))
    assert late.handle(MessageReceived(said.message)) == []
    (answer, plan) = late.handle(SummaryLoaded(ONE, heads, *LARGER, 0))
    assert answer == Send(Summary(blind_topic(ONE, SESSION_ID), 0, (), *LARGER))
    assert plan == LoadPlan(ONE, short), "what is equal implies all that is here"
    assert early.handle(MessageReceived(answer.message)) == [LoadPlan(ONE, short)]


def test_who_hears_a_summary_that_differs_says_its_heads() -> None:
    session = _joined(ONE)
    session.handle(_hear(ONE, 0, SMALLER))
    said = session.handle(SummaryLoaded(ONE, (CommitId(BlockId(b"h" * 32)),), *LARGER, 0))
    assert said[0] == Send(Summary(blind_topic(ONE, SESSION_ID), 0, (ShortId(b"h" * 16),), *LARGER))


def test_one_of_many_such_topics_has_its_round_at_a_time_in_turns() -> None:
    session = _joined(ONE, TWO)
    _play_first(session, ONE, TWO)
    _begun(session, LATER_ROUND_CHECKS - 1)
    for topic in (ONE, TWO):
        assert session.handle(CheckDue()) == [LoadSummary(topic)]
        assert session.handle(CheckDue()) == [], "while the peer says nothing, none is begun of another"
        _play(session, topic, 3, by_ranges=True)
    assert session.handle(CheckDue()) == []


def test_a_topic_that_is_equal_at_last_is_not_compared_again() -> None:
    session = _joined(ONE)
    _play_first(session, ONE)
    _begun(session, LATER_ROUND_CHECKS)
    count, digest = LARGER
    session.handle(SummaryLoaded(ONE, (), count, digest, 0))
    session.handle(_hear(ONE, 3, LARGER))
    session.handle(PlanLoaded(ONE, PLAN, 0))
    assert _begun(session, 2 * LATER_ROUND_CHECKS) == []


@pytest.mark.parametrize("is_early", [False, True])
def test_a_peer_begins_as_many_later_rounds_as_it_may_and_more_with_time(is_early: bool) -> None:
    session = _joined(ONE)

    def begin(number: int) -> list[Output]:
        """Begin a round as the peer; with `is_early` while this side is at work on the one before."""
        heard = session.handle(_hear(ONE, number, LARGER)) if not is_early or not number else []
        if number and not is_early:
            assert heard in ([LoadSummary(ONE)], [Close("too_many_rounds")])
        session.handle(SummaryLoaded(ONE, (), *SMALLER, 0))
        outputs = session.handle(_hear(ONE, number + 1, LARGER)) if is_early else heard
        session.handle(PlanLoaded(ONE, PLAN, 0))
        return outputs

    free = 3 if not is_early else 2
    for number in range(free + LATER_ROUNDS_AT_ONCE_MAX):
        assert Close("too_many_rounds") not in begin(number)
    session.handle(CheckDue())
    for _ in range(LATER_ROUNDS_PER_CHECK):
        number += 1
        assert Close("too_many_rounds") not in begin(number)
    assert begin(number + 1) == [Close("too_many_rounds")]


def test_an_answer_to_a_round_of_this_side_takes_nothing_of_the_peers() -> None:
    session = _joined(ONE)
    _play_first(session, ONE)
    for number in range(3, 3 + 2 * LATER_ROUNDS_AT_ONCE_MAX):
        (begun,) = _begun(session, _MOST_CHECKS if number > 6 else LATER_ROUND_CHECKS << (number - 3))
        assert begun == LoadSummary(ONE)
        _play(session, ONE, number, by_ranges=True)
    count, digest = SMALLER
    session.handle(_hear(ONE, number + 1, LARGER))
    (said,) = session.handle(SummaryLoaded(ONE, (), count, digest, 0))[:1]
    assert isinstance(said, Send)


def _leave_out(session: Session) -> None:
    """Take a commit of the peer's that is dropped now, and may be taken later."""
    session.handle(MessageReceived(Publications(blind_topic(ONE, SESSION_ID), (b"commit",))))
    session.handle(BatchIngested(ONE, 0, (), dropped=1, has_left_out=True))


def _play_as(session: Session, number: int, ours: tuple[int, Digest], theirs: tuple[int, Digest]) -> None:
    """Play a round in which nothing comes of the difference."""
    session.handle(SummaryLoaded(ONE, (), *ours, 0))
    session.handle(_hear(ONE, number, theirs))
    session.handle(PlanLoaded(ONE, PLAN, 0))
    if ours < theirs:
        _reconcile_as_asker(session)


def _reconcile_as_asker(session: Session) -> None:
    assert session.handle(MessageReceived(Reconcile(blind_topic(ONE, SESSION_ID), 0, b"")))
    session.handle(Reconciled(ONE, (), (), is_over=True))


def test_who_left_commits_out_begins_no_round_while_the_peer_may_begin_a_reconciliation() -> None:
    """Else its first frame would come in the wrong state, and end the connection."""
    session = _joined(ONE)
    session.handle(SummaryLoaded(ONE, (), *SMALLER, 0))
    session.handle(_hear(ONE, 0, LARGER))
    session.handle(PlanLoaded(ONE, PLAN, 0))
    _leave_out(session)
    assert (
        session.handle(RoundWanted(ONE)) == session.handle(RoomWanted()) == session.handle(CheckDue()) == []
    )
    _reconcile_as_asker(session)
    assert session.handle(CheckDue()) == [LoadSummary(ONE)]


@pytest.mark.parametrize("theirs", [SMALLER, LARGER])
def test_who_left_commits_out_compares_again_whoever_holds_more(theirs: tuple[int, Digest]) -> None:
    session = _joined(ONE)
    _play_as(session, 0, SMALLER, theirs)
    assert _begun(session, 2 * LATER_ROUND_CHECKS) == [], "nothing was left out"
    for number in (1, 2):
        _leave_out(session)
        assert session.handle(CheckDue()) == [LoadSummary(ONE)]
        _play_as(session, number, SMALLER, theirs)
        assert _begun(session, 2 * LATER_ROUND_CHECKS) == [], "a round settles it"
    for number, hours in enumerate((1, 2), 3):
        _leave_out(session)
        assert _begun(session, hours * LATER_ROUND_CHECKS - 1) == []
        assert session.handle(CheckDue()) == [LoadSummary(ONE)]
        _play_as(session, number, SMALLER, theirs)


def test_who_may_take_now_what_was_left_out_compares_at_the_next_check() -> None:
    session = _joined(ONE)
    _play_first(session, ONE)
    session.handle(RoundWanted(ONE))
    assert session.handle(CheckDue()) == [], "nothing was left out"
    _leave_out(session)
    assert session.handle(RoundWanted(ONE)) == session.handle(RoomWanted()) == []
    assert session.handle(CheckDue()) == [LoadSummary(ONE)]
    _play_as(session, 3, LARGER, LARGER)
    assert _begun(session, 2 * LATER_ROUND_CHECKS) == []
