"""Revision 14: what cannot be opened is kept in each of its publications; relays note who brought what from where."""

import sqlalchemy as sa
from alembic import op

from protocol.codec import DecodeError
from protocol.publication import decode_publication
from storage.engine.id_keys import id_key

revision = "r0014"
down_revision = "r0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Until now a commit had one publication here, and nobody noted who brought a topic."""
    op.add_column(
        "relay_commits", sa.Column("publication_id", sa.LargeBinary(32), nullable=False, server_default="")
    )
    op.add_column(
        "relay_commits", sa.Column("publication_key", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column(
        "relay_commits", sa.Column("is_variant", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    _name_publications()
    op.drop_index("relay_commits_id_key", "relay_commits")
    op.create_index("relay_commits_id_key", "relay_commits", ["id_key", "is_variant", "num"])
    op.create_index("relay_commits_publication_key", "relay_commits", ["publication_key"])
    op.create_index("relay_commits_variants", "relay_commits", ["topic_num", "is_variant"])
    op.add_column("relay_topics", sa.Column("brought_by", sa.LargeBinary(32)))
    op.add_column("relay_topics", sa.Column("subnet", sa.String(), nullable=False, server_default=""))
    for name in ("is_known", "is_shared"):
        op.add_column(
            "relay_topics", sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
        )
    op.create_index("relay_topics_brought", "relay_topics", ["brought_by"])
    op.create_index("relay_topics_subnet", "relay_topics", ["subnet"])
    op.add_column("relay_shares", sa.Column("subnet", sa.String(), nullable=False, server_default=""))
    op.create_index("relay_shares_subnet", "relay_shares", ["subnet"])
    op.create_table(
        "relay_allowed",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    with op.batch_alter_table(
        "pending"
    ) as pending:  # of what cannot be read yet, every publication is kept, too
        pending.drop_constraint("pending_commit_id", type_="unique")
    op.create_index("pending_commit", "pending", ["commit_id"])
    op.drop_table("sketches")  # they are made when they are asked for, now of publications too
    op.create_table(
        "sketches",
        sa.Column("topic", sa.LargeBinary(32), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("prefix", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("topic", "place"),
    )


def _name_publications() -> None:
    kept = sa.table(
        "relay_commits",
        sa.column("num"),
        sa.column("commit_id"),
        sa.column("publication"),
        sa.column("publication_id"),
        sa.column("publication_key"),
    )
    connection = op.get_bind()
    last = -1
    while True:
        query = (
            sa.select(kept.c.num, kept.c.commit_id, kept.c.publication)
            .where(kept.c.num > last)
            .order_by(kept.c.num)
        )
        rows = connection.execute(query.limit(100)).all()
        if not rows:
            return
        for num, commit_id, encoded in rows:
            try:
                named = decode_publication(encoded).publication_id
            except DecodeError:  # the disk has damaged it: `ravel fsck` names it, and it must not stop a node
                named = commit_id
            values = {"publication_id": named, "publication_key": id_key(named[8:])}
            connection.execute(sa.update(kept).where(kept.c.num == num).values(values))
        last = rows[-1][0]
