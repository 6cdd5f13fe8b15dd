"""Sums of what a relay keeps: of each peer that brought some, and of all.

Quotas are asked with each message, and what one account has brought has no other bound than its bytes. So the sums are
rows, which each change of topics and shares keeps right; fsck compares them with what they sum up.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, Select, delete, func, insert, select, update

from protocol.ids import PeerId
from storage.engine.id_keys import chunks
from storage.engine.queries import sum_of
from storage.schema.relay_schema import relay_shares, relay_sums, relay_topics

ALL: Final = PeerId(b"all")
"""Stands for all that is kept, whoever brought it. No peer is called so, nor the operator, who is the empty one."""

KEPT_SIZE: Final = relay_topics.c.size + relay_topics.c.file_size
"""Bytes that a topic counts: of its publications and files."""


class Sums(NamedTuple):
    """Bytes that peers brought and that are kept, and topics that they were the first to entrust."""

    size: int = 0
    topic_count: int = 0


def find_sums(connection: Connection, peers: "Sequence[PeerId] | Select[tuple[PeerId]]") -> Sums:
    """Sum up what these peers brought; for ALL, everything that is kept. Costs O(peers given)."""
    sums = relay_sums.c
    query = select(sum_of(sums.size), sum_of(sums.topic_count)).where(sums.peer.in_(peers))
    size, topic_count = connection.execute(query).one()
    return Sums(int(size), int(topic_count))


def grow_sums(connection: Connection, peer: PeerId, size: int = 0, topic_count: int = 0) -> None:
    """Add to what a peer brought, or to ALL; what is below 0 is taken off. Who brought nothing any more has no row."""
    if (
        not size and not topic_count
    ):  # a share of which all was taken back is still there, its sums may not be
        return
    sums = relay_sums.c
    grown = {"size": sums.size + size, "topic_count": sums.topic_count + topic_count}
    if not connection.execute(update(relay_sums).where(sums.peer == peer).values(grown)).rowcount:
        values = {"peer": peer, "size": size, "topic_count": topic_count}
        connection.execute(insert(relay_sums).values(values))
    elif size < 0 or topic_count < 0:
        is_empty = (sums.size == 0) & (sums.topic_count == 0)
        connection.execute(delete(relay_sums).where(sums.peer == peer, is_empty))


def take_off_topics(connection: Connection, nums: Sequence[int]) -> None:
    """Take topics that are about to be forgotten off the sums. Costs O(topics and their shares)."""
    topics, shares = relay_topics.c, relay_shares.c
    for part in chunks(nums):
        here = topics.num.in_(part)
        size, count = connection.execute(select(sum_of(KEPT_SIZE), func.count()).where(here)).one()
        grow_sums(connection, ALL, -int(size), -count)
        brought = select(topics.brought_by, func.count()).where(here, topics.brought_by.is_not(None))
        for peer, count in connection.execute(brought.group_by(topics.brought_by)).all():
            grow_sums(connection, peer, 0, -count)
        shared = select(shares.peer, sum_of(shares.size)).where(shares.topic_num.in_(part))
        for peer, size in connection.execute(shared.group_by(shares.peer)).all():
            grow_sums(connection, peer, -int(size))


def find_wrong_sums(connection: Connection) -> dict[PeerId, tuple[Sums, Sums]]:
    """Find the sums that are wrong: what they say, and what is true. Costs O(topics and shares)."""
    topics, shares, sums = relay_topics.c, relay_shares.c, relay_sums.c
    sizes = {
        peer: int(size)
        for peer, size in connection.execute(select(shares.peer, sum_of(shares.size)).group_by(shares.peer))
    }
    brought = select(topics.brought_by, func.count()).where(topics.brought_by.is_not(None))
    counts = {row[0]: row[1] for row in connection.execute(brought.group_by(topics.brought_by))}
    true = {peer: Sums(sizes.get(peer, 0), counts.get(peer, 0)) for peer in dict.fromkeys([*sizes, *counts])}
    total, count = connection.execute(select(sum_of(KEPT_SIZE), func.count()).select_from(relay_topics)).one()
    true[ALL] = Sums(int(total), count)
    said = {
        peer: Sums(*rest)
        for peer, *rest in connection.execute(select(sums.peer, sums.size, sums.topic_count))
    }
    both = {peer: (said.get(peer, Sums()), true.get(peer, Sums())) for peer in dict.fromkeys([*said, *true])}
    return {peer: (one, other) for peer, (one, other) in both.items() if one != other}


def repair_sums(connection: Connection) -> int:
    """Rewrite the sums that are wrong; return how many. Costs as `find_wrong_sums`."""
    wrong = find_wrong_sums(connection)
    for peer, (said, true) in wrong.items():
        grow_sums(connection, peer, true.size - said.size, true.topic_count - said.topic_count)
    return len(wrong)
