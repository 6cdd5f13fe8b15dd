"""Revision 26: what posts say of other posts."""

import sqlalchemy as sa
from alembic import op

revision = "r0026"
down_revision = "r0025"
branch_labels = None
depends_on = None

_ORDER = ("is_void", "passed", "rank", "commit_id")
_STATED = sa.text("about IS NOT NULL")
_UNREAD = sa.text("relation IS NULL AND body_kind = 'post'")


def upgrade() -> None:
    """Headers are encrypted, so the daemon reads those of stored posts later: until then null stands for that."""
    op.add_column("commits", sa.Column("relation", sa.String()))
    op.add_column("commits", sa.Column("about", sa.LargeBinary(32)))
    for name, columns, where in (
        ("commits_about", ("branch_num", "about", "relation", "author_num", *_ORDER), _STATED),
        ("commits_threads", ("branch_num", "about", "relation", *_ORDER), _STATED),
        ("commits_unread_relations", ("num",), _UNREAD),
    ):
        op.create_index(name, "commits", list(columns), sqlite_where=where, postgresql_where=where)
