"""Fills in data that arrives late for stored commits: damaged blocks, and bodies that were absent."""

from collections.abc import Sequence

from sqlalchemy import Connection

from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import Opened, OpenedBatch
from node.ingest.replica import Replica
from protocol.block import Block
from protocol.ids import CommitId
from storage.commits.absent_bodies import fill_bodies, is_any_missing
from storage.commits.damaged import find_damaged, restore_commit
from storage.engine.database import Database
from storage.repos.repos import Branch


def restore_damaged(replica: Replica, branch: Branch, batch: OpenedBatch, now_ms: int) -> list[CommitId]:
    """Put blocks back of commits that are damaged and came by this topic; gives their ids. Durable when it returns.

    Before verdicts, in a transaction of its own: a membership may be computed only of what this brings. Raises StorageError.
    """
    if not replica.has_damaged:
        return []
    by_id = {opened.signed.commit.commit_id: opened for opened in batch.opened}
    restored: list[CommitId] = []
    with replica.database.write() as connection:
        for commit_id, damaged in find_damaged(connection, list(by_id)).items():
            if damaged.topic_num == branch.topic_num:
                opened = by_id[commit_id]
                found = (opened.signed.commit, opened.publication, opened.signed.body)
                restore_commit(
                    replica.database,
                    connection,
                    branch.num,
                    damaged,
                    *found,
                    now_ms,
                    is_root_branch=branch.facts.is_root_branch,
                    is_proven=opened.is_from_topic,
                )
                restored.append(commit_id)
    if restored:
        replica.sketches.forget(branch.topic)
    return restored


def fill_missing(
    database: Database,
    connection: Connection,
    branch: Branch,
    again: Sequence[Opened],
    ingested: IngestResult,
) -> None:
    """Keep what is missing of the bodies of these commits, which are known here; say in `ingested` what came of it.

    Each body is what its commit names, no matter who sent it: the way in has looked at that.
    """
    if not again or not is_any_missing(connection, branch.num):
        return
    bodies: dict[CommitId, Block] = {}
    for opened in again:
        publication = opened.publication
        if publication.body_id is None and len(publication.blocks) == 2:
            bodies[publication.commit_id] = publication.blocks[1]
    ingested.filled |= fill_bodies(database, connection, bodies)
