"""Relay quotas: storage limits per topic, peer and subnet, and which topics are evicted when it is full.

Peers that the operator knows and strangers: what one peer brings is bounded for both, what strangers bring from one subnet
as well, since keys cost nothing and addresses do. When all is full, topics are forgotten whole, never pinned ones: those of
strangers before those that a known peer has entrusted, those of one peer before those that two have asked for, the longest
untouched first. For a stranger no topic of a known peer is forgotten.

Who has an account brings any number of topics: each counts RELAYED_TOPIC_SIZE of the account's quota.

Files, and bodies that the relay asks for, take at most RELAY_FILES_SHARE of each bound, so that commits find room where
these have taken all they may.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, delete, false, func, insert, select, update

from protocol.formats.publication import Publication
from protocol.ids import PeerId
from protocol.limits.peers import RELAY_FILES_SHARE, RELAYED_TOPIC_SIZE
from storage.engine.database import reserve_used_numbers
from storage.engine.id_keys import chunks
from storage.engine.queries import sum_of
from storage.relay.sums import ALL, KEPT_SIZE, find_sums, grow_sums, take_off_topics
from storage.repos.deletion import forget_sketches
from storage.schema.relay_schema import (
    relay_account_nodes,
    relay_bare,
    relay_blocks,
    relay_commits,
    relay_file_blocks,
    relay_files,
    relay_heads,
    relay_shares,
    relay_topics,
)

ACCOUNT: Final = "account"
PARTNER: Final = "partner"
KNOWN: Final = "known"
STRANGER: Final = "stranger"
VISITOR_KINDS: Final = (ACCOUNT, PARTNER, KNOWN, STRANGER)
"""Kinds of peers, as operators are told of them, each peer of the first that fits: nodes of accounts, relays that keep the
same topics, peers that the operator knows otherwise, and all others."""


@dataclass(frozen=True, slots=True)
class RelayQuotas:
    """Quotas of a relay, in bytes and topics. `subnet` bounds what strangers bring from one subnet.

    Unless `takes_strangers`, only peers that are known add topics; who knows one that is kept is served all the same.
    """

    total: int
    topic: int
    peer: int
    subnet: int
    topic_count: int
    peer_topic_count: int
    subnet_topic_count: int
    takes_strangers: bool = True


@dataclass(frozen=True, slots=True)
class Account:
    """Account of this relay: the bytes that its nodes may bring together."""

    num: int
    name: str
    quota: int


@dataclass(frozen=True, slots=True)
class Visitor:
    """Peer that asks a relay to keep something. `subnet` is where a stranger comes from; "" for known peers.

    A partner is another relay of the same operator: what it brings is bounded for topics and all together alone, and nothing
    is forgotten for it. Else two full relays would forget for each other in turn.
    """

    peer: PeerId
    subnet: str = ""
    is_known: bool = False
    is_partner: bool = False
    account: "Account | None" = None

    @property
    def kind(self) -> str:
        """Return one of VISITOR_KINDS."""
        if self.account is not None:
            return ACCOUNT
        if self.is_partner:
            return PARTNER
        return KNOWN if self.is_known else STRANGER


@dataclass(frozen=True, slots=True)
class Room:
    """Room for some things: how many fit, why the next one does not ("": all do), and if topics were forgotten."""

    count: int
    refused: str = ""
    has_forgotten: bool = False
    has_lost: bool = False  # publications with them


def refuse_topics(connection: Connection, visitor: Visitor, quotas: RelayQuotas) -> str:
    """Return why this visitor may bring no new topic even if others are forgotten; "" if it may. Changes nothing.

    Costs O(topics of a stranger's subnet), and O(1) for others.
    """
    room = _own_topic_room(connection, visitor, 1, quotas)
    return "" if room.count else room.refused


def _own_topic_room(connection: Connection, visitor: Visitor, wanted: int, quotas: RelayQuotas) -> Room:
    """Return how many of so many new topics the bounds of the visitor and its subnet leave."""
    if not (quotas.takes_strangers or visitor.is_known):
        return Room(0, "not_known")
    granted, refused = wanted, ""
    bounds = []
    if visitor.account is not None:
        granted = (
            max(0, visitor.account.quota - used_by(connection, visitor.account.num)) // RELAYED_TOPIC_SIZE
        )
        granted, refused = (wanted, "") if granted >= wanted else (granted, "account_full")
    elif not visitor.is_partner:
        brought = find_sums(connection, [visitor.peer]).topic_count
        bounds.append((brought, quotas.peer_topic_count, "peer_full"))
    if visitor.subnet:
        of_subnet = select(func.count()).where(relay_topics.c.subnet == visitor.subnet)
        from_subnet = int(connection.execute(of_subnet).scalar_one())
        bounds.append((from_subnet, quotas.subnet_topic_count, "subnet_full"))
    for brought, most, reason in bounds:
        room = max(0, most - brought)
        if room < granted:
            granted, refused = room, reason
    return Room(granted, refused)


def make_topic_room(connection: Connection, visitor: Visitor, wanted: int, quotas: RelayQuotas) -> Room:
    """Make room for so many new topics. Empty ones go first, and for a known peer those of strangers that are not.

    Costs O(topics of a stranger's subnet), and O(topics) where some must go.
    """
    own = _own_topic_room(connection, visitor, wanted, quotas)
    granted, refused = own.count, own.refused
    if not granted:
        return own
    surplus = find_sums(connection, [ALL]).topic_count + granted - quotas.topic_count
    if surplus <= 0:
        return Room(granted, refused)
    is_empty = (relay_topics.c.commit_count == 0) & (relay_topics.c.file_size == 0)
    empty = _going(visitor).where(is_empty).limit(surplus)
    going = [row.num for row in connection.execute(empty)]
    full: list[int] = []
    if visitor.is_known and len(going) < surplus:
        strangers = _going(visitor).where(~relay_topics.c.is_known, ~is_empty)
        full = [row.num for row in connection.execute(strangers.limit(surplus - len(going)))]
        going += full
    forget_topics(connection, going)
    if len(going) < surplus:
        granted, refused = max(0, granted - (surplus - len(going))), "relay_full"
    return Room(granted, refused, bool(going), bool(full))


def make_room(
    connection: Connection,
    topic_num: int,
    visitor: Visitor,
    new: list[tuple[Publication, bytes]],
    quotas: RelayQuotas,
) -> Room:
    """Make room for the first of these publications of a topic, as many as fit every quota.

    Costs O(shares of a stranger's subnet), and O(topics) where some must go.
    """
    topic_size = _topic_size(connection, topic_num)
    if topic_size is None:
        return Room(0, "topic_forgotten")  # while this was on its way
    bounds = _bounds(connection, topic_size, visitor, quotas)
    total = find_sums(connection, [ALL]).size
    size, freed = 0, 0
    for count, (_, encoded) in enumerate(new):
        size += len(encoded)
        for kept, most, reason in bounds:
            if kept + size > most:
                return Room(count, reason, freed > 0)
        if total + size - freed > quotas.total:
            freed += _evict_topics(connection, topic_num, visitor, total + size - freed - quotas.total)
            if total + size - freed > quotas.total:
                return Room(count, "relay_full", freed > 0)
    return Room(len(new), "", freed > 0)


def refuse_file(
    connection: Connection, topic_num: int, visitor: Visitor, size: int, quotas: RelayQuotas
) -> str:
    """Return why so many bytes of a topic's files have no room, or "". Forgets nothing: the size is only claimed.

    Costs O(shares of a stranger's subnet), and O(topics) where some must go.

    Else a small deposit that claims much would cost others their topics, again and again, and bring nothing.
    """
    topic_size = _topic_size(connection, topic_num)
    if topic_size is None:
        return "topic_forgotten"
    bounds = _bounds(connection, topic_size, visitor, quotas)
    if size > min(quotas.total, *(most for _, most, _ in bounds)) * RELAY_FILES_SHARE:
        return "file_too_large"  # however little is kept: smaller files may have room
    for kept, most, reason in bounds:
        if kept + size > most * RELAY_FILES_SHARE:
            return reason
    lacking = find_sums(connection, [ALL]).size + size - int(quotas.total * RELAY_FILES_SHARE)
    if lacking > 0 and _evictable_size(connection, topic_num, visitor) < lacking:
        return "relay_full"
    return ""


def make_file_room(
    connection: Connection, topic_num: int, visitor: Visitor, size: int, quotas: RelayQuotas
) -> Room:
    """Make room for the arrived bytes of a topic's files; return 1 if there is room, else 0. Costs as `refuse_file`."""
    refusal = refuse_file(connection, topic_num, visitor, size, quotas)
    if refusal:
        return Room(0, refusal)
    lacking = find_sums(connection, [ALL]).size + size - int(quotas.total * RELAY_FILES_SHARE)
    freed = _evict_topics(connection, topic_num, visitor, lacking) if lacking > 0 else 0
    return Room(1, "", freed > 0)


def find_body_room(connection: Connection, topic_num: int, visitor: Visitor, quotas: RelayQuotas) -> int:
    """Return the bytes that bodies of a topic's bare publications may take, for which nothing is forgotten.

    Costs O(shares of a stranger's subnet).

    As much as files: a relay asks for bodies of its own accord, and members' new commits must find room all the same.
    """
    topic_size = _topic_size(connection, topic_num)
    if topic_size is None:
        return 0
    bounds = [(kept, most) for kept, most, _ in _bounds(connection, topic_size, visitor, quotas)]
    bounds.append((find_sums(connection, [ALL]).size, quotas.total))
    return max(0, min(int(most * RELAY_FILES_SHARE) - kept for kept, most in bounds))


def used_by(connection: Connection, account_num: int) -> int:
    """Sum the bytes that the nodes of an account have brought, with RELAYED_TOPIC_SIZE for each topic that is kept now.

    Costs O(its nodes).
    """
    nodes = select(relay_account_nodes.c.peer).where(relay_account_nodes.c.account_num == account_num)
    size, topic_count = find_sums(connection, nodes)
    return size + topic_count * RELAYED_TOPIC_SIZE


def add_share(connection: Connection, topic_num: int, visitor: Visitor, size: int) -> None:
    """Charge a visitor, and the topic, with bytes that the visitor brought."""
    share = (relay_shares.c.peer == visitor.peer) & (relay_shares.c.topic_num == topic_num)
    grown = update(relay_shares).where(share).values(size=relay_shares.c.size + size)
    if not connection.execute(grown).rowcount:
        values = {"peer": visitor.peer, "topic_num": topic_num, "size": size, "subnet": visitor.subnet}
        connection.execute(insert(relay_shares).values(values))
    for peer in (visitor.peer, ALL):
        grow_sums(connection, peer, size)


def take_back_share(connection: Connection, topic_num: int, peer: PeerId, size: int) -> None:
    """Reduce the bytes charged to a peer for a topic."""
    share = (relay_shares.c.peer == peer) & (relay_shares.c.topic_num == topic_num)
    had = connection.execute(select(relay_shares.c.size).where(share)).scalar() or 0
    taken = min(had, size)  # others brought a part of it
    if taken:
        connection.execute(update(relay_shares).where(share).values(size=had - taken))
        grow_sums(connection, peer, -taken)


def forget_topics(connection: Connection, nums: Iterable[int]) -> None:
    """Forget topics and all that was kept of them. Costs O(their rows).

    Their numbers are not given again: sessions know topics by them.
    """
    for table in (relay_topics, relay_commits, relay_files):
        reserve_used_numbers(connection, table)
    going = list(nums)
    take_off_topics(connection, going)
    for part in chunks(going):
        forget_sketches(connection, select(relay_topics.c.topic).where(relay_topics.c.num.in_(part)))
        forget_files(connection, select(relay_files.c.num).where(relay_files.c.topic_num.in_(part)))
        for table in (relay_commits, relay_bare, relay_heads, relay_shares):
            connection.execute(delete(table).where(table.c.topic_num.in_(part)))
        connection.execute(delete(relay_topics).where(relay_topics.c.num.in_(part)))


def forget_files(connection: Connection, nums: "Select[tuple[int]]") -> None:
    """Forget files, and the blocks that no other file has. What they counted is the caller's to take back.

    Costs O(their blocks).
    """
    links, blocks = relay_file_blocks.c, relay_blocks.c
    going = select(links.block_num).where(links.file_num.in_(nums)).distinct()
    lonely = connection.execute(going).scalars().all()
    connection.execute(delete(relay_file_blocks).where(links.file_num.in_(nums)))
    for part in chunks(lonely):
        still = select(links.block_num).where(links.block_num.in_(part))
        connection.execute(delete(relay_blocks).where(blocks.num.in_(part), blocks.num.not_in(still)))
    connection.execute(delete(relay_files).where(relay_files.c.num.in_(nums)))


def _evict_topics(connection: Connection, topic_num: int, visitor: Visitor, wanted: int) -> int:
    """Forget other topics until this many bytes are free; return how many were freed, 0 if all would not suffice."""
    if _evictable_size(connection, topic_num, visitor) < wanted:
        return 0
    others = _going(visitor).where(relay_topics.c.num != topic_num, KEPT_SIZE > 0)
    freed = 0
    forgotten: list[int] = []
    for row in connection.execute(others):
        if freed >= wanted:
            break
        forgotten.append(row.num)
        freed += row.kept
    forget_topics(connection, forgotten)
    return freed


def _evictable_size(connection: Connection, topic_num: int, visitor: Visitor) -> int:
    """Sum the bytes of the other topics that may be forgotten for this visitor."""
    others = select(sum_of(KEPT_SIZE)).where(_may_go(visitor), relay_topics.c.num != topic_num)
    return int(connection.execute(others).scalar_one())


def _going(visitor: Visitor) -> "Select[tuple[int, int]]":
    """Build the query for the topics that may be forgotten for this visitor, in order, with their sizes."""
    columns = relay_topics.c
    order = (columns.is_known, columns.is_shared, columns.touched_at, columns.num)
    return select(columns.num, KEPT_SIZE.label("kept")).where(_may_go(visitor)).order_by(*order)


def _may_go(visitor: Visitor) -> ColumnElement[bool]:
    columns = relay_topics.c
    if visitor.is_partner:
        return false()
    return ~columns.is_pinned if visitor.is_known else ~columns.is_pinned & ~columns.is_known


def _topic_size(connection: Connection, topic_num: int) -> int | None:
    found = connection.execute(select(KEPT_SIZE).where(relay_topics.c.num == topic_num)).scalar()
    return None if found is None else int(found)


def _bounds(
    connection: Connection, topic_size: int, visitor: Visitor, quotas: RelayQuotas
) -> list[tuple[int, int, str]]:
    """Return (kept already, most, name when full) of the topic, and of what the visitor brought."""
    bounds = [(topic_size, quotas.topic, "topic_full")]
    if visitor.account is not None:
        bounds.append((used_by(connection, visitor.account.num), visitor.account.quota, "account_full"))
    elif not visitor.is_partner:
        bounds.append((find_sums(connection, [visitor.peer]).size, quotas.peer, "peer_full"))
    if visitor.subnet:
        of_subnet = select(sum_of(relay_shares.c.size)).where(relay_shares.c.subnet == visitor.subnet)
        from_subnet = int(connection.execute(of_subnet).scalar_one())
        bounds.append((from_subnet, quotas.subnet, "subnet_full"))
    return bounds
