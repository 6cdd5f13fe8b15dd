"""Presences of texts on a node: who is told, who is shown, what is dropped, and what ends them."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.ingest.membership_facts import NO_FACTS, StatedName
from node.observe.sentences import called
from node.runtime.scheduling import WorkAccount
from node.sync.conversation import Conversation
from node.sync.presence import PresencePort, Presences
from protocol.crypto.hashing import announced_topic
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair, sign
from protocol.formats.text import id_text
from protocol.ids import BranchId, PeerId, SessionId, TopicKey, UserId
from protocol.limits.network import PEER_USERS_MAX
from protocol.limits.peers import (
    FORGED_PRESENCE_SECONDS,
    PRESENCE_PEERS_MAX,
    PRESENCE_SECONDS,
    PRESENCES_AT_ONCE_MAX,
    PRESENCES_HELD_MAX,
    PRESENCES_OF_PEER_MAX,
    PRESENCES_PER_SECOND_MAX,
)
from protocol.session.events import Event, MessageReceived, PresenceTold, TopicFollowed
from protocol.session.features import FEATURES
from protocol.session.messages import Announce, Features
from protocol.session.presence import Presence, open_presence, seal_presence
from protocol.session.session import Session
from storage.peers.peers import PeerUser, load_peer_users, put_peer_users
from storage.repos.deletion import forget_repo
from storage.repos.epochs import Epoch
from tests.support.nodes import Node, open_nodes, share

PEER = PeerId(b"p" * 32)
BOB, BOBS_SECRET = key_pair(UserSeed(b"b" * 32))


@dataclass(eq=False)
class Line(Conversation):
    """A connection to a node of bob's."""

    epoch: Epoch
    peer: PeerId = PEER
    account: WorkAccount = field(default_factory=lambda: WorkAccount(trio.current_time))
    told: list[PresenceTold] = field(default_factory=list)
    random: int = 0
    topic: TopicKey = field(init=False)

    def __post_init__(self) -> None:
        self.topic = self.epoch.topic

    def happen(self, event: Event) -> None:
        assert isinstance(event, PresenceTold)
        self.told.append(event)

    def port(self) -> PresencePort:
        """As a session that has joined the line's topic has it."""
        session_id = SessionId(b"s" * 32)
        session = Session(session_id, is_dialer=True)
        session.handle(TopicFollowed(self.topic, is_own=False))
        session.handle(MessageReceived(Features(FEATURES)))
        theirs = announced_topic(self.topic, session_id, by_dialer=False)
        session.handle(MessageReceived(Announce((theirs,))))
        self.session = session
        return PresencePort(self)

    def box(self, port: PresencePort, presence: Presence, user: UserId = BOB) -> bytes:
        """What bob says."""
        self.random += 1
        place = port.connection.session.presence_place(self.topic, by_us=False)
        nonce = self.random.to_bytes(24, "big")
        read_key = self.epoch.keys.read_key
        return seal_presence(read_key, place, user, lambda digest: sign(BOBS_SECRET, digest), presence, nonce)


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield node


def _presences(node: Node) -> Presences:
    presences = Presences(node.replica, node.hub.owners)
    presences.speak_as(node.author.user, node.author.sign)
    return presences


def _of(node: Node, number: int, root: str = "text") -> Presence:
    return Presence(number.to_bytes(8, "big"), node.branch().branch_id, root, b"anchor", b"head")


async def test_browsers_of_a_node_see_each_other_until_they_leave_or_fall_silent(
    alice: Node, autojump_clock: MockClock
) -> None:
    presences, branch = _presences(alice), alice.branch()
    changed: list[int] = []
    stop = presences.listen(branch.num, lambda: changed.append(1))
    presences.announce_presence(branch, _of(alice, 1))
    assert not presences.has_other_editors(branch.num)
    presences.announce_presence(branch, _of(alice, 2))
    assert presences.has_other_editors(branch.num)
    assert [one.presence for one in presences.editors(branch.num, but=_of(alice, 1).session)] == [
        _of(alice, 2)
    ]
    presences.leave(branch, _of(alice, 2).session)
    presences.leave(branch, _of(alice, 2).session)
    assert len(changed) == 3, "what changes nothing is not told"
    await trio.sleep(PRESENCE_SECONDS - 1)
    assert len(presences.editors(branch.num)) == 1
    await trio.sleep(1)
    assert presences.editors(branch.num) == []
    stop()
    presences.announce_presence(branch, _of(alice, 1))
    assert len(changed) == 3


async def test_peers_are_told_and_tell_and_what_they_told_ends_with_the_connection(alice: Node) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(alice.epoch())
    port = line.port()
    presences.connect(port)
    presences.announce_presence(branch, _of(alice, 1))
    presences.leave(branch, _of(alice, 1).session)
    place = port.connection.session.presence_place(line.topic, by_us=True)
    said = [open_presence(line.epoch.keys.read_key, place, one.box) for one in line.told]
    left = Presence(_of(alice, 1).session, branch.branch_id)
    assert said == [(alice.author.user, _of(alice, 1)), (alice.author.user, left)]
    presences.received(port, line.topic, line.box(port, _of(alice, 7)))
    (there,) = presences.editors(branch.num)
    assert (there.user, there.presence) == (BOB, _of(alice, 7))
    presences.received(port, line.topic, line.box(port, _of(alice, 7, root="")))
    assert presences.editors(branch.num) == []
    presences.received(port, line.topic, line.box(port, _of(alice, 8)))
    presences.lose(port)
    assert presences.editors(branch.num) == []


async def test_a_peer_is_told_once_whose_node_this_is_where_the_user_is_a_member(alice: Node) -> None:
    presences, line = _presences(alice), Line(alice.epoch())
    root, port = alice.replica.root_branch(alice.repo()), line.port()
    for _ in range(2):
        presences.introduce(port, line.topic)
    place = port.connection.session.presence_place(line.topic, by_us=True)
    ((user, said),) = [open_presence(line.epoch.keys.read_key, place, one.box) for one in line.told]
    assert (user, said.branch, said.has_left) == (alice.author.user, root.branch_id, True)


async def test_a_peer_is_told_again_in_a_later_epoch_of_the_repo(alice: Node) -> None:
    """A peer that had gone on to it could not hear what was said before."""
    presences, line = _presences(alice), Line(alice.epoch())
    port = line.port()
    presences.introduce(port, line.topic)
    port.introduced_in = alice.repo().num, TopicKey(b"before".ljust(len(line.topic), b"-"))
    for _ in range(2):
        presences.introduce(port, line.topic)
    assert len(line.told) == 2
    port.introduced_in = alice.repo().num + 1, line.topic
    presences.introduce(port, line.topic)
    assert len(line.told) == 2, "another repo's epoch tells it as well"


async def test_a_member_is_known_as_one_from_the_join_on_and_at_each_start(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob)
        repo_id = alice.repo().repo_id
        for node in (alice, bob):
            assert node.replica.has_own_user(repo_id)
            node.replica.close()
            node.open()
            assert node.replica.has_own_user(repo_id)
        assert not carol.replica.has_own_user(repo_id)


async def test_a_device_without_a_name_of_its_own_says_whose_it_is(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    presences, line = _presences(alice), Line(alice.epoch())
    port = line.port()
    monkeypatch.setattr(alice.replica, "_facts", {})
    presences.introduce(port, line.topic)
    assert not line.told, "who is no member, and was none, stays unknown: one who reads by a link"
    facts = replace(NO_FACTS, persons={alice.author.user: BOB})
    monkeypatch.setattr(alice.replica, "_facts", {alice.repo().repo_id: facts})
    presences.introduce(port, line.topic)
    assert len(line.told) == 1


async def test_who_signs_on_a_connection_owns_the_peer_and_devices_are_their_persons(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    presences, owners, branch = _presences(alice), alice.hub.owners, alice.branch()
    line = Line(alice.epoch())
    port = line.port()
    presences.received(port, line.topic, line.box(port, Presence(b"s" * 8, branch.branch_id), BOB) + b"x")
    assert owners.called(PEER)["owner"] is None, "forged"
    presences.received(port, line.topic, line.box(port, Presence(b"s" * 8, branch.branch_id)))
    owner = {"user": id_text(BOB), "name": "", "device": "", "mine": False, "earlier": False}
    assert owners.called(PEER) == {"name": "", "owner": owner}
    assert [(one.peer, one.user) for one in owners.take_new()] == [(PEER, BOB)]
    presences.received(port, line.topic, line.box(port, _of(alice, 1)))
    assert owners.take_new() == [], "as before"
    facts = replace(
        NO_FACTS,
        persons={BOB: alice.author.user},
        stated={BOB: StatedName("laptop", None, 0), alice.author.user: StatedName("Alice", None, 0)},
    )
    monkeypatch.setattr(alice.replica, "_facts", {alice.repo().repo_id: facts})
    alice.replica.people.set_facts({alice.repo().repo_id: facts}, [alice.repo().repo_id])
    assert owners.called(PEER)["owner"] == {**owner, "name": "Alice", "device": "laptop", "mine": True}
    moved = replace(facts, moved={BOB: (alice.author.user, -1)})
    alice.replica.people.set_facts({alice.repo().repo_id: moved}, [alice.repo().repo_id])
    earlier = owners.called(PEER)
    assert earlier["owner"] is not None
    assert earlier["owner"]["earlier"]
    assert called({**earlier, "peer": "", "relay": False}) == "your earlier computer"
    assert called({"peer": "", "relay": False, "name": "", "owner": {**earlier["owner"], "mine": False}}) == (
        "Alice's earlier computer"
    )


@pytest.mark.slow
def test_of_too_many_owners_the_oldest_is_forgotten(alice: Node) -> None:
    owners, repo_id = alice.hub.owners, alice.repo().repo_id
    for number in range(PEER_USERS_MAX + 1):
        owners.note(PeerId(number.to_bytes(32, "big")), BOB, repo_id)
    assert owners.called(PeerId(bytes(32)))["owner"] is None
    assert owners.called(PeerId((1).to_bytes(32, "big")))["owner"] is not None
    with alice.replica.database.write() as connection:
        said = owners.take_new()
        assert len(said) == PEER_USERS_MAX
        put_peer_users(connection, said)
        put_peer_users(connection, [PeerUser(PEER, BOB, repo_id, said[-1].said_at + 1)])
        kept = load_peer_users(connection)
    assert (len(kept), kept[-1].peer) == (PEER_USERS_MAX, PEER)


async def test_what_is_forged_is_dropped_and_charged(alice: Node) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(alice.epoch())
    port = line.port()
    good = line.box(port, _of(alice, 7))
    for forged in (b"", good[:-1], line.box(port, _of(alice, 7), alice.author.user)):
        before = line.account.used
        presences.received(port, line.topic, forged)
        assert line.account.used - before >= FORGED_PRESENCE_SECONDS
    presences.received(port, TopicKey(b"f" * 32), good)
    assert presences.editors(branch.num) == []
    before = line.account.used
    presences.connect(port)
    presences.received(port, line.topic, good)
    assert 0 < line.account.used - before < FORGED_PRESENCE_SECONDS
    assert len(presences.editors(branch.num)) == 1


async def test_presences_are_bounded_in_number_and_rate(alice: Node, autojump_clock: MockClock) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(alice.epoch())
    port = line.port()
    presences.connect(port)
    for number in range(PRESENCES_OF_PEER_MAX + 1):
        presences.received(port, line.topic, line.box(port, _of(alice, number)))
    assert len(presences.editors(branch.num)) == PRESENCES_OF_PEER_MAX
    for _ in range(PRESENCES_AT_ONCE_MAX - PRESENCES_OF_PEER_MAX - 1):
        presences.received(port, line.topic, line.box(port, _of(alice, 0)))
    presences.received(port, line.topic, line.box(port, _of(alice, 0, root="beyond")))
    assert presences.editors(branch.num)[0].presence.root == "text", "one too many at once"
    await trio.sleep(1 / PRESENCES_PER_SECOND_MAX)
    presences.received(port, line.topic, line.box(port, _of(alice, 0, root="later")))
    assert presences.editors(branch.num)[0].presence.root == "later"
    presences.lose(port)
    assert all(
        presences.announce_presence(branch, _of(alice, number)) for number in range(PRESENCES_HELD_MAX)
    )
    assert not presences.announce_presence(branch, _of(alice, PRESENCES_HELD_MAX))
    assert presences.announce_presence(branch, _of(alice, 0)), "one that is here is told again"
    await trio.sleep(PRESENCE_SECONDS)
    assert presences.announce_presence(branch, _of(alice, PRESENCES_HELD_MAX)), (
        "those that fell silent have made room"
    )


async def test_a_presence_goes_to_so_many_peers_and_no_more(alice: Node) -> None:
    presences, branch = _presences(alice), alice.branch()
    lines = [Line(alice.epoch()) for _ in range(PRESENCE_PEERS_MAX + 1)]
    for line in lines:
        presences.connect(line.port())
    presences.announce_presence(branch, _of(alice, 1))
    assert [len(line.told) for line in lines] == [1] * PRESENCE_PEERS_MAX + [0]


async def test_peers_are_told_of_own_ones_only_so_fast(alice: Node, autojump_clock: MockClock) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(alice.epoch())
    presences.connect(line.port())
    for number in range(PRESENCES_AT_ONCE_MAX + 1):
        assert presences.announce_presence(branch, _of(alice, 1, root=str(number)))
    assert len(line.told) == PRESENCES_AT_ONCE_MAX
    (here,) = presences.editors(branch.num)
    assert here.presence.root == str(PRESENCES_AT_ONCE_MAX), "it is shown here all the same"
    for _ in range(2):
        presences.leave(branch, _of(alice, 1).session)
        presences.announce_presence(branch, _of(alice, 1))
    assert len(line.told) == PRESENCES_AT_ONCE_MAX + 1, "what was told of leaves, and nothing else does"
    await trio.sleep(1)
    for number in range(2 * PRESENCES_PER_SECOND_MAX):
        presences.announce_presence(branch, _of(alice, 1, root=str(number)))
    assert len(line.told) == PRESENCES_AT_ONCE_MAX + 1 + PRESENCES_PER_SECOND_MAX


async def test_they_go_on_the_own_topic_of_the_epoch_that_is_written_in_and_on_no_other(alice: Node) -> None:
    before, branch = alice.epoch(), alice.branch()
    alice.author.start_epoch(alice.repo())
    epoch, presences = alice.epoch(), _presences(alice)
    assert epoch.writers_topic is not None
    lines = [Line(before), Line(epoch), Line(epoch)]
    lines[2].topic = epoch.writers_topic
    ports = [line.port() for line in lines]
    for port in ports:
        presences.connect(port)
    presences.announce_presence(branch, _of(alice, 1))
    assert [len(line.told) for line in lines] == [0, 1, 0]
    presences.leave(branch, _of(alice, 1).session)
    for number, (line, port) in enumerate(zip(lines, ports, strict=True)):
        presences.received(port, line.topic, line.box(port, _of(alice, number)))
    assert [one.presence for one in presences.editors(branch.num)] == [_of(alice, 1)]


async def test_what_a_peer_says_is_of_the_branch_that_it_names(alice: Node) -> None:
    presences, other = _presences(alice), alice.author.founding.create_branch(alice.repo(), "other")[0]
    line = Line(alice.epoch())
    port = line.port()
    presences.connect(port)
    for branch_id in (other.branch_id, BranchId(b"u" * 32)):
        said = Presence(b"session!", branch_id, "text", b"anchor", b"head")
        presences.received(port, line.topic, line.box(port, said))
    assert presences.editors(alice.branch().num) == []
    assert [one.presence.branch for one in presences.editors(other.num)] == [other.branch_id]
    assert len(port.held) == 1


async def test_a_browser_leaves_after_its_repo_was_forgotten(alice: Node) -> None:
    presences, branch, repo = _presences(alice), alice.branch(), alice.repo()
    line, presence = Line(alice.epoch()), _of(alice, 1)
    presences.connect(line.port())
    presences.announce_presence(branch, presence)
    with alice.replica.change() as change:
        forget_repo(change.connection, repo.num)
        alice.replica.forget_membership(repo.repo_id)
    presences.leave(branch, presence.session)
    assert presences.editors(branch.num) == []
    assert len(line.told) == 1
