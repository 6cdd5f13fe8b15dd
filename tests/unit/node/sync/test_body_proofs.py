"""Bodies that a peer is asked to show: what comes shows what the question was about that had been answered by then."""

from typing import cast

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.sync.body_proofs import BodyProofs
from node.sync.conversation import Conversation
from protocol.ids import BlockId, CommitId, ItemId, TopicKey

TOPIC, OTHER = TopicKey(bytes(32)), TopicKey(bytes([1]) * 32)
IDS = [CommitId(BlockId(bytes([place]) * 32)) for place in range(2)]


class _Source:
    """A peer, as the machine of its session has it."""

    def __init__(self) -> None:
        self.found: dict[TopicKey, int | None] = {}

    def want_bodies(self, topic: TopicKey, _ids: tuple[ItemId, ...]) -> bool:
        self.found[topic] = None
        return True

    def bodies_found(self, topic: TopicKey) -> int | None:
        return self.found.get(topic)

    def is_ending(self) -> bool:
        return False


async def test_what_came_shows_nothing_to_the_next_question(autojump_clock: MockClock) -> None:
    proofs, peer = BodyProofs(), _Source()
    source, stranger = cast(Conversation, peer), cast(Conversation, _Source())
    shown: list[set[CommitId]] = []

    async def ask() -> None:
        shown.append(await proofs.ask(source, TOPIC, IDS))

    peer.found = {TOPIC: 1, OTHER: 1}  # answers to who fetches bodies
    assert proofs.find_answered(source, TOPIC) is None, "nothing is asked"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert proofs.find_answered(source, TOPIC) is None, "the earlier answer is not this one's"
        peer.found[TOPIC] = 2
        assert proofs.find_answered(source, OTHER) is None
        assert proofs.find_answered(stranger, TOPIC) is None
        first = proofs.find_answered(source, TOPIC)
        assert first is not None
    assert shown == [set()], "it came to nothing in time"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert first.note(IDS) == 2, "the batch that came for the first is stored now"
        peer.found[TOPIC] = 1
        second = proofs.find_answered(source, TOPIC)
        assert second is not None
        assert (second.note(IDS[1:]), second.note(IDS[1:])) == (1, 0)
    assert shown[1] == {IDS[1]}
