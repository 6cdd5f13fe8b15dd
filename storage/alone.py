"""Branches that are followed by themselves: their repos are stored without members or epochs, and can be forgotten."""

from sqlalchemy import Connection, delete, insert, select

from protocol.codec import encode
from protocol.text import BranchCapability
from storage.database import Database
from storage.repos import add_branch
from storage.schema import (
    branches,
    commits,
    feed_forks,
    file_removals,
    files,
    heads,
    pending,
    pending_causes,
    rejections,
    repos,
    topics,
)


def add_branch_alone(database: Database, connection: Connection, capability: BranchCapability) -> None:
    """Follow a branch by itself, on the topics that a capability opens. Its repo is stored without members or epochs.

    A branch whose whole repo is here stays as it is.
    """
    num, epoch_num = connection.execute(
        select(repos.c.num, repos.c.epoch_num).where(repos.c.repo_id == capability.repo)
    ).first() or (None, 0)
    if epoch_num:
        return
    if num is None:
        num = database.next_nums(connection, repos, 1)[0]
        connection.execute(
            insert(repos).values(
                num=num,
                repo_id=capability.repo,
                name=f"({capability.name})",
                init_id=capability.init,
                init_key=bytes(32),
                epoch_num=0,
                is_behind=False,
            )
        )
    branch_id = capability.branch
    add_branch(database, connection, num, branch_id, capability.name, branch_id)
    branch_num = connection.execute(
        select(branches.c.num).where(branches.c.repo_num == num, branches.c.branch_id == branch_id)
    ).scalar_one()
    for channel in capability.channels:
        if connection.execute(select(topics.c.num).where(topics.c.topic == channel.topic)).first() is None:
            connection.execute(
                insert(topics).values(
                    num=database.next_nums(connection, topics, 1)[0],
                    branch_num=branch_num,
                    generation=0,
                    topic=channel.topic,
                    commit_count=0,
                    channel=encode(channel),
                )
            )


def forget_repo(connection: Connection, repo_num: int) -> None:
    """Forget such a repo and its branches: every row about it. Blocks stay until they are collected."""
    of_repo = select(branches.c.num).where(branches.c.repo_num == repo_num)
    waiting = select(pending.c.num).where(pending.c.branch_num.in_(of_repo))
    added = select(files.c.num).where(files.c.branch_num.in_(of_repo))
    connection.execute(delete(pending_causes).where(pending_causes.c.pending_num.in_(waiting)))
    connection.execute(delete(file_removals).where(file_removals.c.file_num.in_(added)))
    for table in (pending, files, heads, feed_forks, rejections, commits, topics):
        connection.execute(delete(table).where(table.c.branch_num.in_(of_repo)))
    connection.execute(delete(branches).where(branches.c.repo_num == repo_num))
    connection.execute(delete(repos).where(repos.c.num == repo_num))
