"""Fills in data that arrives late for stored commits: damaged blocks, and bodies that were absent."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from node.ingest.ingest_result import IngestResult
from node.ingest.publication_parsing import Opened, OpenedBatch
from node.ingest.replica import Replica
from protocol.formats.block import Block
from protocol.ids import CommitId
from storage.commits.absent_bodies import fill_bodies
from storage.commits.damaged import find_damaged, restore_commit
from storage.engine.database import Database
from storage.repos.epochs import Topic
from verifier.verify import find_seen


@dataclass(frozen=True, slots=True)
class RestoredCommit:
    """A commit whose blocks are back."""

    commit_id: CommitId
    branch_num: int


def restore_damaged(replica: Replica, topic: Topic, batch: OpenedBatch, now_ms: int) -> list[RestoredCommit]:
    """Put back blocks of damaged commits on this topic. Durable on return.

    It runs before verdicts, in its own transaction: a membership may need these blocks. Raises StorageError.
    """
    if not replica.has_damaged:
        return []
    by_id = {opened.signed.commit.commit_id: opened for opened in batch.opened}
    restored: list[RestoredCommit] = []
    with replica.database.write() as connection:
        for commit_id, damaged in find_damaged(connection, list(by_id)).items():
            if damaged.topic_num == topic.num:
                opened = by_id[commit_id]
                commit = opened.signed.commit
                found = (commit, opened.publication, opened.signed.body)
                branch = replica.branches[damaged.branch_num]
                place = replica.tables.find_place(branch.repo_num, commit)
                restore_commit(
                    replica.database,
                    connection,
                    damaged,
                    *found,
                    now_ms,
                    epoch_num=0 if place is None else place[0].num,
                    seen=find_seen(branch.facts, commit),
                    is_root_branch=branch.facts.is_root_branch,
                    is_proven=opened.is_from_topic,
                )
                restored.append(RestoredCommit(commit_id, branch.num))
    tables = replica.tables
    for one in restored:  # it is in the sets of these again
        views = tables.links_of(one.branch_num)
        second = tables.find_second_place(tables.branches[one.branch_num].repo_num, one.commit_id, topic.num)
        for name in {
            topic.topic,
            *(view.topic for view in views),
            *(tables.topics[num].topic for num in second),
        }:
            replica.sketches.forget(name)
    return restored


def fill_missing(
    database: Database, connection: Connection, again: Sequence[Opened], ingested: IngestResult
) -> None:
    """Keep the missing bodies of these commits, which are known here; note the result in `ingested`.

    Each body is what its commit names, no matter who sent it: the way in has looked at that.
    """
    bodies: dict[CommitId, Block] = {}
    for opened in again:
        publication = opened.publication
        if publication.body_id is None and len(publication.blocks) == 2:
            bodies[publication.commit_id] = publication.blocks[1]
    filled = fill_bodies(database, connection, bodies)
    ingested.filled.update(filled)
    ingested.branches.update(filled.values())
    ingested.shown |= bodies.keys() - filled.keys()
