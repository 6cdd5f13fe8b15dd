"""Revision 9: topics that a relay keeps for others."""

import sqlalchemy as sa
from alembic import op

revision = "r0009"
down_revision = "r0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """None are kept yet."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "relay_topics",
        sa.Column("num", num, nullable=False),
        sa.Column("topic", sa.LargeBinary(32), nullable=False),
        sa.Column("is_pinned", sa.Boolean(), nullable=False),
        sa.Column("commit_count", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("touched_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("topic"),
    )
    op.create_index("relay_topics_touched", "relay_topics", ["touched_at"])
    op.create_table(
        "relay_commits",
        sa.Column("num", num, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("topic_num", num, nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("acks", sa.LargeBinary(), nullable=False),
        sa.Column("publication", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("relay_commits_id_key", "relay_commits", ["id_key"])
    op.create_index("relay_commits_topic", "relay_commits", ["topic_num", "num"])
    op.create_table(
        "relay_shares",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("topic_num", num, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("peer", "topic_num"),
    )
    op.create_index("relay_shares_topic", "relay_shares", ["topic_num"])
    op.create_table(
        "relay_heads",
        sa.Column("topic_num", num, nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic_num", "commit_id"),
    )
