"""Revision 5: epochs, and topics as rows of their own."""

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Every repo was in its first epoch, whose number becomes the repo's; every topic gets its branch's number."""
    num = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "epochs",
        sa.Column("num", num, nullable=False),
        sa.Column("repo_num", num, nullable=False),
        sa.Column("epoch_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("author", sa.LargeBinary(length=32), nullable=False),
        sa.Column("read_secret", sa.LargeBinary(length=32), nullable=False),
        sa.Column("write_secret", sa.LargeBinary(length=32), nullable=True),
        sa.ForeignKeyConstraint(["repo_num"], ["repos.num"]),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("repo_num", "epoch_id", "read_secret", name="epochs_in_repo"),
    )
    op.get_bind().execute(
        sa.text(
            "INSERT INTO epochs (num, repo_num, epoch_id, author, read_secret, write_secret)"
            " SELECT num, num, init_id, :nobody, read_secret, write_secret FROM repos"
        ),
        {"nobody": bytes(32)},
    )
    op.add_column("repos", sa.Column("epoch_num", num, nullable=False, server_default="0"))
    op.add_column("repos", sa.Column("is_behind", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.execute("UPDATE repos SET epoch_num = num")
    op.execute("UPDATE repos SET invitation = NULL")  # links of that form are not read any more
    op.drop_column("repos", "read_secret")
    op.drop_column("repos", "write_secret")

    op.execute("CREATE TEMPORARY TABLE old_branches AS SELECT * FROM branches")
    with op.batch_alter_table("branches") as branches:
        branches.drop_column("topic")
        branches.drop_column("generation")
    op.create_table(
        "topics",
        sa.Column("num", num, nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.Column("epoch_num", num, nullable=False),
        sa.Column("generation", num, nullable=False),
        sa.Column("topic", sa.LargeBinary(length=32), nullable=False),
        sa.Column("commit_count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_num"], ["branches.num"]),
        sa.ForeignKeyConstraint(["epoch_num"], ["epochs.num"]),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("topic"),
        sa.UniqueConstraint("branch_num", "epoch_num", "generation", name="topics_of_branch"),
    )
    op.execute(
        "INSERT INTO topics (num, branch_num, epoch_num, generation, topic, commit_count)"
        " SELECT num, num, repo_num, generation, topic, commit_count FROM old_branches"
    )
    op.execute("DROP TABLE old_branches")

    op.add_column("commits", sa.Column("topic_num", num, nullable=False, server_default="0"))
    op.execute("UPDATE commits SET topic_num = branch_num")
    op.drop_index("commits_arrival", "commits")
    op.create_index("commits_arrival", "commits", ["topic_num", "num"])
    op.add_column("pending", sa.Column("topic_num", num, nullable=False, server_default="0"))
    op.execute("UPDATE pending SET topic_num = branch_num")
    op.create_index("pending_topic", "pending", ["topic_num"])

    op.rename_table("heads", "old_heads")
    op.create_table(
        "heads",
        sa.Column("topic_num", num, nullable=False),
        sa.Column("commit_id", sa.LargeBinary(length=32), nullable=False),
        sa.Column("branch_num", num, nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("is_acked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("topic_num", "commit_id"),
    )
    op.create_index("heads_branch", "heads", ["branch_num"])
    op.execute(
        "INSERT INTO heads (topic_num, commit_id, branch_num, rank, is_acked)"
        " SELECT branch_num, commit_id, branch_num, rank, false FROM old_heads"
    )
    op.drop_table("old_heads")
