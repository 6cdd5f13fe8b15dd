"""Questions for commits: what is asked and answered, how many without a pause, and that nothing ends them."""

import tracemalloc
from array import array
from itertools import islice

import pytest

from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.ids import AnyId, CommitId, Digest, SessionId, TopicKey
from protocol.limits.peers import (
    WANT_COUNT_MAX,
    WANTED_AT_ONCE_MAX,
    WANTS_LOOKED_UP_MAX,
)
from protocol.session import wanting
from protocol.session.events import (
    BatchLoaded,
    BodiesWanted,
    CheckDue,
    CommitsWanted,
    MessageReceived,
    PlanLoaded,
    SummaryLoaded,
    TopicFollowed,
    WantedFound,
)
from protocol.session.messages import (
    Announce,
    FoundBodies,
    Keeps,
    Message,
    Receipt,
    Summary,
    Want,
    WantBodies,
)
from protocol.session.outputs import Close, FindBodies, FindWanted, LoadBatch, Output, Send
from protocol.session.session import Session
from protocol.session.topic_progress import TopicProgress
from tests.support.ids import as_commit_id

SESSION_ID = SessionId(b"s" * 32)
MAIN, OTHER = TopicKey(b"m" * 32), TopicKey(b"o" * 32)
BLIND_MAIN, BLIND_OTHER = blind_topic(MAIN, SESSION_ID), blind_topic(OTHER, SESSION_ID)
EMPTY = Digest(b"e" * 32)


def _joined(*topics: TopicKey) -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    for topic in topics:
        session.handle(TopicFollowed(topic, is_own=False))
        session.handle(MessageReceived(Announce((announced_topic(topic, SESSION_ID, by_dialer=False),))))
    return session


def _ids(start: int, count: int) -> tuple[CommitId, ...]:
    return tuple(as_commit_id(number.to_bytes(32)) for number in range(start, start + count))


def _asked(outputs: list[Output]) -> list[CommitId]:
    """List what is asked for, in messages within their bound."""
    messages = [one.message for one in outputs if isinstance(one, Send) and isinstance(one.message, Want)]
    assert all(len(one.ids) <= WANT_COUNT_MAX for one in messages)
    return [commit_id for one in messages for commit_id in one.ids]


def _hear(session: Session, message: Message) -> list[Output]:
    return session.handle(MessageReceived(message))


def test_wanted_commits_are_looked_up_and_sent() -> None:
    session = _joined(MAIN)
    assert _hear(session, Want(BLIND_MAIN, (as_commit_id(b"w" * 32),))) == [
        FindWanted(MAIN, (as_commit_id(b"w" * 32),))
    ]
    assert session.handle(WantedFound(MAIN, [3])) == [LoadBatch(MAIN, (3,))]


def test_who_asks_for_bodies_hears_how_many_there_are_and_gets_them() -> None:
    session = _joined(MAIN)
    ids = (AnyId(b"w" * 32), AnyId(b"v" * 32))
    assert _hear(session, WantBodies(BLIND_MAIN, ids)) == [FindBodies(MAIN, ids)]
    assert _hear(session, Want(BLIND_MAIN, (as_commit_id(b"u" * 32),))) == []
    assert session.handle(WantedFound(MAIN, [3])) == [
        Send(FoundBodies(BLIND_MAIN, 1)),
        FindWanted(MAIN, (as_commit_id(b"u" * 32),)),
        LoadBatch(MAIN, (3,)),
    ]
    assert session.handle(WantedFound(MAIN, [])) == []
    _hear(session, WantBodies(BLIND_MAIN, ids))
    assert session.handle(WantedFound(MAIN, [])) == [Send(FoundBodies(BLIND_MAIN, 0))]


def test_commits_are_asked_for_once_on_a_topic() -> None:
    session = _joined(MAIN, OTHER)
    first = _ids(0, WANT_COUNT_MAX + 1)
    assert session.handle(CommitsWanted(MAIN, first)) == [
        Send(Want(BLIND_MAIN, first[:-1])),
        Send(Want(BLIND_MAIN, first[-1:])),
    ]
    assert session.handle(CommitsWanted(MAIN, first)) == []
    assert session.handle(CommitsWanted(OTHER, first[:1])) == [Send(Want(BLIND_OTHER, first[:1]))]
    alone = Session(SESSION_ID, is_dialer=True)
    alone.handle(TopicFollowed(MAIN, is_own=False))
    assert alone.handle(CommitsWanted(MAIN, first)) == [], "a topic that the peer has not joined"


def _bound(monkeypatch: pytest.MonkeyPatch, at_once: int, per_check: int, remembered: int) -> None:
    """Let few be asked for and remembered, as the rules are the same for many."""
    for name, count in (
        ("WANTED_AT_ONCE_MAX", at_once),
        ("WANTED_PER_CHECK", per_check),
        ("WANTS_REMEMBERED_MAX", remembered),
    ):
        monkeypatch.setattr(wanting, name, count)


def test_what_finds_no_room_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _bound(monkeypatch, 1000, 200, 2000)
    session = _joined(MAIN, OTHER)
    ids = _ids(0, 1001)
    assert _asked(session.handle(CommitsWanted(MAIN, ids))) == list(ids[:-1])
    assert session.handle(CommitsWanted(OTHER, ids[:1])) == [], "the room is the session's"
    assert session.handle(CommitsWanted(MAIN, ids[-1:])) == [], "it waits already"
    assert session.handle(CheckDue()) == [Send(Want(BLIND_MAIN, ids[-1:])), Send(Want(BLIND_OTHER, ids[:1]))]


def test_a_peer_is_read_from_no_more_while_much_that_it_asked_for_is_to_be_looked_up() -> None:
    session = _joined(MAIN, OTHER)

    def is_full() -> bool:
        return session.wanting.is_full

    most = WANTS_LOOKED_UP_MAX // WANT_COUNT_MAX
    for number in range(most):
        assert not is_full()
        ids = _ids(number, WANT_COUNT_MAX)
        _hear(session, Want(BLIND_MAIN, ids) if number else WantBodies(BLIND_OTHER, tuple(map(AnyId, ids))))
    assert is_full()
    session.handle(WantedFound(OTHER, []))
    assert not is_full()
    _hear(session, Want(BLIND_OTHER, _ids(0, WANT_COUNT_MAX)))
    assert is_full()
    session.handle(WantedFound(MAIN, [1]))
    assert not is_full()


def _planned() -> tuple[Session, TopicProgress]:
    """Return a session that has compared MAIN with its peer, and has nothing to send."""
    session = _joined(MAIN)
    session.handle(SummaryLoaded(MAIN, (), 0, EMPTY, 0))
    _hear(session, Summary(BLIND_MAIN, 0, (), 0, EMPTY))
    session.handle(PlanLoaded(MAIN, array("q"), 0))
    (progress,) = session.topics
    return session, progress


def test_a_commit_waits_once_to_be_sent_however_often_it_is_asked_for() -> None:
    """A peer that gives no receipts has this side hold no more than the topic has."""
    session, progress = _planned()
    nums = [-9000, -1, 0, 1, 255, 256, 10**9]
    for _ in range(1000):
        _hear(session, Want(BLIND_MAIN, _ids(0, len(nums))))
        session.handle(WantedFound(MAIN, nums))
    assert progress.to_send == len(nums)
    assert sorted(num for part in progress.outbox.queue for num in part) == nums
    while progress.to_send:
        session.handle(BatchLoaded(MAIN, (b"x",) * len(progress.outbox.queue[0])))
        _hear(session, Receipt(BLIND_MAIN))
    assert not progress.outbox.wanted
    _hear(session, Want(BLIND_MAIN, _ids(0, 1)))
    session.handle(WantedFound(MAIN, [1, 1]))
    assert [list(part) for part in progress.outbox.queue] == [[1]], "it may have got lost, and is sent again"


def test_on_a_line_that_brings_all_late_and_takes_nothing_no_honest_peer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The questions of ten minutes arrive together, and not one batch has a receipt."""
    _bound(monkeypatch, 1000, 200, 10_000)
    asker, (answerer, progress) = _joined(MAIN), _planned()
    ids = _ids(0, 1000 + 20 * 200)
    asked = asker.handle(CommitsWanted(MAIN, ids))
    for _ in range(20):
        asked += asker.handle(CheckDue())
    assert len(_asked(asked)) == len(ids)
    nums = iter(range(len(ids)))
    for one in asked:
        assert isinstance(one, Send)
        assert isinstance(one.message, Want)
        _hear(answerer, one.message)
        outputs = answerer.handle(WantedFound(MAIN, list(islice(nums, len(one.message.ids)))))
        assert not any(isinstance(output, Close) for output in outputs)
    assert progress.to_send == len(ids)


def test_bodies_are_asked_for_again_and_leave_room_for_causes() -> None:
    session = _joined(MAIN)
    ids = _ids(0, WANT_COUNT_MAX)
    progress = next(one for one in session.topics if one.topic == MAIN)

    def asked_bodies() -> tuple[int, int | None]:
        return progress.bodies_unanswered, progress.bodies_found

    for _ in range(2):
        named = tuple(map(AnyId, ids))
        assert session.handle(BodiesWanted(MAIN, ids)) == [Send(WantBodies(BLIND_MAIN, named))]
    assert asked_bodies() == (2, None)
    assert _hear(session, FoundBodies(BLIND_MAIN, 7)) == []
    assert asked_bodies() == (1, None), "it is of the first question"
    assert _hear(session, FoundBodies(BLIND_MAIN, 0)) == []
    assert asked_bodies() == (0, 0)
    asked = 2
    while session.handle(BodiesWanted(MAIN, ids)):
        asked += 1
    assert asked == WANTED_AT_ONCE_MAX // 2 // WANT_COUNT_MAX
    assert session.handle(CommitsWanted(MAIN, ids)) == [Send(Want(BLIND_MAIN, ids))]
    session.handle(CheckDue())
    assert session.handle(BodiesWanted(MAIN, ids)), "no age of a connection ends it"
    alone = Session(SESSION_ID, is_dialer=True)
    alone.handle(TopicFollowed(MAIN, is_own=False))
    assert alone.handle(BodiesWanted(MAIN, ids)) == [], "a topic that the peer has not joined"


def test_a_connection_of_years_asks_for_what_it_lacks_as_on_its_first_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten times what any side remembers, by two sides that say so to each other."""
    per_check, remembered = 500, 2000
    _bound(monkeypatch, 1000, per_check, remembered)
    asker, asked = _joined(MAIN), _joined(MAIN)
    done, nums = 0, iter(range(10**6))
    while done < 10 * remembered:
        ids = _ids(done, per_check)
        outputs = asker.handle(CommitsWanted(MAIN, ids))
        assert _asked(outputs) == list(ids)
        for one in outputs:
            assert isinstance(one, Send)
            assert isinstance(one.message, Want)
            assert _hear(asked, one.message) == [FindWanted(MAIN, one.message.ids)]
            for answer in asked.handle(WantedFound(MAIN, [next(nums)])):
                assert isinstance(answer, LoadBatch)
                asked.handle(BatchLoaded(MAIN, (b"x",) * len(answer.nums)))
                _hear(asked, Receipt(BLIND_MAIN))
        asker.handle(CheckDue())
        asked.handle(CheckDue())
        done += len(ids)
    asker.handle(CheckDue())
    assert _asked(asker.handle(CommitsWanted(MAIN, _ids(0, 1)))), "the first was forgotten"
    assert not _asked(asker.handle(CommitsWanted(MAIN, _ids(done - 1, 1)))), "the last was not"


def test_the_latest_wait_of_more_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, remembered = 1000, 2000
    _bound(monkeypatch, at_once, 200, remembered)
    session = _joined(MAIN)
    ids = _ids(0, at_once + remembered + 1)
    session.handle(CommitsWanted(MAIN, ids[:at_once]))
    session.handle(CommitsWanted(MAIN, ids[at_once:]))
    asked: list[CommitId] = []
    while more := _asked(session.handle(CheckDue())):
        asked += more
    assert asked == list(ids[at_once + 1 :])
    passed_over = ids[at_once : at_once + 1]
    session.handle(CheckDue())
    assert _asked(session.handle(CommitsWanted(MAIN, passed_over))) == list(passed_over)


def test_what_a_peer_asks_for_and_does_not_take_is_held_in_few_bytes() -> None:
    """A set of integers took 60 bytes each, of all that a topic has; a bit in one of 4,096 bits took 600 alone."""

    def measure(step: int) -> float:
        session, progress = _planned()
        _hear(session, Keeps(BLIND_MAIN, is_all=False, marks=(), days=0))
        count = 4096
        tracemalloc.start()
        try:
            for first in range(0, count, WANT_COUNT_MAX):
                _hear(session, WantBodies(BLIND_MAIN, tuple(map(AnyId, _ids(0, WANT_COUNT_MAX)))))
                nums = [step * num for num in range(first, first + WANT_COUNT_MAX)]
                session.handle(WantedFound(MAIN, nums))
            assert progress.to_send == count
            return tracemalloc.get_traced_memory()[0] / count
        finally:
            tracemalloc.stop()

    assert measure(1) < 20
    assert measure(4096) < 400
