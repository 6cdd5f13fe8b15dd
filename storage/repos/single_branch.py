"""Adds a branch that is followed by itself; its repo has no members or epochs in this store.

What the link says of the repo is its maker's word. So nothing of it stands in the way of what members state: whatever
follows from a repo's own secrets displaces it (`repos`), and nothing that came by it is held against a commit.
"""

from sqlalchemy import Connection, insert, select

from protocol.codec import encode
from protocol.ids import first_commit, root_branch
from protocol.links import BranchCapability
from storage.engine.column_encryption import cipher_of, repo_place, topic_place
from storage.engine.database import Database
from storage.repos.repos import add_branch
from storage.repos.row_changes import row_changes
from storage.schema.schema import branches, repos, topics


def add_branch_alone(
    database: Database, connection: Connection, capability: BranchCapability, repo_name: str = ""
) -> bool:
    """Follow a branch by itself, on the topics that a capability opens. Its repo is stored without members or epochs.

    The repo is called `repo_name` in parentheses, since its members call it otherwise; without one, as the branch. Nothing
    is stored where the branch or its repo is here already as something else. Gives whether any topic is new.
    """
    cipher = cipher_of(connection)
    known = connection.execute(
        select(repos.c.num, repos.c.epoch_num, repos.c.init_id).where(repos.c.repo_id == capability.repo)
    ).first()
    elsewhere = (
        select(repos.c.num)
        .join(branches, branches.c.repo_num == repos.c.num)
        .where(branches.c.branch_id == capability.branch, repos.c.repo_id != capability.repo)
    )
    if (
        capability.branch == root_branch(capability.repo)
        or (known is not None and (known.epoch_num or known.init_id != capability.init))
        or connection.execute(elsewhere).first() is not None
    ):
        return False
    num = None if known is None else known.num
    if num is None:
        num = database.next_nums(connection, repos, 1)[0]
        connection.execute(
            insert(repos).values(
                num=num,
                repo_id=capability.repo,
                name=f"({repo_name or capability.name})",
                init_id=capability.init,
                init_key=cipher.seal(repo_place("init_key", capability.repo), bytes(32)),  # nobody said it
                epoch_num=0,
                is_behind=False,
            )
        )
    branch_id = capability.branch
    add_branch(database, connection, num, branch_id, capability.name, first_commit(branch_id))
    branch_num = connection.execute(
        select(branches.c.num).where(branches.c.repo_num == num, branches.c.branch_id == branch_id)
    ).scalar_one()
    row_changes(connection).repos.add(num)
    is_new = False
    for channel in capability.channels:
        if connection.execute(select(topics.c.num).where(topics.c.topic == channel.topic)).first() is None:
            is_new = True
            connection.execute(
                insert(topics).values(
                    num=database.next_nums(connection, topics, 1)[0],
                    branch_num=branch_num,
                    topic=channel.topic,
                    commit_count=0,
                    channel=cipher.seal(topic_place(channel.topic), encode(channel)),
                )
            )
    return is_new
