"""Revision 13: where peers were last reached, and how their addresses were learned."""

import sqlalchemy as sa
from alembic import op

revision = "r0013"
down_revision = "r0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nobody wrote down when a peer was reached; of peers that links named, the addresses are the links'."""
    op.add_column("peers", sa.Column("source", sa.String(), nullable=False, server_default="configured"))
    op.execute("UPDATE peers SET source = 'link' WHERE peer IN (SELECT peer FROM link_peers)")
    op.create_table(
        "reached_peers",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("reached_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    op.create_table(
        "reached_repos",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("repo_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("peer", "repo_id"),
    )
