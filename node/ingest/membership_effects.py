"""Effects of a membership: topics of epochs and links, the epoch to write in, names of branches, a lobby's room."""

from sqlalchemy import Connection

from node.ingest.replica import Replica
from node.ingest.tables import Tables
from protocol.crypto.hashing import link_topic_seed
from protocol.crypto.signing import public_key
from protocol.formats.body import Permission
from protocol.formats.epochs import EpochStatement, open_topic
from protocol.ids import EpochId, RepoId, UserId
from protocol.limits.peers import LOBBY_COMMIT_COUNT_MAX, LOBBY_OWN_COUNT_MAX, LOBBY_PENDING_SHARE
from storage.engine.database import Database
from storage.repos.epochs import claim_topic, state_writers_topic
from storage.repos.repos import Repo, name_branch, set_writing_epoch
from storage.repos.row_changes import row_changes
from verifier.epochs import preferred_epoch
from verifier.membership import Membership
from verifier.names import BranchName, find_branch_names


def record_epoch(
    database: Database,
    connection: Connection,
    tables: Tables,
    repo: Repo,
    epoch_id: EpochId,
    states: EpochStatement,
) -> None:
    """Follow the topics of an epoch whose init was accepted. Other keys that were said to be its own are left aside."""
    for epoch in tables.epochs_in(repo.num):
        if epoch.epoch_id == epoch_id and epoch.keys.mark == states.mark:
            topic = open_topic(epoch.key, repo.repo_id, states)
            assert topic is not None, "M9"
            state_writers_topic(database, connection, epoch, topic)


def follow_links(
    database: Database, connection: Connection, tables: Tables, repo_num: int, membership: Membership
) -> None:
    """Follow the link topics of all branches to which links were made, in all epochs whose writers' secrets are here.

    Both may be new, or the secrets may.
    """
    for branch_id in membership.operations.linked_branches():
        branch = tables.find_branch(repo_num, branch_id)
        if branch is None:
            continue
        known = {epoch.num for topic in tables.links_of(branch.num) for epoch in topic.epochs}
        for epoch in tables.epochs_in(repo_num):
            if epoch.num not in known and epoch.writers_secret is not None and epoch.writers_seed is not None:
                topic = public_key(link_topic_seed(epoch.writers_secret, branch_id))
                claim_topic(database, connection, topic, branch.num, epoch.num)
                row_changes(connection).repo_rows.add(repo_num)


def choose_epoch(membership: Membership, repo: Repo, tables: Tables) -> tuple[int, bool]:
    """Choose the epoch to write in among those whose keys are here; say if members write in one whose key is not.

    While the rules demand a new epoch, it is one of those that the new one follows. A newcomer by a link holds an epoch
    before its beginning is known, and stays with it.
    """
    now, here = membership.now(), tables.held_epochs(repo.num)
    current = tables.epochs.get(repo.epoch_num)
    if not membership.operations.epochs or (current is not None and current.epoch_id not in here):
        return repo.epoch_num, repo.is_behind
    preferred = membership.epochs.find_preferred(now)
    if preferred is not None and preferred.started_epoch in here:
        return here[preferred.started_epoch].num, False
    tips = [one for one in now.epoch_tips() if one.started_epoch in here]
    return (here[preferred_epoch(tips).started_epoch].num if tips else repo.epoch_num), preferred is not None


def choose_writing_epoch(
    connection: Connection, tables: Tables, repo_num: int, membership: Membership
) -> None:
    """Write in the epoch that the membership prefers, of those whose keys are here."""
    repo = tables.repos[repo_num]
    number, is_behind = choose_epoch(membership, repo, tables)
    if (number, is_behind) != (repo.epoch_num, repo.is_behind):
        set_writing_epoch(connection, repo_num, number, is_behind=is_behind)


def show_names(connection: Connection, tables: Tables, repo_num: int, membership: Membership) -> None:
    """Call branches what the membership says that they are called."""
    names = find_branch_names(membership)
    for branch in tables.branches_in(repo_num):
        shown = names.get(branch.branch_id)
        if shown is not None and shown != BranchName(branch.name, branch.is_archived, branch.is_main):
            name_branch(
                connection,
                branch.num,
                shown.name,
                is_archived=shown.is_archived,
                is_main=shown.is_main,
            )


def is_lobby_full(membership: Membership, author: UserId) -> bool:
    """Return True if this is the membership of a lobby that takes no more of an author. Hold `membership_lock`.

    A stranger who holds its link may write into it. What comes beyond the bound is dropped, and asked for again later.
    """
    count = len(membership.operations)
    if count < LOBBY_COMMIT_COUNT_MAX or membership.lobbies.target(membership.operations) is None:
        return False
    return count >= LOBBY_OWN_COUNT_MAX or (membership.now().permission(author) or 0) < Permission.OWNER


def pending_parts(replica: Replica, repo_id: RepoId) -> int:
    """Return the number of parts of the room for pending commits, of which a topic of the repo has one."""
    return LOBBY_PENDING_SHARE if repo_id in replica.lobbies else 1
