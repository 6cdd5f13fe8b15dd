"""Members, epochs, forks of feeds and deduplication by the local engine, against a few lines of plain Python."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.analyze import run
from ravel.exports.schema import PERMISSIONS, text_id
from tests.support.analyses import Counted, keyed
from tests.support.exports import DAY_MS, T0_MS, Row, change_manifest, id_of, naive_order, write_export
from tests.support.read_exports import read_export

pytestmark = pytest.mark.slow

REPO = "repo"  # its root branch has the same id


@dataclass(frozen=True)
class Said:
    """One row of `memberships`: what the commit of this name says."""

    name: str
    operation: str
    member: str | None = None
    permission: str | None = None
    counts: bool = True
    repo: str = REPO
    reason: str | None = None
    sealed_to: int | None = None

    def row(self) -> dict[str, object]:
        """As it stands in an export."""
        is_start = self.operation in ("init", "epoch-init")
        return {
            "sequence": 1,
            "commit_id": id_of(self.name),
            "repo_id": id_of(self.repo),
            "operation": self.operation,
            "member": None if self.member is None else id_of(self.member),
            "permission": self.permission,
            "epoch": id_of(self.name) if is_start else None,
            "reason": self.reason,
            "sealed_to": self.sealed_to,
            "counts": self.counts,
        }


def _member(
    name: str, permission: str = "write", person: str | None = None, repo: str = REPO
) -> dict[str, object]:
    return {
        "repo_id": id_of(repo),
        "member": id_of(name),
        "permission": permission,
        "person": None if person is None else id_of(person),
    }


def _topic(branch: str, epoch: str | None, repo: str = REPO) -> dict[str, object]:
    return {
        "topic": id_of("topic of " + branch),
        "repo_id": id_of(repo),
        "branch_id": id_of(branch),
        "epoch": None if epoch is None else id_of(epoch),
        "kind": "epoch",
    }


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[Said]]:
    """Root branches with forks, whose operations sometimes do not count, contradict their commits or name nobody."""
    rows: list[Row] = []
    said: list[Said] = []
    for repo in ("x", "y", "z"):
        founders = draw(st.lists(st.sampled_from("ab"), unique=True, min_size=1))
        own = [Row(f"{repo}0", branch=repo, kind="init", author=founders[0], repo=repo)]
        said += [Said(f"{repo}0", "init", one, "owner", repo=repo, reason="founding") for one in founders]
        for number in range(1, draw(st.integers(1, 14))):
            name = f"{repo}{number}"
            before = [row.name for row in own[-3:]]
            acks = draw(st.lists(st.sampled_from(before), unique=True, min_size=1, max_size=2))
            operation = draw(
                st.sampled_from(["grant", "device-grant", "join", "remove", "epoch-init", "tag", "unknown:x"])
            )
            permission = draw(st.sampled_from([*PERMISSIONS, None, "emperor"]))
            member = draw(st.sampled_from([*"abcd", None]))
            kind = operation if draw(st.integers(0, 9)) else "post"
            author, feed = draw(st.sampled_from("ab")), draw(st.integers(-1, 3))
            own.append(Row(name, tuple(acks), repo, author, kind=kind, feed=feed, repo=repo))
            said.append(Said(name, operation, member, permission, draw(st.integers(0, 4)) > 0, repo))
        said.append(Said(f"{repo} nowhere", "grant", "a", "write", repo=repo))
        rows += own
        rows += [Row(f"{repo}p{n}", (), f"{repo} main", "b", feed=n % 2 + 1, repo=repo) for n in range(3)]
    return rows, said


def _is_read(one: Said, kinds: Mapping[str, str]) -> bool:
    if kinds.get(one.name) != one.operation:
        return False
    if one.operation in ("init", "grant", "device-grant", "join"):
        return one.member is not None and one.permission in PERMISSIONS
    if one.operation == "remove":
        return one.member is not None and (one.permission is None or one.permission in PERMISSIONS)
    return True


def naive_membership(rows: Sequence[Row], said: Sequence[Said]) -> list[tuple[bytes, bytes, int, int]]:
    """(commit, member, step, members after it) of what counts of one repo, in order."""
    repo = said[0].repo
    kinds = {row.name: row.kind for row in rows if row.branch == repo}
    order = {name: at for at, name in enumerate(naive_order(rows)[repo])}
    there: set[str] = set()
    found = []
    read = [one for one in said if _is_read(one, kinds) and one.counts]
    for one in sorted(read, key=lambda one: (order[one.name], id_of(one.member or ""))):
        if one.operation not in ("init", "grant", "device-grant", "join", "remove"):
            continue
        assert one.member is not None
        before = one.member in there
        if one.operation != "remove":
            there.add(one.member)
        elif one.permission is None:
            there.discard(one.member)
        found.append((id_of(one.name), id_of(one.member), (one.member in there) - before, len(there)))
    return found


def naive_forks(rows: Sequence[Row]) -> dict[tuple[bytes, bytes], tuple[int, int, int]]:
    places = Counter((row.branch, row.author, row.feed) for row in rows if row.feed >= 1)
    found: dict[tuple[bytes, bytes], tuple[int, int, int]] = {}
    for (branch, author, feed), count in sorted(places.items()):
        if count > 1:
            key = (id_of(branch), id_of(author))
            forks, commits, first = found.get(key, (0, 0, feed))
            found[key] = (forks + 1, commits + count, first)
    return found


@pytest.mark.same_examples
@settings(max_examples=4)
@given(histories())
def test_what_is_counted_of_members_is_what_plain_python_counts(
    history: tuple[list[Row], list[Said]],
) -> None:
    rows, said = history
    repos = ("x", "y", "z")
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            "memberships": [one.row() for one in said],
            "members": [
                row
                for repo in repos
                for row in (
                    _member("a", "owner", repo=repo),
                    _member("d", person="a", repo=repo),
                    _member("x", "emperor", repo=repo),
                )
            ],
            "topics": [
                _topic(branch, f"{repo}0", repo) for repo in repos for branch in (repo, f"{repo} main")
            ],
        }
        exports = [read_export(write_export(Path(folder) / "e", rows, tables=tables))]
        with Counted(exports, Path(folder) / "out") as made:
            made.catalog.write(["membership", "epochs", "repos", "feed_forks"])
            stepped = made.engine.rows("SELECT * FROM membership ORDER BY position, member")
            begun = made.table("epochs", "repo_id", "number")
            counted = made.table("repos", "repo_id")
            forks = made.table("feed_forks", "branch_id", "author")
        for repo in repos:
            of_repo, own = (
                [one for one in said if one.repo == repo],
                [row for row in rows if row.repo == repo],
            )
            wanted = naive_membership(own, of_repo)
            assert [
                (bytes(row["commit_id"]), bytes(row["member"]), row["step"], row["members"])
                for row in stepped
                if bytes(row["repo_id"]) == id_of(repo)
            ] == wanted
            kinds = {row.name: row.kind for row in own if row.branch == repo}
            starts = {
                one.name
                for one in of_repo
                if one.operation in ("init", "epoch-init") and _is_read(one, kinds)
            }
            assert [begun[id_of(repo), number + 1]["epoch"] for number in range(len(starts))] == [
                id_of(name) for name in naive_order(own)[repo] if name in starts
            ]
            first = begun[id_of(repo), 1]
            assert (first["topics"], first["commits"], first["reason"]) == (2, len(own), "founding")
            assert first["authors"] == len({row.author for row in own})
            steps = Counter(step for _, _, step, _ in wanted)
            assert counted[id_of(repo)] == {
                "members": 2,
                "persons": 1,
                "admins": 1,
                "operations": len({one.name for one in of_repo}),
                "uncounted": len({one.name for one in of_repo if not one.counts}),
                "left_out": len({one.name for one in of_repo if not _is_read(one, kinds)}),
                "joins": steps[1],
                "removals": steps[-1],
                "replayed": steps[1] - steps[-1],
                "epochs": len(starts),
            }
        assert len(begun) == sum(cells["epochs"] for cells in counted.values())
        assert {
            key: (cells["places"], cells["commits"], cells["first_place"]) for key, cells in forks.items()
        } == naive_forks(rows)


def _root() -> tuple[list[Row], list[Said]]:
    """ann founds, lets ben in, and excludes ben; an epoch follows."""
    rows = [
        Row("init", branch=REPO, kind="init", author="ann", time=T0_MS),
        Row("grant", ("init",), REPO, kind="grant", author="ann", time=T0_MS + DAY_MS),
        Row("remove", ("grant",), REPO, kind="remove", author="ann", time=T0_MS + 5 * DAY_MS),
        Row("start", ("remove",), REPO, kind="epoch-init", author="ann", time=T0_MS + 5 * DAY_MS),
    ]
    said = [
        Said("init", "init", "ann", "owner", reason="founding", sealed_to=1),
        Said("grant", "grant", "ben", "write"),
        Said("remove", "remove", "ben"),
        Said("start", "epoch-init", reason="removal", sealed_to=1),
    ]
    return rows, said


def test_the_report_and_tables_tell_of_members_whatever_is_forged(tmp_path: Path) -> None:
    """Two nodes tell of the repo, of which one knows less and invents more; and one of repos that are not there."""
    rows, said = _root()
    posts = [Row("p", branch="main", author="ann", time=T0_MS), Row("q", ("p",), author="ann", time=T0_MS)]
    topics = [_topic(REPO, "init"), _topic("main", "init"), _topic("alone", None)]
    epochs_beside = ("ghost", "ghost 1")
    assert id_of("ghost 1") < id_of("init") < id_of("ghost"), "whichever has the least bytes"
    assert id_of("repo 84") < id_of(REPO) < id_of("only members"), "as above"
    topics += [_topic("main", epoch, repo) for epoch in epochs_beside for repo in ("repo 84", "only members")]
    forged = [
        *(one.row() for one in said),
        Said("init", "init", "ann", "owner", reason="magic", sealed_to=-5).row(),
        Said("p", "grant", "eve", "owner").row(),  # no commit of a root branch
        Said("ghost", "epoch-init", repo="repo 84", reason="<b>").row(),
        Said("grant", "grant", "eve", "\u202e<script>").row(),
        *(Said("remove", "remove", f"m{number}", "emperor").row() for number in range(500)),
    ]
    knowing = write_export(
        tmp_path / "knowing",
        [*rows, *posts],
        node="knowing",
        tables={
            "memberships": forged,
            "members": [_member("ann", "owner"), _member("ann", "read"), _member("x", repo="only members")],
            "topics": topics,
        },
    )
    held = {"blocks": 10, "bytes": 400, "referenced_blocks": 12, "referenced_bytes": 1000}
    change_manifest(knowing, holdings=held)
    behind = write_export(
        tmp_path / "behind",
        rows[:2],
        node="behind",
        tables={
            "memberships": [
                *(one.row() for one in said[:2]),
                *(Said(f"invented {number}", "tag").row() for number in range(9)),
            ],
            "members": [_member("ann"), _member("ben")],
            "topics": [_topic("main", epoch) for epoch in epochs_beside],
        },
    )
    out = tmp_path / "out"
    result = run(knowing, out, progress=lambda _: None, merge=[behind], engine="local")
    assert result.is_right

    def table(name: str, *keys: str) -> dict[Any, dict[str, Any]]:
        return keyed(pq.read_table(out / "tables" / name).to_pylist(), *keys)

    repos = table("repos", "repo_id")
    assert repos[id_of(REPO)] == {
        "members": 1,
        "persons": 1,
        "admins": 1,
        "operations": 5,
        "uncounted": 0,
        "left_out": 3,
        "joins": 2,
        "removals": 1,
        "replayed": 1,
        "epochs": 2,
    }
    assert repos[id_of("repo 84")]["left_out"] == 1
    assert (repos[id_of("only members")]["members"], len(repos)) == (1, 3)
    epochs = table("epochs", "number")
    assert [(epochs[n]["reason"], epochs[n]["commits"]) for n in (1, 2)] == [("founding", 6), ("removal", 0)]
    assert epochs[2]["started_at"] == T0_MS + 5 * DAY_MS
    stores = table("stores", "node")
    assert (stores["knowing"]["blocks"], stores["knowing"]["deduplication"]) == (10, 2.5)
    assert (stores["behind"]["blocks"], stores["behind"]["deduplication"]) == (None, None)
    forks = table("feed_forks", "branch_id", "author")
    assert {key: (row["places"], row["commits"], row["first_place"]) for key, row in forks.items()} == {
        (id_of(REPO), id_of("ann")): (1, 4, 1),
        (id_of("main"), id_of("ann")): (1, 2, 1),
    }
    page = result.report.read_text(encoding="utf-8")
    assert f'title="{text_id(id_of(REPO))}"><bdi>{REPO}</bdi>' in page, "a repo is called as the export does"
    for part in ("<h2>Members and epochs</h2>", "Members over time", "<h2>Stores</h2>", "2.50", "removal"):
        assert part in page
    assert "operations on members left out" in page
    assert "<script" not in page
