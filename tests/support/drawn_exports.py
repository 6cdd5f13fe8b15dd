"""Random exports, in which much is forged, contradictory or absent."""

from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from ravel.exports.schema import PERMISSIONS, REASONS
from tests.support.exports import (
    DAY_MS,
    T0_MS,
    RelayedCommit,
    Row,
    id_of,
    relayed,
    stated_places,
    write_export,
)

_LAST_MS: Final = T0_MS + 20 * DAY_MS
_OPERATIONS: Final = ("init", "grant", "join", "remove", "epoch-init", "tag")


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
                    received=draw(st.integers(T0_MS, T0_MS + 5) | st.integers(T0_MS, _LAST_MS + DAY_MS)),
                )
            )
    return rows, draw(st.lists(st.sampled_from([row.name for row in rows]), unique=True, max_size=2))


def _places(names: list[str]) -> st.SearchStrategy[tuple[str, str, str, tuple[str, ...]]]:
    """Places in tangles, of which many contradict each other."""
    name = st.sampled_from(names)
    previous = st.lists(name, max_size=2, unique=True).map(tuple)
    return st.tuples(st.sampled_from(["reply", "vote", "edit", "group"]), name, name, previous)


@st.composite
def tables(draw: st.DrawFn, rows: list[Row]) -> dict[str, list[dict[str, Any]]]:
    """Tables beside these commits: of members, edits and relays."""
    names = [row.name for row in rows]
    people = st.sampled_from("abc")
    operations = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(_OPERATIONS)), max_size=12))
    memberships = [
        {
            "sequence": draw(st.integers(1, 2)),
            "commit_id": id_of(name),
            "repo_id": id_of("x"),
            "operation": operation,
            "member": draw(st.none() | people.map(id_of)),
            "permission": draw(st.none() | st.sampled_from([*PERMISSIONS, "emperor"])),
            "epoch": None,
            "reason": draw(st.none() | st.sampled_from([*REASONS, "magic"])),
            "sealed_to": draw(st.none() | st.integers(-1, 3)),
            "counts": draw(st.booleans()),
        }
        for name, operation in operations
    ]
    members = [
        {
            "repo_id": id_of("x"),
            "member": id_of(name),
            "permission": draw(st.sampled_from([*PERMISSIONS, "emperor"])),
            "person": draw(st.none() | people.map(id_of)),
        }
        for name in draw(st.lists(people, max_size=4))
    ]
    topics = [
        {
            "topic": id_of(f"topic of {branch}"),
            "repo_id": id_of("x"),
            "branch_id": id_of(branch),
            "epoch": draw(st.none() | st.sampled_from(names).map(id_of)),
            "kind": "epoch",
        }
        for branch in draw(st.lists(st.sampled_from("xy"), max_size=3))
    ]
    called = [
        {
            "repo_id": id_of("x"),
            "branch_id": id_of(branch),
            "repo_name": draw(st.none() | st.just("toy")),
            "branch_name": draw(st.sampled_from(["main", "hall"])),
        }
        for branch in draw(st.lists(st.sampled_from("xyz"), max_size=3))
    ]
    edits = [
        {
            "sequence": draw(st.integers(1, 4)),
            "branch_id": id_of(draw(st.sampled_from("xy"))),
            "commit_id": id_of(draw(st.sampled_from(names))),
            "kind": draw(st.sampled_from(["insert", "move", "remove"])),
            "passed_before": None,
            "passed_after": None,
        }
        for _ in range(draw(st.integers(0, 5)))
    ]
    publications = [
        RelayedCommit(
            name,
            tuple(draw(st.lists(st.sampled_from(names), max_size=2))),
            draw(st.sampled_from("tu")),
            received=draw(st.just(0) | st.integers(T0_MS, T0_MS + DAY_MS)),
        )
        for name in draw(st.lists(st.sampled_from(names), max_size=6))
    ]
    kept = [
        {"topic": id_of(topic), "is_pinned": True, "commits": 1, "size": 8, "touched_at": T0_MS}
        for topic in draw(st.lists(st.sampled_from("uv"), unique=True))
    ]
    return {
        "memberships": memberships,
        "members": members,
        "topics": topics,
        "names": called,
        "tangles": stated_places(
            *draw(st.lists(_places(names), max_size=8, unique_by=lambda place: place[:3]))
        ),
        "edits": edits,
        "relay_commits": relayed(*publications),
        "relay_topics": kept,
    }


@st.composite
def exports(draw: st.DrawFn) -> list[dict[str, Any]]:
    """What `write` writes: one export or several, of one node or of two, which share commits and contradict each other."""
    rows, voids = draw(histories())
    told = []
    for number in range(draw(st.integers(1, 3))):
        own = [
            replace(
                row,
                repo=draw(st.sampled_from("xy")),
                called=draw(st.sampled_from([None, "main"])),
                is_repo_named=draw(st.booleans()),
                kind=draw(st.sampled_from(["post", "checkpoint", *_OPERATIONS])),
                feed=draw(st.integers(-1, 3)),
                author=draw(st.just(row.author) | st.just("mallory")),
                rank=draw(st.none() | st.none() | st.none() | st.integers(-1, 9)),
            )
            for row in rows
            if number == 0 or draw(st.booleans())
        ]
        told.append(
            {
                "rows": own,
                "node": draw(st.sampled_from(["one", "two"])),
                "voids": voids if draw(st.booleans()) else [],
                "tables": draw(tables(rows)) if draw(st.booleans()) else {},
                "quotas": draw(st.none() | st.just({"total": 100, "topic": 0, "peer": 1})),
            }
        )
    return told


def write(folder: Path, told: list[dict[str, Any]]) -> list[Path]:
    """Write drawn exports; gives their folders."""
    return [
        write_export(folder / str(number), one["rows"], **{name: one[name] for name in one if name != "rows"})
        for number, one in enumerate(told)
    ]


@st.composite
def growing(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Parts, voids and tables for `write_export`: exports of one node, one after the other.

    Commits come late, parts are merged or begun anew, voids change, and at times a commit is told twice.
    """
    rows = draw(_rows_of_all_kinds())
    return _grow(draw, _as_they_come(draw, rows, draw(_BRANCH_ORDERS)), draw(st.integers(2, 3)))


@st.composite
def growing_together(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """The same of two nodes that have much in common: for each analysis an export of each.

    At times one says otherwise what the other says too: another branch, or another rank.
    """
    rows = draw(_rows_of_all_kinds())
    steps, branches = draw(st.integers(2, 3)), draw(_BRANCH_ORDERS)
    nodes = []
    for number in range(2):
        own = [row for row in _as_they_come(draw, rows, branches) if draw(st.integers(0, 3))] or rows[:1]
        if number and draw(st.integers(0, 3)) == 0:
            place = draw(st.integers(0, len(own) - 1))
            other = {"branch": draw(st.sampled_from("xyz"))} if draw(st.booleans()) else {"rank": 9}
            own[place] = replace(own[place], **other)
        nodes.append(_grow(draw, own, steps))
    return [list(step) for step in zip(*nodes, strict=True)]


@st.composite
def _rows_of_all_kinds(draw: st.DrawFn) -> list[Row]:
    rows, _ = draw(histories())
    rows = [
        replace(
            row,
            repo="x",
            kind=draw(st.sampled_from(["post", "checkpoint", *_OPERATIONS])),
            feed=draw(st.integers(-1, 3)),
        )
        for row in rows
    ]
    if draw(st.integers(0, 9)) == 0:
        rows.append(replace(draw(st.sampled_from(rows)), branch=draw(st.sampled_from("xyz"))))
    return rows


_BRANCH_ORDERS: Final = st.sampled_from(["", *map("".join, permutations("xyz"))])


def _as_they_come(draw: st.DrawFn, rows: list[Row], branches: str) -> list[Row]:
    """Rows in any order, or branch by branch: then the last ones are news of few branches."""
    return sorted(draw(st.permutations(rows)), key=lambda row: branches.find(row.branch))


def _grow(draw: st.DrawFn, rows: list[Row], steps: int) -> list[dict[str, Any]]:
    """Exports of one node, one after the other, which end at some of these rows."""
    names = st.sampled_from([row.name for row in rows])
    ends = sorted(draw(st.lists(st.integers(0, len(rows)), min_size=steps, max_size=steps)))
    told: list[dict[str, Any]] = []
    for number, end in enumerate(ends):
        starts = [0, *draw(st.sampled_from([ends[:number], ends[:number][:1], []]))]
        is_again = draw(st.booleans())
        again = told[-1] if told and is_again else None
        told.append(
            {
                "parts": [rows[start:stop] for start, stop in pairwise([*starts, end]) if start < stop],
                "voids": again["voids"] if again else draw(st.lists(names, unique=True, max_size=2)),
                "tables": again["tables"] if again else draw(tables(rows)),
            }
        )
    return told
