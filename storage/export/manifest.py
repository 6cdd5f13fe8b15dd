"""Manifest of an export: parsed strictly, written atomically by one exporter."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from ravel.exports.schema import (
    EXPORT_FORMAT,
    NO_CHECKSUM,
    SCHEMA_VERSION,
    TABLES,
    has_manifest_checksum,
    with_manifest_checksum,
)
from storage.engine.database import StorageError

MANIFEST_SIZE_MAX: Final = 1 << 28
"""Bytes: over a million parts, at some 150 bytes each. `analytics.reading.limits` has the same."""
UNOPENED_COUNT_MAX: Final = 1_000
"""Damaged commits that each export tries to open again, in some 0.3 ms each. Of more, the others have rows only once the
export begins anew."""

_PART_PATH: Final = re.compile(r"[a-z_]+/[0-9A-Za-z-]+\.parquet")
"""A manifest may have been altered where it lay, and parts are deleted by their paths: no other is followed."""


class Part(msgspec.Struct, frozen=True):
    """Parquet file, under its path in the export."""

    path: str
    rows: int
    bytes: int
    blake3: str  # hex


class Replaced(msgspec.Struct, frozen=True):
    """Part that a manifest listed until then (unix seconds)."""

    path: str
    at: int


class Mark(msgspec.Struct, frozen=True):
    """Last row of a table that was exported: a store that has another one by this number is another store."""

    num: int
    commit_id: str  # hex


class Quotas(msgspec.Struct, frozen=True):
    """Most bytes that the node keeps for others: of all topics, of one topic, and of the topics that one peer brought."""

    total: int
    topic: int
    peer: int


class Holdings(msgspec.Struct, frozen=True):
    """Blocks that the store holds, and blocks that commits and files name, each as often as it is named."""

    blocks: int
    bytes: int
    referenced_blocks: int
    referenced_bytes: int


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """Manifest of an export (`ravel.exports.schema.MANIFEST_NAME`)."""

    node: str
    checksum: str = NO_CHECKSUM
    format: str = EXPORT_FORMAT
    schema_version: int = SCHEMA_VERSION
    created_at: int = 0
    watermark: int = 0
    relay_watermark: int = 0
    pseudonyms: str = ""
    has_bodies: bool = False
    has_blocks: bool = False
    blocks_watermark: int = 0
    relay_blocks_watermark: int = 0
    blocks_from: int = 0
    relay_blocks_from: int = 0
    quotas: Quotas | None = None
    holdings: Holdings | None = None
    holdings_of: str = ""  # of which tables
    tables: dict[str, list[Part]] = msgspec.field(default_factory=lambda: {name: [] for name in TABLES})
    replaced: list[Replaced] = []
    marks: dict[str, Mark] = {}
    roots: str = ""  # which were told; empty where any was damaged that nobody had taken out
    unjudged_repos: int = 0
    unopened: list[
        int
    ] = []  # damaged commits, by number, whose rows of `tangles` come once they are repaired

    def listed(self) -> Iterator[str]:
        """Yield the paths of all parts that are there."""
        return (part.path for parts in self.tables.values() for part in parts)


class _Stated(msgspec.Struct):
    format: str
    schema_version: int
    node: str


def decode_manifest(content: bytes, where: str, node: str) -> Manifest:
    """Decode a manifest of this node's, of any version up to ours. Raises StorageError that names `where`."""
    try:
        stated = msgspec.json.decode(content, type=_Stated)
        is_ours = (stated.format, stated.node) == (EXPORT_FORMAT, node)
        if not is_ours or stated.schema_version != SCHEMA_VERSION:
            raise StorageError(
                f"{where} is another node's export, or of another schema; choose another destination"
            )
        if not has_manifest_checksum(content):
            raise StorageError(
                f"{where} is damaged: its checksum is wrong; move the export away and export again"
            )
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(
            f"{where} is not a manifest ({error}); move the export away and export again"
        ) from None
    paths = [*manifest.listed(), *(one.path for one in manifest.replaced)]
    if not all(_PART_PATH.fullmatch(path) for path in paths):
        raise StorageError(
            f"{where} names parts outside of the export; move the export away and export again"
        )
    for name in TABLES:
        manifest.tables.setdefault(name, [])
    return manifest


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest for people and programs, with its checksum."""
    blank = msgspec.structs.replace(manifest, checksum=NO_CHECKSUM)
    return with_manifest_checksum(msgspec.json.format(msgspec.json.encode(blank), indent=1))
