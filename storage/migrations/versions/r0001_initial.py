"""Revision 1: the schema of release 0.1.

While it is the newest, its tables are those that `storage.schema` declares. Before revision 2 is written, the statements of
release 0.1 are written down here in their place. A test holds their hash, so that nobody changes a released schema unseen.
"""

from alembic import op

from storage.engine.revisions import schema_statements

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    for statement in schema_statements(op.get_bind().dialect):
        op.execute(statement)
