"""The export's schema, defined once: what the daemon writes as Parquet and what `analytics` reads.

An export is a folder:

    manifest.json                 the one entry point; written last, renamed into place
    commits/part-00000001.parquet one row per commit, in acceptance order (causes stand before effects)
    voids/part-00000001.parquet   the commits that were void at the time of that export

`voids` is listed once: what is void changes, so each export states it anew.

`manifest.json` lists every part with its row count and BLAKE3 checksum; a part that it does not list is not there. A
newer export of the same node appends parts and replaces the manifest, so parts never change. This module is pure and
imports nothing of Ravel, so that `analytics` may share it without knowing the node.
"""

from typing import Any, Final

import pyarrow as pa

SCHEMA_VERSION: Final = 2
"""Raised whenever a column changes meaning; readers refuse versions they do not know. 1 had no `voids`."""

MANIFEST_NAME: Final = "manifest.json"
"""Keys: format "ravel-export", schema_version int, node str, created_at int (unix seconds), watermark int (the last
`sequence` exported), tables {"commits": [{"path": str (relative), "rows": int, "bytes": int, "blake3": hex}], "voids":
the same}."""

EXPORT_FORMAT: Final = "ravel-export"

_COMMIT_FIELDS: Final["list[pa.Field[Any]]"] = [
    pa.field("sequence", pa.int64(), nullable=False),  # acceptance order at this node, from 1, gaps allowed
    pa.field("commit_id", pa.binary(32), nullable=False),
    pa.field("topic", pa.binary(32), nullable=False),
    pa.field("repo_id", pa.binary(32), nullable=False),
    pa.field("branch_id", pa.binary(32), nullable=False),
    pa.field("branch_name", pa.string(), nullable=False),
    pa.field("author", pa.binary(32), nullable=False),
    pa.field("acks", pa.list_(pa.field("element", pa.binary(32), nullable=False)), nullable=False),
    pa.field("rank", pa.int64(), nullable=False),  # longest path to the branch's root, computed by the node
    pa.field(
        "position", pa.int64(), nullable=False
    ),  # index in the branch's timeline when exported; -1: void
    pa.field("body_kind", pa.string(), nullable=False),
    pa.field("size", pa.int64(), nullable=False),  # bytes of ciphertext of the commit's blocks
    pa.field("time", pa.int64(), nullable=False),  # asserted by the author: unix milliseconds
    pa.field("received_at", pa.int64(), nullable=False),  # by this node's clock: unix milliseconds
]
COMMITS: Final = pa.schema(_COMMIT_FIELDS)
"""Positions move as earlier commits arrive late, so `position` is true at the watermark of the part's own export only.
The timeline's order is always (checkpoints passed, rank, commit_id); see docs/order.md."""

VOIDS: Final = pa.schema([pa.field("commit_id", pa.binary(32), nullable=False)])
