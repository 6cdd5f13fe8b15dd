"""Revision 16: commits whose bodies were erased."""

import sqlalchemy as sa
from alembic import op

revision = "r0016"
down_revision = "r0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing was erased until now."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "erasures",
        sa.Column("commit_num", num, nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.Column("body_id", sa.LargeBinary(32), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_index("erasures_branch", "erasures", ["branch_num"])
