"""Branches and topics that commits of a root branch state: entered when these are accepted."""

from sqlalchemy import Connection

from node.ingest.replica import Tables
from protocol.body import BranchAdd
from protocol.epochs import EpochAdd
from protocol.signing import public_key
from storage.engine.database import Database
from storage.repos.repos import Branch, add_branch, branch_keys, follow_topic


def add_stated(
    database: Database, connection: Connection, tables: Tables, root: Branch, body: BranchAdd
) -> None:
    """Keep a branch, and follow it on the topic that it was added on; `root` is on that of the commit that adds it."""
    add_branch(database, connection, root.repo_num, body.branch, body.name, body.root.object_id)
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
) -> bool:
    """Follow the topics of an epoch, if its secrets are here; they may come later."""
    here = [
        one for one in tables.epochs.values() if (one.repo_num, one.epoch_id) == (root.repo_num, body.epoch)
    ]
    for epoch in here:
        for item in body.topics:
            follow_topic(database, connection, root.facts.repo_id, epoch, item.branch, item.topic)
    return bool(here)
