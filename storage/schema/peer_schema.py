"""Tables of peers and their addresses. `schema` explains the conventions of all tables."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Table, false

from storage.schema.columns import NUM, Bytes, metadata

peers = Table(
    "peers",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("address", String, nullable=False),
    Column("is_banned", Boolean, nullable=False, server_default=false()),
    Column("is_relay", Boolean, nullable=False, server_default=false()),  # may keep all topics
    Column("source", String, nullable=False, server_default="configured"),  # of the address: or "link"
)

peer_addresses = Table(
    "peer_addresses",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("place", Integer, primary_key=True),  # 0 and up, in the order in which the link named them
    Column("address", String, nullable=False),
)
"""Further addresses of kept peers, beside the first one."""

relayed_files = Table(
    "relayed_files",
    metadata,
    Column("relay", Bytes(32), primary_key=True),
    Column("topic_num", NUM, primary_key=True),
    Column("file", Bytes(16), primary_key=True),
)
"""Files of this node's branches that relays have said to keep, by the first bytes of their ids."""

link_peers = Table(
    "link_peers",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("repo_id", Bytes(32), primary_key=True),
)
"""Peers that links to a repo named: relays among them may keep that repo's topics."""

reached_peers = Table(
    "reached_peers",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("address", String, nullable=False),
    Column("source", String, nullable=False),  # see `node.sync.addresses.Source`
    Column("reached_at", BigInteger, nullable=False),  # unix seconds
)
"""Places where peers last proved their keys, kept ones and learned ones."""

reached_repos = Table(
    "reached_repos",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("repo_id", Bytes(32), primary_key=True),
)
"""Repos for whose sake a learned peer is dialed."""

peer_users = Table(
    "peer_users",
    metadata,
    Column("peer", Bytes(32), primary_key=True),
    Column("user_id", Bytes(32), nullable=False),
    Column("repo_id", Bytes(32), nullable=False),  # in which the user is a member, and has a name
    Column("said_at", BigInteger, nullable=False),  # unix seconds
)
"""Users whose nodes peers are, as these have signed on a connection."""

repo_holders = Table(
    "repo_holders",
    metadata,
    Column("repo_num", NUM, primary_key=True),
    Column("peer", Bytes(32), primary_key=True),
    Column("held_at", BigInteger, nullable=False),  # unix milliseconds, this node's clock
    Column("upto", BigInteger, nullable=False),  # number of the last commit that was here then
)
"""Peers that were last seen to hold all that this node had of a repo."""
