"""Revision 35: whether the topic's signature that is kept with a commit was checked, or made here."""

import sqlalchemy as sa
from alembic import op

revision = "r0035"
down_revision = "r0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of commits that are here nobody has noted it: a holder of the topic's key signs them when it sends, as before."""
    op.add_column("commits", sa.Column("is_proven", sa.Boolean(), nullable=False, server_default=sa.false()))
