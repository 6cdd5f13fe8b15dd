"""Commits that wait for their causes, bounded per topic, and commits that were rejected, bounded per branch.

A waiting commit is kept as the publication it came in (a whole one takes the place of a bare one), under the ids of the
causes it lacks; when one of these is accepted or rejected it is taken up again. What this node does not know how to read
(another format version) is *unread*: it waits without causes until a newer Ravel starts, and is passed on meanwhile.
Where numbers of commits are lists of what to send, unread ones are negative.
"""

from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, update

from protocol.limits import PENDING_COUNT_MAX, PENDING_SIZE_MAX, REJECTION_COUNT_MAX, UNREAD_SENT_MAX
from protocol.publication import decode_publication, is_bare
from storage.database import Database
from storage.id_keys import chunks
from storage.repos import Branch
from storage.schema import pending, pending_causes, rejections
from storage.sums import sum_of
from verifier.verify import Rejected

CAUSES: Final = "causes"
UNREAD: Final = "version"
"""Why a commit waits, as stored: for its causes, or for a Ravel that knows its format version."""
_ANY_REJECTION = select(rejections.c.num).limit(1)
_ANY_WAITING = select(pending.c.num).limit(1)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One waiting publication and the causes it lacked when it came."""

    commit_id: bytes
    publication: bytes
    causes: tuple[bytes, ...]
    reason: str = CAUSES


@dataclass(frozen=True, slots=True)
class Kept:
    """How many of a batch wait now, those that did before included, and the numbers of those newly kept and unread."""

    count: int
    unread: tuple[int, ...]


def keep_waiting(
    database: Database, connection: Connection, branch: Branch, waiting: Sequence[Waiting]
) -> Kept:
    """Keep what came by one topic and fits under its bounds."""
    if not waiting:
        return Kept(0, ())
    known = _find_known(connection, waiting)
    # Of the topic: whoever still holds an older epoch's secrets fills that, and not the room of those that follow.
    totals = select(func.count(), sum_of(func.length(pending.c.publication))).where(
        pending.c.topic_num == branch.topic_num
    )
    count, size = connection.execute(totals).one()
    kept = len(known)
    unread: list[int] = []
    for item in waiting:
        if _name(item) in known:
            if item.reason == CAUSES and not is_bare(item.publication):
                size += _complete(connection, item, PENDING_SIZE_MAX - size)
            continue
        count, size = count + 1, size + len(item.publication)
        if count > PENDING_COUNT_MAX or size > PENDING_SIZE_MAX:
            break
        known.add(_name(item))
        num = database.next_nums(connection, pending, 1)[0]
        connection.execute(
            insert(pending).values(
                num=num,
                branch_num=branch.num,
                topic_num=branch.topic_num,
                commit_id=item.commit_id,
                publication=item.publication,
                reason=item.reason,
            )
        )
        if item.causes:
            connection.execute(
                insert(pending_causes), [{"cause": cause, "pending_num": num} for cause in item.causes]
            )
        kept += 1
        if item.reason == UNREAD:
            unread.append(-num)
    return Kept(kept, tuple(unread))


def _complete(connection: Connection, item: Waiting, room: int) -> int:
    """Keep a whole publication where a bare one waits, if it takes at most `room` bytes more; how many it takes."""
    waits = (pending.c.commit_id == item.commit_id) & (pending.c.reason == CAUSES)
    kept = connection.execute(select(pending.c.publication).where(waits)).scalar()
    if kept is None or not is_bare(kept) or len(item.publication) - len(kept) > room:
        return 0
    connection.execute(update(pending).where(waits).values(publication=item.publication))
    return len(item.publication) - len(kept)


def has_incomplete(connection: Connection, branch_nums: Sequence[int]) -> bool:
    """Whether commits of some branches wait for their causes."""
    query = select(pending.c.num).where(pending.c.branch_num.in_(branch_nums), pending.c.reason == CAUSES)
    return connection.execute(query.limit(1)).first() is not None


def _name(item: Waiting) -> bytes:
    """What is kept once. Of an unread commit nobody can tell here which publication is whole, so it may be several."""
    return decode_publication(item.publication).publication_id if item.reason == UNREAD else item.commit_id


def _find_known(connection: Connection, waiting: Sequence[Waiting]) -> set[bytes]:
    """Names of those of these that wait already."""
    known: set[bytes] = set()
    for part in chunks([item.commit_id for item in waiting if item.reason == CAUSES]):
        query = select(pending.c.commit_id).where(pending.c.commit_id.in_(part), pending.c.reason == CAUSES)
        known.update(connection.execute(query).scalars())
    for part in chunks([item.commit_id for item in waiting if item.reason == UNREAD]):
        kept = select(pending.c.commit_id, pending.c.publication).where(
            pending.c.commit_id.in_(part), pending.c.reason == UNREAD
        )
        known.update(_name(Waiting(row[0], row[1], (), UNREAD)) for row in connection.execute(kept))
    return known


def find_unread(connection: Connection, topic_num: int, ids: Sequence[bytes] | None = None) -> "array[int]":
    """Numbers (negative) of a topic's unread commits, oldest first: of these ids, or the first UNREAD_SENT_MAX of all."""
    query = select(pending.c.num).where(pending.c.topic_num == topic_num, pending.c.reason == UNREAD)
    if ids is not None:
        query = query.where(pending.c.commit_id.in_(ids))
    nums = connection.execute(query.order_by(pending.c.num).limit(UNREAD_SENT_MAX)).scalars()
    return array("q", (-num for num in nums))


def load_unread(connection: Connection, nums: Sequence[int], size_target: int) -> list[bytes]:
    """Publications of unread commits by their (negative) numbers in order, until `size_target` bytes are passed."""
    items: list[bytes] = []
    size = 0
    for part in chunks([-num for num in nums]):
        query = select(pending.c.publication).where(pending.c.num.in_(part)).order_by(pending.c.num)
        for publication in connection.execute(query).scalars():
            if items and size >= size_target:
                return items
            items.append(publication)
            size += len(publication)
    return items


def take_unread(connection: Connection) -> dict[int, list[bytes]]:
    """All unread publications by the topic's number; they are no longer kept."""
    query = select(pending.c.topic_num, pending.c.publication).where(pending.c.reason == UNREAD)
    taken: dict[int, list[bytes]] = {}
    for topic_num, publication in connection.execute(query.order_by(pending.c.num)):
        taken.setdefault(topic_num, []).append(publication)
    connection.execute(delete(pending).where(pending.c.reason == UNREAD))
    return taken


def take_waiting(connection: Connection, causes: Iterable[bytes]) -> dict[int, list[bytes]]:
    """Publications by topic number of all that waited for any of these causes; they are no longer kept."""
    nums: set[int] = set()
    if connection.execute(_ANY_WAITING).first() is None:
        return {}  # the usual case, and this stands in the way of every batch
    for part in chunks(list(causes)):
        nums.update(
            connection.execute(
                select(pending_causes.c.pending_num).where(pending_causes.c.cause.in_(part))
            ).scalars()
        )
    taken: dict[int, list[bytes]] = {}
    for numbers in chunks(sorted(nums)):
        query = select(pending.c.topic_num, pending.c.publication).where(pending.c.num.in_(numbers))
        for topic_num, publication in connection.execute(query.order_by(pending.c.num)):
            taken.setdefault(topic_num, []).append(publication)
        connection.execute(delete(pending_causes).where(pending_causes.c.pending_num.in_(numbers)))
        connection.execute(delete(pending).where(pending.c.num.in_(numbers)))
    return taken


def count_waiting(connection: Connection, branch_num: int | None = None, *, reason: str = CAUSES) -> int:
    """How many commits wait for that reason, in one branch or in all."""
    query = select(func.count()).select_from(pending).where(pending.c.reason == reason)
    if branch_num is not None:
        query = query.where(pending.c.branch_num == branch_num)
    return int(connection.execute(query).scalar_one())


def missing_causes(connection: Connection, topic_num: int, limit: int) -> list[bytes]:
    """Causes that commits of a topic wait for and that do not wait themselves, oldest waiting first: what to ask for."""
    query = (
        select(pending_causes.c.cause)
        .join(pending, pending.c.num == pending_causes.c.pending_num)
        .where(pending.c.topic_num == topic_num)
        .where(pending_causes.c.cause.not_in(select(pending.c.commit_id)))
        .group_by(pending_causes.c.cause)
        .order_by(func.min(pending.c.num))
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def load_all_causes(connection: Connection) -> set[bytes]:
    """All that anything waits for."""
    return set(connection.execute(select(pending_causes.c.cause).distinct()).scalars())


def load_waiting(
    connection: Connection, branch_num: int, known: Collection[bytes]
) -> list[tuple[bytes, int, bytes]]:
    """(id, number of the topic, publication) of a branch's commits that wait for causes and are not `known`, in order."""
    query = select(pending.c.num, pending.c.commit_id).where(
        pending.c.branch_num == branch_num, pending.c.reason == CAUSES
    )
    nums = [row[0] for row in connection.execute(query.order_by(pending.c.num)) if row[1] not in known]
    found: list[tuple[bytes, int, bytes]] = []
    for part in chunks(nums):
        columns = select(pending.c.commit_id, pending.c.topic_num, pending.c.publication)
        rows = connection.execute(columns.where(pending.c.num.in_(part)).order_by(pending.c.num))
        found += [(row[0], row[1], row[2]) for row in rows]
    return found


def load_causes(connection: Connection, commit_id: bytes) -> list[bytes]:
    """What a waiting commit waits for."""
    query = (
        select(pending_causes.c.cause)
        .join(pending, pending.c.num == pending_causes.c.pending_num)
        .where(pending.c.commit_id == commit_id)
        .order_by(pending_causes.c.cause)
    )
    return list(connection.execute(query).scalars())


def keep_rejections(
    database: Database, connection: Connection, branch_num: int, rejected: Sequence[Rejected]
) -> None:
    """Remember rejected commits, forgetting the branch's oldest beyond the bound."""
    fresh = {item.commit_id: item for item in rejected}
    for commit_id in load_rejected(connection, list(fresh)):
        del fresh[commit_id]
    if not fresh:
        return
    nums = database.next_nums(connection, rejections, len(fresh))
    connection.execute(
        insert(rejections),
        [
            {
                "num": num,
                "branch_num": branch_num,
                "commit_id": item.commit_id,
                "code": item.code,
                "detail": item.detail[:500],
            }
            for num, item in zip(nums, fresh.values(), strict=True)
        ],
    )
    kept = (
        select(rejections.c.num)
        .where(rejections.c.branch_num == branch_num)
        .order_by(rejections.c.num.desc())
        .offset(REJECTION_COUNT_MAX)
    )
    connection.execute(delete(rejections).where(rejections.c.num.in_(kept)))


def load_rejected(connection: Connection, ids: Sequence[bytes]) -> set[bytes]:
    """Those of these ids that were rejected."""
    found: set[bytes] = set()
    if connection.execute(_ANY_REJECTION).first() is None:
        return found  # the usual case, and this stands in the way of every batch
    for part in chunks(ids):
        found.update(
            connection.execute(
                select(rejections.c.commit_id).where(rejections.c.commit_id.in_(part))
            ).scalars()
        )
    return found


def count_rejections(connection: Connection, branch_num: int) -> int:
    """How many rejected commits of a branch are remembered."""
    query = select(func.count()).select_from(rejections).where(rejections.c.branch_num == branch_num)
    return int(connection.execute(query).scalar_one())
