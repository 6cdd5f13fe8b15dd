"""Revision 7: numbers that were given once are not given again, also when their rows are gone."""

import sqlalchemy as sa
from alembic import op

revision = "r0007"
down_revision = "r0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Remember the last one where rows are forgotten."""
    op.create_table(
        "numbers",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
