"""Finds the branches that have news: those with commits in a part that only one of two analyses has read.

Parts never change, and each is checked against its BLAKE3 checksum. So where all parts with commits of a branch are the
same, its commits are. A part is told apart by its checksum and the number of its export, as two nodes may list the same
bytes. Neither sequences nor watermarks are believed: a commit that came late into an old branch, an export that was begun
anew and a merge of parts all show as other parts.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.incremental.state import BRANCHES_NAME, FOLDER, VOIDS_NAME, State, read_batches
from ravel.exports.checking import Export, ExportPart

_KINDS: Final[Mapping[str, pa.DataType]] = {"part": pa.string(), "branch_id": pa.binary()}
_BRANCHES: Final = pa.schema(_KINDS)
_IDS: Final = pa.schema([("commit_id", pa.binary())])
_CHANGED: Final = pa.schema([("branch_id", pa.binary())])


@dataclass(frozen=True, slots=True)
class Changes:
    """How exports differ from those that were analyzed before. Holds ids of branches alone."""

    branches: frozenset[bytes]  # with commits in parts that are new, or gone
    new_parts: Mapping[str, frozenset[bytes]]  # key of a part -> its branches
    common: int  # parts of both


def parts_by_key(exports: Sequence[Export]) -> dict[str, ExportPart]:
    """The parts with commits of some exports, each by a key that stays the same as long as the part is listed."""
    return {f"{number}:{part.blake3}": part for number, export in enumerate(exports) for part in export.parts}


def find_changes(out: Path, state: State, exports: Sequence[Export]) -> Changes:
    """Compare parts. Raises OSError, pyarrow's errors."""
    listed = parts_by_key(exports)
    new_parts = {key: branches_of(part) for key, part in listed.items() if key not in state.parts}
    branches = {branch_id for found in new_parts.values() for branch_id in found}
    gone = state.parts.keys() - listed.keys()
    if gone:
        for some in _branches_in(out / FOLDER / BRANCHES_NAME, gone):
            branches.update(some["branch_id"].to_pylist())
    return Changes(frozenset(branches), new_parts, len(state.parts) - len(gone))


def branches_of(part: ExportPart) -> frozenset[bytes]:
    """The branches with commits in a part. Raises OSError, pyarrow's errors."""
    found: set[bytes] = set()
    for batch in read_batches(part.path, ["branch_id"]):
        found.update(pc.unique(batch["branch_id"]).to_pylist())
    return frozenset(found)


def write_changed(path: Path, branches: frozenset[bytes]) -> None:
    """Write the ids of branches for an engine. Raises OSError."""
    pq.write_table(pa.table({"branch_id": sorted(branches)}, schema=_CHANGED), path)


def write_inputs(
    folder: Path, exports: Sequence[Export], changes: Changes | None, earlier: Path | None
) -> None:
    """Keep which branches are in which part of exports, and what is void in them. Raises OSError, pyarrow's errors.

    `changes` and the folder of the results before spare reading parts again.
    """
    known = {} if changes is None else changes.new_parts
    listed = parts_by_key(exports)
    with pq.ParquetWriter(folder / BRANCHES_NAME, _BRANCHES) as writer:
        told: set[str] = set()
        if earlier is not None:
            for batch in _branches_in(earlier / FOLDER / BRANCHES_NAME, listed.keys()):
                told.update(pc.unique(batch["part"]).to_pylist())
                writer.write_batch(batch)
        for key, part in listed.items():
            if key not in told:
                found = sorted(known[key] if key in known else branches_of(part))
                rows: dict[str, list[Any]] = {"part": [key] * len(found), "branch_id": found}
                writer.write_batch(pa.record_batch(rows, schema=_BRANCHES))
    with pq.ParquetWriter(folder / VOIDS_NAME, _IDS) as writer:
        for part in (part for export in exports for part in export.voids):
            for batch in read_batches(part.path, ["commit_id"]):
                writer.write_batch(pa.record_batch([batch["commit_id"].cast(pa.binary())], schema=_IDS))


def _branches_in(path: Path, parts: Set[str]) -> Iterator[Any]:
    """Rows of BRANCHES_NAME of some parts."""
    wanted = pa.array(sorted(parts), pa.string())
    for batch in read_batches(path, _BRANCHES.names):
        yield batch.filter(pc.is_in(batch["part"], wanted))
