"""Sizes of the store, of old contents that are here, and of those that would come again."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, case, func, select

from protocol.formats.declared_kind import POST_KINDS
from protocol.ids import ObjectId
from storage.blobs.files import IS_REMOVED, IS_SPARED
from storage.blobs.packs import Packs
from storage.blobs.spared import COMMITTED, load_old_files
from storage.commits.absent_bodies import OldPosts, is_body_here, is_old_post
from storage.engine.database import Database
from storage.engine.queries import stream_parts, sum_of
from storage.schema.schema import commits, erasures, files, packs

HEADER_SIZE: Final = 400
"""Bytes of a commit that stay when its body goes, about: its header and signature."""
_UNKNOWN_SIZE: Final = 4096
"""Bytes of an absent post where no post of its branch is here to compare it with."""
_LOADED_AT_ONCE: Final = 1000


def measure_store(database: Database, connection: Connection) -> int:
    """Return the bytes that packs and the used pages of the rows' file have. Costs O(packs).

    Pages without rows do not count: what comes next uses them. Neither does a database that is not in the folder.
    """
    use = database.measure_pages(connection)
    packed = int(connection.execute(select(sum_of(packs.c.size))).scalar_one())
    return packed + (use.size - use.unused if use else 0)


def weigh_old(
    connection: Connection,
    blobs: Packs,
    branch_num: int,
    own_num: int | None,
    befores: Sequence[int],
    *,
    with_posts: bool,
) -> list[int]:
    """Sum the bytes of others' files, and posts, of a branch that are here, from before each of some times (unix ms).

    The latest time stands last. Costs O(commits and files of the branch).
    """
    old, found = OldPosts(branch_num, own_num, befores[-1]), [0] * len(befores)
    if with_posts:
        body = case((commits.c.size > HEADER_SIZE, commits.c.size - HEADER_SIZE), else_=0)
        sums = [sum_of(case((commits.c.display_time < before, body), else_=0)) for before in befores]
        query = select(*sums).where(is_old_post(old), ~commits.c.is_void, is_body_here())
        found = list(map(int, connection.execute(query).one()))
    seen, after = set[bytes](), 0
    while rows := load_old_files(connection, old, after, _LOADED_AT_ONCE):
        after = rows[-1].num
        held = blobs.find_held(connection, [one.object_id for one in rows])
        for one in rows:
            if one.object_id in held and one.object_id not in seen:
                seen.add(one.object_id)
                found = [
                    size + one.size * (one.time < before) for size, before in zip(found, befores, strict=True)
                ]
    return found


def weigh_absent(
    connection: Connection,
    blobs: Packs,
    branch_num: int,
    since: int,
    before: int,
    *,
    with_files: bool,
    with_posts: bool,
) -> int:
    """Estimate the bytes that come if posts between two times (unix ms) are kept again, and their files too.

    Costs O(absent bodies and files of the branch).
    """
    is_between = (commits.c.display_time >= since) & (commits.c.display_time < before)
    found = _weigh_absent_posts(connection, branch_num, is_between) if with_posts else 0
    return found + (_weigh_absent_files(connection, blobs, branch_num, is_between) if with_files else 0)


def _weigh_absent_files(
    connection: Connection, blobs: Packs, branch_num: int, is_between: ColumnElement[bool]
) -> int:
    query = select(files.c.object_id, files.c.size, IS_SPARED).select_from(COMMITTED)
    query = query.where(files.c.branch_num == branch_num, is_between, ~commits.c.is_void, ~IS_REMOVED)
    sizes = dict[ObjectId, int]()
    for part in stream_parts(connection, query.order_by(files.c.num), _LOADED_AT_ONCE):
        held = blobs.find_held(connection, [object_id for object_id, _, _ in part])
        sizes |= {one: size or 0 for one, size, is_spared in part if is_spared or one not in held}
    return sum(sizes.values())


def _weigh_absent_posts(connection: Connection, branch_num: int, is_between: ColumnElement[bool]) -> int:
    here = select(sum_of(commits.c.size), func.count()).where(
        commits.c.branch_num == branch_num, commits.c.body_kind.in_(POST_KINDS), is_body_here()
    )
    size, count = map(int, connection.execute(here).one())
    away = select(sum_of(commits.c.size), func.count()).join_from(
        erasures, commits, commits.c.num == erasures.c.commit_num
    )
    away = away.where(erasures.c.branch_num == branch_num, erasures.c.is_spared, is_between)
    known, absent = map(int, connection.execute(away).one())
    return known + absent * (size // count if count else _UNKNOWN_SIZE)
