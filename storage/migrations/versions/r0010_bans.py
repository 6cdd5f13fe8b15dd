"""Revision 10: peers that are not spoken with, and relays that may keep what is followed."""

import sqlalchemy as sa
from alembic import op

revision = "r0010"
down_revision = "r0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody is banned yet, and nobody a relay."""
    op.add_column("peers", sa.Column("is_banned", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("peers", sa.Column("is_relay", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "link_peers",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("repo_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("peer", "repo_id"),
    )
    with op.batch_alter_table("peers") as peers:  # anyone who is not banned is dialed
        peers.drop_column("is_dialed")
