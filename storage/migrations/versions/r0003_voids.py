"""Revision 3: void commits, and every removal of a file."""

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is new, and carry over which files were removed."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("commits", sa.Column("is_void", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.drop_index("commits_order", "commits")
    op.create_index("commits_order", "commits", ["branch_num", "rank", "commit_id", "is_void"])
    op.add_column("branches", sa.Column("void_count", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "file_removals",
        sa.Column("file_num", num, nullable=False),
        sa.Column("commit_num", num, nullable=False),
        sa.PrimaryKeyConstraint("file_num", "commit_num"),
    )
    op.execute(
        "INSERT INTO file_removals (file_num, commit_num)"
        " SELECT num, removed_by FROM files WHERE removed_by IS NOT NULL"
    )
    with op.batch_alter_table("files") as files:
        files.drop_column("removed_by")
