"""Revision 33: when a file that a relay keeps began to come."""

import sqlalchemy as sa
from alembic import op

revision = "r0033"
down_revision = "r0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of files that are here nothing is known but when blocks last came."""
    op.add_column("relay_files", sa.Column("began_at", sa.BigInteger(), nullable=False, server_default="0"))
    files = sa.table("relay_files", sa.column("began_at"), sa.column("touched_at"))
    op.execute(files.update().values(began_at=files.c.touched_at))
