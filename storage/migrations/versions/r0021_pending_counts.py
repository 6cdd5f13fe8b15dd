"""Revision 21: what waits says how many causes it lacks; its rows are narrow, and name causes by the keys of their ids."""

from array import array
from collections import Counter

import sqlalchemy as sa
from alembic import op

from storage.engine.id_keys import id_key

revision = "r0021"
down_revision = "r0020"
branch_labels = None
depends_on = None

_PAGE = 500


def upgrade() -> None:
    """Authors stand in what only the daemon can open: all that waited until now counts as one author's."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "pending_publications",
        sa.Column("pending_num", num, nullable=False),
        sa.Column("publication", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pending_num"),
    )
    op.execute("INSERT INTO pending_publications SELECT num, publication FROM pending")
    op.drop_index("pending_commit", "pending")
    op.drop_index("pending_topic", "pending")
    for name in ("id_key", "author_key", "size", "cause_count", "lacking"):
        op.add_column("pending", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE pending SET size = length(publication)")
    with op.batch_alter_table("pending") as pending:
        pending.drop_column("publication")
    connection = op.get_bind()
    counts = _move_causes(connection, num)
    _count(connection, counts)
    op.create_index("pending_id_key", "pending", ["id_key"])
    op.create_index("pending_reason", "pending", ["reason", "num"])
    op.create_index("pending_room", "pending", ["topic_num", "author_key", "size", "cause_count"])


def _move_causes(connection: sa.Connection, num: "sa.types.TypeEngine[int]") -> "Counter[int]":
    """Name causes by keys; how many each commit has. In memory they are 16 bytes each."""
    keys, nums = array("q"), array("q")
    rows = connection.execute(
        sa.text("SELECT cause, pending_num FROM pending_causes ORDER BY cause, pending_num")
    )
    last: int | None = None
    seen: set[int] = set()
    for cause, pending_num in rows:
        key = id_key(cause)
        if key != last:  # causes of one key come together
            last, seen = key, set()
        if pending_num not in seen:
            seen.add(pending_num)
            keys.append(key)
            nums.append(pending_num)
    op.drop_table("pending_causes")
    op.create_table(
        "pending_causes",
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("pending_num", num, nullable=False),
        sa.PrimaryKeyConstraint("id_key", "pending_num"),
        sqlite_with_rowid=False,
    )
    made = sa.table("pending_causes", sa.column("id_key"), sa.column("pending_num"))
    for start in range(0, len(keys), _PAGE):
        part = zip(keys[start : start + _PAGE], nums[start : start + _PAGE], strict=True)
        connection.execute(sa.insert(made), [{"id_key": key, "pending_num": one} for key, one in part])
    return Counter(nums)


def _count(connection: sa.Connection, counts: "Counter[int]") -> None:
    kept = sa.table(
        "pending",
        sa.column("num"),
        sa.column("commit_id"),
        sa.column("id_key"),
        sa.column("cause_count"),
        sa.column("lacking"),
    )
    last = -1
    while True:
        query = sa.select(kept.c.num, kept.c.commit_id).where(kept.c.num > last).order_by(kept.c.num)
        rows = connection.execute(query.limit(_PAGE)).all()
        if not rows:
            return
        for one, commit_id in rows:
            values = {"id_key": id_key(commit_id), "cause_count": counts[one], "lacking": counts[one]}
            connection.execute(sa.update(kept).where(kept.c.num == one).values(values))
        last = rows[-1][0]
