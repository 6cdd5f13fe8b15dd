"""Orders and digests many branches in one call, from Arrow batches to Arrow batches: the same code on every engine.

Spark runs it in its tasks (`analytics.order.linearize`), the local engine in its own process. Knows neither of them.

A task that orders a branch has all of it before it: so it also says how commits hang together (`analytics.order.shapes`),
and hands on what else is counted of them, which a join would find again at several times the cost of the order.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from blake3 import blake3
from numpy.typing import NDArray

from analytics.order import columns, kernel, shapes

VOID: Final = "void"
FAULTS: Final = {
    kernel.MISSING_CAUSE: "missing cause",
    kernel.BEHIND_MISSING: "behind a missing cause",
    kernel.CYCLE: "cycle",
    kernel.VOID: VOID,
}
"""Why a commit has no place in the order, as the `fault` column says it."""

STATED_RANK: Final = "exported_rank"
CARRIED: Final = (
    "repo_id",
    "repo_name",
    "branch_name",
    "topic",
    "author",
    "source_author",
    "body_kind",
    "sequence",
    "size",
    "time",
    "received_at",
    "shown_at",
    STATED_RANK,
    "is_disputed",
)
"""What an analysis compares and counts of commits besides their order; the rank that an export states is `exported_rank`."""

_ROWS_PER_BATCH: Final = 50_000
_INT: Final = pa.int64()
_CARRIED_KINDS: Final[Mapping[str, pa.DataType]] = {
    "repo_name": pa.string(),
    "branch_name": pa.string(),
    "body_kind": pa.string(),
    "sequence": _INT,
    "size": _INT,
    "time": _INT,
    "exported_rank": _INT,
    "is_disputed": pa.bool_(),
    "kind": pa.string(),
    "acks": pa.list_(pa.binary()),
    "feed_sequence": _INT,
    "received_at": _INT,
    "shown_at": _INT,
    "files": _INT,
    "file_bytes": _INT,
    "is_void": pa.bool_(),
}
"""The others are ids."""


class LargeBranchRefused(Exception):
    """A branch cannot be ordered within the memory that tasks have; the message says what to do."""


def placed_schema(carried: Sequence[str] = CARRIED, *, with_digests: bool = True) -> pa.Schema:
    """Return the columns of `linearize_batches` with shapes."""
    ids: list[tuple[str, pa.DataType]] = [("branch_id", pa.binary()), ("commit_id", pa.binary())]
    order: list[tuple[str, pa.DataType]] = [
        ("passed", _INT),
        ("rank", _INT),
        ("position", _INT),
        ("fault", pa.string()),
    ]
    shape = [
        ("acks_count", _INT),
        ("acked_count", _INT),
        ("acked_from", _INT),
        ("causes_from", _INT),
        ("causes_until", _INT),
    ]
    digest = [("digest", pa.string())] if with_digests else []
    more = [(name, _CARRIED_KINDS.get(name, pa.binary())) for name in carried]
    return pa.schema([*ids, *order, *shape, *digest, *more])


def linearize_batches(
    batches: Iterator[pa.RecordBatch], carried: Sequence[str], with_shapes: bool, with_digests: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the order of all branches of these batches (branch_id, commit_id, acks, sequence, mark, and what is carried).

    Rows leave branch by branch, each in its order, what has no place last. With digests, a branch's last commit that has a
    place bears that of the branch. Raises ValueError as the kernel does, and where a commit lacks its branch or a number.
    """
    table = columns.gather(batches, ("branch_id", *carried))
    if table is None:
        return
    for name in ("branch_id", "sequence", *(shapes.TIMES if with_shapes else [])):
        # numpy takes numbers beside absent ones for floats, and the order would be another.
        if table[name].null_count:
            raise ValueError(f"{name} is null in {table[name].null_count:,} commits, which no export has")
    branches: Any = table["branch_id"].combine_chunks()
    commit_ids = columns.ids(table["commit_id"])
    acks, ack_offsets = columns.flatten_id_lists(table["acks"])
    order = kernel.linearize_tangles(
        kernel.Tangles(
            tangle=branches.indices.to_numpy().astype(np.int64),
            commit_ids=commit_ids,
            ack_offsets=ack_offsets,
            acks=acks,
            sequence=table["sequence"].to_numpy(),
            marks=table["mark"].to_numpy(),
            stated=_stated_ranks(table) if STATED_RANK in carried else None,
        )
    )
    faults: Any = pa.array([None, *FAULTS.values()])
    names = ["branch_id", "commit_id", "passed", "rank", "position", "fault"]
    more: dict[str, Any] = {}
    if with_shapes:
        more = _shapes(order, ack_offsets, *(table[name].to_numpy() for name in shapes.TIMES))
    if with_digests:
        more["digest"] = _digests(order, commit_ids)
    more |= {name: table[name].combine_chunks() for name in carried}
    for start in range(0, len(order.row), _ROWS_PER_BATCH):
        part = slice(start, start + _ROWS_PER_BATCH)
        rows = order.row[part]
        has_fault = order.fault[part] != kernel.NO_FAULT
        arrays = [
            columns.plain(branches.take(pa.array(rows))),
            columns.binary(commit_ids[rows]),
            pa.array(order.passed[part], mask=has_fault),
            pa.array(order.rank[part], mask=has_fault),
            pa.array(order.position[part], mask=has_fault),
            faults.take(pa.array(order.fault[part])),
            *(columns.plain(column.take(pa.array(rows))) for column in more.values()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, [*names, *more])


def _stated_ranks(table: pa.Table) -> kernel.Ints | None:
    column = table[STATED_RANK]
    return None if column.null_count else column.to_numpy()


def _digests(order: kernel.Linearization, commit_ids: kernel.Bytes) -> Any:  # noqa: ANN401  # as in `analytics.order.columns`
    """Return the column `digest`, in the order of the input: null but of a branch's last place."""
    placed = order.row[order.fault == kernel.NO_FAULT]
    # Places of a branch follow one another, and the next branch begins at 0 again.
    position = order.position[order.fault == kernel.NO_FAULT]
    ends = np.flatnonzero(np.diff(position, append=0) != 1)
    # No place at all has no end, and so no start either.
    starts = np.concatenate([[0], ends + 1])[: len(ends)]
    found = [
        blake3(commit_ids[placed[start : end + 1]].tobytes()).hexdigest()
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    at = np.full(len(order.row), -1, np.int64)
    at[placed[ends]] = np.arange(len(ends))
    indices: Any = pa.array(at, mask=at < 0)
    return pa.array(found, pa.string()).take(indices)


def _shapes(
    order: kernel.Linearization, ack_offsets: kernel.Ints, times: kernel.Ints, shown: kernel.Ints
) -> dict[str, Any]:
    """Return the columns of SHAPES_SCHEMA, in the order of the input."""
    is_placed = np.zeros(len(times), np.bool_)
    is_placed[order.row] = order.fault == kernel.NO_FAULT
    return shape_columns(shapes.find_shapes(order.causes, ack_offsets, times, shown, is_placed), is_placed)


def shape_columns(found: shapes.Shapes, is_placed: NDArray[np.bool_]) -> dict[str, Any]:
    """Return shapes as columns of Arrow."""
    return {
        "acks_count": pa.array(found.acks_count, mask=~is_placed),
        "acked_count": pa.array(found.acked_count, mask=~is_placed),
        "acked_from": pa.array(found.acked_from, mask=found.acked_count == 0),
        "causes_from": pa.array(found.causes_from, mask=~found.has_causes),
        "causes_until": pa.array(found.causes_until, mask=~found.has_causes),
    }


def digest_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row (branch_id, commits, digest) for each branch of rows (branch_id, commit_id) that stand in order."""
    digester = OrderDigester()
    for batch in batches:
        yield from map(_digest_row, digester.update(batch))
    yield from map(_digest_row, digester.finish())


@dataclass(frozen=True, slots=True)
class BranchDigest:
    """BLAKE3 (hex) over the commit ids of a branch in order, and how many these are."""

    branch_id: bytes
    commits: int
    digest: str


class OrderDigester:
    """Hashes branch after branch as rows stream by; memory stays flat however long a branch is."""

    def __init__(self) -> None:
        self._branch: bytes | None = None
        self._count, self._hasher = 0, blake3()

    def update(self, batch: pa.RecordBatch) -> Iterator[BranchDigest]:
        """Take rows in order; gives the branches that ended."""
        for run in _runs(batch):
            yield from self.add(run.branch_id, run.commit_ids)

    def add(self, branch_id: bytes, commit_ids: bytes) -> Iterator[BranchDigest]:
        """Take the next ids of a branch; gives the one before if that has ended."""
        if branch_id != self._branch:
            yield from self.finish()
            self._branch, self._count, self._hasher = branch_id, 0, blake3()
        self._hasher.update(commit_ids)
        self._count += len(commit_ids) // kernel.ID_SIZE

    def finish(self) -> Iterator[BranchDigest]:
        """Yield the last branch, if there was any."""
        if self._branch is not None:
            yield BranchDigest(self._branch, self._count, self._hasher.hexdigest())
            self._branch = None


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring rows of one branch in a batch."""

    branch_id: bytes
    commit_ids: bytes


def _runs(batch: pa.RecordBatch) -> Iterator[_Run]:
    if batch.num_rows == 0:
        return
    branch_ids = columns.ids(pa.chunked_array([batch["branch_id"]]))
    commit_ids = columns.ids(pa.chunked_array([batch["commit_id"]]))
    changes = np.flatnonzero((branch_ids[1:] != branch_ids[:-1]).any(axis=1)) + 1
    for start, stop in itertools.pairwise([0, *changes.tolist(), batch.num_rows]):
        yield _Run(branch_ids[start].tobytes(), commit_ids[start:stop].tobytes())


def _digest_row(one: BranchDigest) -> pa.RecordBatch:
    row = {"branch_id": one.branch_id, "commits": one.commits, "digest": one.digest}
    return pa.RecordBatch.from_pylist([row])
