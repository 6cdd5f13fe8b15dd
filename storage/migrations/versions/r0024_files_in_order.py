"""Revision 24: an index that gives a branch's files in the order in which they came."""

from alembic import op

revision = "r0024"
down_revision = "r0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Files of older stores are indexed now."""
    op.create_index("files_branch", "files", ["branch_num", "num"])
