"""Revision 18: when a relay took each publication."""

import sqlalchemy as sa
from alembic import op

revision = "r0018"
down_revision = "r0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody wrote it down until now: 0 stands for that."""
    op.add_column(
        "relay_commits", sa.Column("received_at", sa.BigInteger(), nullable=False, server_default="0")
    )
