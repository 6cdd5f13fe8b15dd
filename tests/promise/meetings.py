"""Lets two people meet: by a session between their nodes, or by handing over all that one has and the other lacks."""

from collections.abc import Collection
from typing import Final

import trio
from sqlalchemy import select
from trio.testing import memory_stream_pair

from node.sync.connection import Connection
from node.wire.transport import accept, dial
from protocol.crypto.keys import AgreementSecret
from protocol.formats.publication import decode_publication
from protocol.ids import CommitId, TopicKey
from storage.commits.pending import find_pending, load_rejected
from storage.repos.epochs import Topic
from storage.schema.schema import commits
from storage.topics.publishing import load_publications
from tests.promise.people import Person

_ALL: Final = 1 << 40


class Nothing:
    """What a batch waits for: nothing."""

    async def wait(self) -> None:
        """Return at once."""


async def meet(dialer: Person, acceptor: Person, seconds: float) -> None:
    """Connect two for a while."""
    ours, theirs = memory_stream_pair()
    streams: dict[str, Connection] = {}

    async def open_dialer() -> None:
        stream = await dial(ours, dialer.seed, acceptor.key, AgreementSecret(b"d" * 32))
        streams["dialer"] = Connection(dialer.hub, stream, lambda _: True)

    async def open_acceptor() -> None:
        stream = await accept(theirs, acceptor.seed, AgreementSecret(b"a" * 32))
        streams["acceptor"] = Connection(acceptor.hub, stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(open_dialer)
        nursery.start_soon(open_acceptor)
    async with trio.open_nursery() as nursery:
        for connection in streams.values():
            nursery.start_soon(connection.run)
        await trio.sleep(seconds)
        nursery.cancel_scope.cancel()


async def hand_over(one: Person, other: Person, seconds: float) -> None:
    """Give each what the other has accepted, on the topics that both follow, until nothing is new."""
    until = trio.current_time() + seconds
    offered: set[tuple[str, TopicKey, CommitId]] = set()
    while True:
        moved = 0
        for giver, taker in ((one, other), (other, one)):
            lacking = _ids_of(giver) - _ids_of(taker)
            with taker.replica.database.read() as connection:
                lacking -= find_pending(connection, lacking) | load_rejected(connection, sorted(lacking))
            for topic, items in (find_publications(giver, lacking) if lacking else {}).items():
                fresh = [(taker.name, topic, decode_publication(one).commit_id) for one in items]
                if topic in taker.replica.by_topic and not offered.issuperset(fresh):
                    moved += 1
                    offered.update(fresh)
                    await taker.hub.intake.ingest(taker.replica.by_topic[topic], items, Nothing(), None)
        await trio.sleep(0.1)
        if not moved:
            break
    await trio.sleep_until(until)


def _ids_of(person: Person) -> set[CommitId]:
    with person.replica.database.read() as connection:
        return set(connection.execute(select(commits.c.commit_id)).scalars())


def find_publications(person: Person, ids: Collection[CommitId]) -> dict[TopicKey, list[bytes]]:
    """Find the publications that a node can make of accepted commits, on each of their topics."""
    found: dict[TopicKey, list[bytes]] = {}
    with person.replica.database.read() as connection:
        rows = connection.execute(
            select(commits.c.num, commits.c.commit_id, commits.c.topic_num).order_by(commits.c.num)
        ).all()
        for topic in sorted(person.replica.topics.values(), key=lambda one: one.num):
            nums = [num for num, *of in rows if of[0] in ids and _is_on(topic, *of)]
            made = load_publications(connection, topic, nums, _ALL)
            if made:
                found[topic.topic] = made
    return found


def _is_on(topic: Topic, commit_id: CommitId, topic_num: int) -> bool:
    return topic_num == topic.num or bytes(commit_id) in {bytes(one.epoch_id) for one in topic.epochs}
