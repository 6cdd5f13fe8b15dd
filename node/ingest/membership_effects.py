"""Applies root branch commits to the tables of repos: new branches, topics, current epoch, names."""

from sqlalchemy import Connection

from node.ingest.tables import Tables, choose_epoch
from protocol.body import BranchAdd
from protocol.epochs import EpochAdd
from protocol.ids import CommitId
from protocol.signing import public_key
from storage.engine.database import Database
from storage.repos.repo_changes import name_branch, set_writing_epoch
from storage.repos.repos import Branch, add_branch, branch_keys, follow_topic
from verifier.membership import Membership
from verifier.names import find_branch_names


def add_stated(
    database: Database, connection: Connection, tables: Tables, root: Branch, body: BranchAdd
) -> None:
    """Keep a branch, and follow it on the topic that it was added on; `root` is on that of the commit that adds it."""
    add_branch(database, connection, root.repo_num, body.branch, body.name, CommitId(body.root.object_id))
    epoch = tables.epochs[root.epoch_num]
    follow_topic(
        database, connection, root.facts.repo_id, epoch, body.branch, body.topic, generation=body.generation
    )
    # Added in an older epoch than is written in, it has a topic in that one too, which a writer need not be told.
    current = tables.epochs.get(tables.repos[root.repo_num].epoch_num)
    if current is not None and current.num != epoch.num:
        keys = branch_keys(root.facts.repo_id, current.read_secret, current.write_secret, body.branch, 0)
        if keys.topic_seed is not None:
            topic = public_key(keys.topic_seed)
            follow_topic(database, connection, root.facts.repo_id, current, body.branch, topic)


def follow_stated(
    database: Database, connection: Connection, tables: Tables, root: Branch, body: EpochAdd
) -> None:
    """Follow the topics of an epoch, if its secrets are here; they may come later."""
    for epoch in [one for one in tables.epochs_in(root.repo_num) if one.epoch_id == body.epoch]:
        for item in body.topics:
            follow_topic(database, connection, root.facts.repo_id, epoch, item.branch, item.topic)


def choose_writing_epoch(
    connection: Connection, tables: Tables, repo_num: int, membership: Membership
) -> None:
    """Write in the epoch that the membership prefers, of those that are open here."""
    repo = tables.repos[repo_num]
    number, is_behind = choose_epoch(membership, repo, tables.epochs_of(repo, membership))
    if (number, is_behind) != (repo.epoch_num, repo.is_behind):
        set_writing_epoch(connection, repo_num, number, is_behind=is_behind)


def show_names(connection: Connection, tables: Tables, repo_num: int, membership: Membership) -> None:
    """Call branches what the membership says that they are called."""
    names = find_branch_names(membership)
    for branch in tables.branches_in(repo_num):
        shown = names.get(branch.branch_id)
        if shown is not None and (branch.name, branch.is_archived) != (shown.name, shown.is_archived):
            name_branch(connection, branch.num, shown.name, is_archived=shown.is_archived)
