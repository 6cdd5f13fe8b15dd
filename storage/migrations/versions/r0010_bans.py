"""Revision 10: peers that are not spoken with."""

import sqlalchemy as sa
from alembic import op

revision = "r0010"
down_revision = "r0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody is banned yet."""
    op.add_column("peers", sa.Column("is_banned", sa.Boolean(), nullable=False, server_default=sa.false()))
