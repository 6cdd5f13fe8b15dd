"""Revision 2: files, and packs of large blocks."""

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "packs",
        sa.Column("num", num, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "pack_blocks",
        sa.Column("num", num, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("block_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("pack_num", num, nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("pack_blocks_id_key", "pack_blocks", ["id_key"], unique=False)
    op.create_table(
        "files",
        sa.Column("num", num, nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.Column("commit_num", num, nullable=False),
        sa.Column("object_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("object_key", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("removed_by", num, nullable=True),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("files_name", "files", ["branch_num", "name"], unique=False)
    op.create_index("files_object", "files", ["branch_num", "object_id"], unique=False)
    op.create_index("files_commit", "files", ["commit_num"], unique=False)
