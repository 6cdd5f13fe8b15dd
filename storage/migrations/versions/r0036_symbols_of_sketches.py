"""Revision 36: coded symbols of a topic are brought up to date when they are asked for, its set digest always."""

import sqlalchemy as sa
from alembic import op

revision = "r0036"
down_revision = "r0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """What is kept has both of the same commits."""
    op.add_column("sketches", sa.Column("prefix_upto", sa.BigInteger(), nullable=False, server_default="0"))
    kept = sa.table("sketches", sa.column("upto"), sa.column("prefix_upto"))
    op.execute(kept.update().values(prefix_upto=kept.c.upto))
