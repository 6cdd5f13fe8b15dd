"""Tables of a relay: encrypted publications of other nodes' topics, and the graph of their parents.

Nothing here opens anything: a topic is a public key, a publication is ciphertext. A publication whose causes are not
here is kept all the same (they may have been published on another topic), so ranks are only as good as what is known;
they serve to compare topics (`storage.topics.difference`), which stays right with wrong ones and merely sends more.

Of one commit there may be several publications. All but one may be bad (sealed with another key, or without the body)
and none can be told from the good one here, so each is kept, and given, and counts for itself; quotas are their bound.
One that came bare is kept like the others until the whole one comes (`bare`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from protocol.formats.publication import PUBLICATION_ID_COMMIT_SIZE, Publication
from protocol.ids import CommitId, PeerId, PublicationId, TopicKey
from storage.engine.bulk import unindexed
from storage.engine.database import Database
from storage.engine.id_keys import chunks, id_key, pack_ids
from storage.relay.bare import complete_bare, note_bare
from storage.relay.quotas import RelayQuotas, Room, Visitor, add_share, make_room, make_topic_room
from storage.relay.sums import ALL, grow_sums
from storage.schema.relay_schema import relay_allowed, relay_commits, relay_heads, relay_topics
from storage.topics.difference import TopicTables
from storage.topics.topic_sets import HAS_PUBLICATION_KEYS, publication_keys

RELAY: Final = TopicTables(relay_topics, relay_commits, relay_heads)


@dataclass(frozen=True, slots=True)
class KeptTopic:
    """Topic that is kept for others, as it stood when it was read."""

    num: int
    topic: TopicKey
    is_pinned: bool
    commit_count: int
    size: int
    file_size: int
    touched_at: int
    is_known: bool
    is_shared: bool
    brought_by: PeerId | None  # none: the operator


_NAMES: Final = [one.name for one in fields(KeptTopic)]
_FIELDS: Final = itemgetter(*_NAMES)
_TOPIC: Final = select(*(relay_topics.c[name] for name in _NAMES))
_KNOWN: Final = select(relay_commits.c.publication_id, relay_commits.c.num).where(
    HAS_PUBLICATION_KEYS, unindexed(relay_commits.c.topic_num) == bindparam("topic")
)


@dataclass(frozen=True, slots=True)
class StoreResult:
    """Result of storing publications: numbers of new ones, and the quota that the first refused one met.

    `has_forgotten`: other topics were, to make room. `completed` counts whole ones that took a bare one's place; `has_bare`:
    one of the new ones is bare.
    """

    nums: tuple[int, ...]
    refused: str
    has_forgotten: bool = False
    completed: int = 0
    has_bare: bool = False


def find_kept_topics(connection: Connection, topics: Sequence[TopicKey]) -> dict[TopicKey, KeptTopic]:
    """Return the given topics that are kept. Costs O(topics given)."""
    found: dict[TopicKey, KeptTopic] = {}
    for part in chunks(topics):
        rows = connection.execute(_TOPIC.where(relay_topics.c.topic.in_(part)))
        found.update((row.topic, KeptTopic(*tuple(row))) for row in rows)
    return found


def load_kept_topics(connection: Connection) -> dict[TopicKey, KeptTopic]:
    """Load all topics that are kept, the latest touched first. Costs O(topics)."""
    query = _TOPIC.order_by(relay_topics.c.touched_at.desc(), relay_topics.c.num)
    return {row.topic: KeptTopic(*tuple(row)) for row in connection.execute(query)}


def open_topics(
    database: Database,
    connection: Connection,
    topics: Sequence[TopicKey],
    visitor: Visitor,
    quotas: RelayQuotas,
    now_ms: int,
) -> tuple[Room, list[KeptTopic]]:
    """Keep these topics from now on, new ones as far as there is room. Costs O(topics given).

    Args:
        database: Gives row numbers.
        connection: Of its write transaction.
        topics: Public keys, 32 bytes each.
        visitor: The peer that asks.
        quotas: Bounds in topics.
        now_ms: Unix milliseconds.

    Returns:
        How many of the new ones had room and why not more, and these.
    """
    known: set[TopicKey] = set()
    columns = relay_topics.c
    for part in chunks(topics):
        found = connection.execute(select(columns.topic).where(columns.topic.in_(part))).scalars().all()
        if not found:  # most of what strangers bring is new
            continue
        known.update(found)
        here = columns.topic.in_(found)
        connection.execute(update(relay_topics).where(here).values(touched_at=now_ms))
        unnamed = here & columns.brought_by.is_(None) & ~columns.is_pinned
        values = {"brought_by": visitor.peer, "subnet": visitor.subnet}
        named = connection.execute(update(relay_topics).where(unnamed).values(values)).rowcount
        if named:
            grow_sums(connection, visitor.peer, 0, named)
        of_another = columns.brought_by != visitor.peer
        connection.execute(update(relay_topics).where(here, of_another).values(is_shared=True))
        if visitor.is_known:
            connection.execute(update(relay_topics).where(here).values(is_known=True, subnet=""))
    new = [topic for topic in dict.fromkeys(topics) if topic not in known]
    room = make_topic_room(connection, visitor, len(new), quotas) if new else Room(0)
    return room, _add_topics(database, connection, new[: room.count], now_ms, visitor)


def _add_topics(
    database: Database,
    connection: Connection,
    topics: Sequence[TopicKey],
    now_ms: int,
    visitor: Visitor | None,
) -> list[KeptTopic]:
    if not topics:
        return []
    nums = database.next_nums(connection, relay_topics, len(topics))
    shared = {
        "is_pinned": visitor is None,
        "commit_count": 0,
        "size": 0,
        "file_size": 0,
        "touched_at": now_ms,
        "is_known": visitor is None or visitor.is_known,
        "is_shared": False,
        "brought_by": visitor.peer if visitor is not None else None,
        "subnet": visitor.subnet if visitor is not None else "",
    }
    rows = [{"num": num, "topic": topic, **shared} for num, topic in zip(nums, topics, strict=True)]
    connection.execute(insert(relay_topics), rows)
    for peer in (ALL,) if visitor is None else (ALL, visitor.peer):
        grow_sums(connection, peer, 0, len(rows))
    return [KeptTopic(*row) for row in map(_FIELDS, rows)]


def pin_topic(
    database: Database, connection: Connection, topic: TopicKey, quotas: RelayQuotas, now_ms: int
) -> Room:
    """Pin a topic, which is then never forgotten to make room; add it if it is not kept and there is room."""
    values = {"is_pinned": True, "touched_at": now_ms}
    if connection.execute(update(relay_topics).where(relay_topics.c.topic == topic).values(values)).rowcount:
        return Room(0)
    room = make_topic_room(connection, Visitor(PeerId(b""), is_known=True), 1, quotas)
    _add_topics(database, connection, [topic][: room.count], now_ms, None)
    return room


def unpin_topic(connection: Connection, topic: TopicKey) -> None:
    """Unpin a topic, which may then be forgotten to make room."""
    connection.execute(update(relay_topics).where(relay_topics.c.topic == topic).values(is_pinned=False))


def load_allowed(connection: Connection) -> set[PeerId]:
    """Return the peers that the operator has named as known."""
    return set(connection.execute(select(relay_allowed.c.peer)).scalars())


def allow_peer(connection: Connection, peer: PeerId) -> None:
    """Make a peer known, and what it has brought."""
    deny_peer(connection, peer)
    connection.execute(insert(relay_allowed).values(peer=peer))
    mark_topics_known(connection, peer)


def mark_topics_known(connection: Connection, peer: PeerId) -> None:
    """Mark what a peer has brought as known: the peer is known from now on. Costs O(those topics)."""
    brought = update(relay_topics).where(relay_topics.c.brought_by == peer)
    connection.execute(brought.values(is_known=True, subnet=""))


def deny_peer(connection: Connection, peer: PeerId) -> None:
    """Make a peer a stranger. Topics that it alone brought are a stranger's until a known peer asks for them."""
    connection.execute(delete(relay_allowed).where(relay_allowed.c.peer == peer))
    mark_topics_unknown(connection, peer)


def mark_topics_unknown(connection: Connection, peer: PeerId) -> None:
    """Mark what a peer alone has brought as a stranger's. Costs O(those topics)."""
    alone = (relay_topics.c.brought_by == peer) & ~relay_topics.c.is_shared  # others may be known
    connection.execute(update(relay_topics).where(alone).values(is_known=False))


def store_publications(
    database: Database,
    connection: Connection,
    topic_num: int,
    visitor: Visitor,
    new: Sequence[tuple[Publication, bytes]],
    quotas: RelayQuotas,
    now_ms: int,
) -> StoreResult:
    """Store publications of a topic that are new, up to the first over a quota. Costs O(new).

    Bare ones that are kept take their bodies, as far as there is room; for want of it nothing is refused.

    Args:
        database: Gives row numbers.
        connection: Of its write transaction.
        topic_num: Number of the kept topic's row.
        visitor: The peer that brought them, for whom they count.
        new: Decoded publications, each with its encoding.
        quotas: Bounds in bytes.
        now_ms: Unix milliseconds.
    """
    named: dict[PublicationId, tuple[Publication, bytes]] = {}
    for one, encoded in new:
        if one.body_id is None or one.publication_id not in named:
            named[one.publication_id] = one, encoded
    known = _find_known(connection, topic_num, list(named))
    whole = {num: named[name] for name, num in known.items() if named[name][0].body_id is None}
    completed = complete_bare(connection, topic_num, visitor, whole, quotas) if whole else 0
    fresh = [item for name, item in named.items() if name not in known]
    room = make_room(connection, topic_num, visitor, fresh, quotas)
    kept, refused, has_forgotten = fresh[: room.count], room.refused, room.has_forgotten
    connection.execute(update(relay_topics).where(relay_topics.c.num == topic_num).values(touched_at=now_ms))
    if not kept:
        return StoreResult((), refused, has_forgotten, completed)
    acks = {ack for one, _ in kept for ack in one.blocks[0].acks}
    ranks = _load_ranks(connection, topic_num, [*acks, *(one.commit_id for one, _ in kept)])
    before = {one.commit_id for one, _ in kept} & ranks.keys()
    rows, seen = [], set(before)
    nums = database.next_nums(connection, relay_commits, len(kept))
    for num, (one, encoded) in zip(nums, kept, strict=True):
        causes = one.blocks[0].acks
        is_variant = one.commit_id in seen
        if not is_variant:
            ranks[one.commit_id] = 1 + max((ranks.get(ack, -1) for ack in causes), default=-1)
        seen.add(one.commit_id)
        rows.append(
            {
                "num": num,
                "id_key": id_key(one.commit_id),
                "commit_id": one.commit_id,
                "topic_num": topic_num,
                "rank": ranks[one.commit_id],
                "acks": pack_ids(causes),
                "publication": encoded,
                "publication_id": one.publication_id,
                "publication_key": id_key(one.publication_id[PUBLICATION_ID_COMMIT_SIZE:]),
                "mark": one.blocks[0].mark,
                "stated_rank": one.blocks[0].rank,
                "is_variant": is_variant,
                "received_at": now_ms,
            }
        )
    connection.execute(insert(relay_commits), rows)
    bare = [num for num, (one, _) in zip(nums, kept, strict=True) if one.body_id is not None]
    note_bare(connection, topic_num, bare)
    for part in chunks(list(acks)):
        here = relay_heads.c.topic_num == topic_num
        connection.execute(delete(relay_heads).where(here, relay_heads.c.commit_id.in_(part)))
    heads = [
        {"topic_num": topic_num, "commit_id": commit_id, "rank": ranks[commit_id]}
        for commit_id in sorted(seen - before - acks)
    ]
    if heads:
        connection.execute(insert(relay_heads), heads)
    size = sum(len(encoded) for _, encoded in kept)
    connection.execute(
        update(relay_topics)
        .where(relay_topics.c.num == topic_num)
        .values(commit_count=relay_topics.c.commit_count + len(kept), size=relay_topics.c.size + size)
    )
    add_share(connection, topic_num, visitor, size)
    return StoreResult(tuple(nums), refused, has_forgotten, completed, bool(bare))


def load_kept_publications(
    connection: Connection, topic_num: int, nums: Sequence[int], size_target: int
) -> list[bytes]:
    """Load publications of a topic, of these numbers in order, until `size_target` bytes are passed."""
    found: list[bytes] = []
    size = 0
    for part in chunks(nums):
        query = (
            select(relay_commits.c.publication)
            .where(relay_commits.c.num.in_(part), relay_commits.c.topic_num == topic_num)
            .order_by(relay_commits.c.num)
        )
        for encoded in connection.execute(query).scalars():
            if found and size >= size_target:
                return found
            found.append(encoded)
            size += len(encoded)
    return found


def _find_known(
    connection: Connection, topic_num: int, ids: Iterable[PublicationId]
) -> dict[PublicationId, int]:
    """Return the kept ones of the given publications, with their numbers."""
    wanted = set(ids)
    found: dict[PublicationId, int] = {}
    for part in chunks(list(wanted)):
        rows = connection.execute(_KNOWN, {"topic": topic_num, **publication_keys(part)})
        found.update((row[0], row[1]) for row in rows if row[0] in wanted)
    return found


def _load_ranks(connection: Connection, topic_num: int, ids: Iterable[CommitId]) -> dict[CommitId, int]:
    wanted = set(ids)
    found: dict[CommitId, int] = {}
    for part in chunks([id_key(raw) for raw in wanted]):
        query = select(relay_commits.c.commit_id, relay_commits.c.rank).where(
            relay_commits.c.id_key.in_(part),
            unindexed(relay_commits.c.topic_num) == topic_num,
            ~relay_commits.c.is_variant,
        )
        found.update((row[0], row[1]) for row in connection.execute(query) if row[0] in wanted)
    return found
