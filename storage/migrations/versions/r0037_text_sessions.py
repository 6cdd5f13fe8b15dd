"""Revision 37: session numbers that were given to editors of texts."""

import sqlalchemy as sa
from alembic import op

revision = "r0037"
down_revision = "r0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """None were given before."""
    op.create_table(
        "text_sessions",
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("given_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "session"),
    )
