"""Revision 29: a search index."""

import sqlalchemy as sa
from alembic import op

revision = "r0029"
down_revision = "r0028"
branch_labels = None
depends_on = None

_NUM = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """It is empty: the daemon fills it, since texts are encrypted."""
    op.create_table(
        "search_state",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("hash_key", sa.LargeBinary(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("rules", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_table(
        "search_parts",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        *(
            sa.Column(name, sa.BigInteger(), nullable=False)
            for name in ("base", "first", "last", "oldest", "newest", "size")
        ),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("search_parts_branch", "search_parts", ["branch_num", "num"])
    op.create_table(
        "search_words",
        sa.Column("part_num", _NUM, nullable=False),
        sa.Column("word", sa.BigInteger(), nullable=False),
        sa.Column("places", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("part_num", "word"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "search_queue",
        sa.Column("commit_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
