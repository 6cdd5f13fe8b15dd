"""A repo is deleted where a peer that is there, holds all of it and keeps it has answered since it was told."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.care import last_copies
from node.care.last_copies import LastCopies
from node.contract.endpoint import LONG_WRITE_SECONDS
from node.contract.repos import FORGET_REPO
from node.network.network import Network
from node.network.peer_state import PeerState
from node.observe.standing import Standings
from node.runtime.errors import ServiceError
from node.sync.addresses import AddressSource
from node.sync.body_fetching import BodyFetcher
from node.sync.body_proofs import BodyProofs
from node.sync.connection import Connection
from node.sync.conversation import Conversation
from node.sync.kept_parts import keep_contents
from protocol.ids import BlockId, CommitId, TopicKey, UserId
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.served import code_of, served
from tests.unit.node.care.test_giving_up_files import _files, _stream, read

pytestmark = pytest.mark.slow


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice and carol, with a post and a file of alice's."""
    with open_nodes(tmp_path, "alice", "carol") as (alice, carol):
        await share(alice, carol)
        alice.write(alice.branch(), "text")
        await _files(alice).add("main", "old", _stream(b"a file"))
        yield [alice, carol]


@asynccontextmanager
async def online(alice: Node, carol: Node) -> AsyncIterator[tuple[LastCopies, LastCopies]]:
    """Connect both; what guards the copy of each."""
    with fail_after(300):
        async with connected(alice, carol) as ends, trio.open_nursery() as nursery:
            found = []
            for node, end, other in ((alice, ends[0], carol), (carol, ends[1], alice)):
                nursery.start_soon(BodyFetcher(node.hub).run)
                network = Network(node.hub, node.seed, lambda: 0.0)
                state = PeerState(end.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
                state.connection = end
                network.inbound.append(state)
                found.append(LastCopies(node.hub, Standings(node.hub, network)))
                node.hub.owners.note(end.peer, other.author.user, node.repo().repo_id)
            await until_equal(alice, carol, "root")
            await until_equal(alice, carol)
            await trio.sleep(5)
            yield found[0], found[1]
            nursery.cancel_scope.cancel()


async def may_forget(node: Node, copies: LastCopies) -> bool:
    try:
        async with copies.leaving(node.repo()):
            return True
    except ServiceError as error:
        if error.code != "last_copy":
            raise
        return False


async def test_a_member_that_is_there_holds_all_and_shows_the_files(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    async with online(alice, carol) as (of_alice, of_carol):
        assert not await may_forget(alice, of_alice), "carol has not the file"
        assert await may_forget(carol, of_carol)
        assert await read(carol) == b"a file"
        assert await may_forget(alice, of_alice)
        assert alice.hub.proofs.leaving == set()
    assert not await may_forget(alice, of_alice), "carol held all, and is gone"


def test_who_asks_for_it_waits_while_files_are_shown() -> None:
    assert FORGET_REPO.seconds_max == LONG_WRITE_SECONDS


async def test_of_two_that_delete_it_at_once_at_most_one_goes_on(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    async with online(alice, carol) as (of_alice, of_carol):
        assert await read(carol) == b"a file"
        may = list[bool]()

        async def forget(node: Node, copies: LastCopies) -> None:
            try:
                async with copies.leaving(node.repo()):
                    may.append(True)
                    await trio.sleep(60)  # as long as the other looks
            except ServiceError:
                may.append(False)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(forget, alice, of_alice)
            nursery.start_soon(forget, carol, of_carol)
        assert may.count(True) <= 1
        await trio.sleep(3)
        assert await may_forget(alice, of_alice), "each keeps all again"


async def test_one_that_ends_takes_nothing_back_for_another_that_goes_on(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Somebody asks twice: all peers are told for as long as one of both may delete the repo."""
    alice, carol = nodes
    async with online(alice, carol) as (of_alice, _):
        assert await read(carol) == b"a file"
        told = list[set[int]]()

        async def forget(seconds: float) -> None:
            async with of_alice.leaving(alice.repo()):
                await trio.sleep(seconds)
                told.append(set(alice.hub.proofs.leaving))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(forget, 60)
            nursery.start_soon(forget, 1)
        assert told == [{alice.repo().num}] * 2


async def test_who_held_all_has_to_hold_it_once_files_were_shown(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """That may take hours, in which commits come, and peers leave, or say that they keep less."""
    alice, carol = nodes

    async def keep_less(*_: object) -> None:
        _keep_some_days(carol)
        await trio.sleep(3)

    async with online(alice, carol) as (of_alice, _):
        assert await read(carol) == b"a file"
        monkeypatch.setattr(LastCopies, "_check_files", keep_less)
        assert not await may_forget(alice, of_alice)


def _keep_no_branch(carol: Node) -> None:
    keep_contents(carol.replica, carol.repo(), set())
    carol.hub.topics_changed()


def _keep_some_days(carol: Node) -> None:
    keep_contents(carol.replica, carol.repo(), None, 90, carol.now())
    carol.hub.topics_changed()


def _begin_to_delete_it(carol: Node) -> None:
    carol.hub.proofs.leaving.add(carol.repo().num)
    for source in carol.hub.sources:
        source.tell_keeps()


@pytest.mark.parametrize("become", [_keep_no_branch, _keep_some_days, _begin_to_delete_it])
@pytest.mark.parametrize("is_meanwhile", [False, True])
async def test_who_keeps_less_does_not_count(
    nodes: list[Node],
    monkeypatch: pytest.MonkeyPatch,
    become: Callable[[Node], None],
    is_meanwhile: bool,
    autojump_clock: MockClock,
) -> None:
    """Also where it says so before it answers: then it knew of the question when it gave the contents up, or after."""
    alice, carol = nodes
    async with online(alice, carol) as (of_alice, _):
        assert await read(carol) == b"a file"
        if is_meanwhile:
            ask = BodyProofs.ask

            async def become_and_ask(
                self: BodyProofs, source: Conversation, topic: TopicKey, ids: list[CommitId]
            ) -> set[CommitId]:
                become(carol)
                return await ask(self, source, topic, ids)

            monkeypatch.setattr(BodyProofs, "ask", become_and_ask)
        else:
            become(carol)
            await trio.sleep(3)
        assert not await may_forget(alice, of_alice)


async def test_who_is_known_to_be_no_member_does_not_count(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol = nodes
    async with online(alice, carol) as (of_alice, _):
        assert await read(carol) == b"a file"
        [source] = alice.hub.sources
        alice.hub.owners.note(source.peer, UserId(bytes(32)), alice.repo().repo_id)
        assert not await may_forget(alice, of_alice)
        alice.hub.owners.load(())
        assert await may_forget(alice, of_alice), "whose it is is not known, and it follows all topics"


async def test_a_relay_takes_no_answer_of_a_peer_for_a_copy(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """A peer tells a relay neither what it keeps nor that it deletes the repo too, and finds none of its commits."""
    alice, carol = nodes
    ask = BodyProofs.ask

    async def ask_for_what_nobody_has(
        self: BodyProofs, source: Conversation, topic: TopicKey, _: list[CommitId]
    ) -> set[CommitId]:
        return await ask(self, source, topic, [CommitId(BlockId(bytes(32)))])

    async with online(alice, carol) as (of_alice, _):
        assert await read(carol) == b"a file"
        monkeypatch.setattr(BodyProofs, "ask", ask_for_what_nobody_has)
        monkeypatch.setattr(Connection, "compares_publications", True)
        assert not await may_forget(alice, of_alice)


async def test_who_was_seen_to_hold_all_once_is_asked_anew_before_a_repo_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Standings, "is_held", lambda *_: True)
    monkeypatch.setattr(last_copies, "WAIT_SECONDS", 0.0)
    async with served(tmp_path) as one:
        one.node.create_repo()
        one.node.write(one.node.branch(), "text")
        refused = await one.client.delete("/api/v1/repos/repo")
        assert code_of(refused) == "last_copy"
        assert "who is connected now" in refused.json()["error"]["message"]
        assert len((await one.client.get("/api/v1/repos")).json()["repos"]) == 1
        assert (await one.client.delete("/api/v1/repos/repo?accept_loss=1")).status_code == 200
