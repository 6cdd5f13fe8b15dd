"""Revision 17: whether the store's secrets are sealed. They are when it is first opened with a key (`store_seal`)."""

import sqlalchemy as sa
from alembic import op

revision = "r0017"
down_revision = "r0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The mark of the key that sealed the store's secrets: none yet."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "store_seal",
        sa.Column("num", num, nullable=False),
        sa.Column("mark", sa.LargeBinary(length=32), nullable=False),
        sa.Column("is_clean", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
