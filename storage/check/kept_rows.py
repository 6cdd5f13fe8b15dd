"""Rows of commits and their files as they are stored, to be compared with what the commits' blocks say."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from protocol.commit import Commit
from storage.engine.column_encryption import cipher_of, file_place
from storage.engine.id_keys import id_key
from storage.schema.schema import authors, commits, file_removals, files, group_places, topic_inits

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
    """Load columns of commits that follow from their blocks, and more, in the order of the commits' numbers."""
    return [dict(row._mapping) for row in connection.execute(_ROW.where(commits.c.num.in_(nums)))]


def load_second_places(connection: Connection, nums: Sequence[int]) -> Mapping[int, set[int]]:
    """Load the numbers of the topics on which commits stand beside their own, by the commits' numbers."""
    found: dict[int, set[int]] = {}
    query = select(topic_inits.c.commit_num, topic_inits.c.topic_num)
    for num, topic_num in connection.execute(query.where(topic_inits.c.commit_num.in_(nums))):
        found.setdefault(num, set()).add(topic_num)
    return found


def load_kept_files(connection: Connection, nums: Sequence[int]) -> Mapping[int, list[tuple[int, KeptFile]]]:
    """Load the files that commits add, each with its number, by the commits' numbers."""
    cipher = cipher_of(connection)
    columns = (files.c.commit_num, files.c.num, files.c.object_id, files.c.object_key)
    query = select(*columns, files.c.name, files.c.size).where(files.c.commit_num.in_(nums))
    found: dict[int, list[tuple[int, KeptFile]]] = {}
    for commit_num, num, object_id, kept, *rest in connection.execute(query.order_by(files.c.num)):
        key = cipher.mask(file_place(num, object_id), kept)
        found.setdefault(commit_num, []).append((num, (object_id, key, *rest)))
    return found


def load_kept_removals(connection: Connection, nums: Sequence[int]) -> Mapping[int, set[int]]:
    """Load the numbers of the files that commits remove, by the commits' numbers."""
    found: dict[int, set[int]] = {}
    query = select(file_removals.c.commit_num, file_removals.c.file_num)
    for num, file_num in connection.execute(query.where(file_removals.c.commit_num.in_(nums))):
        found.setdefault(num, set()).add(file_num)
    return found


def find_removed_files(connection: Connection, branch_num: int, commit: Commit) -> set[int]:
    """Find the files that a commit removes: of objects that it names, those that commits it depends on added."""
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
