"""Marks, for each commit of a branch, which chosen commits (snapshots, compactions) have it as ancestor."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from protocol.ids import CommitId
from storage.commits.commits import load_graph
from storage.repos.repos import Branch


def find_pasts(
    connection: Connection, parts: Sequence[tuple[Branch, tuple[CommitId, ...]]], bits: Mapping[CommitId, int]
) -> dict[CommitId, int]:
    """Map each commit to the bits of those that have it in their past; those of none are left out.

    `parts` are a branch and what it continues (`lineage`). Costs a look at each commit of them, void ones included.
    """
    if not bits:
        return {}
    found: dict[CommitId, int] = {}
    later = 0
    for branch, commits in parts:
        for commit_id in commits:  # where what came later began
            found[commit_id] = found.get(commit_id, 0) | later
        for commit_id, acks in load_graph(connection, branch.num):
            own = bits.get(commit_id, 0)
            passed_on = found.get(commit_id, 0) | own
            later |= own
            if passed_on:
                for ack in acks:
                    found[ack] = found.get(ack, 0) | passed_on
    return found
