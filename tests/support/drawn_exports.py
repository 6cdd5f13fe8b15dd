"""Random exports, in which much is forged, contradictory or absent."""

from dataclasses import replace
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
_OPERATIONS: Final = ("init", "grant", "device-grant", "join", "remove", "epoch-init", "tag")


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
