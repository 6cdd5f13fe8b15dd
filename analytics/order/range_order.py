"""Sorts and numbers the rows of one range of a large branch, and puts their ranks into the equations: what one task does.

Ranges follow one another in the order of tangle, checkpoints passed, rank and id. So the position of a commit is its place
in its range, and how many stand before that range. One that arrives by stated ranks also says what the equations of
`analytics.order.rank_check` say: these are rows of the same table, with `checked` alone.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import TaskContext

from analytics.order import columns, kernel
from analytics.order.kernel import Ints
from analytics.order.range_shapes import OUTSIDE_KIND, find_range_shapes
from analytics.order.rank_check import CHECKED_KIND, check_rows

PLACED_SCHEMA: Final = (
    "tangle int, commit_id binary, passed bigint, rank bigint, fault_code tinyint, part int, place bigint"
)
"""The rows of a range, in their order. `place` counts those of the tangle in this `part`; null where a fault leaves none."""

_ROWS_PER_BATCH: Final = 50_000


def place_range(
    batches: Iterator[pa.RecordBatch], carried: Sequence[str], has_checks: bool, with_shapes: bool
) -> Iterator[pa.RecordBatch]:
    """Rows of PLACED_SCHEMA, with what is carried. With checks also `sequence` and `checked`, which need `acks` and `mark`.

    Without them rows bring `passed` and `fault_code`. With shapes, which need `acks` and TIMES, also these and `outside`.
    """
    table = columns.gather(batches, carried)
    if table is None:
        return
    tangle, rank = (table[name].to_numpy() for name in ("tangle", "rank"))
    commit_ids = columns.ids(table["commit_id"])
    if has_checks:
        passed = np.zeros(len(tangle), np.int64)
        is_void = table["mark"].to_numpy() == kernel.MARKED_VOID
        fault = np.where(is_void, kernel.VOID, kernel.NO_FAULT).astype(np.int8)
    else:
        passed, fault = table["passed"].to_numpy(), table["fault_code"].to_numpy()
    context = TaskContext.get()
    part = context.partitionId() if context is not None else 0
    is_placed = fault == kernel.NO_FAULT
    order = kernel.sort_rows(tangle, passed, rank, commit_ids)
    place = count_places(tangle[order], is_placed[order])
    more: dict[str, Any] = {name: table[name].combine_chunks() for name in carried}
    if with_shapes:
        found, outside = find_range_shapes(table, commit_ids, is_placed)
        more |= found
    for start in range(0, len(order), _ROWS_PER_BATCH):
        rows = order[start : start + _ROWS_PER_BATCH]
        numbered = place[start : start + _ROWS_PER_BATCH]
        cells: dict[str, Any] = {
            "tangle": pa.array(tangle[rows]),
            "commit_id": columns.binary(commit_ids[rows]),
            "passed": pa.array(passed[rows]),
            "rank": pa.array(rank[rows]),
            "fault_code": pa.array(fault[rows]),
            "part": pa.array(np.full(len(rows), part, np.int32)),
            "place": pa.array(numbered, mask=~is_placed[rows]),
        }
        cells |= {name: columns.plain(column.take(pa.array(rows))) for name, column in more.items()}
        if has_checks:
            cells["checked"] = pa.nulls(len(rows), CHECKED_KIND)
        if with_shapes:
            cells["outside"] = pa.nulls(len(rows), OUTSIDE_KIND)
        yield pa.RecordBatch.from_pydict(cells)
        schema = pa.schema([(name, column.type) for name, column in cells.items()])
    told = [("checked", check_rows(table, commit_ids, is_placed, part))] if has_checks else []
    told += [("outside", outside)] if with_shapes else []
    for name, structs in told:
        for struct in structs:
            nothing = {field.name: pa.nulls(len(struct), field.type) for field in schema}
            yield pa.RecordBatch.from_pydict(nothing | {name: struct})


def count_places(tangle: Ints, is_placed: NDArray[np.bool_]) -> Ints:
    """Return how many rows with a place stand before each row in its run of equal tangles."""
    before: Ints = np.cumsum(is_placed) - is_placed
    is_first = np.ones(len(tangle), np.bool_)
    is_first[1:] = tangle[1:] != tangle[:-1]
    return before - np.maximum.accumulate(np.where(is_first, before, 0))
