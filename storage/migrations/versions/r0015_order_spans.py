"""Revision 15: counts of the canonical order, so that positions are found in a few steps; the order by time; heads found
by id, and by rank."""

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "r0015"
down_revision = "r0014"
branch_labels = None
depends_on = None

_PAGE: Final = 512
_COMMITS: Final = (
    "SELECT passed, rank, commit_id, CASE WHEN is_void THEN 0 ELSE 1 END FROM commits WHERE branch_num = :branch"
    " AND (passed, rank, commit_id) > (:passed, :rank, :id) ORDER BY passed, rank, commit_id LIMIT 512"
)
_SPANS: Final = (
    "SELECT passed, rank, commit_id, shown FROM order_spans WHERE branch_num = :branch AND level = :level - 1"
    " AND (passed, rank, commit_id) > (:passed, :rank, :id) ORDER BY passed, rank, commit_id LIMIT 128"
)
_SPAN: Final = (
    "INSERT INTO order_spans (branch_num, level, passed, rank, commit_id, size, shown)"
    " VALUES (:branch, :level, :passed, :rank, :id, :size, :shown)"
)
_PAGE_OF_ACKS: Final = (
    "SELECT num, commit_id, id_key, acks, timestamp, received_at FROM commits WHERE num > :num"
    " ORDER BY num LIMIT 512"
)
_TIMES: Final = "SELECT commit_id, display_time FROM commits WHERE id_key IN :keys"


def upgrade() -> None:
    """Counts are made span by span and times page by page: memory does not grow with the store."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "order_spans",
        sa.Column("branch_num", num, nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("passed", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("shown", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "level", "passed", "rank", "commit_id"),
        sqlite_with_rowid=False,
    )
    connection = op.get_bind()
    for (branch_num,) in connection.execute(sa.text("SELECT num FROM branches ORDER BY num")).all():
        level = 0
        while _make_level(connection, branch_num, level) > 1:
            level += 1
    op.add_column("commits", sa.Column("display_time", sa.BigInteger(), nullable=False, server_default="0"))
    _find_display_times(connection)
    op.create_index("commits_display", "commits", ["branch_num", "passed", "display_time", "num", "is_void"])
    op.drop_index("heads_branch", "heads")
    op.create_index("heads_branch", "heads", ["branch_num", "commit_id", "is_acked"])
    op.create_index("heads_rank", "heads", ["branch_num", "is_acked", "rank", "commit_id"])


def _make_level(connection: sa.Connection, branch_num: int, level: int) -> int:
    """Cut a branch's commits, or the level below, into spans; gives how many."""
    query = sa.text(_SPANS if level else _COMMITS)
    here: Mapping[str, object] = {"branch": branch_num, "level": level}
    begin: Mapping[str, object] = {"passed": 0, "rank": 0, "id": b""}
    read: Mapping[str, object] = {"passed": -1, "rank": 0, "id": b""}
    count = 0
    # The level's number means nothing where commits are read, and is no parameter there.
    while page := connection.execute(query, {**(here if level else {"branch": branch_num}), **read}).all():
        passed, rank, raw, _ = page[0]
        if count:
            begin = {"passed": passed, "rank": rank, "id": raw}
        sums = {"size": len(page), "shown": sum(row[3] for row in page)}
        connection.execute(sa.text(_SPAN), {**here, **begin, **sums})
        passed, rank, raw, _ = page[-1]
        read = {"passed": passed, "rank": rank, "id": raw}
        count += 1
    return count


def _find_display_times(connection: sa.Connection) -> None:
    """The earlier of the asserted time and that of arrival, and not before what is acked; causes have smaller numbers."""
    query = sa.text(_TIMES).bindparams(sa.bindparam("keys", expanding=True, type_=sa.BigInteger()))
    done = 0
    while page := connection.execute(sa.text(_PAGE_OF_ACKS), {"num": done}).all():
        acks = {raw: _unpack(row.acks) for raw, row in ((row.commit_id, row) for row in page)}
        named = sorted(
            {int.from_bytes(ack[:8], "big", signed=True) for some in acks.values() for ack in some}
        )
        times: dict[bytes, int] = {}
        for start in range(0, len(named), _PAGE):
            part = named[start : start + _PAGE]
            found = connection.execute(query, {"keys": part})
            times.update((raw, time) for raw, time in found)
        for row in page:
            latest = max((times[ack] for ack in acks[row.commit_id]), default=0)
            times[row.commit_id] = max(latest, min(row.timestamp, row.received_at))
        connection.execute(
            sa.text("UPDATE commits SET display_time = :time WHERE num = :num"),
            [{"num": row.num, "time": times[row.commit_id]} for row in page],
        )
        done = page[-1].num


def _unpack(packed: bytes) -> list[bytes]:
    return [packed[start : start + 32] for start in range(0, len(packed), 32)]
