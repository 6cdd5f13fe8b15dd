"""Revision 11: sketches of topics, to compare them with others'."""

import sqlalchemy as sa
from alembic import op

revision = "r0011"
down_revision = "r0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """They are made when they are asked for."""
    op.create_table(
        "sketches",
        sa.Column("topic", sa.LargeBinary(32), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("prefix", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("topic"),
    )
