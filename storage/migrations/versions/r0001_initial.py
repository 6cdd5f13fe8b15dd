"""Revision 1: repos, branches, blocks, commits, what waits, what was rejected, imports and peers."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "authors",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("user"),
    )
    op.create_table(
        "blocks",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("encoded", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("blocks_id_key", "blocks", ["id_key"], unique=False)
    op.create_table(
        "commits",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("author_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("feed_sequence", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("acks", sa.LargeBinary(), nullable=False),
        sa.Column("commit_key", sa.LargeBinary(length=32), nullable=False),
        sa.Column("sealed_key", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary(length=64), nullable=False),
        sa.Column("block_nums", sa.LargeBinary(), nullable=False),
        sa.Column("body_kind", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("commits_arrival", "commits", ["branch_num", "num"], unique=False)
    op.create_index("commits_feed", "commits", ["branch_num", "author_num", "feed_sequence"], unique=False)
    op.create_index("commits_id_key", "commits", ["id_key"], unique=False)
    op.create_index("commits_order", "commits", ["branch_num", "rank", "commit_id"], unique=False)
    op.create_table(
        "feed_forks",
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("author_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("feed_sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "commit_id"),
    )
    op.create_table(
        "heads",
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "commit_id"),
    )
    op.create_table(
        "imports",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("branch_num", "source", "source_id", name="imports_source_id"),
    )
    op.create_table(
        "peers",
        sa.Column("peer", sa.LargeBinary(length=32), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("is_dialed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    op.create_table(
        "pending",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("publication", sa.LargeBinary(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("commit_id", name="pending_commit_id"),
    )
    op.create_index("pending_branch", "pending", ["branch_num"], unique=False)
    op.create_table(
        "pending_causes",
        sa.Column("cause", sa.LargeBinary(length=32), nullable=False),
        sa.Column("pending_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.PrimaryKeyConstraint("cause", "pending_num"),
    )
    op.create_index("pending_causes_pending", "pending_causes", ["pending_num"], unique=False)
    op.create_table(
        "rejections",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("commit_id"),
    )
    op.create_index("rejections_branch", "rejections", ["branch_num"], unique=False)
    op.create_table(
        "repos",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("repo_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("init_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("init_key", sa.LargeBinary(length=32), nullable=False),
        sa.Column("read_secret", sa.LargeBinary(length=32), nullable=False),
        sa.Column("write_secret", sa.LargeBinary(length=32), nullable=True),
        sa.Column("invitation", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("repo_id"),
    )
    op.create_table(
        "branches",
        sa.Column("num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("repo_num", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("branch_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("topic", sa.LargeBinary(length=32), nullable=False),
        sa.Column("root_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("commit_count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_num"],
            ["repos.num"],
        ),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("repo_num", "branch_id", name="branches_in_repo"),
        sa.UniqueConstraint("topic"),
    )
