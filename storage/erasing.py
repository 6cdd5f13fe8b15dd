"""Erasing: bodies of commits go, their rows and headers stay. What the rows named becomes garbage (`collecting`).

Which bodies may go is `node.erasing`'s to find.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select, update

from storage.commits import ROWS, TimelineRow, timeline_row
from storage.id_keys import BLOCK_NUM_SIZE, chunks, pack_nums, unpack_nums
from storage.schema import blocks, commits, erasures
from storage.secrecy import secrecy_of
from storage.sums import sum_of


class Erasure(NamedTuple):
    """A body to be erased: its commit's number, the commit's row's block numbers, and the id of the body's block."""

    num: int
    block_nums: bytes
    body_id: bytes


def load_compactions(connection: Connection, branch_num: int, kind: str, before_ms: int) -> list[bytes]:
    """Ids of a branch's commits of this kind that are not void and came here before."""
    query = select(commits.c.commit_id).where(
        commits.c.branch_num == branch_num,
        ~commits.c.is_void,
        commits.c.body_kind == kind,
        commits.c.received_at < before_ms,
    )
    return list(connection.execute(query).scalars())


def load_whole(connection: Connection, branch_num: int, kinds: Collection[str]) -> list[TimelineRow]:
    """Commits of a branch whose bodies are of these kinds and here; void ones are passed over."""
    query = ROWS.where(
        commits.c.branch_num == branch_num,
        ~commits.c.is_void,
        commits.c.body_kind.in_(sorted(kinds)),
        func.length(commits.c.block_nums) > BLOCK_NUM_SIZE,
    )
    secrecy = secrecy_of(connection)
    return [timeline_row(secrecy, row) for row in connection.execute(query.order_by(commits.c.num))]


def measure_bodies(connection: Connection, rows: Sequence[TimelineRow]) -> int:
    """Bytes of the blocks of these commits' bodies, each block once. Other commits may need some of them."""
    wanted = {num for row in rows for num in unpack_nums(row.block_nums)[1:]}
    size = sum_of(func.length(blocks.c.encoded))
    return sum(
        int(connection.execute(select(size).where(blocks.c.num.in_(part))).scalar_one())
        for part in chunks(sorted(wanted))
    )


def erase_bodies(connection: Connection, branch_num: int, erased: Sequence[Erasure], now_ms: int) -> None:
    """Erase bodies of commits of a branch."""
    for one in erased:
        own = pack_nums(unpack_nums(one.block_nums)[:1])
        connection.execute(update(commits).where(commits.c.num == one.num).values(block_nums=own))
    rows = [
        {"commit_num": one.num, "branch_num": branch_num, "body_id": one.body_id, "erased_at": now_ms}
        for one in erased
    ]
    if rows:
        connection.execute(insert(erasures), rows)


def load_body_ids(connection: Connection, nums: Sequence[int]) -> dict[int, bytes]:
    """Ids of the erased bodies of those of these commits that have none any more."""
    found: dict[int, bytes] = {}
    for part in chunks(nums):
        query = select(erasures.c.commit_num, erasures.c.body_id).where(erasures.c.commit_num.in_(part))
        found.update((row[0], row[1]) for row in connection.execute(query))
    return found


def count_erased(connection: Connection, branch_num: int) -> int:
    """How many bodies of a branch are erased."""
    query = select(func.count()).where(erasures.c.branch_num == branch_num)
    return int(connection.execute(query).scalar_one())
