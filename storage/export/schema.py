"""The export's schema, defined once: what the daemon writes as Parquet and what `analytics` reads.

An export is a folder, or a prefix of an object store:

    manifest.json              the one entry point; written last, and replaced in one piece
    commits/NAME.parquet       a row per commit, in acceptance order (causes stand before effects)
    voids/NAME.parquet         the commits that were void at the time of that export
    edits/NAME.parquet         what else happened to timelines: commits that left, came back, or moved
    bodies/NAME.parquet        what commits say; only where the operator has asked for it
    relay_commits/NAME.parquet a row per publication that the node took for others, and cannot open
    relay_topics/NAME.parquet  the topics that it kept for others at the time of that export
    blocks/NAME.parquet        the blocks of commits, ciphertext; only where the operator has asked for them
    relay_blocks/NAME.parquet  the same of what the node took for others
    memberships/NAME.parquet   what root branches say, and which of it counted at the time of that export
    members/NAME.parquet       who could do what then
    topics/NAME.parquet        of which branch and epoch each topic is

NAME is taken from the part's checksum, so a part never changes. The manifest lists every part with its row count and
BLAKE3 checksum. A table's folder holds the parts that the newest manifest lists and no others, so that a pattern such as
`commits/*.parquet` reads that export. A newer export of the same node adds parts, and may merge some into one; those that it
replaces stay for a while as kept/commits/NAME.parquet, for anyone who reads by an older manifest. In a folder of a file
system with hard links, kept/ has the listed parts too: that name of a part lasts longest. STATED tables hold one moment:
each export lists them anew.

This module is pure and imports nothing of Ravel, so that `analytics` may share it without knowing the node.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from blake3 import blake3

SCHEMA_VERSION: Final = 4
"""Raised whenever a column changes meaning or a table comes; readers refuse versions they do not know. 1 had `commits`
alone, 2 also `voids`; neither had the columns of ADDED_IN_3. Before 4 there were no `memberships`, `members` and `topics`,
no holdings, and no blocks."""

MANIFEST_NAME: Final = "manifest.json"
"""Keys: format "ravel-export", schema_version int, node str, created_at int (unix seconds), watermark int (the last
`sequence` of commits and edits that was looked at), relay_watermark int (the same of relay_commits), pseudonyms str (what
tells keys of pseudonyms apart, hex; "" where authors are themselves), has_bodies bool, has_blocks bool, blocks_watermark
and relay_blocks_watermark int (the last `sequence` of these two tables that was looked at), blocks_from and
relay_blocks_from int (the watermarks up to which commits and publications were exported before blocks were asked for: what
was forgotten in between has rows there and no blocks), quotas {"total", "topic", "peer"} in bytes or null where the node
keeps nothing for others, holdings {"blocks", "bytes", "referenced_blocks", "referenced_bytes"} or null where they were not
counted, tables {name: [{"path": str (relative), "rows": int, "bytes": int, "blake3": hex}]}, replaced [{"path": str, "at":
int (unix seconds)}], unjudged_repos int (repos without rows in RIGHTS, for their root branches are damaged), marks, roots
and holdings_of (for the exporter alone), checksum hex (see `has_manifest_checksum`; older manifests have none)."""

KEPT_NAME: Final = "kept"
"""The folder of parts that a newer export has replaced: a listed part that is not at its path is below it."""

EXPORT_FORMAT: Final = "ravel-export"

NO_CHECKSUM: Final = "0" * 64
"""Stands in a manifest while its checksum is computed."""

_CHECKSUM: Final = re.compile(rb'("checksum": ")([^"]*)(")')

_ID_LIST: Final = pa.list_(pa.field("element", pa.binary(32), nullable=False))


def with_manifest_checksum(content: bytes) -> bytes:
    """A manifest that has NO_CHECKSUM, with the right one: BLAKE3 (hex) of all its bytes as they were given."""
    return _with_checksum(content, blake3(content).hexdigest())


def has_manifest_checksum(content: bytes) -> bool:
    """Whether a manifest's bytes are what its checksum says, or it has none. This finds damage, and no forgery."""
    stated = _CHECKSUM.search(content)
    blank = _with_checksum(content, NO_CHECKSUM)
    return stated is None or stated[2] == blake3(blank).hexdigest().encode()


def _with_checksum(content: bytes, checksum: str) -> bytes:
    return _CHECKSUM.sub(lambda found: found[1] + checksum.encode() + found[3], content, count=1)


def _table(*columns: "tuple[str, pa.DataType]", optional: tuple[str, ...] = ()) -> pa.Schema:
    fields: list[pa.Field[Any]] = [pa.field(name, kind, nullable=name in optional) for name, kind in columns]
    return pa.schema(fields)


COMMITS: Final = _table(
    ("sequence", pa.int64()),  # acceptance order at this node, from 1, gaps allowed
    ("commit_id", pa.binary(32)),
    ("topic", pa.binary(32)),
    ("repo_id", pa.binary(32)),
    ("branch_id", pa.binary(32)),
    ("branch_name", pa.string()),
    ("author", pa.binary(32)),  # or what stands for it, where the manifest names pseudonyms
    ("acks", _ID_LIST),
    ("rank", pa.int64()),  # longest path to the branch's root, computed by the node
    ("position", pa.int64()),  # index in the branch's timeline at the watermark `position_at`; -1: void
    ("body_kind", pa.string()),
    ("size", pa.int64()),  # bytes of ciphertext of the commit's blocks
    ("time", pa.int64()),  # asserted by the author: unix milliseconds
    ("received_at", pa.int64()),  # by this node's clock: unix milliseconds
    ("feed_sequence", pa.int64()),  # place in the author's feed in this branch, from 1, as the author says
    ("blocks", pa.int64()),  # how many blocks the commit and its body have
    ("position_at", pa.int64()),  # watermark of the export that stated `position`
)
"""Positions move as earlier commits arrive late. The timeline's order is always (checkpoints passed, rank, commit_id);
see docs/explanation/order.md."""

ADDED_IN_3: Final = ("feed_sequence", "blocks", "position_at")
"""Columns of `commits` that older versions lack."""

VOIDS: Final = _table(("commit_id", pa.binary(32)))

EDITS: Final = _table(
    (
        "sequence",
        pa.int64(),
    ),  # of the numbers of `commits.sequence`: both together are the history of a timeline
    ("branch_id", pa.binary(32)),
    ("commit_id", pa.binary(32)),
    ("kind", pa.string()),  # insert (it came back), remove, move
    ("passed_before", pa.int64()),  # checkpoints; null where it did not stand in the timeline
    ("passed_after", pa.int64()),
    optional=("passed_before", "passed_after"),
)
"""A commit's first insert has no row: its row in `commits` is that. A node keeps a bounded number of these."""

BODIES: Final = _table(
    ("sequence", pa.int64()),
    ("commit_id", pa.binary(32)),
    ("body_kind", pa.string()),
    ("body", pa.binary()),  # as it is encoded, see docs/protocol.md
)

RELAY_COMMITS: Final = _table(
    (
        "sequence",
        pa.int64(),
    ),  # order of arrival at this node, from 1, gaps allowed; a commit may come more than once
    ("topic", pa.binary(32)),
    ("commit_id", pa.binary(32)),
    ("acks", _ID_LIST),
    ("blocks", pa.int64()),
    ("size", pa.int64()),  # bytes of the whole publication
    (
        "received_at",
        pa.int64(),
    ),  # by this node's clock: unix milliseconds; 0: taken before it was written down
)

RELAY_TOPICS: Final = _table(
    ("topic", pa.binary(32)),
    ("is_pinned", pa.bool_()),
    ("commits", pa.int64()),
    ("size", pa.int64()),  # bytes of its publications
    ("touched_at", pa.int64()),  # unix milliseconds: last asked for or added to
)

BLOCKS: Final = _table(
    ("sequence", pa.int64()),  # of the commit, or of the publication
    ("commit_id", pa.binary(32)),
    ("block_id", pa.binary(32)),  # the commit's own block has the commit's id
    (
        "size",
        pa.int64(),
    ),  # bytes of its encoding; null: the node knows that there is such a block, and has not got it
    ("child_ids", _ID_LIST),
    ("content", pa.binary()),  # its encoding, of the commit's own block; null of others
    optional=("size", "content"),
)
"""Of each commit its own block first, then its body's, then what these name and the node has not got with that commit."""
MEMBERSHIPS: Final = _table(
    ("sequence", pa.int64()),  # the commit's, as in `commits`
    ("commit_id", pa.binary(32)),
    ("repo_id", pa.binary(32)),
    ("operation", pa.string()),  # the commit's body_kind
    ("member", pa.binary(32)),  # whom it makes a member, raises or removes, as `author` is told
    ("permission", pa.string()),  # that it gives, or that a removal leaves
    ("epoch", pa.binary(32)),  # that it starts (its own id), or adds to
    ("reason", pa.string()),  # why an epoch was started: see REASONS
    ("sealed_to", pa.int64()),  # to how many members an epoch's secrets are sealed by it
    ("counts", pa.bool_()),  # by all that the node had of the root branch
    optional=("member", "permission", "epoch", "reason", "sealed_to"),
)
"""A row for each commit of a root branch, the init one for each founding owner. Nothing that opens anything is told."""

REASONS: Final = ("founding", "removal", "leave", "revocation", "merge", "renewal")
"""Why an epoch began: with the repo; a member was removed, or left, or an invitation was revoked, and no epoch before it
had that in its past; epochs that began at the same time became one; or somebody wished for it."""

PERMISSIONS: Final = ("read", "write", "manage", "admin", "owner")
"""Each includes those before it."""

MEMBERS: Final = _table(
    ("repo_id", pa.binary(32)),
    ("member", pa.binary(32)),
    ("permission", pa.string()),
    ("person", pa.binary(32)),  # the member whose device this one is
    optional=("person",),
)

TOPICS: Final = _table(
    ("topic", pa.binary(32)),
    ("repo_id", pa.binary(32)),
    ("branch_id", pa.binary(32)),
    ("epoch", pa.binary(32)),  # what started it; null: a branch that is followed by itself
    ("generation", pa.int64()),  # renewals of the branch in this epoch before it
    optional=("epoch",),
)

TABLES: Final[Mapping[str, pa.Schema]] = {
    "commits": COMMITS,
    "voids": VOIDS,
    "edits": EDITS,
    "bodies": BODIES,
    "relay_commits": RELAY_COMMITS,
    "relay_topics": RELAY_TOPICS,
    "blocks": BLOCKS,
    "relay_blocks": BLOCKS,
    "memberships": MEMBERSHIPS,
    "members": MEMBERS,
    "topics": TOPICS,
}
"""Table -> its columns, as this version writes them."""

RIGHTS: Final = ("memberships", "members")
"""Tables that take the store's key to write."""

STATED: Final = ("voids", "relay_topics", "topics", *RIGHTS)
"""Tables that each export states anew; the others grow."""

BLOCK_TABLES: Final = ("blocks", "relay_blocks")
"""Tables that are there where blocks are exported."""


def columns_of(table: str, version: int) -> pa.Schema:
    """The columns of a table as exports of a schema version have them."""
    schema = TABLES[table]
    if table != "commits" or version >= 3:
        return schema
    return pa.schema([field for field in schema if field.name not in ADDED_IN_3])
