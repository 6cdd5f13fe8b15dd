"""Revision 23: when a commit came that had to wait for its causes."""

import sqlalchemy as sa
from alembic import op

revision = "r0023"
down_revision = "r0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Older versions did not record it: null and 0 stand for that."""
    op.add_column("commits", sa.Column("arrived_at", sa.BigInteger()))
    op.add_column("pending", sa.Column("arrived_at", sa.BigInteger(), nullable=False, server_default="0"))
