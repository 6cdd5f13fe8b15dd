"""Revision 22: tables of what is damaged here and of given numbers are called so: damaged_commits and -blocks, sequences."""

import sqlalchemy as sa
from alembic import op

revision = "r0022"
down_revision = "r0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Made anew and copied, since a renamed table of PostgreSQL keeps the names of its constraints. They have few rows."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "damaged_commits",
        sa.Column("commit_num", num, nullable=False),
        sa.Column("topic_num", num, nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.execute("INSERT INTO damaged_commits SELECT commit_num, topic_num FROM awaited_commits")
    op.drop_table("awaited_commits")
    op.create_index("damaged_commits_topic", "damaged_commits", ["topic_num", "commit_num"])
    op.create_table(
        "damaged_blocks",
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("block_id"),
    )
    op.execute("INSERT INTO damaged_blocks SELECT block_id FROM awaited_blocks")
    op.drop_table("awaited_blocks")
    op.create_table(
        "sequences",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.execute("INSERT INTO sequences SELECT name, last FROM numbers")
    op.drop_table("numbers")
