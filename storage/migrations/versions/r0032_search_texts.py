"""Revision 32: texts of branches in the search index."""

import sqlalchemy as sa
from alembic import op

revision = "r0032"
down_revision = "r0031"
branch_labels = None
depends_on = None

_NUM = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """An index that is there has passed over texts: all are noted to be read."""
    texts = op.create_table(
        "search_texts",
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("sources", sa.LargeBinary(), nullable=False),
        sa.Column("content", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("branch_num"),
    )
    commits = sa.table("commits", sa.column("branch_num"), sa.column("body_kind"))
    found = sa.select(commits.c.branch_num).where(
        commits.c.body_kind.in_(("text", "text-snapshot", "carried"))
    )
    rows = [
        {"branch_num": num, "due": 1, "sources": b""} for (num,) in op.get_bind().execute(found.distinct())
    ]
    op.bulk_insert(texts, rows)
