"""Shows one commit with all its fields, or a branch's ancestors of a commit in canonical order."""

import heapq
from collections.abc import Iterable
from typing import cast

from sqlalchemy import Connection

from node.ingest.replica import Replica, load_blocks_of, open_stored
from node.timelines.commit_fields import author_fields, load_whole_blocks, opened_fields, stored_fields
from node.timelines.post_views import show_changes
from node.timelines.views import place_text
from node.timelines.why import explain, find_commit
from protocol.formats.text import id_text
from protocol.ids import CommitId
from ravel.types.commits import CommitItem, CommitView
from ravel.types.timelines import PastCommits
from storage.commits.commits import TimelineRow, load_position, load_rows
from storage.repos.repos import Branch


def describe(replica: Replica, text: str) -> CommitView:
    """Show the commit of that id or unique prefix, whole. Raises ServiceError `not_found`, `ambiguous`."""
    verdict = explain(replica, text)
    with replica.database.read() as connection:
        found = find_commit(connection, text)
        row = load_rows(connection, [found.commit_id]).get(found.commit_id)
        if row is None:  # kept or refused, and not read
            return cast("CommitView", verdict)  # the rest of its fields is optional
        branch = replica.branches[row.branch_num]
        encoded = load_blocks_of(connection, [row])[row.num]
        commit, body = open_stored(replica, row, encoded)
        content, links = commit.content, commit.links
        fields = opened_fields(replica, row, commit, body)
        show_changes(connection, replica, [(row, fields)])
        return {
            **verdict,
            **author_fields(replica, branch, row.author),
            "rank": row.rank,
            "feed_sequence": content.feed_sequence,
            "feed_previous": id_text(content.feed_previous) if content.feed_previous else None,
            "acks": [id_text(raw) for raw in commit.acks],
            "place": place_text(row.passed, row.rank, row.commit_id),
            "position": load_position(connection, row),
            "deps": [id_text(raw) for raw in links.deps],
            "negative_deps": [id_text(raw) for raw in links.ndeps],
            "files_added": [id_text(raw) for raw in links.files],
            "files_removed": [id_text(raw) for raw in links.nfiles],
            "tangles": {place.kind: [id_text(raw) for raw in place.previous] for place in content.tangles},
            "epoch": id_text(content.epoch),
            "kind": row.body_kind,
            "size": sum(map(len, encoded)),
            **fields,
        }


def list_past(replica: Replica, branch: Branch, text: str, limit: int) -> PastCommits:
    """List the last `limit` commits of the branch as it was at one of them. Raises ServiceError `not_found`, `ambiguous`."""
    with replica.database.read() as connection:
        found = find_commit(connection, text, [branch])
        rows = load_past(connection, branch, [found.commit_id], limit)
        blocks = load_whole_blocks(connection, rows)
        items: list[CommitItem] = [
            {
                "commit": id_text(row.commit_id),
                "rank": row.rank,
                **author_fields(replica, branch, row.author),
                "kind": row.body_kind,
                "acks": [id_text(ack) for ack in row.acks],
                **stored_fields(replica, row, blocks.get(row.num)),
            }
            for row in rows
        ]
        show_changes(connection, replica, list(zip(rows, items, strict=True)))
        return {"at": id_text(found.commit_id), "items": items}


def load_past(
    connection: Connection, branch: Branch, commit_ids: Iterable[CommitId], limit: int
) -> list[TimelineRow]:
    """List the last `limit` of these commits of a branch and their past, in canonical order, void ones passed over.

    The latest are found first: what is reached is taken by falling (checkpoints passed, rank, id).
    """
    known = {
        raw: row for raw, row in load_rows(connection, commit_ids).items() if row.branch_num == branch.num
    }
    levels: dict[tuple[int, int], list[TimelineRow]] = {}
    for row in known.values():
        levels.setdefault((-row.passed, -row.rank), []).append(row)
    ahead = list(levels)
    heapq.heapify(ahead)
    taken: list[TimelineRow] = []
    while ahead and len(taken) < limit:
        level = sorted(levels.pop(heapq.heappop(ahead)), key=lambda row: row.commit_id, reverse=True)
        taken += [row for row in level if not row.is_void]
        # Not `- known.keys()`: that goes over all of `known` at every rank.
        below = {ack for row in level for ack in row.acks if ack not in known}
        for raw, row in load_rows(connection, below).items():
            known[raw] = row
            place = (-row.passed, -row.rank)
            if place not in levels:
                levels[place] = []
                heapq.heappush(ahead, place)
            levels[place].append(row)
    return taken[:limit][::-1]
