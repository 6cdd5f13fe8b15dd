"""Finds the newest commits of one branch in one epoch for who has not its past yet, by the mark that stands on each.

A member looks at the branch's timeline, a relay at an index of stated ranks and marks. A branch's first commit has no mark,
so no window has it.
"""

from typing import Final

from sqlalchemy import Connection, func, select

from protocol.ids import BranchMark
from protocol.limits.peers import BATCH_SIZE_TARGET
from storage.schema.relay_schema import relay_commits
from storage.schema.schema import commits

_LOOKED_AT_SHARE: Final = 4
"""Commits of the branch that are looked at for each that is asked for: those of other epochs and topics stand between."""


def find_newest(
    connection: Connection, branch_num: int, epoch_num: int, topic_num: int, below: int, count: int
) -> tuple[list[int], bool]:
    """Find a branch's commits of one epoch and topic with ranks below `below`, the last of the timeline first.

    Looks at no more than four times `count` commits of the branch: costs O(count), and for each time that it passed a
    checkpoint a look. Returns numbers, and True if there are no more.
    """
    columns = commits.c
    found: list[int] = []
    left, passed = _LOOKED_AT_SHARE * count, _last_passed(connection, branch_num, None)
    while passed is not None and left > 0:
        of_part = (columns.branch_num == branch_num) & (columns.passed == passed)
        of_part &= columns.rank.between(1, below - 1)
        query = select(columns.num, columns.epoch_num, columns.topic_num).where(of_part)
        rows = connection.execute(
            query.order_by(columns.rank.desc(), columns.commit_id.desc()).limit(left)
        ).all()
        left -= max(1, len(rows))
        found += [num for num, epoch, topic in rows if (epoch, topic) == (epoch_num, topic_num)]
        if len(found) > count:
            return found[:count], False
        passed = _last_passed(connection, branch_num, passed)
    return found[:count], left > 0


def find_from(
    connection: Connection, branch_num: int, epoch_num: int, topic_num: int, lowest: int, count: int
) -> tuple[list[int], bool]:
    """Find a root branch's commits of one epoch and topic from a rank on, the lowest first.

    Costs O(count and the commits of other epochs and topics between). Returns numbers, and True if there are no more.
    """
    columns = commits.c
    # No checkpoint is in a root branch; so they stand in the index by rank, and none is sorted.
    of_epoch = (columns.branch_num == branch_num) & (columns.passed == 0) & (columns.epoch_num == epoch_num)
    here = of_epoch & (columns.topic_num == topic_num) & (columns.rank >= max(1, lowest))
    query = select(columns.num).where(here).order_by(columns.rank, columns.commit_id).limit(count + 1)
    nums = list(connection.execute(query).scalars())
    return nums[:count], len(nums) <= count


def find_kept(
    connection: Connection, topic_num: int, mark: BranchMark, rank: int, count: int, *, is_upwards: bool
) -> tuple[list[int], bool]:
    """Find publications that a relay keeps by mark and stated rank, as many as fit a batch. Costs O(count).

    Returns numbers, and True if there are no more.
    """
    columns = relay_commits.c
    here = (columns.topic_num == topic_num) & (columns.mark == mark)
    query = select(columns.num, func.length(columns.publication))
    if is_upwards:
        query = query.where(here, columns.stated_rank >= rank).order_by(columns.stated_rank, columns.num)
    else:
        query = query.where(here, columns.stated_rank < rank).order_by(
            columns.stated_rank.desc(), columns.num.desc()
        )
    rows = connection.execute(query.limit(count + 1)).all()
    nums: list[int] = []
    size = 0
    for num, length in rows[:count]:
        if nums and size + length > BATCH_SIZE_TARGET:
            break
        nums.append(num)
        size += length
    return nums, len(nums) == len(rows)


def _last_passed(connection: Connection, branch_num: int, below: int | None) -> int | None:
    """Return the most checkpoints that a commit of the branch has passed, below a number."""
    columns = commits.c
    query = select(func.max(columns.passed)).where(columns.branch_num == branch_num)
    found: int | None = connection.execute(
        query if below is None else query.where(columns.passed < below)
    ).scalar()
    return found
