"""Updates of stored repos and branches: names, the current epoch, a finished join."""

from sqlalchemy import Connection, update

from storage.repos.row_changes import row_changes
from storage.schema.schema import branches, repos


def name_branch(connection: Connection, branch_num: int, name: str, *, is_archived: bool) -> None:
    """Show a branch under another name, or as archived."""
    row_changes(connection).branches.add(branch_num)
    connection.execute(
        update(branches).where(branches.c.num == branch_num).values(name=name, is_archived=is_archived)
    )


def set_writing_epoch(connection: Connection, repo_num: int, epoch_num: int, *, is_behind: bool) -> None:
    """Write in this epoch from now on."""
    row_changes(connection).repos.add(repo_num)
    connection.execute(
        update(repos).where(repos.c.num == repo_num).values(epoch_num=epoch_num, is_behind=is_behind)
    )


def rename_repo(connection: Connection, repo_num: int, name: str) -> None:
    """Give a repo the name that its init commit says."""
    row_changes(connection).repos.add(repo_num)
    connection.execute(update(repos).where(repos.c.num == repo_num).values(name=name))


def finish_join(connection: Connection, repo_num: int) -> None:
    """Forget the invitation of a repo whose join was accepted."""
    row_changes(connection).repos.add(repo_num)
    connection.execute(update(repos).where(repos.c.num == repo_num).values(invitation=None))
