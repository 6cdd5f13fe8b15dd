"""Counts of all that is stored, and the latest arrival, as metrics and checks give them."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from storage.engine.queries import sum_of
from storage.schema.relay_schema import relay_topics
from storage.schema.schema import branches, commits, pending, topics


def load_newest_arrival(connection: Connection) -> int:
    """Return when the latest commit came, in Unix milliseconds; 0 where there is none."""
    query = select(func.coalesce(func.max(commits.c.received_at), 0))
    return int(connection.execute(query).scalar_one())


class StoredCounts(NamedTuple):
    """Counts of all that is stored, as metrics give them. Sizes are bytes."""

    commits: int
    voids: int
    branches: int
    topics: int
    pending: Mapping[str, int]
    """Commits that wait, by reason (`storage.commits.pending`)."""
    relay_topics: int
    relay_commits: int
    relay_size: int
    relay_file_size: int


def count_stored(connection: Connection) -> StoredCounts:
    """Count commits, branches, topics, and what is kept for others."""
    own = select(sum_of(branches.c.commit_count), sum_of(branches.c.void_count), func.count())
    relayed = select(
        func.count(),
        sum_of(relay_topics.c.commit_count),
        sum_of(relay_topics.c.size),
        sum_of(relay_topics.c.file_size),
    )
    per_reason = select(pending.c.reason, func.count()).group_by(pending.c.reason)
    return StoredCounts(
        *connection.execute(own).one(),
        connection.execute(select(func.count()).select_from(topics)).scalar_one(),
        {row[0]: row[1] for row in connection.execute(per_reason)},
        *connection.execute(relayed).one(),
    )
