"""Revision 4: archived branches."""

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision = "r0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the mark."""
    op.add_column(
        "branches", sa.Column("is_archived", sa.Boolean(), nullable=False, server_default=sa.false())
    )
