"""Revision 8: checkpoints, and how many of them each commit has passed: the first part of the canonical order."""

import sqlalchemy as sa
from alembic import op

revision = "r0008"
down_revision = "r0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing has passed any yet."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("commits", sa.Column("passed", sa.BigInteger(), nullable=False, server_default="0"))
    op.drop_index("commits_order", "commits")
    op.create_index("commits_order", "commits", ["branch_num", "passed", "rank", "commit_id", "is_void"])
    op.create_table(
        "checkpoints",
        sa.Column("commit_num", num, nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.Column("proposal", sa.LargeBinary(32), nullable=False),
        sa.Column("merged", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_index("checkpoints_branch", "checkpoints", ["branch_num"])
