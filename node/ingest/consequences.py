"""What follows for a repo's rows when its membership has changed: the epoch to write in, and branches' names."""

from sqlalchemy import Connection

from node.ingest.replica import Tables, choose_epoch
from storage.repos.repo_changes import name_branch, set_writing_epoch
from verifier.membership import Membership
from verifier.names import find_branch_names


def choose_writing_epoch(
    connection: Connection, tables: Tables, repo_num: int, membership: Membership
) -> bool:
    """Write in the epoch that the membership prefers, of those that are open here; whether it is another one now."""
    repo = tables.repos[repo_num]
    chosen = choose_epoch(membership, repo, tables.epochs_of(repo, membership))
    if chosen == (repo.epoch_num, repo.is_behind):
        return False
    set_writing_epoch(connection, repo_num, chosen[0], is_behind=chosen[1])
    return True


def show_names(connection: Connection, tables: Tables, repo_num: int, membership: Membership) -> bool:
    """Call branches what the membership says that they are called; whether any is called otherwise now."""
    names = find_branch_names(membership)
    has_changed = False
    for branch in tables.branches.values():
        shown = names.get(branch.branch_id)
        if branch.repo_num != repo_num or shown is None:
            continue
        if (branch.name, branch.is_archived) != (shown.name, shown.is_archived):
            name_branch(connection, branch.num, shown.name, is_archived=shown.is_archived)
            has_changed = True
    return has_changed
