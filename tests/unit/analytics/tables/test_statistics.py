"""Statistics on a real Spark, against a few lines of plain Python on small random exports."""

import random
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from analytics.analyze import place_commits
from analytics.reading import export_reader
from analytics.reading.export_reader import Holdings, load_commits, read_export
from analytics.tables import concurrency, statistics, stores
from analytics.tables.tables import TableWriter
from tests.support.exports import DAY_MS, T0_MS, Row, id_of, write_export

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_LAST_MS = T0_MS + 20 * DAY_MS


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[str]]:
    """Branches with forks, merges, missing causes and odd clocks; and the names of void commits."""
    rows: list[Row] = []
    for branch in ("x", "y"):
        names = [f"{branch}{number}" for number in range(draw(st.integers(1, 12)))]
        for number, name in enumerate(names):
            known = [
                *names[max(0, number - 4) : number],
                *(["gone"] if draw(st.integers(0, 15)) == 0 else []),
            ]
            acks = draw(st.lists(st.sampled_from(known), unique=True, max_size=3)) if known else []
            rows.append(
                Row(
                    name,
                    tuple(acks),
                    branch,
                    author=draw(st.sampled_from(["ada", "bob", "cleo"])),
                    time=draw(st.just(0) | st.integers(T0_MS, _LAST_MS)),
                    size=draw(st.integers(0, 1000)),
                    received=draw(st.integers(T0_MS, T0_MS + 5)),
                )
            )
    return rows, draw(st.lists(st.sampled_from([row.name for row in rows]), unique=True, max_size=2))


def placed_ranks(rows: Sequence[Row], voids: Iterable[str]) -> dict[str, int]:
    """Ranks of what has a place: all of its past is there, and it is not void."""
    ranks: dict[str, int] = {}
    for row in rows:
        if all(ack in ranks for ack in row.acks):
            ranks[row.name] = 1 + max((ranks[ack] for ack in row.acks), default=-1)
    return {name: rank for name, rank in ranks.items() if name not in voids}


def nearest(values: Iterable[int], share: float) -> int | None:
    ordered = sorted(values)
    return ordered[max(ceil(share * len(ordered)) - 1, 0)] if ordered else None


def rows_of(table: DataFrame, *keys: str) -> dict[Any, dict[str, Any]]:
    found = {}
    for row in table.collect():
        cells = {
            name: bytes(cell) if isinstance(cell, bytearray) else cell for name, cell in row.asDict().items()
        }
        key = tuple(cells.pop(name) for name in keys)
        found[key if len(keys) > 1 else key[0]] = cells
    return found


def naive_branches(rows: Sequence[Row], ranks: Mapping[str, int]) -> dict[bytes, dict[str, Any]]:
    found = {}
    for branch in {row.branch for row in rows if row.name in ranks}:
        of_branch = [row for row in rows if row.branch == branch and row.name in ranks]
        acked = Counter(ack for row in of_branch for ack in row.acks)
        widths = Counter(ranks[row.name] for row in of_branch)
        times = [row.time for row in of_branch if row.time]
        found[id_of(branch)] = {
            "repo_id": id_of("repo"),
            "branch_name": branch,
            "commits": len(of_branch),
            "authors": len({row.author for row in of_branch}),
            "topics": 1,
            "depth": max(widths),
            "roots": sum(not row.acks for row in of_branch),
            "heads": sum(not acked[row.name] for row in of_branch),
            "forks": sum(acked[row.name] > 1 for row in of_branch),
            "merges": sum(len(row.acks) > 1 for row in of_branch),
            "width_max": max(widths.values()),
            "width_mean": len(of_branch) / (max(widths) + 1),
            "concurrency": sum(width for width in widths.values() if width > 1) / len(of_branch),
            "bytes": sum(row.size for row in of_branch),
            "first_time": min(times, default=None),
            "last_time": max(times, default=None),
        }
    return found


def naive_heads(
    rows: Sequence[Row], ranks: Mapping[str, int], period: statistics.Period
) -> dict[tuple[bytes, int], int]:
    """Heads at the end of each bucket in which one came or went."""
    steps: Counter[tuple[str, int]] = Counter()
    placed = [row for row in rows if row.name in ranks]
    for row in placed:
        if not period.start <= row.time <= period.end:
            continue
        ackers = [other for other in placed if row.name in other.acks]
        times = [other.time for other in ackers if period.start <= other.time <= period.end]
        steps[row.branch, row.time // period.bucket] += 1
        if ackers:
            steps[row.branch, max(row.time, min(times, default=row.time)) // period.bucket] -= 1
    heads, found = Counter[str](), {}
    for (branch, bucket), step in sorted(steps.items()):
        heads[branch] += step
        found[id_of(branch), bucket * period.bucket] = heads[branch]
    return found


def naive_merges(rows: Sequence[Row], ranks: Mapping[str, int]) -> dict[bytes, dict[str, Any]]:
    written = {row.name: row.time for row in rows if row.name in ranks}
    waits: dict[str, list[tuple[int, int]]] = defaultdict(list)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row.name not in ranks or len(row.acks) < 2:
            continue
        times = [written[ack] for ack in row.acks if ack in written]
        counts[row.branch]["merges"] += 1
        if not times or not row.time or not all(times):
            continue
        if row.time < max(times):
            counts[row.branch]["backdated"] += 1
        else:
            counts[row.branch]["timed"] += 1
            waits[row.branch].append((row.time - max(times), row.time - min(times)))
    return {
        id_of(branch): {
            "merges": count["merges"],
            "timed": count["timed"],
            "backdated": count["backdated"],
            **{
                f"{name}_{part}": figure
                for at, name in enumerate(("waited", "apart"))
                for values in [[wait[at] for wait in waits[branch]]]
                for part, figure in (
                    ("p50", nearest(values, 0.5)),
                    ("p90", nearest(values, 0.9)),
                    ("max", max(values, default=None)),
                )
            },
        }
        for branch, count in counts.items()
    }


def naive_faults(rows: Sequence[Row], voids: Iterable[str]) -> dict[bytes, dict[str, int]]:
    ranks, with_voids = placed_ranks(rows, voids), placed_ranks(rows, ())
    found = {}
    for branch in {row.branch for row in rows}:
        of_branch = [row for row in rows if row.branch == branch]
        there = {row.name for row in of_branch}
        found[id_of(branch)] = {
            "commits": len(of_branch),
            "placed": sum(row.name in ranks for row in of_branch),
            "missing_cause": sum(not there.issuperset(row.acks) for row in of_branch),
            "behind_a_missing_cause": sum(
                row.name not in with_voids and there.issuperset(row.acks) for row in of_branch
            ),
            "cycle": 0,
            "void": sum(row.name in with_voids and row.name not in ranks for row in of_branch),
            "causes_missing": len({ack for row in of_branch for ack in row.acks} - there),
        }
    return found


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_what_is_counted_of_tangles_is_what_plain_python_counts(
    spark: SparkSession, history: tuple[list[Row], list[str]]
) -> None:
    rows, voids = history
    ranks = placed_ranks(rows, voids)
    with tempfile.TemporaryDirectory() as folder:
        export = read_export(write_export(Path(folder) / "e", rows, voids=voids))
        commits = load_commits(spark, export).persist()
        doubled = load_commits(spark, export, export)  # which looks for copies
        assert rows_of(doubled, "commit_id") == rows_of(commits, "commit_id")
        order = place_commits(commits).persist()
        ordered = order.where("fault IS NULL")
        feed_rows = statistics.count_feeds(ordered).persist()
        branches = statistics.count_branches(ordered, feed_rows, statistics.count_widths(ordered))
        assert rows_of(branches, "branch_id") == naive_branches(rows, ranks)
        merges = rows_of(concurrency.count_merges(ordered), "branch_id")
        assert merges == naive_merges(rows, ranks)
        shown = {
            key: cells["merges"] for key, cells in rows_of(branches, "branch_id").items() if cells["merges"]
        }
        assert {key: cells["merges"] for key, cells in merges.items()} == shown, "one figure in both tables"
        faults = rows_of(statistics.count_faults(order, commits), "branch_id")
        assert faults == naive_faults(rows, voids)
        if not any(cells["causes_missing"] for cells in faults.values()):
            assert rows_of(statistics.count_faults(order, commits, is_complete=True), "branch_id") == faults
        alone, looked_for = (
            stores.load_receipts([export], commits, is_alone=is_alone) for is_alone in (True, False)
        )
        assert rows_of(alone, "commit_id") == rows_of(looked_for, "commit_id")
        assert rows_of(stores.count_replication(alone, is_alone=True), "branch_id") == rows_of(
            stores.count_replication(looked_for), "branch_id"
        )
        period = statistics.Period(T0_MS + DAY_MS, _LAST_MS, DAY_MS, 0)
        heads = rows_of(concurrency.count_heads(ordered, period), "branch_id", "bucket_start")
        assert {key: cells["heads"] for key, cells in heads.items()} == naive_heads(rows, ranks, period)
        feeds = rows_of(feed_rows, "branch_id", "author")
        placed = [row for row in rows if row.name in ranks]
        wrote = Counter((id_of(row.branch), id_of(row.author)) for row in placed)
        assert {key: cells["commits"] for key, cells in feeds.items()} == dict(wrote)
        activity = rows_of(statistics.count_activity(ordered, period), "author", "bucket_start")
        day = {
            row.name: row.time - row.time % DAY_MS if period.start <= row.time <= period.end else None
            for row in placed
        }
        active = Counter((id_of(row.author), day[row.name]) for row in placed)
        assert {key: cells["commits"] for key, cells in activity.items()} == dict(active)
        growth = rows_of(statistics.count_growth(ordered, period), "branch_id", "bucket_start")
        grown = Counter((id_of(row.branch), day[row.name]) for row in placed)
        assert {key: cells["commits"] for key, cells in growth.items()} == dict(grown)
        kinds = rows_of(statistics.count_kinds(ordered), "repo_id", "body_kind")
        sizes = {"commits": len(placed), "bytes": sum(row.size for row in placed)}
        assert kinds == ({(id_of("repo"), "post"): sizes} if placed else {})
        for frame in (commits, order, feed_rows):
            frame.unpersist()


@pytest.mark.slow
@pytest.mark.parametrize("count", [7_407, 49_999])
def test_percentiles_are_exact_up_to_what_is_stated(spark: SparkSession, count: int) -> None:
    chance = random.Random(count)
    waits = [chance.randrange(count // 2) * 1000 for _ in range(count)]
    schema = "branch_id binary, acks_count int, time bigint, causes_from bigint, causes_until bigint"
    rows = [(b"b", 2, T0_MS + wait, T0_MS, T0_MS) for wait in waits]
    (found,) = concurrency.count_merges(spark.createDataFrame(rows, schema)).collect()
    assert (found["waited_p50"], found["waited_p90"]) == (nearest(waits, 0.5), nearest(waits, 0.9))
    assert (found["apart_p50"], found["apart_p90"]) == (found["waited_p50"], found["waited_p90"])


def test_replication_is_told_by_several_exports(spark: SparkSession, tmp_path: Path) -> None:
    rows = [Row(f"c{n}", (f"c{n - 1}",) if n else (), size=10, received=T0_MS + n) for n in range(10)]
    later = [Row(row.name, row.acks, received=row.received + 100 * n) for n, row in enumerate(rows[:8])]
    exports = [
        read_export(write_export(tmp_path / "one", rows, node="one", voids=["c9"])),
        read_export(write_export(tmp_path / "two", later, node="two")),
        read_export(write_export(tmp_path / "two before", later[:5], node="two", voids=["c1"])),
    ]
    receipts = stores.load_receipts(exports, load_commits(spark, *exports)).persist()
    branch = id_of("main")
    assert rows_of(stores.count_replication(receipts), "branch_id", "node") == {
        (branch, "one"): {
            "commits": 10, "lacking": 0, "first_here": 10, "only_here": 2,
            "delay_p50": None, "delay_p90": None, "delay_max": None,
        },
        (branch, "two"): {
            "commits": 8, "lacking": 2, "first_here": 1, "only_here": 0,
            "delay_p50": 400, "delay_p90": 700, "delay_max": 700,
        },
    }  # fmt: skip
    found = rows_of(stores.count_stores(receipts), "node")
    assert (found["one"]["commits"], found["one"]["void"], found["one"]["bytes"]) == (10, 1, 100)
    assert (found["two"]["commits"], found["two"]["void"]) == (8, 1), "each once, of two exports of one node"
    assert (found["two"]["first_received"], found["two"]["last_received"]) == (T0_MS, T0_MS + 707)
    growth = stores.count_store_growth(receipts.where("node = 'one'"), 5).orderBy("bucket_start").collect()
    assert [row["bytes_in_all"] for row in growth][-1] == 100
    assert sum(row["commits"] for row in growth) == 10
    receipts.unpersist()
    said = [
        replace(exports[0], created_at=at, holdings=held)
        for at, held in ((3, Holdings(1, 2, 3, 4)), (2, None), (1, Holdings(5, 6, 7, 8)))
    ]
    nodes = spark.createDataFrame([("one",)], "node string")
    assert rows_of(stores.add_holdings(nodes, said), "node")["one"]["block_bytes"] == 2
    said[0] = replace(said[0], created_at=0)
    assert rows_of(stores.add_holdings(nodes, said), "node")["one"]["block_bytes"] is None, "not counted last"


def test_a_table_that_cannot_be_written_ends_the_others_and_is_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = [f"table {number}" for number in range(6)]
    frames = {name: spark.range(1).selectExpr("assert_true(id < 0, 'broken') AS cell") for name in names[1:2]}
    frames = {name: frames.get(name, spark.range(3).toDF("cell")) for name in names}
    with pytest.raises(PySparkException, match="broken"):
        TableWriter(spark, tmp_path, with_csv=False).write_all(frames)
    done = spark.read.parquet(str(tmp_path / "tables" / names[0]))
    assert done.count() == 3


def test_the_driver_writes_the_same_table_as_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.range(3).selectExpr(
        "id", "unhex('0' || id) AS raw", "array(unhex('0' || id)) AS ids", "'text' AS text", "id / 2 AS half",
        "id > 1 AS is_late",
    ).repartition(2)  # fmt: skip
    empty = table.where("id < 0")
    written = {}
    for is_small in (True, False):
        writer = TableWriter(spark, tmp_path / str(is_small), is_small=is_small)
        frames = {"table": writer.write("table", empty), "empty": writer.write("empty", empty)}
        frames["table"] = writer.write("table", table)  # in the place of what an earlier analysis left
        written[is_small] = {
            name: (frame.dtypes, sorted(map(str, frame.collect()))) for name, frame in frames.items()
        }
    assert written[True] == written[False]
    assert len(written[True]["table"][1]) == 3
    assert [path.name for path in (tmp_path / "True" / "tables" / "table").iterdir()] == [
        "part-00000.parquet"
    ]


def test_what_is_small_is_told_by_the_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exports = [
        read_export(write_export(tmp_path / name, [Row("a"), Row("b", ("a",))])) for name in ("one", "two")
    ]
    rows = sum(export.rows_in_all for export in exports)
    monkeypatch.setattr(export_reader, "SMALL_ROWS_MAX", rows)
    assert export_reader.are_small(exports)
    monkeypatch.setattr(export_reader, "SMALL_ROWS_MAX", rows - 1)
    assert not export_reader.are_small(exports)


def test_an_id_that_stands_twice_in_one_export_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    rows = [Row("a", branch="x"), Row("b", ("a",), "x")]
    again = [Row("a", branch="x"), Row("b", ("a",), "x", rank=9)]
    commits = load_commits(spark, read_export(write_export(tmp_path / "e", rows, again)))
    assert {
        key: (cells["sequence"], cells["is_disputed"]) for key, cells in rows_of(commits, "commit_id").items()
    } == {
        id_of("a"): (1, False),
        id_of("b"): (2, True),
    }
    assert commits.count() == 2
