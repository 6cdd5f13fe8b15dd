"""Revision 25: several addresses of a peer that links named."""

import sqlalchemy as sa
from alembic import op

revision = "r0025"
down_revision = "r0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Links named one address for a peer until now."""
    op.create_table(
        "peer_addresses",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("peer", "place"),
    )
