"""Use of a relay's store, for its operator: who uses how much of it, and how fast it fills."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, case, func, select

from protocol.ids import PeerId
from protocol.limits.peers import RELAY_GROWTH_COUNT_MAX, RELAY_GROWTH_DAYS
from storage.engine.queries import sum_of
from storage.relay.quotas import ACCOUNT, KNOWN, PARTNER, STRANGER
from storage.relay.sums import ALL
from storage.schema.relay_schema import (
    relay_account_nodes,
    relay_allowed,
    relay_commits,
    relay_files,
    relay_sums,
)

_DAY_MS: Final = 24 * 60 * 60 * 1000
_HOUR_MS: Final = 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Usage:
    """Use by peers of one kind: how many they are, and bytes that are kept."""

    peers: int
    size: int


def load_usage(
    connection: Connection, partners: Collection[PeerId] = (), dialed: Collection[PeerId] = ()
) -> Mapping[str, Usage]:
    """Sum what peers have brought, by their kind now; `dialed` are known, too. Costs O(peers)."""
    sums, nodes = relay_sums.c, relay_account_nodes.c
    kind = case(
        (sums.peer.in_(select(nodes.peer)), ACCOUNT),
        (sums.peer.in_(partners), PARTNER),
        (sums.peer.in_(select(relay_allowed.c.peer)), KNOWN),
        (sums.peer.in_(dialed), KNOWN),
        else_=STRANGER,
    ).label("kind")
    # Written twice, the kind has other parameters in GROUP BY: another value to PostgreSQL.
    told = select(kind, sums.size).where(sums.size > 0, sums.peer != ALL).subquery().c
    query = select(told.kind, func.count(), sum_of(told.size)).group_by(told.kind)
    return {row[0]: Usage(row[1], int(row[2])) for row in connection.execute(query)}


def load_growth(connection: Connection, now_ms: int) -> int:
    """Compute the bytes a day that came in the last RELAY_GROWTH_DAYS, or since the first of them.

    Costs O(RELAY_GROWTH_COUNT_MAX).

    A file counts when it began: deposited again, after a cut or to bring a damaged block, it takes no room that it had not.
    The latest RELAY_GROWTH_COUNT_MAX of each are looked at: of more, the time that these took counts.
    """
    commits, files = relay_commits.c, relay_files.c
    return _growth(
        connection, relay_commits, commits.received_at, func.length(commits.publication), now_ms
    ) + _growth(connection, relay_files, files.began_at, files.size, now_ms)


def _growth(
    connection: Connection,
    table: Table,
    came_at: "ColumnElement[int]",
    size: "ColumnElement[int]",
    now_ms: int,
) -> int:
    latest = (
        select(came_at.label("at"), size.label("size"))
        .select_from(table)
        .order_by(table.c.num.desc())
        .limit(RELAY_GROWTH_COUNT_MAX)
        .subquery()
    )
    since = now_ms - RELAY_GROWTH_DAYS * _DAY_MS
    is_late = latest.c.at >= since
    query = select(func.count(), func.min(latest.c.at), sum_of(case((is_late, latest.c.size), else_=0)))
    count, first, total = connection.execute(query.select_from(latest)).one()
    if not count:
        return 0
    least = _HOUR_MS if count == RELAY_GROWTH_COUNT_MAX else _DAY_MS
    return int(total) * _DAY_MS // max(least, now_ms - max(int(first), since))
