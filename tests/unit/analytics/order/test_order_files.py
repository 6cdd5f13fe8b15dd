"""Files of ordered commits become the table of the order: with names, and positions counted over all ranges of a tangle."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.order import kernel
from analytics.order.order_files import read_orders
from tests.support.exports import id_of


def _write(path: Path, rows: list[dict[str, Any]], **kinds: pa.DataType) -> str:
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), path)
    return str(path)


def test_orders_of_branches_and_of_ranges_are_read_as_one_table(tmp_path: Path) -> None:
    names = _write(
        tmp_path / "names",
        [
            {"repo_id": b"r", "branch_id": id_of(name), "repo_name": repo, "branch_name": name}
            for name, repo in (("small", "notes"), ("giant", None), ("other", "notes"))
        ],
        repo_id=pa.binary(),
        branch_id=pa.binary(),
        repo_name=pa.string(),
        branch_name=pa.string(),
    )
    small = _write(
        tmp_path / "small",
        [
            {
                "branch_id": id_of("small"),
                "commit_id": b"s0",
                "passed": 0,
                "rank": 0,
                "position": 0,
                "size": 7,
            },
            {"branch_id": id_of("unnamed"), "commit_id": b"s1", "fault": "void", "size": 7},
        ],
        branch_id=pa.binary(),
        commit_id=pa.binary(),
        passed=pa.int64(),
        rank=pa.int64(),
        position=pa.int64(),
        fault=pa.string(),
        size=pa.int64(),
    )
    part = {"tangle": 0, "passed": 2, "rank": 9, "fault_code": kernel.NO_FAULT, "part": 3}
    ranges = _write(
        tmp_path / "ranges",
        [
            part | {"commit_id": b"g0", "place": 0},
            part | {"commit_id": b"g1", "fault_code": kernel.VOID},
            part | {"commit_id": b"g2", "place": 1, "part": 4},
            part | {"commit_id": b"of another order", "place": 0, "tangle": 1},
            {"said": "beside commits"},
        ],
        tangle=pa.int32(),
        commit_id=pa.binary(),
        passed=pa.int64(),
        rank=pa.int64(),
        fault_code=pa.int8(),
        part=pa.int32(),
        place=pa.int64(),
        said=pa.string(),
    )
    asked = pa.RecordBatch.from_pylist([{"file": small, "ranges": -1}, {"file": ranges, "ranges": 1}])
    starts = [[(1, 3, 0)], [(0, 3, 100), (0, 4, 200)]]
    found = [*read_orders(iter([asked]), starts, [id_of("giant"), id_of("other")], [names])]
    assert [tuple(row.values()) for batch in found for row in batch.to_pylist()] == [
        (id_of("small"), "notes", "small", b"s0", 0, 0, 0, None),
        (id_of("unnamed"), None, None, b"s1", None, None, None, "void"),
        (id_of("giant"), None, "giant", b"g0", 2, 9, 100, None),
        (id_of("giant"), None, "giant", b"g1", None, None, None, "void"),
        (id_of("giant"), None, "giant", b"g2", 2, 9, 201, None),
    ]
