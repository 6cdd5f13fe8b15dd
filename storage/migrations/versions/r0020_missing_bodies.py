"""Revision 20: bodies that never came here, beside those that this node has erased."""

import sqlalchemy as sa
from alembic import op

revision = "r0020"
down_revision = "r0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """All that were not here were erased here until now."""
    op.add_column(
        "erasures", sa.Column("is_missing", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index("erasures_missing", "erasures", ["is_missing", "branch_num", "commit_num"])
