"""Checks exports: their manifest, and every part that it lists.

An export is a folder as `ravel.exports.schema` describes it. Whatever is wrong with one is an `ExportError` that names
the file. Parts never change once a manifest lists them, so what was checked here is what is read later. A part that a newer
export has replaced meanwhile is read from where it is kept. `ravel.exports.fetching` brings exports that lie elsewhere.
"""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from blake3 import blake3

from ravel.exports.schema import (
    BLOCK_TABLES,
    EXPORT_FORMAT,
    KEPT_NAME,
    MANIFEST_NAME,
    SCHEMA_VERSION,
    TABLES,
    has_manifest_checksum,
)

MANIFEST_SIZE_MAX: Final = 256 << 20
"""Bytes. A part takes about 150 bytes of manifest, so this is over a million exports into one folder."""
MANIFEST_NUMBER_MAX: Final = 2**62
"""Rows, bytes, blocks, sequences that a manifest may state: no store has as many, and 64 bits hold them and their sums."""
COUNT_MAX: Final = 1 << 42
"""Bytes, blocks or files that a row may count: 4 TiB in one commit or topic are in no store."""
SUM_MAX: Final = 1 << 50
"""Sum of such a column over a table: no store has a PiB, and 64 bits hold the sums of thousands of exports."""
FILE_BYTES_MAX: Final = 1 << 47
"""Bytes of files that one commit may say to add: 128 files of a TiB, which its author need not have."""
CREATED_AT_MAX: Final = 7_258_118_399
"""Unix seconds at which an export may have been made: the last of the year 2199, as TIME_END has it."""

BODY_TABLES: Final = ("bodies",)
"""What people wrote. These and blocks are most of an export's bytes: they are checked and brought where that is asked."""

WATERMARKS: Final = {
    "commits": "watermark",
    "edits": "watermark",
    "bodies": "watermark",
    "relay_commits": "relay_watermark",
    "blocks": "blocks_watermark",
    "relay_blocks": "relay_blocks_watermark",
}
"""Tables that can be followed, and what the manifest calls the sequence up to which they are exported."""
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)

_COUNTED: Final = (b"bytes", b"blocks", b"publications", b"files")
"""Units of what is summed."""
_SUMMED: Final = frozenset(
    (table, column)
    for table in ("commits", "relay_commits", "relay_topics")
    for column in ("size", "blocks", "commits")
)
"""Columns that have SUM_MAX: the node has what they count. Of files authors say what they like."""
_ID_SIZE: Final = 32
_HASH_CHUNK_SIZE: Final = 1 << 20
_THREADS_MAX: Final = 16
_PROGRESS_SECONDS: Final = 2.0
_QUOTED_MAX: Final = 40
"""Characters of what should be a number, in an error."""


class ExportError(Exception):
    """The export is incomplete, altered, or of a schema this version does not know; the message names the file."""


@dataclass(frozen=True, slots=True)
class ExportPart:
    """One Parquet file of an export, as the manifest describes it."""

    path: Path  # on this machine; of a part that lies elsewhere, once it was brought
    rows: int
    size: int  # bytes
    blake3: str  # hex
    name: str  # path in the export, as the manifest has it
    url: str = ""  # of the export, where it lies elsewhere

    @property
    def place(self) -> str:
        """Path or URL, for errors."""
        return f"{self.url}/{self.name}" if self.url else str(self.path)

    @property
    def is_here(self) -> bool:
        """Return True unless it lies elsewhere and was not brought."""
        return not self.url or self.path != Path(self.name)


@dataclass(frozen=True, slots=True)
class Quotas:
    """Bytes that a relay keeps for others at most: of all topics, and of one."""

    total: int
    topic: int


@dataclass(frozen=True, slots=True)
class Holdings:
    """Counts of blocks that a store holds, and of references to them."""

    blocks: int
    bytes: int
    referenced_blocks: int
    referenced_bytes: int


@dataclass(frozen=True, slots=True)
class Export:
    """An export, as its manifest describes it."""

    source: str  # the path or URL that was given
    node: str
    schema_version: int
    created_at: int  # unix seconds
    watermark: int
    tables: Mapping[
        str, tuple[ExportPart, ...]
    ]  # all of TABLES, without parts where it was not asked for them
    pseudonyms: str = ""  # what tells keys of pseudonyms apart; "" where authors are themselves
    quotas: Quotas | None = None  # of a relay
    has_blocks: bool = False  # whether it was told to hold them
    blocks_from: int = 0  # of what came later every commit has rows of blocks
    relay_blocks_from: int = 0
    holdings: Holdings | None = None  # None where they were not counted
    has_bodies: bool = False  # likewise
    unjudged_repos: int = 0  # of which it tells no members, for their root branches are damaged
    watermarks: Mapping[str, int] = field(default_factory=dict)
    """Sequences up to which tables that can be followed are exported."""

    @property
    def parts(self) -> tuple[ExportPart, ...]:
        """Rows of commits."""
        return self.tables["commits"]

    @property
    def voids(self) -> tuple[ExportPart, ...]:
        """Rows of voids."""
        return self.tables["voids"]

    @property
    def rows(self) -> int:
        """Rows of all parts of commits."""
        return sum(part.rows for part in self.parts)

    @property
    def rows_in_all(self) -> int:
        """Rows of all parts of all tables."""
        return sum(part.rows for parts in self.tables.values() for part in parts)


def list_export(
    source: str, content: bytes, *, with_blocks: bool = False, with_bodies: bool = False
) -> Export:
    """Return the export that a manifest's bytes describe; no part is looked at. Raises ExportError."""
    folder = local_folder(source)
    place = f"{source.rstrip('/')}/{MANIFEST_NAME}" if folder is None else str(folder / MANIFEST_NAME)
    manifest = parse_manifest(content, place)
    try:
        created_at = _number(manifest["created_at"])
        if created_at > CREATED_AT_MAX:
            raise ExportError(
                f"{place} says that it was made after the year 2199: created_at is {created_at}"
            )
        quotas = manifest.get("quotas")
        return Export(
            source=source,
            node=str(manifest["node"]),
            schema_version=int(manifest["schema_version"]),
            created_at=created_at,
            watermark=_number(manifest["watermark"]),
            tables=_list_tables(manifest, source, place, with_blocks=with_blocks, with_bodies=with_bodies),
            pseudonyms=str(manifest.get("pseudonyms", "")),
            quotas=Quotas(_number(quotas["total"]), _number(quotas["topic"])) if quotas else None,
            has_blocks=manifest.get("has_blocks") is True,
            has_bodies=manifest.get("has_bodies") is True,
            blocks_from=_number(manifest.get("blocks_from", 0)),
            relay_blocks_from=_number(manifest.get("relay_blocks_from", 0)),
            holdings=_read_holdings(manifest.get("holdings")),
            unjudged_repos=_number(manifest.get("unjudged_repos", 0)),
            watermarks={table: _number(manifest.get(name, 0)) for table, name in WATERMARKS.items()},
        )
    except OSError as error:
        raise ExportError(f"{error.filename or source} cannot be read: {error.strerror}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{place} is not a manifest: {type(error).__name__} {error}") from None


def check_export(
    export: Export,
    *,
    bring: Callable[[ExportPart], ExportPart] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Export:
    """Check every part of an export that was listed, some at once. `bring` makes files of this machine of parts elsewhere.

    Raises ExportError.
    """
    try:
        return _check_parts(export, bring or (lambda part: part), progress)
    except OSError as error:
        raise ExportError(f"{error.filename or export.source} cannot be read: {error.strerror}") from None


def _read_holdings(stated: Mapping[str, object] | None) -> Holdings | None:
    return Holdings(*(_number(stated[field.name]) for field in fields(Holdings))) if stated else None


def _number(stated: object, largest: int = MANIFEST_NUMBER_MAX) -> int:
    """Return a whole number from 0 to `largest`. JSON as Python reads it has fractions, infinities and truth values, too."""
    if type(stated) is not int or not 0 <= stated <= largest:
        said = str(stated)[:_QUOTED_MAX] if isinstance(stated, int | float | str) else type(stated).__name__
        raise ValueError(f"{said} is no whole number from 0 to {largest}")
    return stated


def authors_agree(exports: Sequence[Export]) -> bool:
    """Return True if one author is called the same in all of these exports: themselves, or by pseudonyms of one key."""
    return len({export.pseudonyms for export in exports}) <= 1


def latest_exports(exports: Sequence[Export]) -> list[Export]:
    """Return the latest export of each node; of several in one second the last in the list."""
    return [*{export.node: export for export in sorted(exports, key=lambda one: one.created_at)}.values()]


def local_folder(source: str) -> Path | None:
    """Return the folder that a path or URL names, None where it is elsewhere."""
    url = _URL.fullmatch(source)
    if url is None:
        return Path(source)
    return Path(unquote(url[2])) if url[1] == "file" else None


def read_manifest(folder: Path) -> bytes:
    """Return the bytes of the manifest in a folder. Raises ExportError."""
    path = folder / MANIFEST_NAME
    try:
        if not path.is_file():
            raise ExportError(
                f"{path} is not there: this is not an export, or one that was never finished (`ravel export` makes one)"
            )
        if path.stat().st_size > MANIFEST_SIZE_MAX:
            raise ExportError(f"{path} is over {MANIFEST_SIZE_MAX >> 20} MiB, too large for a manifest")
        return path.read_bytes()
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}") from None


def parse_manifest(content: bytes, place: str) -> dict[str, Any]:
    """Return a manifest, of a version that is known. Raises ExportError."""
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        raise ExportError(f"{place} is not JSON: the export is damaged or was cut off") from None
    if not has_manifest_checksum(content):
        raise ExportError(f"{place} is damaged: its checksum is wrong")
    if not isinstance(manifest, dict) or manifest.get("format") != EXPORT_FORMAT:
        raise ExportError(f"{place} is not the manifest of a Ravel export")
    version = manifest.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ExportError(f"{place} states no schema version")
    if version != SCHEMA_VERSION:  # Ravel of before 0.1 wrote some of higher numbers, too
        raise ExportError(
            f"{place} is of schema version {version}, and this Ravel knows {SCHEMA_VERSION}: update Ravel, or export again"
        )
    return manifest


def _list_tables(
    manifest: Mapping[str, Any], source: str, place: str, *, with_blocks: bool, with_bodies: bool
) -> dict[str, tuple[ExportPart, ...]]:
    """Return the parts of each table that a manifest lists; `place` is what errors name.

    Those of blocks are passed over unless `with_blocks`, those of bodies unless `with_bodies`.
    Raises ExportError, KeyError, TypeError, ValueError.
    """
    listed = manifest["tables"]
    tables = {"commits": listed["commits"]}
    passed_over = {*(() if with_blocks else BLOCK_TABLES), *(() if with_bodies else BODY_TABLES)}
    for name in TABLES:
        if name != "commits":
            tables[name] = [] if name in passed_over else listed.get(name, [])
    return {name: tuple(_listed_parts(parts, source, place)) for name, parts in tables.items()}


def _listed_parts(listed: list[dict[str, Any]], source: str, place: str) -> list[ExportPart]:
    folder = local_folder(source)
    parts = []
    for row in listed:
        name = row["path"]
        # A manifest may come from someone else: what it lists stays inside its folder.
        if not isinstance(name, str) or Path(name).is_absolute() or ".." in Path(name).parts:
            raise ExportError(f"{place} lists a part outside of its folder: {name!r}")
        sizes = _number(row["rows"]), _number(row["bytes"])
        url = source.rstrip("/") if folder is None else ""
        parts.append(ExportPart((folder or Path()) / name, *sizes, str(row["blake3"]), name, url))
    if len({part.path for part in parts}) != len(parts):
        raise ExportError(f"{place} lists a part twice")
    return parts if folder is None else [find_part(part, folder) for part in parts]


def find_part(part: ExportPart, folder: Path) -> ExportPart:
    """Return a part in a folder of this machine by the path that it has longest. Raises ExportError, OSError.

    Where the exporter gives parts two names, that is the one under KEPT_NAME: the other goes when the part is replaced,
    which may be while Spark reads. Copying an export makes two files of them: the other is then the one that is meant.
    """
    kept = folder / KEPT_NAME / part.name
    _refuse_links(folder, part.path)
    _refuse_links(folder, kept)
    for _ in range(2):  # an export may move it from either place to the other in between
        with suppress(FileNotFoundError):
            return replace(part, path=kept) if kept.samefile(part.path) else part
        if kept.exists():
            return replace(part, path=kept)
        if part.path.exists():
            break
    return part


def _refuse_links(folder: Path, path: Path) -> None:
    """Refuse a path with symbolic links below the export's folder: they may lead out of it, or change."""
    while path != folder:
        if path.is_symlink():
            raise ExportError(f"{path} is a symbolic link: parts are files of the export's folder")
        path = path.parent


def _check_parts(
    export: Export, bring: Callable[[ExportPart], ExportPart], progress: Callable[[str], None] | None
) -> Export:
    """Check parts, some at once. Of several that are wrong the first is named."""
    expected = {table: TABLES[table] for table in export.tables}
    every = [(table, part) for table, parts in export.tables.items() for part in parts]
    found: dict[str, list[ExportPart]] = {table: [] for table in export.tables}
    sums = ColumnSums()
    told_at = time.monotonic()

    def check(one: tuple[str, ExportPart]) -> tuple[ExportPart, Mapping[str, int]]:
        part = bring(one[1]) if one[1].url else one[1]
        return part, check_part(part, expected[one[0]])

    # Hashing and reading files leave the interpreter to other threads.
    with ThreadPoolExecutor(min(_THREADS_MAX, 2 * (os.cpu_count() or 1))) as threads:
        try:
            for count, ((table, _), (part, counted)) in enumerate(
                zip(every, threads.map(check, every), strict=True), 1
            ):
                sums.add(table, part, counted)
                found[table].append(part)
                if progress is not None and time.monotonic() - told_at >= _PROGRESS_SECONDS:
                    progress(f"    {count:,} of {len(every):,} parts")
                    told_at = time.monotonic()
        except BaseException:  # an interrupt too: the parts that wait are not read for nothing
            threads.shutdown(cancel_futures=True)
            raise
    return replace(export, tables={table: tuple(parts) for table, parts in found.items()})


class ColumnSums:
    """Sums of the columns of one export that count something, over the parts that were checked."""

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, str]] = Counter()

    def add(self, table: str, part: ExportPart, counted: Mapping[str, int]) -> None:
        """Add what `check_part` counted. Raises ExportError for a sum that nothing can have."""
        self._sums.update({(table, name): number for name, number in counted.items()})
        for key in _SUMMED & self._sums.keys():
            if self._sums[key] > SUM_MAX:
                raise ExportError(
                    f"{part.place}: {key[1]} adds up to more than {SUM_MAX}, which nothing can have"
                )


def check_bytes(part: ExportPart) -> bytes:
    """Check that a part's file is as large as the manifest says, and unaltered; return its last bytes.

    Raises ExportError, OSError.
    """
    if not part.path.is_file():
        raise ExportError(f"{part.place} is missing, but the manifest lists it")
    size = part.path.stat().st_size
    if size != part.size:
        raise ExportError(f"{part.place} has {size} bytes, the manifest says {part.size}")
    hasher = blake3()
    last = b""
    with part.path.open("rb") as file:
        while chunk := file.read(_HASH_CHUNK_SIZE):
            hasher.update(chunk)
            last = chunk
    if hasher.hexdigest() != part.blake3:
        raise ExportError(f"{part.place} was altered: its BLAKE3 checksum is not the manifest's")
    return last


def check_part(part: ExportPart, expected: pa.Schema) -> Mapping[str, int]:
    """Check that a part is what the manifest says, with these columns; return the sums of those that count.

    Raises ExportError, OSError.
    """
    small = check_bytes(part)
    try:
        # To open a small file a second time would take as long as all else.
        source = pa.BufferReader(small) if len(small) == part.size else part.path
        with pq.ParquetFile(source) as file:
            footer, schema = file.metadata, file.schema_arrow
            rows = footer.num_rows
            in_groups = sum(footer.row_group(number).num_rows for number in range(footer.num_row_groups))
    except pa.ArrowException as error:
        raise ExportError(f"{part.place} is not a Parquet file: {error}") from None
    if rows != part.rows:
        raise ExportError(f"{part.place} has {rows} rows, the manifest says {part.rows}")
    if in_groups != rows:
        raise ExportError(f"{part.place} says that it has {rows} rows, its row groups have {in_groups}")
    alike = {name.lower() for name in schema.names}
    if len(alike) < len(schema.names):  # SQL does not tell them apart
        raise ExportError(f"{part.place} has columns whose names differ by no more than case, or not at all")
    wrong = _wrong_columns(schema, expected)
    if wrong:
        raise ExportError(f"{part.place} lacks columns, or has them of other types: {', '.join(wrong)}")
    return _check_values(part, schema, expected)


def _check_values(part: ExportPart, schema: pa.Schema, expected: pa.Schema) -> Mapping[str, int]:
    """Check each value that would stop a reader: nulls where there are none, ids of another length, counts that cannot be.

    Ravel's own files cannot hold nulls; those that can are looked through. Nulls inside of lists are another type, which was
    refused before. Costs O(rows).
    """
    nullable = {field.name for field in expected if not field.nullable and schema.field(field.name).nullable}
    lists = {field.name for field in expected if pa.types.is_list(field.type)}
    counts = {field.name for field in expected if (field.metadata or {}).get(b"unit", b"") in _COUNTED}
    looked_at = [name for name in expected.names if name in nullable | lists | counts]
    sums: Counter[str] = Counter()
    if not looked_at:
        return sums
    first = 0
    try:
        with pq.ParquetFile(part.path) as file:
            for batch in file.iter_batches(columns=looked_at):
                for name in looked_at:
                    column = batch.column(name)
                    wrong = _find_null(column) if name in nullable else None
                    if wrong is None and name in lists:
                        wrong = _find_short_id(column)
                    if wrong is None and name in counts:
                        wrong = _find_impossible(
                            column, FILE_BYTES_MAX if name == "file_bytes" else COUNT_MAX
                        )
                    if wrong is not None:
                        raise ExportError(f"{part.place} row {first + wrong[0]} (from 0): {name} {wrong[1]}")
                    if name in counts:
                        total: Any = pc.sum(pc.abs(column))
                        sums[name] += total.as_py() or 0
                first += batch.num_rows
    except pa.ArrowException as error:
        raise ExportError(f"{part.place} cannot be read near row {first}: {error}") from None
    return sums


_Wrong = tuple[int, str]
"""A row of a batch, and what is wrong with it."""


def _find_null(column: Any) -> _Wrong | None:  # noqa: ANN401  # an array
    return (pc.indices_nonzero(pc.is_null(column))[0].as_py(), "is null") if column.null_count else None


def _find_short_id(column: Any) -> _Wrong | None:  # noqa: ANN401  # an array of lists of ids
    sizes: Any = pc.binary_length(pc.list_flatten(column))
    wrong = pc.indices_nonzero(pc.not_equal(sizes, pa.scalar(_ID_SIZE, sizes.type)))
    if not len(wrong):
        return None
    return pc.list_parent_indices(column)[wrong[0].as_py()].as_py(), "holds an id that has not 32 bytes"


def _find_impossible(column: Any, largest: int) -> _Wrong | None:  # noqa: ANN401  # an array of numbers
    extremes: Any = pc.min_max(column).as_py()
    least, most = extremes["min"], extremes["max"]
    if least is None or -largest <= least <= most <= largest:
        return None
    row = next(
        row for row, one in enumerate(column.to_pylist()) if one in (least, most) and abs(one) > largest
    )
    return row, f"is beyond {largest}, which nothing can have"


def _wrong_columns(schema: pa.Schema, expected: pa.Schema) -> Sequence[str]:
    found = {field.name: field.type for field in schema}
    return [field.name for field in expected if found.get(field.name) != field.type]
