"""Tangles that commits state, their order, and who answers whom: by the local engine.

tests/unit/analytics/engines holds Spark to the same rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import analytics.frames as figures
import ravel
from tests.support.analyses import Counted
from tests.support.exports import DAY_MS, T0_MS, Row, id_of, stated_places, write_export
from tests.support.read_exports import read_export

HOUR_MS = 3_600_000
TABLES = ("tangles", "tangle_order", "reply_edges", "reply_nodes")


def count(
    folder: Path, rows: list[Row], places: list[dict[str, object]], voids: Sequence[str] = ()
) -> dict[str, list[dict[str, Any]]]:
    export = read_export(write_export(folder / "export", rows, tables={"tangles": places}, voids=voids))
    with Counted([export], folder / "out") as counted:
        counted.catalog.write(TABLES)
        return {name: counted.engine.rows(f"SELECT * FROM {name}") for name in TABLES}  # noqa: S608  # names of ours


def written(name: str, author: str, hours: int, *acks: str) -> Row:
    return Row(name, acks, author=author, time=T0_MS + hours * HOUR_MS)


THREAD = [
    written("a", "ada", 0),
    written("b", "bob", 1, "a"),
    written("c", "cleo", 3, "b"),
    written("d", "ada", 7, "c"),
    written("e", "bob", 8, "d"),
]
PLACES = stated_places(
    ("reply", "a", "b", ("a",)),
    ("reply", "a", "c", ("a",)),
    ("reply", "a", "d", ("b",)),
    ("reply", "a", "e", ("c", "d")),
    ("edit", "a", "d", ("a",)),
    ("group", "a", "b", ("a",)),
)


def test_a_thread_has_its_own_order_shape_people_and_pace(tmp_path: Path) -> None:
    ahead = replace(THREAD[-1], received=T0_MS + 7 * HOUR_MS)
    found = count(tmp_path, [*THREAD[:-1], ahead], PLACES)
    order = {row["commit_id"]: row for row in found["tangle_order"] if row["kind"] == "reply"}
    ranks = {name: order[id_of(name)]["rank"] for name in "abcde"}
    assert ranks == {"a": 0, "b": 1, "c": 1, "d": 2, "e": 3}
    placed = sorted(order, key=lambda one: order[one]["position"])
    assert placed == sorted(order, key=lambda one: (order[one]["rank"], one))
    thread, edit = sorted(found["tangles"], key=lambda row: row["kind"], reverse=True)
    assert (edit["kind"], edit["commits"]) == ("edit", 2)
    assert {
        name: thread[name] for name in thread if name not in ("kind", "root", "branch_id", "repo_name")
    } == {
        "branch_name": "main",
        "commits": 5,
        "waiting": 0,
        "authors": 3,
        "depth": 3,
        "width_max": 2,
        "heads": 1,
        "forks": 1,
        "merges": 1,
        "latency_p50": 3 * HOUR_MS,
        "latency_p90": 6 * HOUR_MS,
        "first_time": T0_MS,
        "last_time": T0_MS + 7 * HOUR_MS,  # the last is dated after its receipt
    }
    assert (thread["root"], thread["branch_id"]) == (id_of("a"), id_of("main"))


def test_what_follows_something_absent_waits_and_what_follows_nothing_is_no_part(tmp_path: Path) -> None:
    places = stated_places(
        ("reply", "a", "b", ("gone",)),
        ("reply", "a", "c", ("b",)),
        ("reply", "a", "d", ()),
        ("vote", "gone", "e", ("gone",)),
    )
    found = count(tmp_path, THREAD, places)
    faults = {(row["kind"], row["commit_id"]): row["fault"] for row in found["tangle_order"]}
    assert faults == {
        ("reply", id_of("a")): None,
        ("reply", id_of("b")): "missing cause",
        ("reply", id_of("c")): "behind a missing cause",
        ("vote", id_of("e")): "missing cause",
    }
    by_kind = {row["kind"]: (row["commits"], row["waiting"], row["branch_name"]) for row in found["tangles"]}
    assert by_kind == {"reply": (1, 2, "main"), "vote": (0, 1, None)}


def test_tangles_of_epochs_and_members_are_ordered_as_threads_are_and_are_no_answers(tmp_path: Path) -> None:
    stated = (("a", "epoch", "a", ()), ("b", "members", "a", ("a",)), ("c", "members", "a", ("b",)))
    rows = [
        {
            "sequence": 1,
            "commit_id": id_of(name),
            "repo_id": id_of("toy"),
            "operation": "grant",
            "counts": True,
        }
        | {"kind": kind, "root": id_of(root), "previous": [id_of(one) for one in previous]}
        for name, kind, root, previous in (*stated, ("d", "epoch", "a", ("a",)))
    ]
    rows += [rows[0] | {"commit_id": id_of("e"), "kind": None, "root": None, "previous": None}]
    said = stated_places(("members", "a", "e", ("a",)), ("epoch", "b", "e", ("b",)))
    export = read_export(
        write_export(tmp_path / "export", THREAD, tables={"tangles": said, "memberships": rows})
    )
    with Counted([export], tmp_path / "out") as counted:
        counted.catalog.write(TABLES)
        found = counted.engine.rows("SELECT kind, root, commits, depth, authors FROM tangles ORDER BY kind")
        edges = counted.engine.rows("SELECT * FROM reply_edges")
        order = counted.engine.rows(
            "SELECT commit_id FROM tangle_order WHERE kind = 'members' ORDER BY position"
        )
    assert [tuple(row.values()) for row in found] == [
        ("epoch", id_of("a"), 2, 1, 1),
        ("members", id_of("a"), 3, 2, 3),
    ]
    assert edges == []
    assert [row["commit_id"] for row in order] == [id_of(name) for name in "abc"]


@pytest.mark.slow
def test_feeds_and_groups_are_tangles_where_they_are_asked_for(tmp_path: Path) -> None:
    rows = [
        Row("init", branch="repo"),
        Row("grant", ("init",), branch="repo", feed=2),
        Row("a"),
        Row("b", ("a",), author="bob"),
        Row("c", ("b",), feed=2),
        Row("d", ("b",), feed=2),
        Row("e", ("c", "d"), feed=3),
        Row("gap", ("e",), author="cleo", feed=2),
    ]
    seen = {"a": "init", "b": "init", "c": "grant", "d": "grant", "e": "grant"}
    places = stated_places(*(("group", "init", name, (root,)) for name, root in seen.items()))
    folder = write_export(tmp_path / "export", rows, tables={"tangles": places})
    export = ravel.open_export(folder)
    commits, tangles = (export.table(name).arrow() for name in ("commits", "tangles"))
    assert figures.tangles(commits, tangles=tangles).num_rows == 0
    found = figures.tangles(commits, tangles=tangles, with_every_tangle=True).to_pylist()
    shapes = {
        (row["kind"], row["root"]): tuple(
            row[name] for name in ("commits", "depth", "width_max", "heads", "forks")
        )
        for row in found
    }
    assert shapes == {
        ("feed", id_of("init")): (2, 1, 1, 1, 0),
        ("feed", id_of("a")): (4, 2, 2, 1, 1),
        ("feed", id_of("b")): (1, 0, 1, 1, 0),
        ("group", id_of("init")): (7, 2, 3, 5, 2),
    }
    order = figures.tangle_order(commits, tangles=tangles, with_every_tangle=True).to_pylist()
    feed = sorted(
        (row["position"], row["commit_id"])
        for row in order
        if (row["kind"], row["root"]) == ("feed", id_of("a"))
    )
    assert [commit for _, commit in feed] == [id_of("a"), *sorted([id_of("c"), id_of("d")]), id_of("e")]
    assert figures.reply_edges(commits, tangles=tangles, with_every_tangle=True).num_rows == 0


def test_a_void_answer_has_no_place_and_is_no_edge(tmp_path: Path) -> None:
    found = count(tmp_path, THREAD, PLACES, voids=["d"])
    assert {row["fault"] for row in found["tangle_order"] if row["commit_id"] == id_of("d")} == {"void"}
    assert id_of("ada") not in {row["source"] for row in found["reply_edges"]}


def test_who_answers_whom_is_counted_by_month_and_read_as_a_graph(tmp_path: Path) -> None:
    later = T0_MS + 40 * DAY_MS
    rows = [*THREAD, Row("f", ("e",), author="bob", time=later), Row("g", ("f",), author="bob", time=0)]
    places = stated_places(
        ("reply", "a", "b", ("a",)),
        ("reply", "a", "e", ("d",)),
        ("reply", "a", "d", ("a",)),
        ("reply", "a", "f", ("a",)),
        ("vote", "a", "g", ("a",)),
        ("delete", "a", "c", ("a",)),
    )
    found = count(tmp_path, rows, places)
    months = [
        1000
        * int(
            datetime.fromtimestamp(time // 1000, UTC).replace(day=1, hour=0, minute=0, second=0).timestamp()
        )
        for time in (T0_MS, later)
    ]
    edges = {
        (row["source"], row["target"], row["kind"], row["month_start"]): (row["weight"], row["latency_p50"])
        for row in found["reply_edges"]
    }
    ada, bob = id_of("ada"), id_of("bob")
    assert edges == {
        (ada, ada, "reply", months[0]): (1, 7 * HOUR_MS),
        (bob, ada, "reply", months[0]): (2, HOUR_MS),
        (bob, ada, "reply", months[1]): (1, 40 * DAY_MS),
        (bob, ada, "vote", None): (1, None),
    }
    nodes = {row.pop("id"): row for row in found["reply_nodes"]}
    assert nodes == {
        ada: {"given": 1, "received": 5, "answers_to": 0, "answered_by": 1},
        bob: {"given": 4, "received": 0, "answers_to": 1, "answered_by": 0},
    }


def test_who_answers_an_imported_commit_answers_its_author_and_not_who_imported_it(tmp_path: Path) -> None:
    rows = [Row("a", author="importer", source="eve"), Row("b", ("a",), author="bob")]
    found = count(tmp_path, rows, stated_places(("reply", "a", "b", ("a",))))
    assert [(row["source"], row["target"]) for row in found["reply_edges"]] == [(id_of("bob"), id_of("eve"))]
    assert {row["id"] for row in found["reply_nodes"]} == {id_of("bob"), id_of("eve")}


def test_two_nodes_that_have_a_place_count_it_once(tmp_path: Path) -> None:
    exports = [
        read_export(write_export(tmp_path / name, THREAD, node=name, tables={"tangles": PLACES}))
        for name in ("one", "two")
    ]
    with Counted(exports, tmp_path / "out") as counted:
        counted.catalog.write(TABLES)
        (thread,) = counted.engine.rows("SELECT * FROM tangles WHERE kind = 'reply'")
    assert (thread["commits"], thread["merges"]) == (5, 1)
