"""Presences of texts on a node: who is told, who is shown, what is dropped, and what ends them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.sync.presence import PresencePort, Presences
from node.sync.scheduling import WorkAccount
from protocol.features import FEATURES
from protocol.hashing import announced_topic
from protocol.ids import PeerId, SessionId, TopicKey, UserId
from protocol.keys import UserSeed
from protocol.limits.peers import (
    FORGED_PRESENCE_SECONDS,
    PRESENCE_PEERS_MAX,
    PRESENCE_SECONDS,
    PRESENCES_AT_ONCE_MAX,
    PRESENCES_HELD_MAX,
    PRESENCES_OF_PEER_MAX,
    PRESENCES_PER_SECOND_MAX,
)
from protocol.messages import Announce, Features
from protocol.presence import Presence, open_presence, seal_presence
from protocol.session import Session
from protocol.session_events import MessageReceived, PresenceTold, TopicFollowed
from protocol.signing import key_pair, sign
from storage.repos.repos import Branch
from tests.support.nodes import Node, open_nodes

PEER = PeerId(b"p" * 32)
BOB, BOBS_SECRET = key_pair(UserSeed(b"b" * 32))


@dataclass(eq=False)
class Line:
    """A connection to a node of bob's."""

    branch: Branch
    peer: PeerId = PEER
    account: WorkAccount = field(default_factory=lambda: WorkAccount(trio.current_time))
    told: list[PresenceTold] = field(default_factory=list)
    random: int = 0

    def happen(self, event: PresenceTold) -> None:
        self.told.append(event)

    def port(self) -> PresencePort:
        """As a session that has joined the branch's topic has it."""
        session_id = SessionId(b"s" * 32)
        session = Session(session_id, is_dialer=True)
        session.handle(TopicFollowed(self.branch.topic, is_root=False))
        session.handle(MessageReceived(Features(FEATURES)))
        theirs = announced_topic(self.branch.topic, session_id, by_dialer=False)
        session.handle(MessageReceived(Announce((theirs,))))
        return PresencePort(self, session)

    def box(self, port: PresencePort, presence: Presence, user: UserId = BOB) -> bytes:
        """What bob says."""
        self.random += 1
        place = port.session.presence_place(self.branch.topic, by_us=False)
        nonce = self.random.to_bytes(24, "big")
        return seal_presence(
            self.branch.read_key, place, user, lambda digest: sign(BOBS_SECRET, digest), presence, nonce
        )


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        node.create_repo()
        yield node


def _presences(node: Node) -> Presences:
    presences = Presences(node.replica)
    presences.speak_as(node.author.user, node.author.sign)
    return presences


def _of(number: int, root: str = "text") -> Presence:
    return Presence(number.to_bytes(8, "big"), root, b"anchor", b"head")


async def test_browsers_of_a_node_see_each_other_until_they_leave_or_fall_silent(
    alice: Node, autojump_clock: MockClock
) -> None:
    presences, branch = _presences(alice), alice.branch()
    changed: list[int] = []
    stop = presences.listen(branch.num, lambda: changed.append(1))
    presences.tell(branch, _of(1))
    assert not presences.has_company(branch.num)
    presences.tell(branch, _of(2))
    assert presences.has_company(branch.num)
    assert [one.presence for one in presences.here(branch.num, but=_of(1).session)] == [_of(2)]
    presences.leave(branch, _of(2).session)
    presences.leave(branch, _of(2).session)
    assert len(changed) == 3, "what changes nothing is not told"
    await trio.sleep(PRESENCE_SECONDS - 1)
    assert len(presences.here(branch.num)) == 1
    await trio.sleep(1)
    assert presences.here(branch.num) == []
    stop()
    presences.tell(branch, _of(1))
    assert len(changed) == 3


async def test_peers_are_told_and_tell_and_what_they_told_ends_with_the_connection(alice: Node) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(branch)
    port = line.port()
    presences.connect(port)
    presences.tell(branch, _of(1))
    presences.leave(branch, _of(1).session)
    place = port.session.presence_place(branch.topic, by_us=True)
    said = [open_presence(branch.read_key, place, one.box) for one in line.told]
    assert said == [(alice.author.user, _of(1)), (alice.author.user, Presence(_of(1).session))]
    presences.received(port, branch.topic, line.box(port, _of(7)))
    (there,) = presences.here(branch.num)
    assert (there.user, there.presence) == (BOB, _of(7))
    presences.received(port, branch.topic, line.box(port, _of(7, root="")))
    assert presences.here(branch.num) == []
    presences.received(port, branch.topic, line.box(port, _of(8)))
    presences.lose(port)
    assert presences.here(branch.num) == []


async def test_what_is_forged_is_dropped_and_charged(alice: Node) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(branch)
    port = line.port()
    good = line.box(port, _of(7))
    for forged in (b"", good[:-1], line.box(port, _of(7), alice.author.user)):
        before = line.account.used
        presences.received(port, branch.topic, forged)
        assert line.account.used - before >= FORGED_PRESENCE_SECONDS
    presences.received(port, TopicKey(b"f" * 32), good)
    assert presences.here(branch.num) == []
    before = line.account.used
    presences.connect(port)
    presences.received(port, branch.topic, good)
    assert 0 < line.account.used - before < FORGED_PRESENCE_SECONDS
    assert len(presences.here(branch.num)) == 1


async def test_presences_are_bounded_in_number_and_rate(alice: Node, autojump_clock: MockClock) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(branch)
    port = line.port()
    presences.connect(port)
    for number in range(PRESENCES_OF_PEER_MAX + 1):
        presences.received(port, branch.topic, line.box(port, _of(number)))
    assert len(presences.here(branch.num)) == PRESENCES_OF_PEER_MAX
    for _ in range(PRESENCES_AT_ONCE_MAX - PRESENCES_OF_PEER_MAX - 1):
        presences.received(port, branch.topic, line.box(port, _of(0)))
    presences.received(port, branch.topic, line.box(port, _of(0, root="beyond")))
    assert presences.here(branch.num)[0].presence.root == "text", "one too many at once"
    await trio.sleep(1 / PRESENCES_PER_SECOND_MAX)
    presences.received(port, branch.topic, line.box(port, _of(0, root="later")))
    assert presences.here(branch.num)[0].presence.root == "later"
    presences.lose(port)
    assert all(presences.tell(branch, _of(number)) for number in range(PRESENCES_HELD_MAX))
    assert not presences.tell(branch, _of(PRESENCES_HELD_MAX))
    assert presences.tell(branch, _of(0)), "one that is here is told again"
    await trio.sleep(PRESENCE_SECONDS)
    assert presences.tell(branch, _of(PRESENCES_HELD_MAX)), "those that fell silent have made room"


async def test_a_presence_goes_to_so_many_peers_and_no_more(alice: Node) -> None:
    presences, branch = _presences(alice), alice.branch()
    lines = [Line(branch) for _ in range(PRESENCE_PEERS_MAX + 1)]
    for line in lines:
        presences.connect(line.port())
    presences.tell(branch, _of(1))
    assert [len(line.told) for line in lines] == [1] * PRESENCE_PEERS_MAX + [0]


async def test_peers_are_told_of_own_ones_only_so_fast(alice: Node, autojump_clock: MockClock) -> None:
    presences, branch = _presences(alice), alice.branch()
    line = Line(branch)
    presences.connect(line.port())
    for number in range(PRESENCES_AT_ONCE_MAX + 1):
        assert presences.tell(branch, _of(1, root=str(number)))
    assert len(line.told) == PRESENCES_AT_ONCE_MAX
    (here,) = presences.here(branch.num)
    assert here.presence.root == str(PRESENCES_AT_ONCE_MAX), "it is shown here all the same"
    for _ in range(2):
        presences.leave(branch, _of(1).session)
        presences.tell(branch, _of(1))
    assert len(line.told) == PRESENCES_AT_ONCE_MAX + 1, "what was told of leaves, and nothing else does"
    await trio.sleep(1)
    for number in range(2 * PRESENCES_PER_SECOND_MAX):
        presences.tell(branch, _of(1, root=str(number)))
    assert len(line.told) == PRESENCES_AT_ONCE_MAX + 1 + PRESENCES_PER_SECOND_MAX
