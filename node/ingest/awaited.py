"""Commits that were damaged, when they come: their blocks are put back before anything is judged."""

from node.ingest.opening import OpenedBatch
from node.ingest.replica import Replica
from storage.commits.damaged import find_awaited, restore_commit
from storage.repos.repos import Branch


def restore_awaited(replica: Replica, branch: Branch, batch: OpenedBatch, now_ms: int) -> list[bytes]:
    """Put blocks back of commits that are awaited and came by this topic; gives their ids. Durable when it returns.

    Before verdicts, in a transaction of its own: a membership may be computed only of what this brings. Raises StorageError.
    """
    if not replica.has_awaited:
        return []
    by_id = {opened.signed.commit.commit_id: opened for opened in batch.opened}
    restored: list[bytes] = []
    with replica.database.write() as connection:
        for commit_id, awaited in find_awaited(connection, list(by_id)).items():
            if awaited.topic_num == branch.topic_num:
                opened = by_id[commit_id]
                found = (opened.signed.commit, opened.publication, opened.signed.body)
                restore_commit(replica.database, connection, branch.num, awaited, *found, now_ms)
                restored.append(commit_id)
    if restored:
        replica.sketches.forget(branch.topic)
    return restored
