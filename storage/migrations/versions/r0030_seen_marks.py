"""Revision 30: how far the user has seen each branch."""

import sqlalchemy as sa
from alembic import op

revision = "r0030"
down_revision = "r0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What is here at the migration counts as seen: the first page after it must not call a whole history new."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "seen_marks",
        sa.Column("branch_num", num, nullable=False),
        sa.Column("num", num, nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num"),
    )
    op.execute(
        "INSERT INTO seen_marks (branch_num, num, seen_at) "
        "SELECT branches.num, coalesce((SELECT max(commits.num) FROM commits), 0), 0 FROM branches"
    )
