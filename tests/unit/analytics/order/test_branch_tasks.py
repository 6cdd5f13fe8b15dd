"""What a task hands back of branches, called as an engine calls it, but without one."""

from typing import Any

import pyarrow as pa
import pytest
from blake3 import blake3

from analytics.order.branch_tasks import linearize_batches
from analytics.order.kernel import MARKED_VOID

A, B, C, GONE = (bytes([number]) * 32 for number in range(1, 5))
Commit = tuple[bytes, bytes, list[bytes], int]
"""Branch, id, acks, mark."""


def _order(commits: list[Commit], *, with_digests: bool) -> list[dict[str, Any]]:
    columns = zip(*commits, strict=True)
    branch, ids, acks, marks = map(list, columns)
    batch = pa.RecordBatch.from_pydict(
        {
            "branch_id": pa.array(branch, pa.binary()),
            "commit_id": pa.array(ids, pa.binary()),
            "acks": pa.array(acks, pa.list_(pa.binary())),
            "sequence": pa.array(range(len(ids)), pa.int64()),
            "mark": pa.array(marks, pa.int8()),
        }
    )
    found = linearize_batches(iter([batch]), (), with_shapes=False, with_digests=with_digests)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "commits, faults",
    [
        ([(b"x", A, [GONE], 0)], ["missing cause"]),
        ([(b"x", A, [], MARKED_VOID)], ["void"]),
        ([(b"x", A, [GONE], 0), (b"y", B, [], MARKED_VOID)], ["missing cause", "void"]),
    ],
    ids=["missing", "void", "two branches"],
)
def test_branches_without_a_place_have_no_digest(commits: list[Commit], faults: list[str]) -> None:
    found = _order(commits, with_digests=True)
    assert [row["fault"] for row in found] == faults
    assert [row["digest"] for row in found] == [None] * len(faults)
    assert [{name: row[name] for name in row if name != "digest"} for row in found] == _order(
        commits, with_digests=False
    )


@pytest.mark.parametrize("name", ["branch_id", "sequence", "time", "shown_at"])
def test_commits_without_a_branch_or_a_number_are_refused(name: str) -> None:
    columns = {
        "branch_id": pa.array([b"x", b"x"], pa.binary()),
        "commit_id": pa.array([A, B], pa.binary()),
        "acks": pa.array([[], [A]], pa.list_(pa.binary())),
        "sequence": pa.array([1, 2], pa.int64()),
        "time": pa.array([1, 2], pa.int64()),
        "shown_at": pa.array([1, 2], pa.int64()),
        "mark": pa.array([0, 0], pa.int8()),
    }
    columns[name] = pa.array([columns[name][0].as_py(), None], columns[name].type)
    batch = pa.RecordBatch.from_pydict(columns)
    with pytest.raises(ValueError, match=f"{name} is null in 1 commits, which no export has"):
        [*linearize_batches(iter([batch]), (), with_shapes=True, with_digests=False)]


def test_a_branch_without_a_place_changes_no_digest_of_another() -> None:
    commits: list[Commit] = [(b"x", A, [], 0), (b"y", C, [GONE], 0), (b"z", A, [], 0), (b"z", B, [A], 0)]
    digests = {
        (row["branch_id"], row["commit_id"]): row["digest"] for row in _order(commits, with_digests=True)
    }
    assert digests == {
        (b"x", A): blake3(A).hexdigest(),
        (b"y", C): None,
        (b"z", A): None,
        (b"z", B): blake3(A + B).hexdigest(),
    }
