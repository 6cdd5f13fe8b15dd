"""Revision 19: commits and blocks that were damaged, and are asked of peers."""

import sqlalchemy as sa
from alembic import op

revision = "r0019"
down_revision = "r0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was taken out until now."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "awaited_commits",
        sa.Column("commit_num", num, nullable=False),
        sa.Column("topic_num", num, nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_index("awaited_commits_topic", "awaited_commits", ["topic_num", "commit_num"])
    op.create_table(
        "awaited_blocks",
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("block_id"),
    )
