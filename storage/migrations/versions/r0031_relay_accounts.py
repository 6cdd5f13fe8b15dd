"""Revision 31: accounts of a relay, their nodes and links."""

import sqlalchemy as sa
from alembic import op

revision = "r0031"
down_revision = "r0030"
branch_labels = None
depends_on = None

_NUM = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Peers were known by their keys alone until now."""
    op.create_table(
        "relay_accounts",
        sa.Column("num", _NUM, primary_key=True),
        sa.Column("name", sa.String(), nullable=False, unique=True),
        sa.Column("quota", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "relay_account_nodes",
        sa.Column("peer", sa.LargeBinary(32), primary_key=True),
        sa.Column("account_num", _NUM, nullable=False),
    )
    op.create_index("relay_account_nodes_account", "relay_account_nodes", ["account_num"])
    op.create_table(
        "relay_account_links",
        sa.Column("mark", sa.LargeBinary(32), primary_key=True),
        sa.Column("account_num", _NUM, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_by", sa.LargeBinary(32)),
    )
    op.create_index("relay_account_links_account", "relay_account_links", ["account_num"])
