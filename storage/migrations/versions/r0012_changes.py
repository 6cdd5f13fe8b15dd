"""Revision 12: what became of commits in their timelines after they were inserted."""

import sqlalchemy as sa
from alembic import op

revision = "r0012"
down_revision = "r0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody wrote down what changed until now, so anyone who follows a branch begins after it."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "changes",
        sa.Column("num", num, nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.Column("commit_num", num, nullable=False),
        sa.Column("passed_before", sa.BigInteger()),
        sa.Column("passed_after", sa.BigInteger()),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("changes_branch", "changes", ["branch_num", "num"])
    op.create_index("changes_commit", "changes", ["commit_num", "num"])
    op.add_column("branches", sa.Column("changes_from", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE branches SET changes_from = (SELECT coalesce(max(num), 0) FROM commits)")
