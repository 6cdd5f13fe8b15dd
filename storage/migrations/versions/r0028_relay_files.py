"""Revision 28: files that a relay keeps, and what this node knows of relays that keep its own."""

import sqlalchemy as sa
from alembic import op

revision = "r0028"
down_revision = "r0027"
branch_labels = None
depends_on = None

_NUM = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Relays kept publications alone until now."""
    op.add_column("relay_topics", sa.Column("file_size", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "relay_files",
        sa.Column("num", _NUM, primary_key=True),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("file_id", sa.LargeBinary(32), nullable=False),
        sa.Column("claimed_size", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("signature", sa.LargeBinary(64), nullable=False),
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("is_whole", sa.Boolean(), nullable=False),
        sa.Column("touched_at", sa.BigInteger(), nullable=False),
    )
    op.create_index("relay_files_file", "relay_files", ["topic_num", "file_id"], unique=True)
    op.create_index("relay_files_unfinished", "relay_files", ["topic_num", "is_whole", "touched_at"])
    op.create_table(
        "relay_blocks",
        sa.Column("num", _NUM, primary_key=True),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.Column("encoded", sa.LargeBinary(), nullable=False),
    )
    op.create_index("relay_blocks_id_key", "relay_blocks", ["id_key"])
    op.create_table(
        "relay_file_blocks",
        sa.Column("file_num", _NUM, nullable=False),
        sa.Column("block_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("file_num", "block_num"),
    )
    op.create_index("relay_file_blocks_block", "relay_file_blocks", ["block_num"])
    op.create_table(
        "relayed_files",
        sa.Column("relay", sa.LargeBinary(32), nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("file", sa.LargeBinary(16), nullable=False),
        sa.PrimaryKeyConstraint("relay", "topic_num", "file"),
    )
