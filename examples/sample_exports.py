"""Exports of a community that was made up, to practise on: `python examples/sample_exports.py FOLDER [COMMITS]`.

Twelve people write 50,000 commits in two years, at the nodes of Ann and Ben: FOLDER/ann and FOLDER/ben. FOLDER/names.json
says who is who. It is the same community every time, and no node wrote it: nothing is signed.

What happened, for whoever looks for it: Ben's node comes three weeks late, is offline for two of every sixty days, and its
clock goes back once. Eve's clock is now and then three days slow, Gus's was once 400 days fast. All are silent for five
weeks. In March 2025 many write without knowing of one another. Cleo removes Mallory, who goes on writing; Kim leaves.
"""

import json
import sys
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3

from ravel.exports.schema import EXPORT_FORMAT, MANIFEST_NAME, SCHEMA_VERSION, TABLES, TIME_END, text_id

COMMITS: Final = 50_000
PEOPLE: Final = {
    "ann": 30, "ben": 25, "cleo": 18, "dora": 14, "eve": 10, "finn": 8, "gus": 6, "hana": 5, "ivo": 4, "jun": 3, "kim": 2,
    "mallory": 2,
}  # fmt: skip
"""Share of each person in all that is written."""
NODES: Final = ("ann", "ben")
_BRANCHES: Final = {"main": 70, "ideas": 20, "hall": 10}
_DAY: Final = 86_400_000
REFUSED: Final = (
    "not_permitted",
    "not_permitted",
    "not_permitted",
    "unknown_author",
    "unknown_author",
    "bad_rank",
)

Row = dict[str, Any]


def _at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


_BEGAN, _ENDED = _at("2024-01-01"), _at("2026-01-01")
_SILENT = range(_at("2024-08-05"), _at("2024-09-11"))
_APART = range(_at("2025-03-01"), _at("2025-04-01"))
_IMPORTED, _BEN_JOINED, _BEN_STEPPED = _at("2024-02-10"), _at("2024-01-21"), _at("2025-06-01")
_REMOVED, _LEFT = _at("2025-05-10"), _at("2025-09-20")


def id_of(name: str) -> bytes:
    """Return the id that a name stands for."""
    return blake3(b"ravel sample " + name.encode()).digest()


@dataclass(slots=True)
class Commit:
    """One commit, and when it really was written."""

    number: int
    branch: str
    author: str
    kind: str
    happened: int  # unix milliseconds
    time: int  # by its author's clock
    acks: Sequence[int]
    rank: int
    feed: int
    size: int
    seen: int | None  # newest root branch commit that its author had; None in the root branch
    source: str | None = None
    place: tuple[int, int] | None = None  # the post that began the thread, and the one that it answers
    files: Sequence[int] = ()  # bytes of each
    is_void: bool = False
    operation: Row | None = None

    @property
    def id(self) -> bytes:
        """Its id."""
        return id_of(f"commit {self.number}")


def _happened(commit: Commit) -> int:
    return commit.happened


class Community:
    """All that was written, causes before effects."""

    def __init__(self, count: int) -> None:
        self.random = Random(46)  # noqa: S311  # the same community every time
        self.commits: list[Commit] = []
        self.root: list[Commit] = []
        self._heads: defaultdict[str, list[int]] = defaultdict(list)
        self._before: defaultdict[str, list[int]] = defaultdict(list)
        """Heads before the newest commit, as somebody sees them who has not got that."""
        self._feeds: Counter[tuple[str, str]] = Counter()
        self._posts: defaultdict[str, list[Commit]] = defaultdict(list)
        self._found()
        imported, ghosts = count // 6, count // 1000
        moments = sorted(self._moments(count - imported - ghosts - len(self.commits)))
        before = bisect(moments, _IMPORTED)
        for happened in moments[:before]:
            self._post(happened)
        for number in range(imported):
            commit = self._add("archive", "ann", "imported", _IMPORTED)
            commit.time = _at("2016-01-01") + number * 250_000_000_000 // imported
            commit.source = f"author {self.random.randrange(5) * self.random.randrange(6)}"
        for happened in moments[before:]:
            self._post(happened)
        for number in range(ghosts):
            self._add("main", "mallory", "post", _REMOVED + number * 60_000, is_void=True)

    def _moments(self, count: int) -> Iterator[int]:
        while count:
            happened = _BEGAN + _DAY + int(self.random.random() ** 0.7 * (_ENDED - _BEGAN - _DAY))
            if happened not in _SILENT:
                count -= 1
                yield happened

    def _found(self) -> None:
        """Write the root branch, and the first commit of each other one."""
        self._operate("ann", _BEGAN, "init", "ann", "owner", "founding", 1)
        for name in (*_BRANCHES, "archive"):
            self._operate("ann", _BEGAN, "branch-add")
            self._add(name, "ann", "branch-root", _BEGAN)
        for number, name in enumerate([*PEOPLE][1:], 1):
            permission = "admin" if name in ("ben", "cleo") else "write"
            self._operate("ann", _BEGAN + number * 60_000, "grant", name, permission)
        self._operate("cleo", _REMOVED, "remove", "mallory")
        self._operate("cleo", _REMOVED + 1000, "epoch-init", reason="removal", sealed_to=11)
        self._operate("kim", _LEFT, "remove", "kim")
        self._operate("ann", _LEFT + 60_000, "epoch-init", reason="removal", sealed_to=10)

    def _operate(
        self,
        author: str,
        happened: int,
        kind: str,
        member: str | None = None,
        permission: str | None = None,
        reason: str | None = None,
        sealed_to: int | None = None,
    ) -> None:
        commit = self._add("root", author, kind, happened)
        who = member and id_of(member)
        commit.operation = {"member": who, "permission": permission, "reason": reason, "sealed_to": sealed_to}
        self.root.append(commit)

    def _add(
        self,
        branch: str,
        author: str,
        kind: str,
        happened: int,
        *,
        is_late: bool = False,
        is_void: bool = False,
    ) -> Commit:
        """Add a commit that follows all heads, or those of a moment ago where it is late; void ones an end of their own."""
        heads = self._heads[branch]
        acks = self._before[branch] if is_late else heads
        if is_void:
            own = (one.number for one in reversed(self._posts[branch]) if one.author == author)
            acks = [next(own, heads[0])]
        self._feeds[branch, author] += 1
        seen = None
        if branch != "root":
            known = min(happened, _REMOVED - 1) if is_void else happened
            seen = self.root[bisect(self.root, known, key=_happened) - 1].number
        rank = 1 + max((self.commits[ack].rank for ack in acks), default=-1)
        commit = Commit(
            len(self.commits), branch, author, kind, happened, happened, acks, rank, self._feeds[branch, author],
            self.random.randrange(350, 1200), seen, is_void=is_void,
        )  # fmt: skip
        self.commits.append(commit)
        if kind == "post":
            self._posts[branch].append(commit)
        if not is_void:
            self._before[branch] = heads
            self._heads[branch] = [*(head for head in heads if head not in acks), commit.number]
        return commit

    def _post(self, happened: int) -> None:
        draw = self.random.random
        gone = {"mallory"} if happened >= _REMOVED else set()
        gone |= {"kim"} if happened >= _LEFT else set()
        writers = [name for name in PEOPLE if name not in gone]
        (author,) = self.random.choices(writers, [PEOPLE[name] for name in writers])
        (branch,) = self.random.choices([*_BRANCHES], [*_BRANCHES.values()])
        # Who is late names at most what somebody else follows, too: heads never name one another.
        is_late = bool(self._before[branch]) and draw() < (0.4 if happened in _APART else 0.05)
        commit = self._add(branch, author, "post", happened, is_late=is_late)
        if author == "eve" and draw() < 0.01:
            commit.time -= 3 * _DAY
        if (author, branch, commit.feed) == ("gus", "main", 100):
            commit.time += 400 * _DAY
        if author in ("dora", "hana") and draw() < 0.2:
            commit.files = [
                int(self.random.lognormvariate(11, 1.5)) for _ in range(self.random.randrange(1, 4))
            ]
        recent = self._posts[branch][-60:-1]
        if recent and draw() < 0.45:
            # People answer some more than others: whoever stands beside them in the list of people.
            beside = [*PEOPLE][[*PEOPLE].index(author) ^ 1]
            answered = next(
                (one for one in reversed(recent) if one.author == beside), self.random.choice(recent)
            )
            commit.place = (
                answered.place[0] if answered.place and draw() < 0.9 else answered.number,
                answered.number,
            )


def _receive(community: Community, node: str) -> dict[int, tuple[int, int]]:
    """Return when each commit came, and when it was accepted, by the number of the commit, in that order."""
    random = Random(node)  # noqa: S311  # likewise
    found: dict[int, tuple[int, int]] = {}
    for commit in sorted(community.commits, key=lambda one: (one.happened, one.number)):
        came = commit.happened
        if commit.author != node:
            came += int(random.lognormvariate(6.5 if node == "ann" else 8, 1.2))
        if node == "ben":
            came = max(came, _BEN_JOINED + came % 60_000)
            period, day = divmod((came - _BEGAN) // _DAY, 60)
            if day >= 58 or came >= _ENDED - _DAY:
                came = _BEGAN + (period + 1) * 60 * _DAY + came % 60_000
        causes = [*commit.acks, *([] if commit.seen is None else [commit.seen])]
        if all(cause in found for cause in causes):
            accepted = max([came, *(found[cause][1] for cause in causes)])
            if accepted < _ENDED:
                found[commit.number] = (came, accepted)
    return dict(sorted(found.items(), key=lambda item: (item[1][1], item[0])))


def _tables(community: Community, node: str) -> Mapping[str, list[Row]]:
    """Return the rows of all tables of a node's export."""
    received = _receive(community, node)
    turns = sorted([(accepted, 1, number) for number, (_, accepted) in received.items()])
    waited = [(came, 0, number) for number, (came, accepted) in received.items() if came < accepted]
    arrivals: dict[int, int] = {}
    numbers: dict[int, int] = {}
    for turn, (_, is_accepted, number) in enumerate(sorted([*turns, *waited]), 1):
        (numbers if is_accepted else arrivals)[number] = turn
    known = [community.commits[number] for number in received]
    places: Counter[str] = Counter()
    positions = {}
    for commit in sorted(known, key=lambda one: (one.rank, one.id)):
        positions[commit.number] = -1 if commit.is_void else places[commit.branch]
        places[commit.branch] += not commit.is_void
    tables: defaultdict[str, list[Row]] = defaultdict(list)
    last = len(turns) + len(waited)
    starts = [one for one in community.root if one.kind in ("init", "epoch-init")]
    shown: dict[int, int] = {}
    for commit in known:
        came, accepted = received[commit.number]
        stepped = 3 * 3_600_000 if node == "ben" and _BEN_STEPPED <= accepted < _BEN_STEPPED + 2 * _DAY else 0
        shown[commit.number] = max(
            [min(commit.time, accepted - stepped), *(shown[ack] for ack in commit.acks)]
        )
        named = {"sequence": numbers[commit.number], "commit_id": commit.id}
        epoch = 0 if commit.is_void else bisect(starts, commit.happened, key=_happened) - 1
        has_waited = commit.number in arrivals
        tables["commits"].append(
            named
            | {
                "topic": id_of(f"writers' topic {epoch}"), "repo_id": id_of("root"), "branch_id": id_of(commit.branch),
                "repo_name": "garden", "branch_name": commit.branch, "author": id_of(commit.author),
                "source_author": commit.source and id_of(commit.source),
                "acks": [community.commits[ack].id for ack in commit.acks],
                "rank": commit.rank, "position": positions[commit.number], "body_kind": commit.kind, "size": commit.size,
                "time": commit.time, "time_utc": commit.time if commit.time < TIME_END else None,
                "received_at": accepted - stepped, "received_utc": accepted - stepped,
                "shown_at": shown[commit.number], "shown_utc": shown[commit.number],
                "arrived_at": came - stepped if has_waited else None,
                "arrived_utc": came - stepped if has_waited else None,
                "arrival": arrivals.get(commit.number, numbers[commit.number]), "feed_sequence": commit.feed, "blocks": 2,
                "position_at": last, "files": len(commit.files), "file_bytes": sum(commit.files),
            }
        )  # fmt: skip
        if commit.seen is not None:
            seen = community.commits[commit.seen].id
            tables["tangles"].append(named | {"kind": "group", "root": starts[0].id, "previous": [seen]})
        if commit.place:
            root, answered = (community.commits[number].id for number in commit.place)
            tables["tangles"].append(named | {"kind": "reply", "root": root, "previous": [answered]})
        for number, size in enumerate(commit.files):
            name = id_of(f"file {commit.number} {number}")
            tables["files"].append(named | {"object_id": name, "name": None, "size": size})
    tables["memberships"] = [
        {"sequence": numbers[one.number], "commit_id": one.id, **row}
        for one, row in zip(community.root, _memberships(community.root), strict=True)
    ]
    members = {
        one.operation["member"]: one for one in community.root if one.operation and one.operation["member"]
    }
    tables["members"] = [
        {
            "repo_id": id_of("root"),
            "member": member,
            "permission": one.operation["permission"],
            "person": None,
        }
        for member, one in members.items()
        if one.operation and one.kind != "remove"
    ]
    tables["topics"] = [
        {
            "topic": id_of(f"{kind} topic {number}"),
            "repo_id": id_of("root"),
            "kind": kind.partition("'")[0],
            "epoch": one.id,
        }
        for number, one in enumerate(starts)
        for kind in ("writers'", "epoch")
    ]
    tables["names"] = [
        {"repo_id": id_of("root"), "branch_id": id_of(name), "repo_name": "garden", "branch_name": name}
        for name in ("root", *_BRANCHES, "archive")
    ]
    tables["voids"] = [{"commit_id": one.id} for one in known if one.is_void]
    if node == "ben":
        tables["rejections"] = [
            {"commit_id": id_of(f"refused {number}"), "branch_id": id_of("main"), "code": code}
            for number, code in enumerate(REFUSED)
        ]
        tables["pending"] = [
            {"commit_id": id_of(f"pending {number}"), "topic": id_of("writers' topic 2"), "branch_id": id_of("main"),
             "reason": "causes", "lacking": 1, "size": 700, "arrived_at": _ENDED - number, "arrived_utc": _ENDED - number,
             "arrival": last + 3 - number}
            for number in range(3)
        ]  # fmt: skip
    return tables


def _memberships(root: Sequence[Commit]) -> Iterator[Row]:
    """Yield the rows of root branch commits, without their numbers."""
    epochs: list[bytes] = []
    members: list[bytes] = []
    for commit in root:
        operation = commit.operation or {}
        place: Row = {"kind": None, "root": None, "previous": None}
        if commit.kind in ("init", "epoch-init"):
            epochs.append(commit.id)
            members = [commit.id]
            place = {"kind": "epoch", "root": epochs[0], "previous": epochs[-2:-1]}
        elif operation["member"]:
            place = {"kind": "members", "root": epochs[-1], "previous": [members[-1]]}
            members.append(commit.id)
        starts = commit.id if place["kind"] == "epoch" else None
        yield (
            {"repo_id": id_of("root"), "operation": commit.kind, "epoch": starts, "counts": True}
            | operation
            | place
        )


def write(folder: Path, count: int = COMMITS) -> None:
    """Write the exports of both nodes, and the names. Costs O(count): 8 s and 0.5 GB for 50,000 commits. Raises OSError."""
    community = Community(count)
    for node in NODES:
        listed: dict[str, list[Row]] = {name: [] for name in TABLES}
        for name, rows in _tables(community, node).items():
            (folder / node / name).mkdir(parents=True, exist_ok=True)
            part = folder / node / name / "part.parquet"
            pq.write_table(pa.Table.from_pylist(rows, schema=TABLES[name]), part, compression="zstd")
            content = part.read_bytes()
            checksum = blake3(content).hexdigest()
            listed[name] = [
                {"path": f"{name}/part.parquet", "rows": len(rows), "bytes": len(content), "blake3": checksum}
            ]
        manifest = {
            "format": EXPORT_FORMAT, "schema_version": SCHEMA_VERSION, "node": text_id(id_of(f"node of {node}")),
            "created_at": _ENDED // 1000, "watermark": 0, "pseudonyms": "", "tables": listed,
        }  # fmt: skip
        (folder / node / MANIFEST_NAME).write_text(json.dumps(manifest), encoding="utf-8")
    names = {text_id(id_of(name)): name.title() for name in PEOPLE}
    names |= {text_id(id_of(f"node of {node}")): f"{node.title()}'s node" for node in NODES}
    (folder / "names.json").write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python examples/sample_exports.py FOLDER [COMMITS]")
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else COMMITS)
    print(f"{sys.argv[1]}/ann and {sys.argv[1]}/ben are exports; {sys.argv[1]}/names.json says who is who")
