"""Revision 27: which peers held all of a repo, and which own files no other node has fetched."""

import sqlalchemy as sa
from alembic import op

revision = "r0027"
down_revision = "r0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Of files that are here already nothing is known. The daemon removes those of other users: a store knows no own."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "repo_holders",
        sa.Column("repo_num", num, nullable=False),
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("held_at", sa.BigInteger(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("repo_num", "peer"),
    )
    op.create_table(
        "unfetched_files",
        sa.Column("file_num", num, nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.PrimaryKeyConstraint("file_num"),
    )
    op.create_index("unfetched_files_branch", "unfetched_files", ["branch_num", "file_num"])
    op.execute("INSERT INTO unfetched_files (file_num, branch_num) SELECT num, branch_num FROM files")
