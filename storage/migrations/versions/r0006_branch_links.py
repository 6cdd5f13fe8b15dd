"""Revision 6: topics of branches that are followed by themselves, by a link that opens nothing else of their repo."""

import sqlalchemy as sa
from alembic import op

revision = "r0006"
down_revision = "r0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Such a topic belongs to no epoch that is known here, and brings what opens it."""
    with op.batch_alter_table("topics") as topics:
        topics.alter_column(
            "epoch_num", existing_type=sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True
        )
        topics.add_column(sa.Column("channel", sa.LargeBinary(), nullable=True))
