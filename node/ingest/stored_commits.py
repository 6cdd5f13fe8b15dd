"""Reopens stored commits and computes what their rows should contain, for check and repair."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from node.ingest.publication_parsing import Opened, open_batch
from node.ingest.publication_reading import topic_claim
from node.ingest.tables import Tables
from protocol.block import WrongKey
from protocol.body import ErasedBody, body_kind, content_of
from protocol.codec import DecodeError
from protocol.commit import Commit, UnknownVersion
from protocol.content import Files
from protocol.epochs import EpochInit
from protocol.keys import TopicSeed
from protocol.object import MissingBlocks
from protocol.publication import Publication
from protocol.signing import check_claims, sign, topic_key_pair
from storage.commits.commits import feed_link, relation_columns
from storage.engine.column_encryption import BadSecret, ColumnCipher, cipher_of, commit_place, file_place
from storage.engine.database import StorageError
from storage.engine.id_keys import id_key, pack_ids
from storage.repos.epochs import Topic
from storage.repos.repos import Branch
from storage.schema.schema import authors, commits, file_removals, files, group_places, topic_inits
from storage.topics.publishing import load_publications
from verifier.posts import find_relation
from verifier.verify import find_seen

UNREADABLE: Final = (
    StorageError,
    BadSecret,
    DecodeError,
    WrongKey,
    MissingBlocks,
    UnknownVersion,
    KeyError,
    IndexError,
    ValueError,
)
"""What reading rows may raise that are not what this Ravel wrote."""
_NO_BOUND: Final = 1 << 62
_ROW: Final = (
    select(
        commits.c.num,
        commits.c.commit_id,
        authors.c.user,
        commits.c.feed_sequence,
        commits.c.feed_link,
        commits.c.rank,
        commits.c.acks,
        commits.c.commit_key,
        commits.c.body_kind,
        commits.c.timestamp,
        commits.c.size,
        commits.c.is_void,
        commits.c.relation,
        commits.c.about,
        commits.c.is_proven,
        commits.c.topic_num,
        commits.c.epoch_num,
        group_places.c.ids.label("seen"),
    )
    .outerjoin(authors, authors.c.num == commits.c.author_num)
    .outerjoin(group_places, group_places.c.num == commits.c.place_num)
    .order_by(commits.c.num)
)
KeptFile = tuple[object, ...]
"""Object id, key, name and size."""


def load_kept_rows(connection: Connection, nums: Sequence[int]) -> list[dict[str, Any]]:
    """Load the columns that `wanted_columns` is compared with, and more, of commits in the order of their numbers."""
    return [dict(row._mapping) for row in connection.execute(_ROW.where(commits.c.num.in_(nums)))]


def open_kept(
    connection: Connection, topic: Topic, nums: Sequence[int]
) -> Iterator[tuple[int, Opened | str]]:
    """Commits of one topic, by ascending numbers, parsed again; or why one does not open. Damage is found one by one."""
    try:
        items = load_publications(connection, topic, nums, _NO_BOUND)
        batch = open_batch(topic, items, with_bare=True)
    except UNREADABLE as error:
        if len(nums) == 1:
            yield nums[0], f"cannot be read: {error!r}"
            return
        batch = None
    if batch is not None and len(batch.opened) == len(nums):
        yield from zip(nums, batch.opened, strict=True)
    elif len(nums) > 1:
        for num in nums:
            yield from open_kept(connection, topic, [num])
    elif batch is not None:
        reasons = [
            *(item.code for item in batch.rejected),
            *batch.dropped,
            *(one.reason for one in batch.waiting),
        ]
        yield nums[0], f"does not open: {', '.join(reasons)}"


def wanted_columns(
    cipher: ColumnCipher, tables: Tables, topic: Topic, branch: Branch, opened: Opened
) -> dict[str, Any]:
    """Make the columns of a commit's row that follow from its own blocks. `seen` are the ids of its place."""
    commit, body = opened.signed.commit, opened.signed.body
    is_root_branch = branch.facts.is_root_branch
    relation, about = relation_columns(find_relation(commit, is_root_branch=is_root_branch))
    place = tables.find_place(branch.repo_num, commit)
    epoch_num, topic_num = (0, topic.num) if place is None else (place[0].num, place[1].num)
    wanted: dict[str, Any] = {
        "user": commit.content.author,
        "feed_sequence": commit.content.feed_sequence,
        "feed_link": feed_link(commit),
        "acks": pack_ids(commit.acks),
        "commit_key": cipher.mask(commit_place(commit.commit_id), commit.key),
        "timestamp": commit.content.timestamp,
        "relation": relation,
        "about": about,
        "topic_num": topic_num,
        "epoch_num": epoch_num,
        "seen": pack_ids(find_seen(branch.facts, commit)) or None,
    }
    if not isinstance(body, ErasedBody):
        wanted["body_kind"] = body_kind(body)
        wanted["size"] = sum(len(block.encoded) for block in opened.publication.blocks)
    elif body.tag:
        wanted["body_kind"] = body.tag
    if topic.seed is not None and not _is_signed(topic.seed, opened.publication):
        wanted["is_proven"] = False  # else peers would part from who passes it on
    return wanted


def _is_signed(topic_seed: TopicSeed, publication: Publication) -> bool:
    """Return True if a publication has its topic's signature: to make the usual one takes a third of checking it."""
    _, secret = topic_key_pair(topic_seed)
    if sign(secret, publication.digest) == publication.signature:
        return True
    (holds,) = check_claims(
        [topic_claim(publication)]
    )  # a key has other valid signatures, if somebody wants them
    return holds


def wanted_second_place(tables: Tables, topic: Topic, branch: Branch, opened: Opened) -> set[int]:
    """Number of the topic on which an init stands beside its own."""
    if not isinstance(opened.signed.body, EpochInit):
        return set()
    return {*tables.find_second_place(branch.repo_num, opened.signed.commit.commit_id, topic.num)}


def load_second_places(connection: Connection, nums: Sequence[int]) -> Mapping[int, set[int]]:
    """Numbers of the topics on which commits are kept beside their own, by the commits' numbers."""
    found: dict[int, set[int]] = {}
    query = select(topic_inits.c.commit_num, topic_inits.c.topic_num)
    for num, topic_num in connection.execute(query.where(topic_inits.c.commit_num.in_(nums))):
        found.setdefault(num, set()).add(topic_num)
    return found


def wanted_files(opened: Opened) -> list[KeptFile]:
    """List the files that a commit adds."""
    commit, body = opened.signed.commit, content_of(opened.signed.body)
    entries = body.added if isinstance(body, Files) else ()
    return [
        (
            object_id,
            commit.content.file_keys[place],
            *((entries[place].name, entries[place].size) if entries else ("", None)),
        )
        for place, object_id in enumerate(commit.links.files)
    ]


def load_kept_files(connection: Connection, nums: Sequence[int]) -> Mapping[int, list[tuple[int, KeptFile]]]:
    """(number, file) of the files that are kept as those of commits, by the commits' numbers."""
    cipher = cipher_of(connection)
    columns = (files.c.commit_num, files.c.num, files.c.object_id, files.c.object_key)
    query = select(*columns, files.c.name, files.c.size).where(files.c.commit_num.in_(nums))
    found: dict[int, list[tuple[int, KeptFile]]] = {}
    for commit_num, num, object_id, kept, *rest in connection.execute(query.order_by(files.c.num)):
        key = cipher.mask(file_place(num, object_id), kept)
        found.setdefault(commit_num, []).append((num, (object_id, key, *rest)))
    return found


def load_kept_removals(connection: Connection, nums: Sequence[int]) -> Mapping[int, set[int]]:
    """Numbers of the files that are kept as removed by commits, by the commits' numbers."""
    found: dict[int, set[int]] = {}
    query = select(file_removals.c.commit_num, file_removals.c.file_num)
    for num, file_num in connection.execute(query.where(file_removals.c.commit_num.in_(nums))):
        found.setdefault(num, set()).add(file_num)
    return found


def removed_by(connection: Connection, branch_num: int, commit: Commit) -> set[int]:
    """Files that a commit removes: of objects that it names, those that commits it depends on added."""
    if not commit.links.nfiles:
        return set()
    query = (
        select(files.c.num, commits.c.commit_id)
        .join(commits, commits.c.num == files.c.commit_num)
        .where(
            files.c.branch_num == branch_num,
            files.c.object_id.in_(commit.links.nfiles),
            commits.c.id_key.in_([id_key(dep) for dep in commit.links.deps]),
        )
    )
    return {num for num, adder in connection.execute(query) if adder in commit.links.deps}
