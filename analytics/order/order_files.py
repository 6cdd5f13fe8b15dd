"""Reads the order of commits back from the files of the tasks that found it: what one task does for some files.

Knows nothing of Spark.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.order import kernel
from analytics.order.branch_tasks import FAULTS

ORDER_SCHEMA: Final = (
    "branch_id binary, repo_name string, branch_name string, "
    "commit_id binary, passed bigint, rank bigint, position bigint, fault string"
)
"""The table `linearization`."""
_ORDER: Final = ("branch_id", "commit_id", "passed", "rank", "position", "fault")
_RANGE: Final = ("tangle", "commit_id", "passed", "rank", "fault_code", "part", "place")
_BATCH_ROWS: Final = 50_000
_TANGLE_SHIFT: Final = 32

Starts = Sequence[tuple[int, int, int]]
"""Triples of tangle, part and start (`analytics.order.large_branches.RangeFiles`)."""


def read_orders(
    batches: Iterator[pa.RecordBatch],
    starts: Sequence[Starts],
    branch_ids: Sequence[bytes],
    names: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Yield rows of ORDER_SCHEMA for the commits in files.

    `batches` name files, and by `ranges` those of the starts that a file is about: below 0 for files of whole branches,
    which state all of it. Tangles have their number in `branch_ids`. `names` are files of the table of branches' names.
    """
    for batch in batches:
        for row in batch.to_pylist():
            yield from _read_order(row["file"], row["ranges"], starts, branch_ids, names)


def _read_order(
    name: str, at: int, starts: Sequence[Starts], branch_ids: Sequence[bytes], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(name) as file:
        branches: Any = pa.array(branch_ids, pa.binary())
        if at < 0:
            branches = pc.unique(file.read(["branch_id"])["branch_id"])
        named = _find_names(branches, names)
        for rows in file.iter_batches(_BATCH_ROWS, columns=list(_ORDER if at < 0 else _RANGE)):
            yield _with_names(rows if at < 0 else _number(rows, starts[at], branches), named)


def _find_names(branches: Any, names: Sequence[str]) -> pa.Table:  # noqa: ANN401  # arrays of Arrow: its stubs have no common type
    """Return the names of some branches, of which few files tell, a part at a time."""
    declared: dict[str, pa.DataType] = {
        "branch_id": pa.binary(),
        "repo_name": pa.string(),
        "branch_name": pa.string(),
    }
    kinds = pa.schema(declared)
    found = [kinds.empty_table()]
    for name in names:
        with pq.ParquetFile(name) as file:
            for rows in file.iter_batches(columns=kinds.names):
                chosen = rows.filter(pc.is_in(rows["branch_id"], branches))
                found.append(pa.Table.from_batches([chosen]).select(kinds.names).cast(kinds))
    return pa.concat_tables(found).combine_chunks()


def _with_names(rows: pa.RecordBatch, named: pa.Table) -> pa.RecordBatch:
    at = pc.index_in(rows["branch_id"], named["branch_id"])
    more = [named[name].combine_chunks().take(at) for name in ("repo_name", "branch_name")]
    cells: list[Any] = [rows["branch_id"], *more, *(rows[name] for name in _ORDER[1:])]
    return pa.RecordBatch.from_arrays(cells, ["branch_id", "repo_name", "branch_name", *_ORDER[1:]])


def _number(rows: pa.RecordBatch, starts: Starts, branches: Any) -> pa.RecordBatch:  # noqa: ANN401  # an array of Arrow
    """Give the rows of a range their branch and position. Rows of other tangles, and without one, are left out."""
    rows = rows.filter(pc.is_valid(rows["tangle"]))  # of others ranges say something beside commits
    tangle, part = (rows[name].to_numpy().astype(np.int64) for name in ("tangle", "part"))
    table = np.array(sorted(starts), np.int64).reshape(-1, 3)
    known = (table[:, 0] << _TANGLE_SHIFT) + table[:, 1]
    asked = (tangle << _TANGLE_SHIFT) + part
    at = np.minimum(np.searchsorted(known, asked), max(len(known) - 1, 0))
    is_told = known[at] == asked if len(known) else np.zeros(len(asked), np.bool_)
    rows, tangle, start = rows.filter(pa.array(is_told)), tangle[is_told], table[at[is_told], 2]
    faults: Any = pa.array([None, *FAULTS.values()], pa.string())
    has_fault = rows["fault_code"].to_numpy() != kernel.NO_FAULT
    cells: list[Any] = [
        branches.take(pa.array(tangle)),
        rows["commit_id"],
        pa.array(rows["passed"].to_numpy(zero_copy_only=False), mask=has_fault),
        pa.array(rows["rank"].to_numpy(zero_copy_only=False), mask=has_fault),
        pc.add(rows["place"], pa.array(start)),
        faults.take(rows["fault_code"]),
    ]
    return pa.RecordBatch.from_arrays(cells, list(_ORDER))
