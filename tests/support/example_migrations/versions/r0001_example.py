"""Revision 1, as if it followed another one."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = "r0000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what was not there before."""
    op.create_table(
        "damaged_blocks",
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("block_id"),
    )
    op.create_index("commits_feed", "commits", ["branch_num", "author_num", "feed_sequence"])
    with op.batch_alter_table("branches") as batch:
        batch.add_column(sa.Column("is_archived", sa.Boolean(), nullable=False, server_default=sa.false()))
