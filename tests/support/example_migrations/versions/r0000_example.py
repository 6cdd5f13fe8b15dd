"""Revision 0, of no release: the schema of the first one without a column, a table and an index."""

from alembic import op

from storage.migrations.versions.r0001_initial import upgrade as make_tables

revision = "r0000"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables of before."""
    make_tables()
    op.drop_table("damaged_blocks")
    op.drop_index("commits_feed", "commits")
    with op.batch_alter_table("branches") as batch:
        batch.drop_column("is_archived")
