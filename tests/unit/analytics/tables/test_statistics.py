"""Statistics by the local engine, against a few lines of plain Python on small random exports.

tests/unit/analytics/engines holds Spark to the same rows.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from analytics.engines.engine import FIRST
from analytics.tables.definitions import TABLES
from analytics.tables.periods import SHOWN, Period
from ravel.exports.checking import FILE_BYTES_MAX, SUM_MAX, Holdings
from tests.support.analyses import Counted
from tests.support.drawn_exports import histories
from tests.support.exports import DAY_MS, T0_MS, Row, id_of, received_of, shown_times, write_export
from tests.support.read_exports import read_export

pytestmark = pytest.mark.slow


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


def naive_branches(rows: Sequence[Row], ranks: Mapping[str, int]) -> dict[bytes, dict[str, Any]]:
    found = {}
    shown = shown_times(rows)
    for branch in {row.branch for row in rows if row.name in ranks}:
        of_branch = [row for row in rows if row.branch == branch and row.name in ranks]
        acked = Counter(ack for row in of_branch for ack in row.acks)
        widths = Counter(ranks[row.name] for row in of_branch)
        times = [row.time for row in of_branch if row.time]
        found[id_of(branch)] = {
            "repo_id": id_of("repo"),
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
            "last_time": max(filter(None, (shown[branch, row.name] for row in of_branch)), default=None),
        }
    return found


def naive_heads(
    rows: Sequence[Row], ranks: Mapping[str, int], period: Period
) -> dict[tuple[bytes, int], int]:
    """Heads at the end of each bucket in which one came or went. What is outside of the period counts from its border."""
    steps: Counter[tuple[str, int]] = Counter()
    placed = [row for row in rows if row.name in ranks]
    shown = shown_times(rows)
    times = {row.name: min(max(shown[row.branch, row.name], period.start), period.end) for row in placed}
    for row in placed:
        ackers = [other.name for other in placed if row.name in other.acks]
        steps[row.branch, times[row.name] // period.bucket] += 1
        if ackers:
            until = min(times[name] for name in ackers)
            steps[row.branch, until // period.bucket] -= 1
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


@pytest.mark.same_examples
@settings(max_examples=5)
@given(histories())
def test_what_is_counted_of_tangles_is_what_plain_python_counts(history: tuple[list[Row], list[str]]) -> None:
    rows, voids = history
    ranks = placed_ranks(rows, voids)
    placed = [row for row in rows if row.name in ranks]
    with tempfile.TemporaryDirectory() as folder:
        export = read_export(write_export(Path(folder) / "e", rows, voids=voids))
        with Counted([export], Path(folder) / "out") as counted:
            names = ["branches", "merges", "faults", "heads", "activity", "growth", "kinds", "replication"]
            counted.catalog.write(["feeds", "widths"])
            counted.catalog.write(names)
            branches = counted.table("branches", "branch_id")
            assert branches == naive_branches(rows, ranks)
            merges = counted.table("merges", "branch_id")
            assert merges == naive_merges(rows, ranks)
            with_merges = {key: cells["merges"] for key, cells in branches.items() if cells["merges"]}
            assert {key: cells["merges"] for key, cells in merges.items()} == with_merges, (
                "one figure in both tables"
            )
            faults = counted.table("faults", "branch_id")
            assert faults == naive_faults(rows, voids)
            feeds = counted.table("feeds", "branch_id", "author")
            wrote = Counter((id_of(row.branch), id_of(row.author)) for row in placed)
            assert {key: cells["commits"] for key, cells in feeds.items()} == dict(wrote)
            kinds = counted.table("kinds", "repo_id", "body_kind")
            sizes = {"commits": len(placed), "bytes": sum(row.size for row in placed)}
            assert kinds == ({(id_of("repo"), "post"): sizes} if placed else {})
            replication = counted.table("replication", "branch_id")
            period = counted.catalog.period("ordered", SHOWN)
            heads = counted.table("heads", "branch_id", "bucket_start")
            growth = counted.table("growth", "branch_id", "bucket_start")
            activity = counted.table("activity", "author", "bucket_start")
        if period is None:
            assert (heads, growth, activity) == ({}, {}, {})
        else:
            found = {key: cells["heads"] for key, cells in heads.items()}
            assert found == naive_heads(rows, ranks, period)
            shown = shown_times(rows)
            bucket = {
                row.name: next(
                    (
                        time - time % period.bucket
                        for time in (shown[row.branch, row.name], received_of(row))
                        if period.start <= time <= period.end
                    ),
                    None,
                )
                for row in placed
            }
            grown = Counter((id_of(row.branch), bucket[row.name]) for row in placed)
            assert {key: cells["commits"] for key, cells in growth.items()} == dict(grown)
            active = Counter((id_of(row.author), bucket[row.name]) for row in placed)
            assert {key: cells["commits"] for key, cells in activity.items()} == dict(active)
        # Of two equal exports of one node each commit is looked for, and there is one receipt of it.
        with Counted([export, export], Path(folder) / "twice") as counted:
            counted.catalog.write(["faults", "replication"])
            assert counted.table("faults", "branch_id") == faults
            assert counted.table("replication", "branch_id") == replication
        if not any(cells["causes_missing"] for cells in faults.values()):
            with Counted([export], Path(folder) / "complete") as counted:
                counted.catalog.is_complete = True
                counted.catalog.write(["faults"])
                assert counted.table("faults", "branch_id") == faults


def test_sums_of_what_authors_say_of_files_stay_within_64_bits(tmp_path: Path) -> None:
    rows = [Row(name, file_bytes=FILE_BYTES_MAX) for name in "abcdefghi"]
    with Counted([read_export(write_export(tmp_path / "export", rows))], tmp_path / "out") as counted:
        counted.catalog.write(["store_growth"])
        (growth,) = counted.table("store_growth", "node", "bucket_start").values()
    assert growth["file_bytes"] == SUM_MAX < len(rows) * FILE_BYTES_MAX


def test_replication_is_told_by_several_exports(tmp_path: Path) -> None:
    rows = [Row(f"c{n}", (f"c{n - 1}",) if n else (), size=10, received=T0_MS + n) for n in range(10)]
    later = [Row(row.name, row.acks, received=received_of(row) + 100 * n) for n, row in enumerate(rows[:8])]
    exports = [
        read_export(write_export(tmp_path / "one", rows, node="one", voids=["c9"])),
        read_export(write_export(tmp_path / "two", later, node="two")),
        read_export(write_export(tmp_path / "two before", later[:5], node="two", voids=["c1"])),
    ]
    with Counted(exports, tmp_path / "out") as counted:
        counted.catalog.write(["replication", "stores", "store_growth"])
        replication = counted.table("replication", "branch_id", "node")
        found = counted.table("stores", "node")
        growth = counted.table("store_growth", "node", "bucket_start")
    branch = id_of("main")
    assert replication == {
        (branch, "one"): {
            "commits": 10, "lacking": 0, "first_here": 10, "only_here": 2,
            "delay_p50": None, "delay_p90": None, "delay_max": None,
        },
        (branch, "two"): {
            "commits": 8, "lacking": 2, "first_here": 1, "only_here": 0,
            "delay_p50": 400, "delay_p90": 700, "delay_max": 700,
        },
    }  # fmt: skip
    assert (found["one"]["commits"], found["one"]["void"], found["one"]["bytes"]) == (10, 1, 100)
    assert (found["two"]["commits"], found["two"]["void"]) == (8, 1), "each once, of two exports of one node"
    assert (found["two"]["first_received"], found["two"]["last_received"]) == (T0_MS, T0_MS + 707)
    of_one = [growth[key] for key in sorted(growth) if key[0] == "one"]
    assert of_one[-1]["bytes_in_all"] == 100
    assert sum(cells["commits"] for cells in of_one) == 10


@pytest.mark.parametrize("last_made_at,block_bytes", [(3, 2), (0, None)])
def test_holdings_are_those_of_the_latest_export(
    tmp_path: Path, last_made_at: int, block_bytes: int | None
) -> None:
    export = read_export(write_export(tmp_path / "export", [Row("a")], node="one"))
    said = ((last_made_at, Holdings(1, 2, 3, 4)), (2, None), (1, Holdings(5, 6, 7, 8)))
    exports = [replace(export, created_at=at, holdings=held) for at, held in said]
    with Counted(exports, tmp_path / "out") as counted:
        counted.catalog.write(["stores"])
        assert counted.table("stores", "node")["one"]["block_bytes"] == block_bytes, "not counted last: null"


def test_what_was_there_before_a_node_joined_is_no_delay(tmp_path: Path) -> None:
    rows = [Row(f"c{n}", (f"c{n - 1}",) if n else (), received=T0_MS + n * DAY_MS) for n in range(20)]
    joined = T0_MS + 10 * DAY_MS + 5
    late = [replace(row, received=max(received_of(row) + 800, joined)) for row in rows]
    exports = [
        read_export(write_export(tmp_path / name, told, node=name))
        for name, told in (("a", rows), ("late", late))
    ]
    with Counted(exports, tmp_path / "out") as counted:
        counted.catalog.write(["replication"])
        found = counted.table("replication", "branch_id", "node")[id_of("main"), "late"]
    assert (found["commits"], found["first_here"]) == (20, 0)
    assert (found["delay_p50"], found["delay_max"]) == (800, 800)


def test_imported_commits_count_for_their_authors_where_they_came_from(tmp_path: Path) -> None:
    rows = [Row("a"), *(Row(f"c{n}", ("a",), source=f"s{n % 2}", kind="imported") for n in range(5))]
    with Counted([read_export(write_export(tmp_path / "export", rows))], tmp_path / "out") as counted:
        counted.catalog.write(["feeds", "authors", "activity", "widths", "branches"])
        wrote = {author: row["commits"] for author, row in counted.table("authors", "author").items()}
        (branch,) = counted.table("branches", "branch_id").values()
        active = {row["author"] for row in counted.engine.rows("SELECT author FROM activity")}
    assert wrote == {id_of("ada"): 1, id_of("s0"): 3, id_of("s1"): 2}
    assert branch["authors"] == 3
    assert active == wrote.keys()


def test_a_branch_never_has_no_head_where_one_commit_is_dated_far_off(tmp_path: Path) -> None:
    rows = [
        Row(
            f"c{n}",
            (f"c{n - 1}",) if n else (),
            time=T0_MS + (4_000 if n == 20 else -9_000 if n == 40 else n) * DAY_MS,
            received=T0_MS + n * DAY_MS,
        )
        for n in range(300)
    ]
    with Counted([read_export(write_export(tmp_path / "export", rows))], tmp_path / "out") as counted:
        counted.catalog.write(["heads"])
        heads = [row["heads"] for row in counted.engine.rows("SELECT heads FROM heads ORDER BY bucket_start")]
    assert {*heads} == {1}


def test_a_clock_that_is_late_adds_no_head(tmp_path: Path) -> None:
    # The third is dated a week before its cause, and so are the three that follow it: a chain, not one commit alone.
    times = [0, 10, 3, 4, 5, 6, 11, 12]
    rows = [
        Row(
            f"c{n}",
            (f"c{n - 1}",) if n else (),
            time=T0_MS + day * DAY_MS,
            received=T0_MS + max(times[: n + 1]) * DAY_MS,
        )
        for n, day in enumerate(times)
    ]
    with Counted([read_export(write_export(tmp_path / "export", rows))], tmp_path / "out") as counted:
        counted.catalog.write(["heads", "growth"])
        heads = [row["heads"] for row in counted.engine.rows("SELECT heads FROM heads ORDER BY bucket_start")]
        growth = counted.table("growth", "bucket_start")
    assert {*heads} == {1}
    assert not [start for start in growth if T0_MS < start < T0_MS + 9 * DAY_MS], "nothing was shown then"


def test_copies_of_several_nodes_are_placed_in_one_time(tmp_path: Path) -> None:
    # Both place a chain's middle, whose clock is ahead, at its receipt: one much later than the other.
    def told(node: str, received: int, *others: str) -> Path:
        middle = Row("c1", ("c0",), time=T0_MS + 300 * DAY_MS, received=T0_MS + received * DAY_MS)
        last = Row("c2", ("c1",), time=T0_MS + 61 * DAY_MS, received=T0_MS + (received + 1) * DAY_MS)
        between = [Row(name, branch="side") for name in ("x", "y")]
        rows = {row.name: row for row in (Row("c0"), middle, last, *between)}
        return write_export(tmp_path / node, [rows[name] for name in others], node=node)

    late = told("late", 200, "c0", "c1", "x", "y", "c2")
    soon = told("soon", 60, "c0", "x", "c1", "c2", "y")
    with Counted([read_export(late), read_export(soon)], tmp_path / "out") as counted:
        counted.catalog.write(["heads"])
        heads = counted.engine.rows("SELECT branch_id, heads FROM heads")
    assert {row["heads"] for row in heads if row["branch_id"] == id_of("main")} == {1}


def test_merges_are_sorted_by_how_long_they_waited(tmp_path: Path) -> None:
    rows = [Row("root")]
    for number, waited in enumerate((0, 1_000, 1_001, 60_000, 400 * DAY_MS, -1)):
        sides = [Row(f"{number}{side}", ("root",), time=T0_MS) for side in "ab"]
        rows += [*sides, Row(f"m{number}", (f"{number}a", f"{number}b"), time=T0_MS + waited)]
    with Counted([read_export(write_export(tmp_path / "export", rows))], tmp_path / "out") as counted:
        counted.catalog.write(["waits"])
        found = counted.table("waits", "waited_until")
    assert {until: row["merges"] for until, row in found.items()} == {1_000: 2, 5_000: 1, 60_000: 1, None: 1}


def test_tables_of_branches_say_what_these_and_their_repos_are_called(tmp_path: Path) -> None:
    rows = [
        Row("a", branch="1", repo="notes", called="draft"),
        Row("b", ("a",), "1", repo="notes", called="main"),  # renamed
        Row("c", branch="2", repo="toy", called="main", is_repo_named=False),
        Row("d", ("c",), "2", repo="toy", called="main", is_repo_named=False),
        Row("e", branch="3", repo="toy", called="main"),
        Row("f", ("e",), "3", repo="toy", called="main", is_repo_named=False),  # of an older export
        Row("lost", ("nowhere",), "4", repo="toy", called="side"),
        Row("g", branch="5", repo="toy", called="aside"),
    ]
    # What is told of now holds, whatever commits were called when they came.
    now = [{"repo_id": id_of("toy"), "branch_id": id_of("5"), "repo_name": None, "branch_name": "hall"}]
    folder = write_export(tmp_path / "export", rows, tables={"names": now})
    with Counted([read_export(folder)], tmp_path / "out") as counted:
        of_branches = [
            name for name, table in TABLES.items() if "branch_id" in [one.name for one in table.columns]
        ]
        counted.catalog.write(name for name in TABLES if name not in FIRST)
        names = {
            row["branch_id"]: (row["repo_name"], row["branch_name"])
            for row in counted.engine.rows("SELECT * FROM branch_names")
        }
        assert names == {
            id_of("1"): ("notes", "main"),
            id_of("2"): (None, "main"),
            id_of("3"): ("toy", "main"),
            id_of("4"): ("toy", "side"),
            id_of("5"): ("toy", "hall"),
        }
        assert {"linearization", "branches", "growth", "faults", "replication", "edits"} <= {*of_branches}
        for name in of_branches:
            for row in counted.engine.rows(f"SELECT * FROM {name}"):  # noqa: S608  # a name of ours
                assert (row["repo_name"], row["branch_name"]) == names[row["branch_id"]], name
