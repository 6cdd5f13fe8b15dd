"""Reopens stored commits and computes what their rows should contain, for check and repair."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from node.ingest.publication_parsing import Opened, open_batch
from protocol.block import WrongKey
from protocol.body import ErasedBody, body_kind, content_of
from protocol.codec import DecodeError
from protocol.commit import Commit, UnknownVersion
from protocol.content import Files
from protocol.keys import TopicSeed
from protocol.object import MissingBlocks
from protocol.publication import Publication
from protocol.signing import sign, topic_key_pair
from storage.commits.commits import relation_columns
from storage.engine.column_encryption import BadSecret, ColumnCipher, cipher_of, commit_place, file_place
from storage.engine.database import StorageError
from storage.engine.id_keys import id_key, pack_ids
from storage.repos.repos import Branch
from storage.schema.schema import authors, commits, file_removals, files
from storage.topics.difference import load_publications
from verifier.posts import find_relation

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
    )
    .outerjoin(authors, authors.c.num == commits.c.author_num)
    .order_by(commits.c.num)
)
KeptFile = tuple[object, ...]
"""Object id, key, name and size."""


def load_kept_rows(connection: Connection, nums: Sequence[int]) -> list[dict[str, Any]]:
    """What `wanted_columns` is compared with, and more, of commits in the order of their numbers."""
    return [dict(row._mapping) for row in connection.execute(_ROW.where(commits.c.num.in_(nums)))]


def open_kept(
    connection: Connection, branch: Branch, nums: Sequence[int]
) -> Iterator[tuple[int, Opened | str]]:
    """Commits of one topic, by ascending numbers, parsed again; or why one does not open. Damage is found one by one."""
    try:
        items = load_publications(connection, branch, nums, _NO_BOUND)
        batch = open_batch(branch, items, with_bare=True)
    except UNREADABLE as error:
        if len(nums) == 1:
            yield nums[0], f"cannot be read: {error!r}"
            return
        batch = None
    if batch is not None and len(batch.opened) == len(nums):
        yield from zip(nums, batch.opened, strict=True)
    elif len(nums) > 1:
        for num in nums:
            yield from open_kept(connection, branch, [num])
    elif batch is not None:
        reasons = [
            *(item.code for item in batch.rejected),
            *batch.dropped,
            *(one.reason for one in batch.waiting),
        ]
        yield nums[0], f"does not open: {', '.join(reasons)}"


def wanted_columns(cipher: ColumnCipher, branch: Branch, opened: Opened) -> dict[str, Any]:
    """What a commit's row has to say, as far as it follows from its own blocks."""
    commit, body = opened.signed.commit, opened.signed.body
    relation, about = relation_columns(find_relation(commit, is_root_branch=branch.facts.is_root_branch))
    wanted: dict[str, Any] = {
        "user": commit.content.author,
        "feed_sequence": commit.content.feed_sequence,
        "acks": pack_ids(commit.acks),
        "commit_key": cipher.mask(commit_place(commit.commit_id), commit.key),
        "timestamp": commit.content.timestamp,
        "relation": relation,
        "about": about,
    }
    if not isinstance(body, ErasedBody):
        wanted["body_kind"] = body_kind(body)
        wanted["size"] = sum(len(block.encoded) for block in opened.publication.blocks)
    elif body.tag:
        wanted["body_kind"] = body.tag
    if branch.topic_seed is not None and not _is_signed(branch.topic_seed, opened.publication):
        wanted["is_proven"] = False  # else peers would part from who passes it on
    return wanted


def _is_signed(topic_seed: TopicSeed, publication: Publication) -> bool:
    """Whether a publication has its topic's signature: to make it again takes a third of checking it."""
    _, secret = topic_key_pair(topic_seed)
    return sign(secret, publication.digest) == publication.signature


def wanted_files(opened: Opened) -> list[KeptFile]:
    """The files that a commit adds."""
    commit, body = opened.signed.commit, content_of(opened.signed.body)
    entries = body.added if isinstance(body, Files) else ()
    return [
        (
            object_id,
            commit.content.keys.files[place],
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
