"""Revision 34: which publications a relay keeps without the commit's body."""

import sqlalchemy as sa
from alembic import op

revision = "r0034"
down_revision = "r0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Relays of before have refused all bare ones."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "relay_bare",
        sa.Column("topic_num", num, primary_key=True, autoincrement=False),
        sa.Column("commit_num", num, primary_key=True, autoincrement=False),
    )
