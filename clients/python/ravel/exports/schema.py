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
    names/NAME.parquet         what repos and branches were called at the time of that export
    tangles/NAME.parquet       replies, edits, applications' threads: places in tangles that commits state
    dependencies/NAME.parquet  commits that commits build on, or take back
    files/NAME.parquet         files that commits add
    pending/NAME.parquet       the commits that waited at the time of that export, and for what
    rejections/NAME.parquet    the commits that the node had refused, and why
    views.sql                  the tables as views of DuckDB, also with ids as text

NAME is taken from the part's checksum, so a part never changes. The manifest lists every part with its row count and
BLAKE3 checksum. A table's folder holds the parts that the newest manifest lists and no others, so that a pattern such as
`commits/*.parquet` reads that export. A newer export of the same node adds parts, and may merge some into one; those that it
replaces stay for a while as kept/commits/NAME.parquet, for anyone who reads by an older manifest. In a folder of a file
system with hard links, kept/ has the listed parts too: that name of a part lasts longest. STATED tables hold one moment:
each export lists them anew.

This module is pure: the node writes by it, and anything reads by it without knowing the node.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
from blake3 import blake3

SCHEMA_VERSION: Final = 1
"""Raised whenever a column changes meaning or a table comes; readers refuse versions they do not know."""

MANIFEST_NAME: Final = "manifest.json"
"""Keys: format "ravel-export", schema_version int, node str, created_at int (unix seconds), watermark int (the last
`sequence` of commits and edits that was looked at), relay_watermark int (the same of relay_commits), pseudonyms str (what
tells keys of pseudonyms apart, hex; "" where authors are themselves), has_bodies bool, has_blocks bool, blocks_watermark
and relay_blocks_watermark int (the last `sequence` of these two tables that was looked at), blocks_from and
relay_blocks_from int (the watermarks up to which commits and publications were exported before blocks were asked for: what
was forgotten in between has rows there and no blocks), quotas {"total", "topic", "peer"} in bytes or null where the node
keeps nothing for others, holdings {"blocks", "bytes", "referenced_blocks", "referenced_bytes"} or null where they were not
counted, tables {name: [{"path": str (relative), "rows": int, "bytes": int, "blake3": hex}]}, replaced [{"path": str, "at":
int (unix seconds)}], unjudged_repos int (repos without rows in RIGHTS, for their root branches are damaged), marks, roots,
unopened and holdings_of (for the exporter alone), checksum hex (see `has_manifest_checksum`)."""

KEPT_NAME: Final = "kept"
"""The folder of parts that a newer export has replaced: a listed part that is not at its path is below it."""

EXPORT_FORMAT: Final = "ravel-export"

NO_CHECKSUM: Final = "0" * 64
"""Stands in a manifest while its checksum is computed."""

_CHECKSUM: Final = re.compile(rb'("checksum": ")([^"]*)(")')

TIME_MIN: Final = 1
"""Unix milliseconds. Zero is what an author without a clock states."""
TIME_END: Final = 7_258_118_400_000
"""2200-01-01 in unix milliseconds. Authors may state anything: columns of timestamps are null outside of these two, since
engines that count microseconds fail on what 64 bits of milliseconds can say."""


def with_manifest_checksum(content: bytes) -> bytes:
    """Return a manifest that has NO_CHECKSUM, with the right one: BLAKE3 (hex) of all its bytes as they were given."""
    return _with_checksum(content, blake3(content).hexdigest())


def has_manifest_checksum(content: bytes) -> bool:
    """Return True if a manifest's bytes are what its checksum says, or it has none. This finds damage, and no forgery."""
    stated = _CHECKSUM.search(content)
    blank = _with_checksum(content, NO_CHECKSUM)
    return stated is None or stated[2] == blake3(blank).hexdigest().encode()


def _with_checksum(content: bytes, checksum: str) -> bytes:
    return _CHECKSUM.sub(lambda found: found[1] + checksum.encode() + found[3], content, count=1)


def text_id(raw: bytes) -> str:
    """Return the text form of an id, as `ravel` writes and takes it: base32 (RFC 4648) in lower case, without padding.

    Texts do not sort like ids: base32 has its digits after its letters.
    """
    return base64.b32encode(raw).decode().rstrip("=").lower()


_MS: Final = "ms since 1970-01-01 UTC"
_BYTES: Final = "bytes"
_ID: Final = pa.binary(32)
_ID_LIST: Final = pa.list_(pa.field("element", pa.binary(), nullable=False))
_UTC: Final = pa.timestamp("ms", tz="UTC")
_INT: Final = pa.int64()
_TEXT: Final = pa.string()


class _Column(NamedTuple):
    """A column as it is declared: what it means goes into the field's metadata, with its unit where it has one."""

    name: str
    kind: pa.DataType
    description: str
    unit: str = ""
    optional: bool = False

    def as_field(self) -> "pa.Field[Any]":
        said = {"description": self.description} | ({"unit": self.unit} if self.unit else {})
        return pa.field(self.name, self.kind, nullable=self.optional, metadata=said)


def _utc(name: str, of: str) -> _Column:
    """Return a column of timestamps: it stands after the column of integers that it says again."""
    return _Column(name, _UTC, f"{of} as a timestamp; null outside of the years 1970 to 2199", optional=True)


def _table(description: str, *columns: _Column) -> pa.Schema:
    return pa.schema([column.as_field() for column in columns], metadata={"description": description})


_SEQUENCE: Final = "of the commit, as in `commits`"

COMMITS: Final = _table(
    "A row for each commit, in acceptance order: causes stand before effects.",
    _Column("sequence", _INT, "acceptance order at this node, from 1, with gaps"),
    _Column("commit_id", _ID, "the commit's id"),
    _Column("topic", _ID, "topic by which it came"),
    _Column("repo_id", _ID, "its repo: the id of the repo's root branch"),
    _Column("branch_id", _ID, "its branch"),
    _Column(
        "repo_name",
        _TEXT,
        "the repo's name at this node; null where the manifest names pseudonyms",
        optional=True,
    ),
    _Column(
        "branch_name",
        _TEXT,
        "the branch's name at this node; each repo has a branch `root`, and most a `main`",
    ),
    _Column("author", _ID, "the author's key, or what stands for it where the manifest names pseudonyms"),
    _Column(
        "source_author",
        _ID,
        "of an imported commit: a hash of its author's name in the system that it came from; keyed as pseudonyms are",
        optional=True,
    ),
    _Column("acks", _ID_LIST, "ids of its parents"),
    _Column("rank", _INT, "longest path to the branch's root, as the node computed it", "commits"),
    # Positions move as earlier commits arrive late. The timeline's order is always (checkpoints passed, rank, commit_id);
    # see docs/understanding/order.md.
    _Column("position", _INT, "index in the branch's timeline at the watermark `position_at`; -1: void"),
    _Column("body_kind", _TEXT, "kind of the body: post, imported, files, ..."),
    _Column("size", _INT, "ciphertext of the commit's blocks and its body's", _BYTES),
    _Column("time", _INT, "asserted by the author; anything is possible", _MS),
    _utc("time_utc", "`time`"),
    _Column("received_at", _INT, "acceptance, by this node's clock", _MS),
    _utc("received_utc", "`received_at`"),
    _Column(
        "shown_at",
        _INT,
        "where this node shows it in time: at `time`, at most at `received_at`, at least with the latest that it acks",
        _MS,
    ),
    _utc("shown_utc", "`shown_at`"),
    _Column(
        "arrived_at",
        _INT,
        "arrival, by this node's clock, of a commit that then waited for its causes; null of any other",
        _MS,
        optional=True,
    ),
    _utc("arrived_utc", "`arrived_at`"),
    _Column(
        "arrival",
        _INT,
        "order of arrival at this node, which no clock moves: of the numbers of `sequence`, and that of what did not wait",
    ),
    _Column("feed_sequence", _INT, "place in the author's feed in this branch, from 1, as the author says"),
    _Column("blocks", _INT, "blocks of the commit and its body", "blocks"),
    _Column("position_at", _INT, "watermark of the export that stated `position`"),
    _Column("files", _INT, "files that it adds", "files"),
    _Column("file_bytes", _INT, "their sizes together, as far as the author says", _BYTES),
)

VOIDS: Final = _table(
    "The commits that were void at the time of the export.", _Column("commit_id", _ID, "the commit's id")
)

EDITS: Final = _table(
    "Later changes of timelines. A commit's first insert is its row in `commits`. A node keeps a bounded number of these.",
    _Column(
        "sequence", _INT, "of the numbers of `commits.sequence`: both together are the history of a timeline"
    ),
    _Column("branch_id", _ID, "the branch"),
    _Column("commit_id", _ID, "the commit that left, came back or moved"),
    _Column("kind", _TEXT, "insert (it came back), remove, move"),
    _Column(
        "passed_before",
        _INT,
        "checkpoints before it until then; null where it did not stand in the timeline",
        optional=True,
    ),
    _Column("passed_after", _INT, "the same from then on", optional=True),
)

BODIES: Final = _table(
    "What commits say, of all branches but root branches.",
    _Column("sequence", _INT, _SEQUENCE),
    _Column("commit_id", _ID, "the commit's id"),
    _Column("body_kind", _TEXT, "kind of the body"),
    _Column("document", _TEXT, "name of the set, dict or JSON document that it is about; empty: it has none"),
    _Column("body", pa.binary(), "its encoding, see docs/specification/protocol.md"),
)

RELAY_COMMITS: Final = _table(
    "A row for each publication that the node took for others, and cannot open.",
    _Column("sequence", _INT, "order of arrival, from 1, with gaps; a commit may come more than once"),
    _Column("topic", _ID, "topic by which it came"),
    _Column("commit_id", _ID, "the commit's id"),
    _Column("acks", _ID_LIST, "ids of its parents"),
    _Column("blocks", _INT, "blocks of the publication", "blocks"),
    _Column("size", _INT, "the whole publication", _BYTES),
    _Column("received_at", _INT, "arrival, by this node's clock; 0: taken before it was written down", _MS),
    _utc("received_utc", "`received_at`"),
)

RELAY_TOPICS: Final = _table(
    "The topics that the node kept for others at the time of the export.",
    _Column("topic", _ID, "the topic"),
    _Column("is_pinned", pa.bool_(), "whether it is kept whatever comes"),
    _Column("commits", _INT, "publications kept", "publications"),
    _Column("size", _INT, "its publications", _BYTES),
    _Column("touched_at", _INT, "last asked for or added to", _MS),
    _utc("touched_utc", "`touched_at`"),
)

BLOCKS: Final = _table(
    "Blocks of each commit: its own, then its body's, then what these name and the node has not got with that commit.",
    _Column("sequence", _INT, "of the commit, or of the publication"),
    _Column("commit_id", _ID, "the commit's id"),
    _Column("block_id", _ID, "the block's id; the commit's own block has the commit's id"),
    _Column(
        "size",
        _INT,
        "its encoding; null: the node knows that there is such a block, and has not got it",
        _BYTES,
        optional=True,
    ),
    _Column("child_ids", _ID_LIST, "ids of its children"),
    _Column("content", pa.binary(), "the encoding of the commit's own block; null of others", optional=True),
)

MEMBERSHIPS: Final = _table(
    "A row for each commit of a root branch, the init one for each founding owner. Nothing that opens anything is told.",
    _Column("sequence", _INT, _SEQUENCE),
    _Column("commit_id", _ID, "the commit's id"),
    _Column("repo_id", _ID, "the repo"),
    _Column("operation", _TEXT, "the commit's body_kind"),
    _Column("member", _ID, "whom it makes a member, raises or removes, as `author` is told", optional=True),
    _Column("permission", _TEXT, "that it gives, or that a removal leaves", optional=True),
    _Column("epoch", _ID, "epoch that it starts (its own id), or adds to", optional=True),
    _Column("reason", _TEXT, "why the epoch began", optional=True),
    _Column("sealed_to", _INT, "members to which it seals an epoch's secrets", "members", optional=True),
    _Column("counts", pa.bool_(), "whether it counted, by all that the node had of the root branch"),
    _Column(
        "kind",
        _TEXT,
        "tangle in which it has a place: epoch (what starts epochs), members (who comes and goes in one), or null",
        optional=True,
    ),
    _Column("root", _ID, "the tangle's first commit: the repo's init, or its epoch's", optional=True),
    _Column("previous", _ID_LIST, "ids that it follows there", optional=True),
)

REASONS: Final = ("founding", "removal", "leave", "revocation", "merge", "renewal")
"""Why an epoch began: with the repo; a member was removed, or left, or an invitation was revoked, and no epoch before it
had that in its past; epochs that began at the same time became one; or somebody wished for it."""

PERMISSIONS: Final = ("read", "write", "manage", "admin", "owner")
"""Each includes those before it."""

MEMBERS: Final = _table(
    "Who could do what at the time of the export.",
    _Column("repo_id", _ID, "the repo"),
    _Column("member", _ID, "the member, as `author` is told"),
    _Column("permission", _TEXT, "read, write, manage, admin or owner"),
    _Column("person", _ID, "the member whose device this one is", optional=True),
)

TOPICS: Final = _table(
    "Of which epoch each topic is: a row for each of them, if one topic is of several.",
    _Column("topic", _ID, "the topic"),
    _Column("repo_id", _ID, "the repo"),
    _Column("kind", _TEXT, "epoch (its own), writers (its writers' topic), branch (of one branch in it)"),
    _Column("branch_id", _ID, "the branch of a topic of one branch; else null", optional=True),
    _Column("epoch", _ID, "what started it; null: a branch that is followed by itself", optional=True),
)

NAMES: Final = _table(
    "What repos and branches were called at the time of the export: rows of `commits` have the names of their time.",
    _Column("repo_id", _ID, "the repo"),
    _Column("branch_id", _ID, "the branch"),
    _Column(
        "repo_name",
        _TEXT,
        "the repo's name at this node; null where the manifest names pseudonyms",
        optional=True,
    ),
    _Column("branch_name", _TEXT, "the branch's name at this node"),
)

TANGLES: Final = _table(
    "A row for each place in a further tangle that a commit states, by its author's word.",
    _Column("sequence", _INT, _SEQUENCE),
    _Column("commit_id", _ID, "the commit's id"),
    _Column(
        "kind", _TEXT, "reply, edit, delete, group (what its author had seen of members), or an application's"
    ),
    _Column("root", _ID, "the tangle's first commit"),
    _Column("previous", _ID_LIST, "ids that it follows there: of a reply, what it answers"),
)

DEPENDENCIES: Final = _table(
    "A row for each commit that states dependencies.",
    _Column("sequence", _INT, _SEQUENCE),
    _Column("commit_id", _ID, "the commit's id"),
    _Column("deps", _ID_LIST, "ids of commits that it builds on"),
    _Column("negative_deps", _ID_LIST, "ids of commits that it takes back"),
)

FILES: Final = _table(
    "A row for each file that a commit adds, also those removed since.",
    _Column("sequence", _INT, _SEQUENCE),
    _Column("commit_id", _ID, "the commit's id"),
    _Column(
        "object_id",
        _ID,
        "the file's id: of its content as it is encrypted in the repo's epoch; a keyed hash of that beside pseudonyms",
    ),
    _Column("name", _TEXT, "name; null if the export has no bodies or the thing has no name", optional=True),
    _Column("size", _INT, "its size, as the author says", _BYTES, optional=True),
)

PENDING: Final = _table(
    "Commits that waited at the time of the export.",
    _Column("commit_id", _ID, "the commit's id"),
    _Column("topic", _ID, "topic by which it came"),
    _Column(
        "branch_id",
        _ID,
        "its branch, or the root branch while that is not known; null: unread",
        optional=True,
    ),
    _Column(
        "reason", _TEXT, "causes, ready (they have come), version (of a format that the node does not know)"
    ),
    _Column("lacking", _INT, "causes that it lacks", "commits"),
    _Column("size", _INT, "its publication", _BYTES),
    _Column("arrived_at", _INT, "arrival, by this node's clock", _MS, optional=True),
    _utc("arrived_utc", "`arrived_at`"),
    _Column("arrival", _INT, "order of arrival, as in `commits`"),
)

REJECTIONS: Final = _table(
    "Commits that the node had refused at the time of the export. A node keeps a bounded number of these.",
    _Column("commit_id", _ID, "the commit's id"),
    _Column("branch_id", _ID, "the branch"),
    _Column("code", _TEXT, "why: docs/specification/protocol.md has the codes"),
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
    "names": NAMES,
    "tangles": TANGLES,
    "dependencies": DEPENDENCIES,
    "files": FILES,
    "pending": PENDING,
    "rejections": REJECTIONS,
}
"""Table -> its columns, as this version writes them."""

_ASCENDING: Final = (
    "commits",
    "edits",
    "bodies",
    "relay_commits",
    "blocks",
    "relay_blocks",
    "tangles",
    "dependencies",
    "files",
)
SORTED: Final[Mapping[str, tuple[str, ...]]] = dict.fromkeys(_ASCENDING, ("sequence",))
"""Table -> the columns that its rows ascend by, in each part and from part to part."""

RIGHTS: Final = ("memberships", "members")
"""Tables that take the store's key to write."""

STATED: Final = ("voids", "relay_topics", "topics", "names", "pending", "rejections", *RIGHTS)
"""Tables that each export states anew; the others grow."""

HEADER_TABLES: Final = ("tangles", "dependencies")
"""Tables of what commits' headers state."""

BLOCK_TABLES: Final = ("blocks", "relay_blocks")
"""Tables that are there where blocks are exported."""
