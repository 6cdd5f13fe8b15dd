"""The session machine: joining topics, the window, taking turns, and every fault of a peer."""

from array import array

import pytest

from protocol.codec import DecodeError
from protocol.crypto.hashing import announced_topic, blind_topic
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import Block, encrypt_block
from protocol.ids import AnnouncedTopic, BlindTopic, BlockId, Digest, SessionId, ShortId, TopicKey
from protocol.limits.formats import BLOCK_SIZE_MAX
from protocol.limits.peers import (
    BATCH_COUNT_MAX,
    BATCHES_IN_FLIGHT_MAX,
    BATCHES_OF_TOPIC_MAX,
    FETCHED_COUNT_MAX,
    RECONCILIATION_CHECKS_MAX,
    RECONCILIATION_QUEUED_MAX,
    RECONCILIATION_QUIET_CHECKS_MAX,
    RECONCILIATIONS_MAX,
    STATED_COUNT_MAX,
    TOPIC_COUNT_MAX,
    TOPICS_HEARD_MAX,
)
from protocol.session.events import (
    BatchIngested,
    BatchLoaded,
    BlocksLoaded,
    BlocksWanted,
    CheckDue,
    CommitsAccepted,
    MessageReceived,
    PlanLoaded,
    Reconciled,
    SummaryLoaded,
    TopicFollowed,
    TopicsRefused,
    WantedFound,
)
from protocol.session.machines.comparing import Comparing
from protocol.session.messages import (
    Announce,
    Blocks,
    Deposit,
    Earlier,
    Fetch,
    FoundBodies,
    Goodbye,
    KeepAlive,
    Publications,
    Receipt,
    Reconcile,
    Refused,
    Relay,
    Summary,
    Want,
    decode_message,
    encode_message,
)
from protocol.session.outputs import (
    Close,
    FindWanted,
    HandleFrame,
    HandOver,
    IngestBatch,
    LoadBatch,
    LoadBlocks,
    LoadEarlier,
    LoadPlan,
    LoadSummary,
    OpenReconciliation,
    OpenTopics,
    Output,
    Send,
)
from protocol.session.session import Session
from protocol.session.topic_progress import TopicProgress
from tests.support.ids import as_commit_id

SESSION_ID = SessionId(b"s" * 32)
MAIN, ROOT = TopicKey(b"m" * 32), TopicKey(b"r" * 32)
EMPTY = Digest(b"e" * 32)
BLIND_MAIN, BLIND_ROOT = blind_topic(MAIN, SESSION_ID), blind_topic(ROOT, SESSION_ID)
OUR_MAIN = announced_topic(MAIN, SESSION_ID, by_dialer=True)
THEIR_MAIN = announced_topic(MAIN, SESSION_ID, by_dialer=False)


def _joined(*topics: TopicKey) -> Session:
    session = Session(SESSION_ID, is_dialer=True)
    for topic in topics:
        session.handle(TopicFollowed(topic, is_own=topic == ROOT))
        session.handle(MessageReceived(Announce((announced_topic(topic, SESSION_ID, by_dialer=False),))))
    return session


def _compare(session: Session, topic: TopicKey) -> list[Output]:
    """Both say that they have nothing."""
    session.handle(SummaryLoaded(topic, (), 0, EMPTY, 0))
    return session.handle(MessageReceived(Summary(blind_topic(topic, SESSION_ID), 0, (), 0, EMPTY)))


def _with_plan(session: Session, topic: TopicKey, *nums: int, upto: int = 1000) -> list[Output]:
    _compare(session, topic)
    return session.handle(PlanLoaded(topic, array("q", nums), upto))


def test_a_topic_is_joined_when_both_announced_it_in_either_order() -> None:
    ours_first = Session(SESSION_ID, is_dialer=True)
    assert ours_first.handle(TopicFollowed(MAIN, is_own=False)) == [Send(Announce((OUR_MAIN,)))]
    assert ours_first.handle(MessageReceived(Announce((THEIR_MAIN,)))) == [LoadSummary(MAIN)]
    theirs_first = Session(SESSION_ID, is_dialer=True)
    assert theirs_first.handle(MessageReceived(Announce((THEIR_MAIN,)))) == []
    assert theirs_first.handle(TopicFollowed(MAIN, is_own=False)) == [
        Send(Announce((OUR_MAIN,))),
        LoadSummary(MAIN),
    ]
    assert theirs_first.handle(TopicFollowed(MAIN, is_own=False)) == []


def test_a_second_announcement_adds_to_the_first() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    for topic in (MAIN, ROOT):
        session.handle(TopicFollowed(topic, is_own=topic == ROOT))
    assert session.handle(MessageReceived(Announce((THEIR_MAIN,)))) == [LoadSummary(MAIN)]
    theirs = announced_topic(ROOT, SESSION_ID, by_dialer=False)
    outputs = session.handle(MessageReceived(Announce((theirs, THEIR_MAIN))))
    assert outputs == [LoadSummary(ROOT), LoadEarlier(ROOT, is_asked=False)]
    assert [progress.is_joined for progress in session.topics] == [True, True]


@pytest.mark.parametrize("rounds", [(1,), (0, 0), (0, 2), (0, 1, 1)])
def test_rounds_neither_repeat_nor_skip(rounds: tuple[int, ...]) -> None:
    session = _joined(MAIN)
    for number in rounds:
        outputs = session.handle(MessageReceived(Summary(BLIND_MAIN, number, (), 0, EMPTY)))
        session.handle(SummaryLoaded(MAIN, (), 0, EMPTY, 0))
        session.handle(PlanLoaded(MAIN, array("q"), 0))
    assert outputs == [Close("unasked_summary")]


def test_who_sends_back_what_was_announced_has_not_shown_to_know_the_topic() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(TopicFollowed(MAIN, is_own=False))
    assert (
        session.handle(
            MessageReceived(Announce((OUR_MAIN, AnnouncedTopic(BLIND_MAIN), AnnouncedTopic(MAIN))))
        )
        == []
    )
    assert not session.topics[0].is_joined


def test_whether_a_topic_is_joined_is_found_without_looking_at_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = _joined(MAIN)
    session.handle(TopicFollowed(ROOT, is_own=True))
    monkeypatch.setattr(TopicProgress, "topic", property(lambda _: pytest.fail("it was looked at")))
    assert [session.has_joined(topic) for topic in (MAIN, ROOT, TopicKey(EMPTY))] == [True, False, False]


def test_a_topic_is_never_named_in_clear() -> None:
    (output,) = Session(SESSION_ID, is_dialer=True).handle(TopicFollowed(MAIN, is_own=False))
    assert isinstance(output, Send)
    assert bytes(MAIN) not in repr(output).encode()
    assert output.message == Announce((OUR_MAIN,))


def test_summaries_lead_to_a_plan_and_batches() -> None:
    session = _joined(MAIN)
    summary = session.handle(SummaryLoaded(MAIN, (as_commit_id(b"h" * 32),), 7, Digest(b"x" * 32), 7))
    assert summary == [Send(Summary(BLIND_MAIN, 0, (ShortId(b"h" * 16),), 7, Digest(b"x" * 32)))]
    plan = session.handle(
        MessageReceived(Summary(BLIND_MAIN, 0, (ShortId(b"a" * 32),), 3, Digest(b"y" * 32)))
    )
    assert plan == [LoadPlan(MAIN, (ShortId(b"a" * 32),))]
    assert session.handle(PlanLoaded(MAIN, array("q", [1, 2, 3]), 9)) == [LoadBatch(MAIN, (1, 2, 3))]
    outputs = session.handle(BatchLoaded(MAIN, (b"one", b"two")))
    assert outputs == [Send(Publications(BLIND_MAIN, (b"one", b"two"))), LoadBatch(MAIN, (3,))]
    assert session.topics[0].sent == 2


def test_batches_are_bounded_in_size_and_in_flight() -> None:
    session = _joined(MAIN)
    nums = range(1, 10 * BATCH_COUNT_MAX)
    (load,) = _with_plan(session, MAIN, *nums, upto=nums[-1])
    sent = 0
    while isinstance(load, LoadBatch):
        assert len(load.nums) == BATCH_COUNT_MAX
        publications, *more = session.handle(BatchLoaded(MAIN, (b"x",) * len(load.nums)))
        sent += isinstance(publications, Send)
        load = more[0] if more else Close("no more room")
    assert sent == BATCHES_OF_TOPIC_MAX
    assert session.handle(MessageReceived(Receipt(BLIND_MAIN)))[0].__class__ is LoadBatch


def test_root_branches_go_first_and_the_others_take_turns() -> None:
    other = TopicKey(b"o" * 32)
    session = _joined(MAIN, other, ROOT)
    for topic in (MAIN, other, ROOT):
        _compare(session, topic)
    loads: list[bytes] = []

    def run(outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, LoadBatch):
                loads.append(output.topic)
                run(session.handle(BatchLoaded(output.topic, (b"x",))))

    run(session.handle(PlanLoaded(MAIN, array("q", range(8)), 100)))
    run(session.handle(PlanLoaded(other, array("q", range(8)), 100)))
    run(session.handle(PlanLoaded(ROOT, array("q", range(1)), 100)))
    assert loads == [*[MAIN] * BATCHES_OF_TOPIC_MAX, other], "no topic takes all of the window"
    assert len(loads) == BATCHES_IN_FLIGHT_MAX
    for _ in range(BATCHES_OF_TOPIC_MAX):
        run(session.handle(MessageReceived(Receipt(BLIND_MAIN))))
    assert loads[BATCHES_IN_FLIGHT_MAX] == ROOT
    assert set(loads[BATCHES_IN_FLIGHT_MAX + 1 :]) == {MAIN, other}


def test_a_huge_topic_leaves_room_for_what_another_gets_meanwhile() -> None:
    other = TopicKey(b"o" * 32)
    session = _joined(MAIN, other)
    (load,) = _with_plan(session, MAIN, *range(1, 10 * BATCH_COUNT_MAX), upto=10 * BATCH_COUNT_MAX)
    assert isinstance(load, LoadBatch)
    for _ in range(BATCHES_OF_TOPIC_MAX):
        session.handle(BatchLoaded(MAIN, (b"x",) * BATCH_COUNT_MAX))
    assert _with_plan(session, other, upto=0) == []
    assert session.handle(CommitsAccepted(other, (20_000,))) == [LoadBatch(other, (20_000,))]


def test_what_is_accepted_while_a_plan_is_made_is_sent_once() -> None:
    session = _joined(MAIN)
    _compare(session, MAIN)
    assert session.handle(CommitsAccepted(MAIN, (5, 6, 7))) == []
    (load,) = session.handle(PlanLoaded(MAIN, array("q", [5, 6]), 6))
    assert load == LoadBatch(MAIN, (5, 6, 7))
    assert session.handle(BatchLoaded(MAIN, (b"five", b"six")))[1:] == [LoadBatch(MAIN, (7,))]
    assert session.handle(CommitsAccepted(MAIN, (6,))) == [], "it was in the plan"


def test_what_this_node_cannot_read_is_sent_apart_and_what_is_gone_is_passed_over() -> None:
    session = _joined(MAIN)
    _compare(session, MAIN)
    assert session.handle(PlanLoaded(MAIN, array("q", [5]), 6, (-1, -2))) == [LoadBatch(MAIN, (5,))]
    assert session.handle(BatchLoaded(MAIN, (b"five",)))[1:] == [LoadBatch(MAIN, (-1, -2))]
    assert session.handle(CommitsAccepted(MAIN, (7, -3))) == []
    assert session.handle(BatchLoaded(MAIN, ())) == [LoadBatch(MAIN, (-2, -3))]
    assert session.handle(BatchLoaded(MAIN, (b"two", b"three")))[1:] == [LoadBatch(MAIN, (7,))]


def test_later_commits_are_pushed_without_asking() -> None:
    session = _joined(MAIN)
    assert _with_plan(session, MAIN, upto=10) == []
    assert session.handle(CommitsAccepted(MAIN, (11, 12))) == [LoadBatch(MAIN, (11, 12))]
    assert session.handle(CommitsAccepted(TopicKey(b"n" * 32), (13,))) == [], (
        "a topic that this peer does not follow"
    )


def test_a_received_batch_is_taken_receipted_and_its_missing_causes_asked_for_once() -> None:
    session = _joined(MAIN)
    taken = session.handle(MessageReceived(Publications(BLIND_MAIN, (b"x",))))
    assert taken == [IngestBatch(MAIN, (b"x",))]
    wanted = (as_commit_id(b"w" * 32),)
    assert session.handle(BatchIngested(MAIN, 1, wanted)) == [
        Send(Receipt(BLIND_MAIN)),
        Send(Want(BLIND_MAIN, wanted)),
    ]
    session.handle(MessageReceived(Publications(BLIND_MAIN, (b"x",))))
    assert session.handle(BatchIngested(MAIN, 0, wanted)) == [Send(Receipt(BLIND_MAIN))]


def test_states_are_named() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(TopicFollowed(MAIN, is_own=False))
    assert session.topics[0].state == "not joined"
    session.handle(MessageReceived(Announce((THEIR_MAIN,))))
    assert session.topics[0].state == "comparing"
    _with_plan(session, MAIN, 1)
    assert session.topics[0].state == "sending"
    session.handle(BatchLoaded(MAIN, (b"x",)))
    session.handle(MessageReceived(Receipt(BLIND_MAIN)))
    assert session.topics[0].state == "in sync"
    session.handle(MessageReceived(Publications(BLIND_MAIN, (b"x",))))
    assert session.topics[0].state == "receiving"


FAULTS: dict[str, list[object]] = {
    "unknown_topic": [Summary(BlindTopic(b"?" * 32), 0, (), 0, EMPTY)],
    "unasked_summary": [Summary(BLIND_MAIN, 0, (), 0, EMPTY), Summary(BLIND_MAIN, 0, (), 0, EMPTY)],
    "unasked_reconciliation": [Reconcile(BLIND_MAIN, 0, b"")],
    "unasked_receipt": [Receipt(BLIND_MAIN)],
    "unasked_earlier": [Earlier(BLIND_MAIN, 0, EMPTY[:16])] * 2,
    "unasked_bodies": [FoundBodies(BLIND_MAIN, 0)],
    "too_many_batches": [Publications(BLIND_MAIN, (b"x",))] * (BATCHES_IN_FLIGHT_MAX + 1),
    "peer_left": [Goodbye("stopping")],
}


def _names(start: int, count: int) -> Announce:
    return Announce(tuple(AnnouncedTopic(n.to_bytes(32, "big")) for n in range(start, start + count)))


def _announce(session: Session, start: int, count: int) -> list[Output]:
    outputs: list[Output] = []
    for first in range(start, start + count, TOPIC_COUNT_MAX):
        outputs += session.handle(MessageReceived(_names(first, min(TOPIC_COUNT_MAX, start + count - first))))
    return outputs


@pytest.mark.parametrize("is_stranger", [False, True])
def test_the_latest_announcements_are_remembered(is_stranger: bool) -> None:
    session = Session(SESSION_ID, is_dialer=True) if is_stranger else _joined(MAIN)
    first, second = (TopicKey(bytes([number]) * 32) for number in (1, 2))
    for topic in (first, second):
        session.handle(MessageReceived(Announce((session.peer_name_of(topic),))))
    assert _announce(session, 0, TOPICS_HEARD_MAX - 1) == []
    assert (session.has_heard_of(first), session.has_heard_of(second)) == (False, True)


def test_a_topic_is_announced_again_to_a_peer_that_may_have_forgotten_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would be joined by one side alone."""
    monkeypatch.setattr("protocol.session.session.TOPIC_COUNT_MAX", 3)
    for others, is_again in ((2, False), (3, True)):
        session = Session(SESSION_ID, is_dialer=True)
        (said,) = session.handle(TopicFollowed(MAIN, is_own=False))
        for number in range(others):
            session.handle(TopicFollowed(TopicKey(bytes([number]) * 32), is_own=False))
        outputs = session.handle(MessageReceived(Announce((THEIR_MAIN,))))
        assert outputs == [*([said] if is_again else []), LoadSummary(MAIN)]


def test_topics_that_have_settled_make_room_for_others_and_those_that_differ_do_after_the_last_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for place in ("session", "room"):
        monkeypatch.setattr(f"protocol.session.{place}.TOPIC_COUNT_MAX", 1)
    session = Session(SESSION_ID, is_dialer=True)
    allowed = [session.may_announce]
    session.handle(TopicFollowed(MAIN, is_own=False))
    allowed.append(session.may_announce)
    session.handle(MessageReceived(Announce((THEIR_MAIN,))))
    for number in range(3):
        allowed.append(session.may_announce)
        session.handle(MessageReceived(Summary(BLIND_MAIN, number, (), 2, Digest(b"b" * 32))))
        session.handle(SummaryLoaded(MAIN, (), 1, Digest(b"a" * 32), 0))
        session.handle(PlanLoaded(MAIN, array("q"), 0))
    assert [*allowed, session.may_announce] == [True, *[False] * 4, True]
    equal = _joined(MAIN)
    equal.handle(SummaryLoaded(MAIN, (), 0, EMPTY, 0))
    allowed = [equal.may_announce]
    equal.handle(MessageReceived(Summary(BLIND_MAIN, 0, (), 0, EMPTY)))
    assert [*allowed, equal.may_announce] == [False, True]


def test_topics_settle_once_they_are_compared() -> None:
    session = _joined(MAIN)
    assert session.settling_count == 1
    session.handle(SummaryLoaded(MAIN, (), 0, EMPTY, 0))
    session.handle(MessageReceived(Summary(BLIND_MAIN, 0, (), 0, EMPTY)))
    assert session.settling_count == 1
    session.handle(PlanLoaded(MAIN, array("q"), 0))
    assert session.settling_count == 0


def test_what_a_peer_wants_is_looked_up_one_message_after_the_other() -> None:
    session = _joined(MAIN)
    wants = [Want(BLIND_MAIN, (as_commit_id(bytes([number]) * 32),)) for number in range(3)]
    outputs = [session.handle(MessageReceived(want)) for want in wants]
    assert outputs == [[FindWanted(MAIN, wants[0].ids)], [], []]
    assert session.handle(WantedFound(MAIN, [])) == [FindWanted(MAIN, wants[1].ids)]
    assert session.handle(WantedFound(MAIN, [])) == [FindWanted(MAIN, wants[2].ids)]
    assert session.handle(WantedFound(MAIN, [])) == []


@pytest.mark.parametrize("reason", FAULTS)
def test_a_fault_of_the_peer_ends_the_session_with_its_reason(reason: str) -> None:
    session = _joined(MAIN)
    outputs: list[Output] = []
    for message in FAULTS[reason]:
        outputs = session.handle(MessageReceived(message))  # type: ignore[arg-type]  # messages, by the table above
    assert outputs[-1] == Close(reason)
    assert session.handle(MessageReceived(KeepAlive())) == []
    assert session.handle(TopicFollowed(ROOT, is_own=True)) == [], "a dead machine does nothing more"


def _encrypted_block(number: int) -> Block:
    return encrypt_block(bytes([number]), ConvergenceSecret(b"s" * 32))[0]


def test_blocks_are_asked_for_and_answered_in_order() -> None:
    session = _joined(MAIN)
    first, second = _encrypted_block(1), _encrypted_block(2)
    for block in (first, second):
        wanted = (block.block_id,)
        assert session.handle(BlocksWanted(MAIN, wanted)) == [Send(Fetch(BLIND_MAIN, wanted))]
    came = session.handle(MessageReceived(Blocks(BLIND_MAIN, (b"", second.encoded))))
    assert came == [HandOver(MAIN, ((first.block_id, None), (second.block_id, second.encoded)))]
    assert session.handle(MessageReceived(Blocks(BLIND_MAIN, (b"",)))) == [Close("unasked_blocks")]


def test_another_block_than_was_asked_for_ends_the_session() -> None:
    session = _joined(MAIN)
    session.handle(BlocksWanted(MAIN, (_encrypted_block(1).block_id,)))
    assert session.handle(MessageReceived(Blocks(BLIND_MAIN, (_encrypted_block(2).encoded,)))) == [
        Close("wrong_block")
    ]


def test_blocks_are_served_one_read_after_the_other_and_no_more_than_the_bound() -> None:
    session = _joined(MAIN, ROOT)
    ids = tuple(BlockId(bytes([number]) * 32) for number in range(FETCHED_COUNT_MAX))
    assert session.handle(MessageReceived(Fetch(BLIND_MAIN, ids[:1]))) == [LoadBlocks(MAIN, ids[:1])]
    assert session.handle(MessageReceived(Fetch(BLIND_MAIN, ids[1:]))) == []
    assert session.handle(BlocksLoaded(MAIN, (b"block",))) == [
        Send(Blocks(BLIND_MAIN, (b"block",))),
        LoadBlocks(MAIN, ids[1:]),
    ]
    assert session.handle(MessageReceived(Fetch(BLIND_ROOT, ids[:1]))) == [LoadBlocks(ROOT, ids[:1])]
    assert session.handle(MessageReceived(Fetch(BLIND_ROOT, ids[:1]))) == [Close("too_many_fetches")]


def test_a_block_in_a_message_has_the_size_of_one_at_most() -> None:
    largest = Blocks(BLIND_MAIN, (bytes(BLOCK_SIZE_MAX),))
    assert decode_message(encode_message(largest)) == largest
    with pytest.raises(DecodeError, match="bad_shape"):
        decode_message(encode_message(Blocks(BLIND_MAIN, (bytes(BLOCK_SIZE_MAX + 1),))))


def test_a_relay_is_entrusted_with_what_it_may_keep_now_and_later() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    other = TopicKey(b"o" * 32)
    session.handle(TopicFollowed(ROOT, is_own=True, is_entrusted=True))
    session.handle(TopicFollowed(other, is_own=False))
    assert session.handle(MessageReceived(Relay())) == [Send(Deposit((ROOT,)))]
    assert session.handle(TopicFollowed(MAIN, is_own=False, is_entrusted=True)) == [
        Send(Announce((OUR_MAIN,))),
        Send(Deposit((MAIN,))),
    ]
    assert session.handle(MessageReceived(Relay())) == [Close("second_relay")]


def test_who_was_not_chosen_is_told_no_topic() -> None:
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(TopicFollowed(ROOT, is_own=True))
    assert session.handle(MessageReceived(Relay())) == []


def test_only_a_relay_takes_deposits_and_no_more_at_once_than_have_room() -> None:
    assert Session(SESSION_ID, is_dialer=True).handle(MessageReceived(Deposit((MAIN,)))) == [
        Close("no_relay")
    ]
    most = tuple(TopicKey(number.to_bytes(32, "big")) for number in range(TOPIC_COUNT_MAX))
    relay = Session(SESSION_ID, is_dialer=True, is_relay=True)
    assert relay.handle(MessageReceived(Deposit(most))) == [OpenTopics(most)]
    assert relay.handle(MessageReceived(Deposit(most))) == [OpenTopics(most)], "these are counted once"
    assert relay.handle(MessageReceived(Deposit((MAIN,)))) == [Close("too_many_topics")]


def test_topics_that_a_relay_refuses_or_that_have_settled_there_make_room_for_others() -> None:
    most = tuple(TopicKey(number.to_bytes(32, "big")) for number in range(TOPIC_COUNT_MAX - 1))
    relay = Session(SESSION_ID, is_dialer=True, is_relay=True)
    relay.handle(MessageReceived(Deposit((*most, MAIN))))
    relay.handle(TopicFollowed(MAIN, is_own=False))
    relay.handle(MessageReceived(Announce((THEIR_MAIN,))))
    relay.handle(SummaryLoaded(MAIN, (), 0, EMPTY, 0))
    relay.handle(MessageReceived(Summary(BLIND_MAIN, 0, (), 0, EMPTY)))
    assert relay.handle(MessageReceived(Deposit((ROOT, MAIN)))) == [OpenTopics((ROOT, MAIN))]
    relay.handle(TopicsRefused((ROOT, most[0]), "peer_full"))
    others = TopicKey(b"1" * 32), TopicKey(b"2" * 32)
    assert relay.handle(MessageReceived(Deposit(others))) == [OpenTopics(others)]
    assert relay.handle(MessageReceived(Deposit((TopicKey(b"3" * 32),)))) == [Close("too_many_topics")]


def test_with_a_relay_publications_are_compared_and_it_says_so_before_anything_is() -> None:
    assert not Session(SESSION_ID, is_dialer=True).compares_publications
    assert Session(SESSION_ID, is_dialer=True, is_relay=True).compares_publications
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(MessageReceived(Relay()))
    assert session.compares_publications
    late = Session(SESSION_ID, is_dialer=True)
    late.handle(MessageReceived(Announce((THEIR_MAIN,))))
    assert late.handle(MessageReceived(Relay())) == [Close("late_relay")]


def test_what_was_dropped_is_nothing_that_this_node_is_behind() -> None:
    session = _summarised((7, b"a" * 32), (9, b"b" * 32))
    session.handle(INEXACT)
    session.handle(MessageReceived(Publications(BLIND_MAIN, (b"good", b"bad"))))
    assert session.topics[0].behind == 2
    session.handle(BatchIngested(MAIN, 1, (), dropped=1))
    assert (session.topics[0].behind, session.topics[0].received) == (0, 1)


def test_what_others_brought_meanwhile_is_nothing_that_this_node_is_behind() -> None:
    session = _summarised((7, b"a" * 32), (12, b"b" * 32))
    session.handle(INEXACT)
    session.handle(MessageReceived(Publications(BLIND_MAIN, (b"new", b"known", b"known"))))
    session.handle(BatchIngested(MAIN, 1, (), known=2))
    (topic,) = session.topics
    assert (topic.behind, topic.here, topic.came, topic.received) == (2, 10, 3, 1)


def test_in_a_later_round_what_came_before_it_is_counted_once() -> None:
    session = _summarised((7, b"a" * 32), (9, b"b" * 32))
    session.handle(INEXACT)
    session.handle(MessageReceived(Publications(BLIND_MAIN, (b"one", b"two"))))
    session.handle(BatchIngested(MAIN, 2, ()))
    session.handle(MessageReceived(Summary(BLIND_MAIN, 1, (ShortId(b"t" * 32),), 14, Digest(b"c" * 32))))
    session.handle(SummaryLoaded(MAIN, (as_commit_id(b"h" * 32),), 9, Digest(b"d" * 32), 9))
    (topic,) = session.topics
    assert (topic.behind, topic.here) == (5, 9)
    session.handle(PlanLoaded(MAIN, array("q"), 9))
    session.handle(MessageReceived(Publications(BLIND_MAIN, (b"three",))))
    session.handle(BatchIngested(MAIN, 1, ()))
    assert (topic.behind, topic.here) == (4, 10)


@pytest.mark.parametrize(
    "stated, behind",
    [
        (STATED_COUNT_MAX + 6, STATED_COUNT_MAX - 1),
        (STATED_COUNT_MAX + 7, STATED_COUNT_MAX),
        (2**53 - 1, STATED_COUNT_MAX),
    ],
)
def test_a_peer_is_believed_to_have_so_many_commits_and_no_more(stated: int, behind: int) -> None:
    session = _summarised((7, b"a" * 32), (stated, b"b" * 32))
    assert session.topics[0].behind == behind


def test_what_a_relay_refuses_is_not_sent_any_more() -> None:
    session = _joined(MAIN)
    assert _with_plan(session, MAIN, 1, 2, 3) == [LoadBatch(MAIN, (1, 2, 3))]
    assert session.handle(MessageReceived(Refused(BLIND_MAIN, "topic_full"))) == []
    assert session.handle(BatchLoaded(MAIN, (b"a",))) == [], "what was on its way out is not sent"
    assert session.handle(CommitsAccepted(MAIN, (2000,))) == []
    (progress,) = session.topics
    assert progress.state == "refused: topic_full"


def test_who_gives_a_topic_back_and_asks_again_without_end_is_answered_nothing_and_remembered_once() -> None:
    session = _joined(MAIN, ROOT)
    _with_plan(session, MAIN, 1, 2, 3)
    again = (Refused(BLIND_MAIN, "topic_full"), Announce((THEIR_MAIN,)), Announce((OUR_MAIN,)))
    for message in again * 100:
        assert session.handle(MessageReceived(message)) == []
    assert (session.joined_count, len(session.topics), session.settling_count) == (2, 2, 1)
    assert session.handle(CommitsAccepted(MAIN, (2000,))) == [], "it stays given back on this session"
    assert session.has_room_for(1)


def test_what_a_relay_does_not_keep_it_says_of_topics_that_it_was_entrusted_with() -> None:
    relay = Session(SESSION_ID, is_dialer=True, is_relay=True)
    refused = relay.handle(TopicsRefused((MAIN, ROOT), "not_known"))
    assert refused == [Send(Refused(BLIND_MAIN, "not_known")), Send(Refused(BLIND_ROOT, "not_known"))]
    session = Session(SESSION_ID, is_dialer=True)
    session.handle(MessageReceived(Relay()))
    session.handle(TopicFollowed(MAIN, is_own=False, is_entrusted=True))
    session.handle(TopicFollowed(ROOT, is_own=True))
    assert session.handle(MessageReceived(Refused(BLIND_MAIN, "not_known"))) == []
    assert [topic.state for topic in session.topics] == ["refused: not_known", "not joined"]
    assert session.handle(MessageReceived(Refused(BLIND_ROOT, "not_known"))) == [Close("unknown_topic")]


def test_a_quota_that_is_met_is_said_with_the_receipt() -> None:
    relay = _joined(MAIN)
    relay.handle(MessageReceived(Publications(BLIND_MAIN, (b"a",))))
    assert relay.handle(BatchIngested(MAIN, 0, (), "topic_full")) == [
        Send(Receipt(BLIND_MAIN)),
        Send(Refused(BLIND_MAIN, "topic_full")),
    ]


def _summarised(own: tuple[int, bytes], theirs: tuple[int, bytes]) -> Session:
    """Both have said how much they hold, each with a head of its own."""
    session = _joined(MAIN)
    session.handle(SummaryLoaded(MAIN, (as_commit_id(b"h" * 32),), own[0], Digest(own[1]), 7))
    session.handle(
        MessageReceived(Summary(BLIND_MAIN, 0, (ShortId(b"t" * 32),), theirs[0], Digest(theirs[1])))
    )
    return session


@pytest.mark.parametrize("own, theirs", [((8, b"a" * 32), (7, b"z" * 32)), ((7, b"b" * 32), (7, b"a" * 32))])
def test_who_holds_more_and_not_all_heads_of_the_other_begins_to_reconcile(
    own: tuple[int, bytes], theirs: tuple[int, bytes]
) -> None:
    plan = PlanLoaded(MAIN, array("q"), 9, is_exact=False)
    assert _summarised(own, theirs).handle(plan) == [OpenReconciliation(MAIN, by_ranges=False)]
    assert _summarised(theirs, own).handle(plan) == [], "the other waits"
    known = PlanLoaded(MAIN, array("q", [5]), 9)
    assert _summarised(own, theirs).handle(known) == [LoadBatch(MAIN, (5,))], "it lacks nothing itself"
    equal = _summarised((8, b"a" * 32), (8, b"a" * 32))
    assert equal.handle(plan) == [], "nothing differs, whatever the heads"
    implied = PlanLoaded(MAIN, array("q"), 9)
    assert _summarised(own, theirs).handle(implied) == [OpenReconciliation(MAIN, by_ranges=False)], (
        "the other has all heads, and not what they stand for"
    )
    assert _summarised(theirs, own).handle(implied) == [], "the other waits"


INEXACT = PlanLoaded(MAIN, array("q"), 9, is_exact=False)


def test_frames_are_worked_on_one_after_the_other_and_no_more_than_may_wait() -> None:
    session = _summarised((7, b"a" * 32), (8, b"b" * 32))
    session.handle(INEXACT)
    assert session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"0"))) == [HandleFrame(MAIN, 0, b"0")]
    for number in range(1, RECONCILIATION_QUEUED_MAX):
        assert session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"%d" % number))) == []
    assert session.topics[0].state == "comparing"
    assert session.handle(Reconciled(MAIN, ((1, b"more"),), array("q", [3]))) == [
        Send(Reconcile(BLIND_MAIN, 1, b"more")),
        HandleFrame(MAIN, 0, b"1"),
        LoadBatch(MAIN, (3,)),
    ]
    assert session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"x"))) == []
    assert session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"x"))) == [Close("too_many_frames")]


def test_frames_that_come_before_the_plan_wait_for_it() -> None:
    session = _summarised((7, b"a" * 32), (8, b"b" * 32))
    assert session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"0"))) == []
    assert session.handle(INEXACT) == [HandleFrame(MAIN, 0, b"0")]


def test_as_many_topics_are_reconciled_at_a_time_as_may_be() -> None:
    topics = [TopicKey(bytes([number]) * 32) for number in range(RECONCILIATIONS_MAX + 2)]
    answerer, asker = _joined(*topics), _joined(*topics)
    opened = []
    for topic in topics:
        blind = blind_topic(topic, SESSION_ID)
        for session, own, theirs in ((answerer, 8, 7), (asker, 7, 8)):
            session.handle(SummaryLoaded(topic, (), own, EMPTY, 0))
            session.handle(MessageReceived(Summary(blind, 0, (ShortId(b"h" * 32),), theirs, EMPTY)))
            plan = PlanLoaded(topic, array("q"), 9, is_exact=False)
            opened += [one.topic for one in session.handle(plan) if isinstance(one, OpenReconciliation)]
    assert opened == topics[:RECONCILIATIONS_MAX]
    for topic in opened:
        asker.handle(MessageReceived(Reconcile(blind_topic(topic, SESSION_ID), 0, b"symbols")))
    one_more = MessageReceived(Reconcile(blind_topic(topics[-1], SESSION_ID), 0, b"symbols"))
    assert answerer.handle(Reconciled(topics[0], (), ())) == []
    answerer.handle(MessageReceived(Reconcile(blind_topic(topics[0], SESSION_ID), 7, b"")))
    assert answerer.handle(Reconciled(topics[0], (), (), is_over=True)) == [
        OpenReconciliation(topics[RECONCILIATIONS_MAX], by_ranges=False)
    ]
    assert asker.handle(one_more) == [Close("too_many_reconciliations")]


def test_what_differed_is_compared_again_when_it_is_over_and_at_last_by_ranges() -> None:
    session = _summarised((8, b"a" * 32), (7, b"b" * 32))
    assert session.handle(INEXACT) == [OpenReconciliation(MAIN, by_ranges=False)]
    assert session.handle(CheckDue()) == [], "it is not over"
    session.handle(Reconciled(MAIN, ((0, b"symbols"),), ()))
    assert session.handle(CheckDue()) == [], "the asker has not said so"
    session.handle(MessageReceived(Reconcile(BLIND_MAIN, 7, b"")))
    session.handle(Reconciled(MAIN, (), (), is_over=True))
    for number, by_ranges in ((1, False), (2, True)):
        assert session.handle(CheckDue()) == [LoadSummary(MAIN)]
        assert session.handle(CheckDue()) == [], "once"
        again = session.handle(SummaryLoaded(MAIN, (as_commit_id(b"h" * 32),), 8, Digest(b"a" * 32), 8))
        assert again == [Send(Summary(BLIND_MAIN, number, (ShortId(b"h" * 16),), 8, Digest(b"a" * 32)))]
        session.handle(
            MessageReceived(Summary(BLIND_MAIN, number, (ShortId(b"t" * 32),), 7, Digest(b"b" * 32)))
        )
        exact = PlanLoaded(MAIN, array("q"), 9)
        assert session.handle(exact) == [OpenReconciliation(MAIN, by_ranges)], (
            "heads are not believed any more"
        )
        session.handle(Reconciled(MAIN, ((0, b"symbols"),), ()))
        session.handle(MessageReceived(Reconcile(BLIND_MAIN, 7, b"")))
        session.handle(Reconciled(MAIN, (), (), is_over=True))
    assert session.handle(CheckDue()) == [], "ranges miss little"


def test_frames_after_the_askers_last_word_end_the_session() -> None:
    session = _summarised((8, b"a" * 32), (7, b"b" * 32))
    session.handle(INEXACT)
    session.handle(Reconciled(MAIN, ((0, b"symbols"),), ()))
    session.handle(MessageReceived(Reconcile(BLIND_MAIN, 7, b"")))
    session.handle(MessageReceived(Reconcile(BLIND_MAIN, 6, b"")))
    assert session.handle(Reconciled(MAIN, (), (), is_over=True)) == [Close("unasked_reconciliation")]


def test_the_peer_may_begin_the_next_round() -> None:
    session = _summarised((8, b"a" * 32), (8, b"a" * 32))
    session.handle(PlanLoaded(MAIN, array("q"), 9))
    begun = session.handle(
        MessageReceived(Summary(BLIND_MAIN, 1, (ShortId(b"t" * 32),), 9, Digest(b"b" * 32)))
    )
    assert begun == [LoadSummary(MAIN)]
    said = session.handle(SummaryLoaded(MAIN, (as_commit_id(b"h" * 32),), 8, Digest(b"a" * 32), 8))
    assert said == [
        Send(Summary(BLIND_MAIN, 1, (ShortId(b"h" * 16),), 8, Digest(b"a" * 32))),
        LoadPlan(MAIN, (ShortId(b"t" * 32),)),
    ]


def test_a_reconciliation_that_goes_wrong_ends_the_session_with_its_reason() -> None:
    session = _summarised((7, b"a" * 32), (8, b"b" * 32))
    session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"?")))
    assert session.handle(Reconciled(MAIN, (), (), fault="bad_reconciliation:bad_shape")) == [
        Close("bad_reconciliation:bad_shape")
    ]


def test_what_is_accepted_between_a_summary_and_a_plan_that_is_not_exact_is_sent() -> None:
    session = _summarised((7, b"a" * 32), (8, b"b" * 32))
    session.handle(CommitsAccepted(MAIN, (7, 8, 9)))
    assert session.handle(PlanLoaded(MAIN, array("q"), 9, is_exact=False)) == [LoadBatch(MAIN, (8, 9))]


def test_the_next_round_waits_for_the_plan_of_this_one() -> None:
    session = _summarised((8, b"a" * 32), (8, b"a" * 32))
    later = MessageReceived(Summary(BLIND_MAIN, 1, (ShortId(b"t" * 32),), 9, Digest(b"b" * 32)))
    assert session.handle(later) == []
    assert session.handle(PlanLoaded(MAIN, array("q"), 9)) == [LoadSummary(MAIN)]
    hasty = _summarised((8, b"a" * 32), (8, b"a" * 32))
    hasty.handle(later)
    assert hasty.handle(later) == [Close("unasked_summary")]


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("state", [Comparing.OPENING, Comparing.ASKING])
def test_a_reconciliation_that_the_peer_leaves_open_ends_the_session(state: Comparing, is_busy: bool) -> None:
    smaller, larger = (7, b"a" * 32), (8, b"b" * 32)
    own, theirs = (smaller, larger) if state is Comparing.ASKING else (larger, smaller)
    session = _summarised(own, theirs)
    session.handle(INEXACT)
    if state is Comparing.ASKING:
        session.handle(MessageReceived(Reconcile(BLIND_MAIN, 0, b"0")))
        for _ in range(2 * RECONCILIATION_QUIET_CHECKS_MAX):
            assert session.handle(CheckDue()) == [], "this node is at work on its frame"
    assert session.topics[0].comparing is state
    session.handle(Reconciled(MAIN, ((1, b"more"),), array("q")))
    if is_busy:
        for _ in range(RECONCILIATION_CHECKS_MAX):
            assert session.handle(CheckDue(is_quiet=False)) == [], (
                "it may stand behind other things on a slow line"
            )
        assert session.handle(CheckDue(is_quiet=False)) == [Close("reconciliation_stalled")]
        return
    for _ in range(2):
        assert session.handle(CheckDue(is_quiet=False)) == []
        for _ in range(RECONCILIATION_QUIET_CHECKS_MAX):
            assert session.handle(CheckDue()) == []
    assert session.handle(CheckDue()) == [Close("reconciliation_stalled")]


def test_what_a_peer_does_not_take_waits_as_numbers_in_a_row() -> None:
    session = _joined(MAIN)
    _with_plan(session, MAIN, 1)
    for number in range(2000, 4000):
        session.handle(CommitsAccepted(MAIN, (number,)))
    assert len(session.topics[0].outbox.queue) <= 2
    assert session.topics[0].to_send == 2001
