"""Reopens stored commits and computes what their rows should contain, for check and repair."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from node.ingest.publication_parsing import Opened, open_batch
from node.ingest.publication_reading import topic_claim
from node.ingest.tables import Tables
from protocol.codec import DecodeError
from protocol.crypto.keys import TopicSeed
from protocol.crypto.signing import check_claims, sign, topic_key_pair
from protocol.formats.block import WrongKey
from protocol.formats.body import ErasedBody, body_kind, content_of
from protocol.formats.commit import UnknownVersion
from protocol.formats.content import Files
from protocol.formats.declared_kind import document_name
from protocol.formats.epochs import EpochInit
from protocol.formats.object import MissingBlocks
from protocol.formats.publication import Publication
from storage.check.kept_rows import KeptFile
from storage.commits.commits import feed_link, relation_columns
from storage.engine.column_encryption import BadSecret, ColumnCipher, commit_key_context
from storage.engine.database import StorageError
from storage.engine.id_keys import pack_ids
from storage.repos.epochs import Topic
from storage.repos.repos import Branch
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
"""Errors that reading damaged or foreign rows may raise."""
_NO_BOUND: Final = 1 << 62


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
        "commit_key": cipher.mask(commit_key_context(commit.commit_id), commit.key),
        "timestamp": commit.content.timestamp,
        "relation": relation,
        "about": about,
        "document": document_name(commit, is_root_branch=is_root_branch),
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
