"""What a relay keeps: publications of topics that it cannot open, as they came, with the graph of their acks.

Nothing here opens anything: a topic is a public key, a publication is ciphertext. A publication whose causes are not
here is kept all the same (they may have been published on another topic), so ranks are only as good as what is known;
they serve to compare topics (`storage.difference`), which stays right with wrong ones and merely sends more.

Of one commit there may be several publications. All but one may be bad (sealed with another key, or without the body)
and none can be told from the good one here, so each is kept, and given, and counts for itself; quotas are their bound.

Quotas: bytes of a topic, of what one peer brought, and of everything. For the last one, topics are forgotten whole, the
longest untouched first, never pinned ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.publication import PUBLICATION_ID_COMMIT_SIZE, Publication
from storage.database import Database, keep_last_number
from storage.difference import TopicTables
from storage.forgetting import forget_sketches
from storage.id_keys import chunks, id_key, pack_ids
from storage.schema import relay_commits, relay_heads, relay_shares, relay_topics

RELAY: Final = TopicTables(relay_topics, relay_commits, relay_heads)
_TOPIC = select(
    relay_topics.c.num,
    relay_topics.c.topic,
    relay_topics.c.is_pinned,
    relay_topics.c.commit_count,
    relay_topics.c.size,
    relay_topics.c.touched_at,
)


@dataclass(frozen=True, slots=True)
class RelayQuotas:
    """Bytes of publications that are kept at most: of all topics, of one, of what one peer brought. Topics at most."""

    total: int
    topic: int
    peer: int
    topic_count: int


@dataclass(frozen=True, slots=True)
class KeptTopic:
    """One topic, as it stood when it was read."""

    num: int
    topic: bytes
    is_pinned: bool
    commit_count: int
    size: int
    touched_at: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of some publications: numbers of the new ones, and which quota the first refused one met ("": none).

    `has_forgotten`: other topics were, to make room.
    """

    nums: tuple[int, ...]
    refused: str
    has_forgotten: bool = False


def load_some(connection: Connection, topics: Sequence[bytes]) -> dict[bytes, KeptTopic]:
    """Those of these topics that are kept."""
    found: dict[bytes, KeptTopic] = {}
    for part in chunks(topics):
        rows = connection.execute(_TOPIC.where(relay_topics.c.topic.in_(part)))
        found.update((row.topic, KeptTopic(*row)) for row in rows)
    return found


def load_kept(connection: Connection) -> dict[bytes, KeptTopic]:
    """All topics that are kept, the latest touched first."""
    query = _TOPIC.order_by(relay_topics.c.touched_at.desc(), relay_topics.c.num)
    return {row.topic: KeptTopic(*row) for row in connection.execute(query)}


def open_topics(
    database: Database, connection: Connection, topics: Sequence[bytes], count_max: int, now_ms: int
) -> bool:
    """Keep these topics from now on, as far as the count allows when empty and unpinned ones make room.

    Gives whether others were forgotten for that.
    """
    known: set[bytes] = set()
    for part in chunks(topics):
        query = relay_topics.c.topic.in_(part)
        known.update(connection.execute(select(relay_topics.c.topic).where(query)).scalars())
        connection.execute(update(relay_topics).where(query).values(touched_at=now_ms))
    new = [topic for topic in dict.fromkeys(topics) if topic not in known]
    count = connection.execute(select(func.count()).select_from(relay_topics)).scalar_one()
    surplus = count + len(new) - count_max
    emptied: list[int] = []
    if surplus > 0:
        empty = (
            select(relay_topics.c.num)
            .where(~relay_topics.c.is_pinned, relay_topics.c.commit_count == 0)
            .order_by(relay_topics.c.touched_at)
            .limit(surplus)
        )
        emptied = list(connection.execute(empty).scalars())
        forget_topics(connection, emptied)
        new = new[: max(0, len(new) - (surplus - len(emptied)))]
    if new:
        nums = database.next_nums(connection, relay_topics, len(new))
        rows = [
            {
                "num": num,
                "topic": topic,
                "is_pinned": False,
                "commit_count": 0,
                "size": 0,
                "touched_at": now_ms,
            }
            for num, topic in zip(nums, new, strict=True)
        ]
        connection.execute(insert(relay_topics), rows)
    return bool(emptied)


def pin_topic(connection: Connection, topic: bytes, *, is_pinned: bool) -> None:
    """Say of a topic that is kept whether it may be forgotten to make room."""
    connection.execute(update(relay_topics).where(relay_topics.c.topic == topic).values(is_pinned=is_pinned))


def forget_topics(connection: Connection, nums: Iterable[int]) -> None:
    """Forget topics and all that was kept of them. Their numbers are not given again: sessions know topics by them."""
    for table in (relay_topics, relay_commits):
        keep_last_number(connection, table)
    for part in chunks(list(nums)):
        forget_sketches(connection, select(relay_topics.c.topic).where(relay_topics.c.num.in_(part)))
        for table in (relay_commits, relay_heads, relay_shares):
            connection.execute(delete(table).where(table.c.topic_num.in_(part)))
        connection.execute(delete(relay_topics).where(relay_topics.c.num.in_(part)))


def take_publications(
    database: Database,
    connection: Connection,
    topic_num: int,
    peer: bytes,
    new: Sequence[tuple[Publication, bytes]],
    quotas: RelayQuotas,
    now_ms: int,
) -> Taken:
    """Keep publications of a topic (each with its encoding), those that are not kept yet, up to the first over a quota."""
    named = {one.publication_id: (one, encoded) for one, encoded in new}
    known = _find_known(connection, topic_num, list(named))
    fresh = [item for name, item in named.items() if name not in known]
    kept, refused, has_forgotten = _within(connection, topic_num, peer, fresh, quotas)
    connection.execute(update(relay_topics).where(relay_topics.c.num == topic_num).values(touched_at=now_ms))
    if not kept:
        return Taken((), refused, has_forgotten)
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
                "is_variant": is_variant,
            }
        )
    connection.execute(insert(relay_commits), rows)
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
    share = (relay_shares.c.peer == peer) & (relay_shares.c.topic_num == topic_num)
    grown = update(relay_shares).where(share).values(size=relay_shares.c.size + size)
    if not connection.execute(grown).rowcount:
        connection.execute(insert(relay_shares).values(peer=peer, topic_num=topic_num, size=size))
    return Taken(tuple(nums), refused, has_forgotten)


def load_kept_publications(
    connection: Connection, topic_num: int, nums: Sequence[int], size_target: int
) -> list[bytes]:
    """Publications of a topic, of these numbers in order, until `size_target` bytes are passed; one at least."""
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


def _within(
    connection: Connection,
    topic_num: int,
    peer: bytes,
    new: list[tuple[Publication, bytes]],
    quotas: RelayQuotas,
) -> tuple[list[tuple[Publication, bytes]], str, bool]:
    """The first of these that fit every quota, the quota that ended it, and whether topics were forgotten to make room."""
    of_topic = select(relay_topics.c.size).where(relay_topics.c.num == topic_num)
    of_peer = select(func.coalesce(func.sum(relay_shares.c.size), 0)).where(relay_shares.c.peer == peer)
    topic_size = connection.execute(of_topic).scalar()
    if topic_size is None:
        return [], "topic_forgotten", False  # while this was on its way
    peer_size = connection.execute(of_peer).scalar_one()
    total = connection.execute(select(func.coalesce(func.sum(relay_topics.c.size), 0))).scalar_one()
    size, freed = 0, 0
    for count, (_, encoded) in enumerate(new):
        size += len(encoded)
        if topic_size + size > quotas.topic:
            return new[:count], "topic_full", freed > 0
        if peer_size + size > quotas.peer:
            return new[:count], "peer_full", freed > 0
        if total + size - freed > quotas.total:
            freed += _make_room(connection, topic_num, total + size - freed - quotas.total)
            if total + size - freed > quotas.total:
                return new[:count], "relay_full", freed > 0
    return new, "", freed > 0


def _make_room(connection: Connection, topic_num: int, wanted: int) -> int:
    """Forget other topics, the longest untouched first, until so many bytes are free; gives how many became so."""
    others = (
        select(relay_topics.c.num, relay_topics.c.size)
        .where(relay_topics.c.num != topic_num, ~relay_topics.c.is_pinned, relay_topics.c.size > 0)
        .order_by(relay_topics.c.touched_at)
    )
    freed = 0
    forgotten: list[int] = []
    for num, size in connection.execute(others):
        if freed >= wanted:
            break
        forgotten.append(num)
        freed += size
    forget_topics(connection, forgotten)
    return freed


def _find_known(connection: Connection, topic_num: int, ids: Iterable[bytes]) -> set[bytes]:
    """Those of these publications that are kept."""
    wanted = set(ids)
    found: set[bytes] = set()
    columns = relay_commits.c
    for part in chunks([id_key(raw[PUBLICATION_ID_COMMIT_SIZE:]) for raw in wanted]):
        here = (columns.publication_key.in_(part)) & (columns.topic_num == topic_num)
        found.update(connection.execute(select(columns.publication_id).where(here)).scalars())
    return found & wanted


def _load_ranks(connection: Connection, topic_num: int, ids: Iterable[bytes]) -> dict[bytes, int]:
    wanted = set(ids)
    found: dict[bytes, int] = {}
    for part in chunks([id_key(raw) for raw in wanted]):
        query = select(relay_commits.c.commit_id, relay_commits.c.rank).where(
            relay_commits.c.id_key.in_(part),
            relay_commits.c.topic_num == topic_num,
            ~relay_commits.c.is_variant,
        )
        found.update((row[0], row[1]) for row in connection.execute(query) if row[0] in wanted)
    return found
