"""Tables of a relay: topics, publications, files, blocks, shares per peer, accounts. `schema` explains the conventions."""

from sqlalchemy import BigInteger, Boolean, Column, Index, String, Table, column, false, true

from storage.schema.columns import NUM, Bytes, metadata

relay_topics = Table(
    "relay_topics",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("topic", Bytes(32), nullable=False, unique=True),
    Column("is_pinned", Boolean, nullable=False),
    Column("commit_count", BigInteger, nullable=False),
    Column("size", BigInteger, nullable=False),  # bytes of its publications
    Column("file_size", BigInteger, nullable=False, server_default="0"),  # of its files (`relay_files.size`)
    Column("touched_at", BigInteger, nullable=False),  # unix milliseconds: last asked for or added to
    Column("brought_by", Bytes(32)),  # the peer that entrusted it first; none: the operator
    Column("subnet", String, nullable=False, server_default=""),  # where a stranger brought it from
    Column("is_known", Boolean, nullable=False, server_default=false()),  # to a peer that the operator knows
    Column("is_shared", Boolean, nullable=False, server_default=false()),  # two peers have asked for it
    Index("relay_topics_touched", "touched_at"),
    Index("relay_topics_brought", "brought_by"),
    Index("relay_topics_subnet", "subnet"),
)
"""Topics that this node keeps for others and cannot open."""

relay_commits = Table(
    "relay_commits",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("id_key", BigInteger, nullable=False),
    Column("commit_id", Bytes(32), nullable=False),
    Column("topic_num", NUM, nullable=False),
    Column("rank", BigInteger, nullable=False),  # as far as the causes are here
    Column("acks", Bytes(), nullable=False),  # ids, 32 bytes each
    Column("publication", Bytes(), nullable=False),
    Column("received_at", BigInteger, nullable=False, server_default="0"),  # unix milliseconds; 0: not known
    Column("publication_id", Bytes(32), nullable=False, server_default=""),
    # Bytes 8 to 15 of its id. Of a commit's first publication `id_key` tells as much: its id begins with the commit's.
    Column("publication_key", BigInteger, nullable=False, server_default="0"),
    # As the commit's block states them.
    Column("mark", Bytes(8), nullable=False, server_default=""),
    Column("stated_rank", BigInteger, nullable=False, server_default="0"),
    # Others of the commit were here before; which of them open nobody can tell here.
    Column("is_variant", Boolean, nullable=False, server_default=false()),
    Index("relay_commits_id_key", "id_key", "is_variant", "num"),
    Index(
        "relay_commits_variants_key",
        "publication_key",
        sqlite_where=column("is_variant", Boolean) == true(),
    ),
    Index("relay_commits_topic", "topic_num", "num"),
    Index("relay_commits_window", "topic_num", "mark", "stated_rank", "num"),
    Index("relay_commits_variants", "topic_num", "is_variant"),
)
"""Publications, each once; of one commit there may be several."""

relay_bare = Table(
    "relay_bare",
    metadata,
    Column("topic_num", NUM, primary_key=True),
    Column("commit_num", NUM, primary_key=True),
)
"""Publications without their commit's body: `relay_commits.num`, by topic. Few, so no column of theirs."""

relay_shares = Table(
    "relay_shares",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("topic_num", NUM, primary_key=True),
    Column(
        "size", BigInteger, nullable=False
    ),  # bytes of publications and files of the topic that this peer brought
    Column("subnet", String, nullable=False, server_default=""),  # where a stranger first did so from
    Index("relay_shares_topic", "topic_num"),
    Index("relay_shares_subnet", "subnet"),
)

relay_sums = Table(
    "relay_sums",
    metadata,
    Column("peer", Bytes(32), primary_key=True),  # or `sums.ALL`
    Column("size", BigInteger, nullable=False),  # bytes: its shares, or of all topics
    Column("topic_count", BigInteger, nullable=False),  # topics that it was the first to entrust, or all
)
"""Sums of what peers have brought, so that a quota is asked without adding up (`storage.relay.sums`)."""

relay_files = Table(
    "relay_files",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("topic_num", NUM, nullable=False),
    Column("file_id", Bytes(32), nullable=False),
    Column(
        "claimed_size", BigInteger, nullable=False
    ),  # what it may count at most, as the topic's key signed
    Column(
        "size", BigInteger, nullable=False
    ),  # what its blocks count that are here: bytes, and some for each
    Column("signature", Bytes(64), nullable=False),
    Column("peer", Bytes(32), nullable=False),  # that deposited it first
    Column("is_whole", Boolean, nullable=False),
    Column(
        "touched_at", BigInteger, nullable=False
    ),  # unix milliseconds: when it last came on, or lost a block
    Column(
        "began_at", BigInteger, nullable=False, server_default="0"
    ),  # unix milliseconds: when its first block came
    Index("relay_files_file", "topic_num", "file_id", unique=True),
    Index("relay_files_unfinished", "topic_num", "is_whole", "touched_at"),
)
"""Files that this node keeps for others, and cannot open: those of a kept topic's branch."""

relay_blocks = Table(
    "relay_blocks",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("id_key", BigInteger, nullable=False),
    Column("block_id", Bytes(32), nullable=False),
    Column("encoded", Bytes(), nullable=False),
    Index("relay_blocks_id_key", "id_key"),
)
"""Blocks of these files, each once."""

relay_file_blocks = Table(
    "relay_file_blocks",
    metadata,
    Column("file_num", NUM, primary_key=True),
    Column("block_num", NUM, primary_key=True),
    Index("relay_file_blocks_block", "block_num"),
)
"""Blocks of files. A block that no file has goes with the last one that had it."""

relay_accounts = Table(
    "relay_accounts",
    metadata,
    Column("num", NUM, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("quota", BigInteger, nullable=False),  # bytes of what its nodes bring together
    Column("created_at", BigInteger, nullable=False),  # unix seconds
)
"""People for whom the operator keeps something."""

relay_account_nodes = Table(
    "relay_account_nodes",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("account_num", NUM, nullable=False),
    Index("relay_account_nodes_account", "account_num"),
)

relay_account_links = Table(
    "relay_account_links",
    metadata,
    Column("mark", Bytes(32), primary_key=True),  # of the link's secret
    Column("account_num", NUM, nullable=False),
    Column("expires_at", BigInteger, nullable=False),  # unix seconds
    Column("used_by", Bytes(32)),  # the node that showed it first
    Index("relay_account_links_account", "account_num"),
)

relay_allowed = Table("relay_allowed", metadata, Column("peer", Bytes(32), primary_key=True))
"""Peers that the operator of a relay knows, beside those that are kept or configured."""

relay_heads = Table(
    "relay_heads",
    metadata,
    Column("topic_num", NUM, primary_key=True),
    Column("commit_id", Bytes(32), primary_key=True),
    Column("rank", BigInteger, nullable=False),
)
