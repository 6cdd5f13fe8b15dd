"""What a peer may do wrong on a connection: each ends it with a stable reason, and changes nothing."""

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count, pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.ingest.replica import Replica
from node.network import peers
from node.network.network import Network
from node.network.peer_state import PeerState
from node.network.peer_views import TopicNames, view_topics
from node.runtime.scheduling import WorkBill
from node.sync import connection as connection_module
from node.sync import topic_work
from node.sync.addresses import AddressSource
from node.sync.block_requests import NotFetched
from node.sync.connection import Connection, Ended
from node.sync.followed_topics import FollowedTopics
from node.sync.session_queries import Followed, read_summaries
from node.wire.transport import SecureStream, TransportError
from protocol.codec import encode
from protocol.crypto.keys import ConvergenceSecret
from protocol.formats.block import encrypt_block
from protocol.ids import AnnouncedTopic, BlindTopic, BlockId, Digest, TopicKey
from protocol.limits.peers import (
    FETCH_SECONDS_MAX,
    FETCH_TIMEOUT_SECONDS,
    FETCHED_COUNT_MAX,
    FRAME_SECONDS,
    FRAMES_WITHOUT_YIELD_MAX,
    GIVING_WAY_FRUITLESS_SECONDS,
    GIVING_WAY_SECONDS,
    STALLED_SECONDS,
)
from protocol.session.events import Event, MessageReceived, SummaryLoaded
from protocol.session.features import FEATURES
from protocol.session.messages import (
    Announce,
    Blocks,
    Features,
    Fetch,
    Goodbye,
    KeepAlive,
    Message,
    Publications,
    Receipt,
    Summary,
    Want,
    decode_message,
)
from protocol.session.outputs import Output
from protocol.session.session import Session
from ravel.types.peers import TopicView
from storage.relay.relay import KeptTopic
from storage.repos.epochs import Topic
from tests.support.builders import publications_of, writing_topic
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import meet, open_nodes
from tests.support.strangers import met
from tests.support.turns import Steps

UNREADABLE: dict[str, tuple[bytes, str]] = {
    "garbage": (b"\xff" * 100, "bad_message:unknown_message"),
    "tag_that_is_none": (b"\x91\xa8Nothing1", "bad_message:unknown_message"),
    "tag_in_another_form": (b"\x91\xd9\x06alive1", "bad_message:not_canonical"),
    "array_in_another_form": (b"\xdc\x00\x01\xa6alive1", "bad_message:not_canonical"),
    "unknown_in_another_form": (b"\xdd\x00\x00\x00\x01\xda\x00\x04nil1", "bad_message:unknown_message"),
    "cut_short": (b"\x91\xda\x00", "bad_message:unknown_message"),
    "trailing_bytes": (encode(KeepAlive()) + b"\x00", "bad_message:bad_shape"),
    "short_id": (b"\x92\xa8receipt1\xc4\x01x", "bad_message:bad_shape"),
    "deep_nesting": (b"\x92\xa5want1" + b"\x91" * 50_000, "bad_message:bad_shape"),
}


@pytest.mark.parametrize("defect", UNREADABLE)
async def test_a_frame_that_is_no_message_ends_the_connection(
    tmp_path: Path, autojump_clock: MockClock, defect: str
) -> None:
    frame, reason = UNREADABLE[defect]
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await stranger.stream.send_frame(frame)
            assert (await stranger.hear(Goodbye)).reason == reason
    assert stranger.ended == Ended(reason)


async def test_a_topic_that_was_not_joined_ends_it_with_a_goodbye(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await stranger.say(Want(BlindTopic(b"t" * 32), (as_commit_id(b"c" * 32),)))
            assert await stranger.hear(Goodbye) == Goodbye("unknown_topic")
    assert stranger.ended == Ended("unknown_topic")


async def test_a_goodbye_is_answered_with_one(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            await stranger.say(Goodbye("bye"))
            assert await stranger.hear(Goodbye) == Goodbye("peer_left")
            assert await stranger.stream.receive_frame() is None, "and the direction ends"


@pytest.mark.parametrize("end", ["goodbye", "cut", "bad_frame"])
async def test_a_connection_that_has_ended_keeps_nothing_of_what_the_peer_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, end: str
) -> None:
    """By itself: Python's collector counts objects and not bytes, and strangers come as often as they like."""
    seen: weakref.WeakSet[Connection | Session] = weakref.WeakSet()
    run = Connection.run

    async def run_seen(self: Connection) -> Ended:
        seen.update((self, self.session))
        assert seen
        return await run(self)

    monkeypatch.setattr(Connection, "run", run_seen)
    gc.disable()
    try:
        with open_nodes(tmp_path, "alice") as (alice,):
            for _ in range(3):
                async with met(alice) as stranger:
                    await stranger.say(Announce(tuple(AnnouncedTopic(bytes([n]) * 32) for n in range(99))))
                    match end:
                        case "goodbye":
                            await stranger.say(Goodbye("bye"))
                            await stranger.hear(Goodbye)
                        case "cut":
                            await stranger.wire.aclose()
                        case _:
                            await stranger.wire.send_all(b"x" * 100)
                            await stranger.hear(Goodbye)
            assert not seen
    finally:
        gc.enable()


@pytest.mark.parametrize("owes, is_held", [(GIVING_WAY_FRUITLESS_SECONDS, False), (0.3, True)])
async def test_peers_whose_work_came_to_nothing_give_way_to_requests_of_the_user(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
    owes: float,
    is_held: bool,
) -> None:
    read, frames = 0, 10 * FRAMES_WITHOUT_YIELD_MAX

    def count(frame: bytes) -> Message:
        nonlocal read
        read += 1
        return decode_message(frame)

    with open_nodes(tmp_path, "alice") as (alice,):
        monkeypatch.setattr(alice.hub.user_requests, "_clock", lambda: 0.0)
        async with met(alice) as one, met(alice) as other:
            monkeypatch.setattr(connection_module, "decode_message", count)
            alice.hub.ledger.of_strangers("").charge(owes - 2 * frames * FRAME_SECONDS * (not is_held))
            with alice.hub.user_requests.at_work():
                for stranger in (one, other):
                    await stranger.say(*[KeepAlive()] * frames)
                await trio.sleep(3.5 * GIVING_WAY_SECONDS)
                assert read == 2 * frames or (is_held and read <= 5 * FRAMES_WITHOUT_YIELD_MAX)
            await trio.sleep(0.1)
            assert read == 2 * frames, "and nothing is lost"
            for stranger in (one, other):
                await stranger.say(Goodbye("bye"))


async def test_a_peer_that_gives_way_amid_its_announcement_is_not_taken_for_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """Behind a thousand others that give way, each part of it waits for 20 s."""
    monkeypatch.setattr(connection_module, "IDLE_TIMEOUT_SECONDS", 10.0)
    monkeypatch.setattr(connection_module, "STRANGER_IDLE_SECONDS", 100.0)
    with open_nodes(tmp_path, "alice") as (alice,):
        monkeypatch.setattr(alice.hub.user_requests, "_clock", lambda: 0.0)
        monkeypatch.setattr(alice.hub.giving_way, "_seconds", 7.0)
        async with met(alice) as stranger:
            alice.hub.ledger.of_strangers("").charge(10.0)
            with alice.hub.user_requests.at_work():
                await stranger.say(Announce(tuple(AnnouncedTopic(bytes([n]) * 32) for n in range(99))))
                await trio.sleep(40)
            await stranger.say(Goodbye("bye"))
            assert await stranger.hear(Goodbye) == Goodbye("peer_left")


async def test_announcing_what_is_not_followed_makes_a_node_look_at_none_of_its_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    looks: list[Connection] = []
    monkeypatch.setattr(Connection, "_note_if_known", lambda self: looks.append(self))
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            said = [Announce(()), *[Announce((AnnouncedTopic(b"t" * 32),))] * 20]
            for one in said:
                await stranger.say(one)
            await stranger.say(Goodbye("bye"))
            await stranger.hear(Goodbye)
    assert len(looks) <= 1, "at the beginning at most"


async def test_signs_of_life_come_every_thirty_seconds(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            heard = []
            for _ in range(3):
                await stranger.hear(KeepAlive)
                heard.append(trio.current_time())
                await stranger.say(KeepAlive())
            assert [round(later - earlier) for earlier, later in pairwise(heard)] == [30, 30]
            await stranger.say(Goodbye("bye"))


async def test_of_commits_that_are_wanted_and_not_held_nothing_is_said(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            topic = await stranger.join(alice.epoch().topic)
            await stranger.say(Receipt(topic), Want(topic, (as_commit_id(b"w" * 32),)))
            message = decode_message(await stranger.stream.receive_frame() or b"")
            assert message == KeepAlive(), "no publications, and no word that there are none"
            await stranger.say(Goodbye("bye"))


async def test_knowing_the_topic_in_clear_is_not_enough_and_nothing_is_revealed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            announced = await stranger.hear(Announce)
            topics = set(alice.replica.by_topic)
            assert len(announced.topics) == len(topics)
            assert not set(announced.topics) & topics
            await stranger.say(Announce(tuple(map(AnnouncedTopic, topics))), Goodbye("bye"))
    assert stranger.ended == Ended("peer_left")


async def test_sending_back_what_was_announced_joins_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            announced = await stranger.hear(Announce)
            await stranger.say(
                announced, Summary(BlindTopic(announced.topics[0]), 0, (), 0, Digest(bytes(32)))
            )
            assert await stranger.hear(Goodbye) == Goodbye("unknown_topic"), "nothing was sent before"
    assert stranger.ended == Ended("unknown_topic")


async def test_publications_that_their_carrier_could_have_refused_end_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        before = alice.digest(branch)
        async with met(alice) as stranger:
            topic = await stranger.compare(writing_topic(alice.replica, branch).topic)
            await stranger.hear(Summary)
            await stranger.say(Publications(topic, (b"nothing",)))
            goodbye = await stranger.hear(Goodbye)
            assert goodbye == Goodbye("bad_publication:bad_shape")
        assert alice.digest(branch) == before
    assert stranger.ended == Ended("bad_publication:bad_shape")


async def test_a_peer_that_knows_the_topic_is_served(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            await stranger.compare(alice.epoch().topic)
            publications = await stranger.hear(Publications)
            assert len(publications.items) == 1
            await stranger.stream.aclose()
    assert stranger.ended == Ended("closed")


async def test_a_silent_peer_is_left(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            pass
    assert stranger.ended == Ended("idle")


async def test_a_peer_that_does_not_answer_for_blocks_is_left(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It goes on saying that it is alive, and sends none of what it was asked for."""
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger, trio.open_nursery() as nursery:
            await stranger.join(alice.epoch().topic)

            async def live() -> None:
                while stranger.ended is None:
                    await trio.sleep(FETCH_TIMEOUT_SECONDS / 4)
                    with suppress(TransportError):
                        await stranger.say(KeepAlive())

            nursery.start_soon(live)
            (source,) = alice.hub.sources
            with pytest.raises(NotFetched):
                await source.fetch(alice.epoch().topic, BlockId(b"w" * 32))
    assert stranger.ended == Ended("peer_does_not_answer")
    assert alice.hub.sources == []


async def test_a_peer_whose_version_knows_no_files_is_not_asked_for_blocks(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Its user is told nothing of that; this node's is told what the peer knows and this node does not."""
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            assert (await stranger.hear(Features)).features == FEATURES
            await stranger.say(Features(("documents", "newer")))
            await stranger.join(alice.epoch().topic)
            (source,) = alice.hub.sources
            assert await source.fetch(alice.epoch().topic, BlockId(b"w" * 32)) is None
            assert isinstance(source, Connection)
            assert source.newer_features == ["newer"]
            assert source.older_features == [one for one in FEATURES if one != "documents"]
            assert source.unknown_count == 0
            await stranger.stream.send_frame(b"\x91\xa4sum1")  # as an older version says it
            await stranger.say(Goodbye("bye"))
    assert stranger.ended == Ended("peer_left")
    assert (source.unknown_count, source.goodbye) == (1, "bye")


async def test_all_who_wait_for_blocks_are_told_when_the_peer_leaves(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Also those for whose question there was no room yet."""
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            await stranger.join(alice.epoch().topic)
            (source,) = alice.hub.sources

            async def ask(number: int) -> None:
                with pytest.raises(NotFetched):
                    await source.fetch(alice.epoch().topic, BlockId(bytes([number]) * 32))

            with fail_after(5):
                async with trio.open_nursery() as nursery:
                    for number in range(3 * FETCHED_COUNT_MAX):
                        nursery.start_soon(ask, number)
                    await stranger.hear(Fetch)
                    await stranger.stream.aclose()
    assert stranger.ended == Ended("closed")


async def test_a_slow_peer_has_time_for_each_block(tmp_path: Path, autojump_clock: MockClock) -> None:
    blocks = [
        encrypt_block(bytes([number]), ConvergenceSecret(b"s" * 32))[0] for number in range(FETCHED_COUNT_MAX)
    ]
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            topic = await stranger.join(alice.epoch().topic)
            (source,) = alice.hub.sources
            found: list[bytes | None] = []

            async def ask(wanted: BlockId) -> None:
                found.append(await source.fetch(alice.epoch().topic, wanted))

            async with trio.open_nursery() as nursery:
                for block in blocks:
                    nursery.start_soon(ask, block.block_id)
                for _ in blocks:
                    asked = await stranger.hear(Fetch)
                    await trio.sleep(FETCH_TIMEOUT_SECONDS * 0.8)
                    encoded = {block.block_id: block.encoded for block in blocks}
                    await stranger.say(Blocks(topic, (encoded[asked.ids[0]],)))
            await stranger.say(Goodbye("bye"))
    assert sorted(map(str, found)) == sorted(str(block.encoded) for block in blocks)


async def test_what_is_asked_for_twice_is_asked_of_a_peer_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    block, _ = encrypt_block(b"content", ConvergenceSecret(b"s" * 32))
    found: list[bytes | None] = []
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            topic = await stranger.join(alice.epoch().topic)
            (source,) = alice.hub.sources

            async def ask() -> None:
                found.append(await source.fetch(alice.epoch().topic, block.block_id))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                nursery.start_soon(ask)
                assert await stranger.hear(Fetch) == Fetch(topic, (block.block_id,))
                await stranger.say(Blocks(topic, (block.encoded,)))
            await stranger.say(Blocks(topic, (block.encoded,)))
            assert await stranger.hear(Goodbye) == Goodbye("unasked_blocks")
    assert found == [block.encoded, block.encoded]


async def test_a_peer_that_takes_nothing_is_shown_as_stalled(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        async with met(alice) as stranger:
            topic = await stranger.join(alice.epoch().topic, count=7)
            (source,) = alice.hub.sources
            assert isinstance(source, Connection)
            state = PeerState(
                source.peer,
                "somewhere",
                "in",
                "connected",
                0.0,
                AddressSource.INCOMING,
                None,
                connection=source,
            )
            since = source.progress_at

            def shown(later: int) -> TopicView:
                topics = view_topics(state, alice.replica.tables, {}, since + later, TopicNames())
                return next(one for one in topics if one["state"] != "not joined")

            assert (shown(0)["state"], shown(0)["behind"]) == ("sending", 6)
            assert shown(STALLED_SECONDS - 1)["stalled_since"] is None
            silent = shown(STALLED_SECONDS)
            assert (silent["stalled_since"], silent["stalled_because"]) == (since, "nothing_heard")
            source.heard_at += 1
            assert shown(STALLED_SECONDS)["stalled_because"] == "takes_nothing"
            await stranger.say(Receipt(topic), Goodbye("bye"))
    assert stranger.ended == Ended("peer_left")


async def test_a_peer_that_leaves_while_its_topics_are_listed_is_told_of_as_it_was(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "TOPICS_AT_ONCE", 4)
    with open_nodes(tmp_path, "alice") as (alice,):
        for number in range(3):
            repo, _ = alice.create_repo(f"repo {number}")
        network = Network(alice.hub, alice.seed, lambda: 0.0)
        async with met(alice) as stranger:
            await stranger.join(alice.replica.writing_epoch(repo).topic)
            (source,) = alice.hub.sources
            assert isinstance(source, Connection)
            state = PeerState(
                source.peer, "somewhere", "in", "connected", 0.0, AddressSource.INCOMING, None, None, source
            )
            network.inbound.append(state)

            async def leave() -> None:
                state.connection = None

            async with trio.open_nursery() as nursery:
                nursery.start_soon(leave)
                (view,) = await peers.Peers(alice.hub, network, alice.key).views()
            assert state.connection is None
            assert len(view["topics"]) == len(source.topics) > 4
            await stranger.say(Goodbye("bye"))


async def test_a_peer_that_sends_all_but_the_block_is_left_in_the_end(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        followed = alice.epoch().topic
        items = tuple(publications_of(alice.replica, alice.branch("root"))[:1])
        async with met(alice) as stranger, trio.open_nursery() as nursery:
            topic = await stranger.join(followed)

            async def send() -> None:
                while stranger.ended is None:
                    await trio.sleep(FETCH_TIMEOUT_SECONDS - 1)
                    with suppress(TransportError):
                        await stranger.say(Publications(topic, items))

            nursery.start_soon(send)
            (source,) = alice.hub.sources
            began = trio.current_time()
            with pytest.raises(NotFetched):
                await source.fetch(followed, BlockId(b"w" * 32))
            assert FETCH_SECONDS_MAX < trio.current_time() - began < FETCH_SECONDS_MAX + FETCH_TIMEOUT_SECONDS
    assert stranger.ended == Ended("peer_does_not_answer")


@pytest.mark.slow
async def test_news_at_any_moment_of_a_connections_end_fail_nobody(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """What a connection is told of while it ends must not start work in a nursery that has closed.

    That is between two steps of two tasks, whose order trio draws: so it is tried often.
    """
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for moment in [*range(8), *[2, 3, 4] * 20]:
            async with met(alice) as stranger:
                await stranger.join(writing_topic(alice.replica, branch).topic)
                await stranger.stream.aclose()
                for _ in range(moment):
                    await trio.lowlevel.checkpoint()
                alice.write(branch, f"at moment {moment}")
            assert stranger.ended == Ended("closed")
            assert alice.hub.sources == []


async def test_silence_ends_it_with_a_goodbye(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            assert (await stranger.hear(Goodbye)).reason == "idle"
    assert stranger.ended == Ended("idle")


async def test_a_frame_of_an_illegal_length_ends_it_with_a_goodbye(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = SecureStream.receive_frame

    async def receive_too_much(stream: SecureStream) -> bytes | None:
        if stream.is_dialer:
            return await receive(stream)
        raise TransportError("frame_too_large", "the peer announced a frame of gigabytes")

    monkeypatch.setattr(SecureStream, "receive_frame", receive_too_much)
    with open_nodes(tmp_path, "alice") as (alice,):
        async with met(alice) as stranger:
            assert (await stranger.hear(Goodbye)).reason == "frame_too_large"
    assert stranger.ended == Ended("frame_too_large")


async def test_summaries_of_many_topics_are_read_by_few_looks_into_the_store(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(topic_work, "SUMMARIES_AT_ONCE", 8)
    read = read_summaries

    def note(replica: Replica, followed: Sequence[Followed], *, of_publications: bool) -> list[SummaryLoaded]:
        looks.append(len(followed))
        return read(replica, followed, of_publications=of_publications)

    with fail_after(300), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        for number in range(5):
            repo, _ = alice.create_repo(f"repo {number}")
            await bob.joiner.begin(alice.invite(repo))
        await meet(alice, bob)
        monkeypatch.setattr(topic_work, "read_summaries", note)
        await meet(alice, bob)
    assert max(looks) == 8, "two topics of each repo are joined at once"


async def test_a_new_repo_makes_a_connection_look_at_no_other_topic_and_a_new_branch_at_none(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        for number in range(20):
            alice.create_repo(f"repo {number}")
        alice.hub.topics_changed()
        async with met(alice):
            await trio.testing.wait_all_tasks_blocked()
            looked = list[TopicKey]()
            find = alice.hub.find_followed

            def note(topic: TopicKey) -> Topic | KeptTopic | None:
                looked.append(topic)
                return find(topic)

            monkeypatch.setattr(alice.hub, "find_followed", note)
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            assert len(connection._followed.places) == 2 * 20
            alice.create_repo("one more")
            alice.hub.topics_changed()
            assert len(looked) == 2 * 2, (
                "its epoch's own topic and its writers' topic: as they come, and in their turn"
            )
            assert set(looked) <= connection._followed.places.keys()
            looked.clear()
            alice.hub.topics_changed()
            assert looked == []
            alice.write(alice.branch(), "of which only counts change")
            alice.author.founding.create_branch(next(iter(alice.replica.repos.values())), "another")
            alice.hub.topics_changed()
            assert looked == []


async def test_many_topics_are_announced_and_taken_in_turns_with_the_work_of_others(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To announce or to join one takes 25 us; there may be thousands. The turns cost a stranger, and no member."""
    most = 4
    monkeypatch.setattr(connection_module, "_TOPICS_AT_ONCE", most)
    steps, announced, joined = Steps(), list[tuple[int, int]](), list[tuple[int, int]]()
    announce, handle = FollowedTopics.announce, Session.handle

    def note_announced(followed: FollowedTopics, most: int) -> list[Output]:
        before = len(followed.places)
        outputs = announce(followed, most)
        if len(followed.places) > before:
            announced.append((steps.count, len(followed.places) - before))
        return outputs

    def note_joined(session: Session, event: Event) -> list[Output]:
        if isinstance(event, MessageReceived) and isinstance(event.message, Announce):
            joined.append((steps.count, len(event.message.topics)))
        return handle(session, event)

    with open_nodes(tmp_path, "alice") as (alice,):
        for number in range(5):
            alice.create_repo(f"repo {number}")
        topics = list(alice.replica.by_topic)
        alice.hub.cpu_clock = count(0.0, 0.5).__next__
        monkeypatch.setattr(FollowedTopics, "announce", note_announced)
        monkeypatch.setattr(Session, "handle", note_joined)
        trio.lowlevel.add_instrument(steps)
        async with met(alice) as stranger:
            heard = list[AnnouncedTopic]()
            while len(heard) < len(topics):
                heard += (await stranger.hear(Announce)).topics
            assert [one for _, one in announced] == [2, most, most], "before, they are sorted"
            assert len({step for step, _ in announced}) == 3, "others have their turn between"
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            assert connection.account.used >= 3 * 0.5
            own = [stranger.announcement(one).topics[0] for one in topics]
            await stranger.say(Announce(tuple(own)))
            for _ in topics:
                await stranger.hear(Summary)
            assert [one for _, one in joined] == [most, most, 2]
            assert len({step for step, _ in joined}) == 3
        trio.lowlevel.remove_instrument(steps)


async def test_a_peer_with_much_to_look_up_is_read_from_again_once_some_of_it_was(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a line that stalls, the questions of many minutes come together: nobody is cut off for it."""
    monkeypatch.setattr("protocol.session.wanting.WANTS_LOOKED_UP_MAX", 4)
    gate = trio.Event()
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        look = alice.hub.look

        async def wait(bill: WorkBill, work: Callable[..., Event], *args: object) -> Event:
            await gate.wait()
            return await look(bill, work, *args)

        async with met(alice) as stranger:
            topic = await stranger.join(writing_topic(alice.replica, branch).topic)
            await stranger.say(Receipt(topic))
            monkeypatch.setattr(alice.hub, "look", wait)
            (connection,) = alice.hub.sources
            assert isinstance(connection, Connection)
            ids = [as_commit_id(number.to_bytes(32)) for number in range(20)]
            await stranger.say(*(Want(topic, (one,)) for one in ids))
            await trio.testing.wait_all_tasks_blocked()
            (progress,) = (one for one in connection.topics if one.is_joined)
            assert len(progress.wants.waiting) == 4
            gate.set()
            await trio.testing.wait_all_tasks_blocked()
            assert not progress.wants.waiting
            assert not connection.is_ending()
