"""Revision 1: the schema of release 0.1."""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

_NUM = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "authors",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("user", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("user"),
    )
    op.create_table(
        "awaited_adders",
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("adder", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("id_key", "commit_num", "adder"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "blocks",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("encoded", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("blocks_id_key", "blocks", ["id_key"])
    op.create_table(
        "changes",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("passed_before", sa.BigInteger(), nullable=True),
        sa.Column("passed_after", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("changes_branch", "changes", ["branch_num", "num"])
    op.create_index("changes_commit", "changes", ["commit_num", "num"])
    op.create_table(
        "checkpoints",
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("proposal", sa.LargeBinary(32), nullable=False),
        sa.Column("merged", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_index("checkpoints_branch", "checkpoints", ["branch_num"])
    op.create_table(
        "commits",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("epoch_num", _NUM, nullable=False),
        sa.Column("place_num", _NUM, nullable=False),
        sa.Column("author_num", _NUM, nullable=False),
        sa.Column("feed_sequence", sa.BigInteger(), nullable=False),
        sa.Column("feed_link", sa.LargeBinary(16), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("acks", sa.LargeBinary(), nullable=False),
        sa.Column("commit_key", sa.LargeBinary(32), nullable=False),
        sa.Column("signature", sa.LargeBinary(64), nullable=False),
        sa.Column("block_nums", sa.LargeBinary(), nullable=False),
        sa.Column("body_kind", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("is_void", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("passed", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("display_time", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("arrived_at", sa.BigInteger(), nullable=True),
        sa.Column("relation", sa.String(), nullable=True),
        sa.Column("about", sa.LargeBinary(32), nullable=True),
        sa.Column("is_proven", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index(
        "commits_about",
        "commits",
        ["branch_num", "about", "relation", "author_num", "is_void", "passed", "rank", "commit_id"],
        sqlite_where=sa.text("about IS NOT NULL"),
    )
    op.create_index("commits_arrival", "commits", ["topic_num", "num"])
    op.create_index("commits_branch", "commits", ["branch_num", "num", "epoch_num", "place_num"])
    op.create_index("commits_display", "commits", ["branch_num", "passed", "display_time", "num", "is_void"])
    op.create_index("commits_feed", "commits", ["branch_num", "author_num", "feed_sequence"])
    op.create_index("commits_id_key", "commits", ["id_key"])
    op.create_index("commits_order", "commits", ["branch_num", "passed", "rank", "commit_id", "is_void"])
    op.create_index(
        "commits_threads",
        "commits",
        ["branch_num", "about", "relation", "is_void", "passed", "rank", "commit_id"],
        sqlite_where=sa.text("about IS NOT NULL"),
    )
    op.create_index(
        "commits_unread_relations",
        "commits",
        ["num"],
        sqlite_where=sa.text("relation IS NULL AND body_kind = 'post'"),
    )
    op.create_table(
        "damaged_blocks",
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("block_id"),
    )
    op.create_table(
        "damaged_commits",
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_index("damaged_commits_topic", "damaged_commits", ["topic_num", "commit_num"])
    op.create_table(
        "erasures",
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("body_id", sa.LargeBinary(32), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=False),
        sa.Column("is_missing", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_index("erasures_branch", "erasures", ["branch_num"])
    op.create_index("erasures_missing", "erasures", ["is_missing", "topic_num", "commit_num"])
    op.create_table(
        "feed_forks",
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("author_num", _NUM, nullable=False),
        sa.Column("feed_sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "commit_id"),
    )
    op.create_table(
        "file_removals",
        sa.Column("file_num", _NUM, nullable=False),
        sa.Column("commit_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("file_num", "commit_num"),
    )
    op.create_table(
        "files",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("object_id", sa.LargeBinary(32), nullable=False),
        sa.Column("object_key", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("files_branch", "files", ["branch_num", "num"])
    op.create_index("files_commit", "files", ["commit_num"])
    op.create_index("files_name", "files", ["branch_num", "name"])
    op.create_index("files_object", "files", ["branch_num", "object_id"])
    op.create_table(
        "group_places",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("ids", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("group_places_key", "group_places", ["key"])
    op.create_table(
        "heads",
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("is_acked", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("topic_num", "commit_id"),
    )
    op.create_index("heads_branch", "heads", ["branch_num", "commit_id", "is_acked"])
    op.create_index("heads_rank", "heads", ["branch_num", "is_acked", "rank", "commit_id"])
    op.create_table(
        "imports",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("branch_num", "source", "source_id", name="imports_source_id"),
    )
    op.create_table(
        "late_removals",
        sa.Column("commit_num", _NUM, nullable=False),
        sa.Column("objects", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("commit_num"),
    )
    op.create_table(
        "link_peers",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("repo_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("peer", "repo_id"),
    )
    op.create_table(
        "order_spans",
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("passed", sa.BigInteger(), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("shown", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "level", "passed", "rank", "commit_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pack_blocks",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.Column("pack_num", _NUM, nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("pack_blocks_id_key", "pack_blocks", ["id_key"])
    op.create_table(
        "packs",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "peer_addresses",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("peer", "place"),
    )
    op.create_table(
        "peers",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("is_banned", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_relay", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("source", sa.String(), server_default="configured", nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    op.create_table(
        "pending",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("author_key", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("cause_count", sa.BigInteger(), nullable=False),
        sa.Column("lacking", sa.BigInteger(), nullable=False),
        sa.Column("arrived_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("pending_branch", "pending", ["branch_num"])
    op.create_index("pending_id_key", "pending", ["id_key"])
    op.create_index("pending_reason", "pending", ["reason", "num"])
    op.create_index("pending_room", "pending", ["topic_num", "author_key", "size", "cause_count"])
    op.create_table(
        "pending_causes",
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("pending_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("id_key", "pending_num"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pending_publications",
        sa.Column("pending_num", _NUM, nullable=False),
        sa.Column("publication", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pending_num"),
    )
    op.create_table(
        "reached_peers",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("reached_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    op.create_table(
        "reached_repos",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("repo_id", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("peer", "repo_id"),
    )
    op.create_table(
        "rejections",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("detail", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("commit_id"),
    )
    op.create_index("rejections_branch", "rejections", ["branch_num"])
    op.create_table(
        "relay_account_links",
        sa.Column("mark", sa.LargeBinary(32), nullable=False),
        sa.Column("account_num", _NUM, nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_by", sa.LargeBinary(32), nullable=True),
        sa.PrimaryKeyConstraint("mark"),
    )
    op.create_index("relay_account_links_account", "relay_account_links", ["account_num"])
    op.create_table(
        "relay_account_nodes",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("account_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    op.create_index("relay_account_nodes_account", "relay_account_nodes", ["account_num"])
    op.create_table(
        "relay_accounts",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("quota", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "relay_allowed",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.PrimaryKeyConstraint("peer"),
    )
    op.create_table(
        "relay_bare",
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("commit_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("topic_num", "commit_num"),
    )
    op.create_table(
        "relay_blocks",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("block_id", sa.LargeBinary(32), nullable=False),
        sa.Column("encoded", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("relay_blocks_id_key", "relay_blocks", ["id_key"])
    op.create_table(
        "relay_commits",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("id_key", sa.BigInteger(), nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.Column("acks", sa.LargeBinary(), nullable=False),
        sa.Column("publication", sa.LargeBinary(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("publication_id", sa.LargeBinary(32), server_default="", nullable=False),
        sa.Column("publication_key", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("is_variant", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("relay_commits_id_key", "relay_commits", ["id_key", "is_variant", "num"])
    op.create_index("relay_commits_publication_key", "relay_commits", ["publication_key"])
    op.create_index("relay_commits_topic", "relay_commits", ["topic_num", "num"])
    op.create_index("relay_commits_variants", "relay_commits", ["topic_num", "is_variant"])
    op.create_table(
        "relay_file_blocks",
        sa.Column("file_num", _NUM, nullable=False),
        sa.Column("block_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("file_num", "block_num"),
    )
    op.create_index("relay_file_blocks_block", "relay_file_blocks", ["block_num"])
    op.create_table(
        "relay_files",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("file_id", sa.LargeBinary(32), nullable=False),
        sa.Column("claimed_size", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("signature", sa.LargeBinary(64), nullable=False),
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("is_whole", sa.Boolean(), nullable=False),
        sa.Column("touched_at", sa.BigInteger(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("relay_files_file", "relay_files", ["topic_num", "file_id"], unique=True)
    op.create_index("relay_files_unfinished", "relay_files", ["topic_num", "is_whole", "touched_at"])
    op.create_table(
        "relay_heads",
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("commit_id", sa.LargeBinary(32), nullable=False),
        sa.Column("rank", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("topic_num", "commit_id"),
    )
    op.create_table(
        "relay_shares",
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("subnet", sa.String(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("peer", "topic_num"),
    )
    op.create_index("relay_shares_subnet", "relay_shares", ["subnet"])
    op.create_index("relay_shares_topic", "relay_shares", ["topic_num"])
    op.create_table(
        "relay_topics",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("topic", sa.LargeBinary(32), nullable=False),
        sa.Column("is_pinned", sa.Boolean(), nullable=False),
        sa.Column("commit_count", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("file_size", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("touched_at", sa.BigInteger(), nullable=False),
        sa.Column("brought_by", sa.LargeBinary(32), nullable=True),
        sa.Column("subnet", sa.String(), server_default="", nullable=False),
        sa.Column("is_known", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("topic"),
    )
    op.create_index("relay_topics_brought", "relay_topics", ["brought_by"])
    op.create_index("relay_topics_subnet", "relay_topics", ["subnet"])
    op.create_index("relay_topics_touched", "relay_topics", ["touched_at"])
    op.create_table(
        "relayed_files",
        sa.Column("relay", sa.LargeBinary(32), nullable=False),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("file", sa.LargeBinary(16), nullable=False),
        sa.PrimaryKeyConstraint("relay", "topic_num", "file"),
    )
    op.create_table(
        "repo_holders",
        sa.Column("repo_num", _NUM, nullable=False),
        sa.Column("peer", sa.LargeBinary(32), nullable=False),
        sa.Column("held_at", sa.BigInteger(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("repo_num", "peer"),
    )
    op.create_table(
        "repos",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("repo_id", sa.LargeBinary(32), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("init_id", sa.LargeBinary(32), nullable=False),
        sa.Column("init_key", sa.LargeBinary(), nullable=False),
        sa.Column("epoch_num", _NUM, nullable=False),
        sa.Column("is_behind", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("invitation", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("repo_id"),
    )
    op.create_table(
        "search_parts",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("base", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("oldest", sa.BigInteger(), nullable=False),
        sa.Column("newest", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_index("search_parts_branch", "search_parts", ["branch_num", "num"])
    op.create_table(
        "search_queue", sa.Column("commit_num", _NUM, nullable=False), sa.PrimaryKeyConstraint("commit_num")
    )
    op.create_table(
        "search_state",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("hash_key", sa.LargeBinary(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("rules", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_table(
        "search_texts",
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("sources", sa.LargeBinary(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("branch_num"),
    )
    op.create_table(
        "search_words",
        sa.Column("part_num", _NUM, nullable=False),
        sa.Column("word", sa.BigInteger(), nullable=False),
        sa.Column("places", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("part_num", "word"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "seen_marks",
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("num", _NUM, nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num"),
    )
    op.create_table(
        "sequences",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "sketches",
        sa.Column("topic", sa.LargeBinary(32), nullable=False),
        sa.Column("place", sa.String(), nullable=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("prefix", sa.LargeBinary(), nullable=False),
        sa.Column("prefix_upto", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("topic", "place"),
    )
    op.create_table(
        "store_seal",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("mark", sa.LargeBinary(32), nullable=False),
        sa.Column("is_clean", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("num"),
    )
    op.create_table(
        "text_sessions",
        sa.Column("branch_num", _NUM, nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("given_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("branch_num", "session"),
    )
    op.create_table(
        "topic_inits",
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("commit_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("topic_num", "commit_num"),
    )
    op.create_table(
        "unfetched_files",
        sa.Column("file_num", _NUM, nullable=False),
        sa.Column("branch_num", _NUM, nullable=False),
        sa.PrimaryKeyConstraint("file_num"),
    )
    op.create_index("unfetched_files_branch", "unfetched_files", ["branch_num", "file_num"])
    op.create_table(
        "branches",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("repo_num", _NUM, nullable=False),
        sa.Column("branch_id", sa.LargeBinary(32), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("root_id", sa.LargeBinary(32), nullable=False),
        sa.Column("commit_count", sa.BigInteger(), nullable=False),
        sa.Column("void_count", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("is_archived", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("changes_from", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["repo_num"],
            ["repos.num"],
        ),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("repo_num", "branch_id", name="branches_in_repo"),
    )
    op.create_table(
        "topics",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("topic", sa.LargeBinary(32), nullable=False),
        sa.Column("commit_count", sa.BigInteger(), nullable=False),
        sa.Column("branch_num", _NUM, nullable=True),
        sa.Column("epoch_num", _NUM, nullable=True),
        sa.Column("channel", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(
            ["branch_num"],
            ["branches.num"],
        ),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("topic"),
    )
    op.create_index("topics_branch", "topics", ["branch_num", "epoch_num"])
    op.create_table(
        "epochs",
        sa.Column("num", _NUM, nullable=False),
        sa.Column("repo_num", _NUM, nullable=False),
        sa.Column("epoch_id", sa.LargeBinary(32), nullable=False),
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("writers_secret", sa.LargeBinary(), nullable=True),
        sa.Column("topic_num", _NUM, nullable=False),
        sa.Column("writers_topic_num", _NUM, nullable=True),
        sa.Column("claimed_by", sa.LargeBinary(32), nullable=True),
        sa.ForeignKeyConstraint(
            ["repo_num"],
            ["repos.num"],
        ),
        sa.ForeignKeyConstraint(
            ["topic_num"],
            ["topics.num"],
        ),
        sa.ForeignKeyConstraint(
            ["writers_topic_num"],
            ["topics.num"],
        ),
        sa.PrimaryKeyConstraint("num"),
        sa.UniqueConstraint("repo_num", "epoch_id", "key", name="epochs_in_repo"),
    )
    op.create_index("epochs_topic", "epochs", ["topic_num"])
    op.create_index("epochs_writers_topic", "epochs", ["writers_topic_num"])
