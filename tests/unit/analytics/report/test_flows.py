"""The report shows who answers whom, what takes disk space, merges by month and delays between nodes; and escapes names."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analytics import analyze
from ravel.exports.schema import text_id
from tests.support.exports import DAY_MS, T0_MS, Row, id_of, stated_places, write_export

ROWS = [
    Row("a", author="ada", size=100, time=T0_MS),
    Row("b", ("a",), author="bob", size=50, time=T0_MS + 1, file_bytes=3 << 20),
    Row("c", ("a",), author="ada", size=50, time=T0_MS + 2, source="eve", kind="imported"),
    Row("m", ("b", "c"), author="ada", time=T0_MS + 5002, size=7),
    Row("n", ("m",), author="ada", time=T0_MS + 40 * DAY_MS, size=8),
]


HELD_BACK: dict[str, list[dict[str, object]]] = {
    "pending": [
        {
            "commit_id": id_of(f"p{n}"), "topic": id_of("t"), "branch_id": None, "reason": "causes", "lacking": 1, "size": 7,
            "arrived_at": T0_MS + n, "arrival": 9 + n,
        }
        for n in range(2)
    ],
    "rejections": [{"commit_id": id_of("r"), "branch_id": id_of("main"), "code": "<b>"}],
}  # fmt: skip


@pytest.mark.slow
def test_answers_disk_months_and_pairs_are_tables_and_sections(tmp_path: Path) -> None:
    places = stated_places(("reply", "a", "b", ("a",)), ("reply", "a", "m", ("b",)))
    rows = [Row(**{name: getattr(row, name) for name in row.__slots__} | {"received": T0_MS}) for row in ROWS]
    late = [
        Row(**{name: getattr(row, name) for name in row.__slots__} | {"received": T0_MS + 60_000 * bool(n)})
        for n, row in enumerate(rows)
    ]
    exports = [
        write_export(tmp_path / node, told, node=node, tables={"tangles": places, **HELD_BACK})
        for node, told in (("<one>", rows), ("two", late))
    ]
    called = {text_id(id_of("ada")): "A & B"}
    result = analyze.run(
        exports[0], tmp_path / "out", merge=exports[1:], engine="local", progress=lambda _: None, names=called
    )
    table = {
        name: pq.read_table(result.tables / name).to_pylist()
        for name in ("disk", "merge_months", "node_pairs", "held_back")
    }
    disk = {
        row["author"]: (row["commits"], row["bytes"], row["files"], row["file_bytes"])
        for row in table["disk"]
    }
    assert disk == {
        id_of("ada"): (3, 115, 0, 0),
        id_of("bob"): (1, 50, 1, 3 << 20),
        id_of("eve"): (1, 50, 0, 0),
    }
    (month,) = table["merge_months"]
    assert (month["merges"], month["waited_p50"], month["waited_p90"]) == (1, 5000, 5000)
    (pair,) = table["node_pairs"]
    assert (pair["first_node"], pair["node"], pair["commits"], pair["delay_p50"]) == (
        "<one>",
        "two",
        4,
        60_000,
    )
    held = {(row["node"], row["state"], row["reason"]): row for row in table["held_back"]}
    assert held.keys() == {
        (node, *told) for node in ("<one>", "two") for told in (("waiting", "causes"), ("refused", "<b>"))
    }
    assert held["two", "waiting", "causes"] == {
        "node": "two", "branch_id": None, "repo_name": None, "branch_name": None, "state": "waiting", "reason": "causes",
        "commits": 2, "bytes": 14, "oldest_at": T0_MS,
    }  # fmt: skip
    assert held["two", "refused", "<b>"]["branch_name"] == "main"
    page = result.report.read_text(encoding="utf-8")
    for title in (
        "Who answers whom",
        "Disk by repo and author",
        "Merge latency by month",
        "Delay between nodes",
        "Most answered threads",
        "Waiting and refused",
    ):
        assert f"<h2>{title}</h2>" in page
    assert '<td data-head="A &amp; B" style="--part:1.00">1</td>' in page
    assert "A &amp; B" in page
    assert "<one>" not in page
    assert "<b>" not in page
