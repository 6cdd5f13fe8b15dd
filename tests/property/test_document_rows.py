"""Rows of documents against the reduction of all commits, after every step of random histories, in both databases.

A step accepts a commit whose causes are here, makes one void or lets it count again, or lets it pass a checkpoint. Commits
are honest or lie about what they replace, carry others again under their names, and snapshot, honestly or not.
"""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select, update

from protocol.formats.document_kinds import DictEntry, JsonEdit, JsonSnapshot, Replaced
from protocol.ids import CommitId
from storage.commits import checkpoints
from storage.commits.document_counters import COUNTER_DEPTH, load_increments
from storage.commits.document_making import make_document, plan_document
from storage.commits.document_positions import load_positions
from storage.commits.document_reading import Tip, load_keys, load_tips
from storage.commits.document_rows import SaidOperation, SaidOperations, add_operations
from storage.commits.documents import Document, add_document, load_document, mark_stale
from storage.commits.void_marks import mark_void
from storage.engine.database import Database
from storage.schema.document_schema import document_operations, document_tips
from storage.schema.schema import commits
from tests.support.rows import put_branch, put_commits, some_id
from verifier.documents import DocumentCommit, DocumentEntry, DocumentValue, reduce_values, snapshot_values
from verifier.json_contents import (
    Place,
    find_increment,
    find_position,
    position_of,
)
from verifier.json_documents import read_register

ITEM = "@\0" + "i" * 16
COUNTER = "\0n"
KEYS = ("", COUNTER, "B", "a", "ä", ITEM)
BORDERS: tuple[tuple[str, str | None], ...] = (("", None), ("", "a"), ("B", None), ("a", "b"))
FIRST = pytest.mark.parametrize(
    "rows_in, first",
    [
        ("sqlite", 0),
        *(pytest.param("sqlite", first, marks=pytest.mark.extended) for first in (20, 40)),
        ("postgresql", 0),
    ],
    indirect=["rows_in"],
)


@dataclass(eq=False)
class Made:
    """A commit of a history: its past, and what it says."""

    commit_id: CommitId
    name: CommitId
    rank: int
    past: "set[Made]"
    body: JsonEdit | JsonSnapshot
    passed: int = 0
    num: int = 0
    is_void: bool = False


@dataclass
class Story:
    """Replica of a history, and the store that keeps its rows."""

    database: Database
    connection: Connection
    branch_num: int
    here: list[Made] = field(default_factory=list)
    remade: int = 0

    @property
    def document(self) -> Document:
        """The document."""
        found = load_document(self.connection, self.branch_num, "json", "n")
        if found is None:
            return add_document(self.database, self.connection, self.branch_num, "json", "n", origins=())
        return found

    def accept(self, *batch: Made) -> None:
        """Accept commits together, as ingest does."""
        said = [operations for one in batch if (operations := self._accept(one)) is not None]
        document = self.document
        if any(isinstance(one.body, JsonSnapshot) for one in batch):
            mark_stale(self.connection, [document.num])
        else:
            add_operations(self.connection, [(document, one) for one in said], batch[-1].num)

    def _accept(self, one: Made) -> SaidOperations | None:
        place = (one.passed, one.rank, one.commit_id)
        [one.num] = put_commits(self.database, self.connection, self.branch_num, [place])
        is_snapshot = isinstance(one.body, JsonSnapshot)
        kind = "carried" if one.name != one.commit_id else "json-squeeze" if is_snapshot else "json"
        row = update(commits).where(commits.c.num == one.num).values(body_kind=kind, document="n")
        self.connection.execute(row)
        self.here.append(one)
        if isinstance(one.body, JsonSnapshot):
            return None
        replaced = one.body.replaced()
        operations = [
            SaidOperation(
                key.encode(),
                value is not None,
                tuple(replaced.get(key, ())),
                find_position(key, value),
                find_increment(key, value),
            )
            for key, value in one.body.values().items()
        ]
        return SaidOperations(one.num, one.name, one.name != one.commit_id, operations)

    def flip(self, one: Made) -> None:
        """Make a commit void, or let it count again."""
        one.is_void = not one.is_void
        mark_void(self.database, self.connection, self.branch_num, [one.num], is_void=one.is_void)

    def move(self, one: Made, by: int) -> None:
        """Let a commit stand behind more checkpoints, or fewer."""
        one.passed += by
        checkpoints._count_up(self.database, self.connection, self.branch_num, [one.num], by)

    def said(self) -> list[tuple[int, DocumentCommit]]:
        """What counts, as the reduction takes it."""
        counting = [one for one in self.here if not one.is_void]
        snapshots = [one for one in counting if isinstance(one.body, JsonSnapshot)]
        bits = {one.num: 1 << number for number, one in enumerate(snapshots)}
        return [
            (
                one.num,
                DocumentCommit(
                    one.name,
                    (0, one.passed, one.rank, one.commit_id),
                    one.body,
                    bits.get(one.num, 0),
                    sum(bits[other.num] for other in snapshots if one in other.past),
                ),
            )
            for one in counting
        ]

    def compare(self, step: str) -> None:
        """Compare what the rows say with the reduction."""
        if self.document.is_stale:
            planned = plan_document("json", self.said(), ())
            make_document(self.database, self.connection, self.document, planned)
            self.remade += 1
        expected = reduce_values(one for _, one in self.said())
        document = self.document
        counters = {
            key: [one for one in entry.tips if _adds(key, one) is not None] for key, entry in expected.items()
        }
        expected = {
            key: DocumentEntry(tuple(one for one in entry.tips if one not in counters[key]))
            for key, entry in expected.items()
        }
        found = _by_key(load_tips(self.connection, document.num, [key.encode() for key in KEYS], 9999))
        counted = {
            key: (
                tips[0].added,
                [one.name for one in load_increments(self.connection, document.num, key, 9999) or ()],
            )
            for key, tips in found.items()
            if tips[0].place[0] == COUNTER_DEPTH
        }
        assert counted == {
            key.encode(): (sum(_adds(key, one) or 0 for one in some), [one.name for one in some])
            for key, some in counters.items()
            if some
        }, step
        bodies = {one.num: (one.name, one.body) for one in self.here}
        got: dict[str, DocumentEntry] = {}
        for key, tips in found.items():
            standing: dict[tuple[CommitId, str | None], DocumentValue] = {}
            for tip in tips[bool(tips[0].place[0] == COUNTER_DEPTH) :]:
                first_id, body = bodies[tip.source_num]
                value = None
                if tip.is_there and isinstance(body, JsonSnapshot):
                    value = {(name, key): value for name, key, value in body.restated()}[
                        tip.name, key.decode()
                    ]
                elif tip.is_there:
                    assert isinstance(body, JsonEdit)
                    assert first_id == tip.name
                    value = body.values()[key.decode()]
                standing.setdefault((tip.name, value), DocumentValue(tip.name, tip.place, value))
            got[key.decode()] = DocumentEntry(tuple(standing.values()))
        assert got == expected, step
        there = sorted(key.encode() for key, entry in expected.items() if entry.values or counters[key])
        assert load_keys(self.connection, document.num, 0, 9) == there, step
        assert document.entry_count == len(there), step
        found_positions = load_positions(
            self.connection, document.num, b"", b"\xff", offset=0, limit=9, is_backwards=False
        )
        content = read_register(("@", ITEM[2:]), expected.get(ITEM, DocumentEntry(())))[0]
        shown = [position_of(ITEM[2:], content)] if isinstance(content, Place) else []
        assert found_positions == shown, step


@pytest.fixture
def database(tmp_path: Path, rows_in: str) -> Iterator[Database]:
    """Open a store."""
    with closing(Database(tmp_path)) as database:
        yield database


def _history(rng: random.Random, size: int, *, with_snapshots: bool) -> list[Made]:
    made: list[Made] = []
    for number in range(size):
        acks = rng.sample(made, min(len(made), rng.choice([0, 1, 1, 2])))
        past = set(acks).union(*(one.past for one in acks))
        rank = 1 + max((one.rank for one in acks), default=0)
        commit_id = some_id(rng.getrandbits(60))
        seen = _state(past)
        if with_snapshots and past and rng.random() < 0.12:
            first, end = rng.choice(BORDERS)
            operations = {
                name: values
                for name, values in snapshot_values(seen, first, end).items()
                if rng.random() < 0.9
            }
            if rng.random() < 0.1:
                operations[rng.choice(made).name] = {"a": "a lie"}
            body = JsonSnapshot.make(first, end, operations.items())
            made.append(Made(commit_id, commit_id, rank, past, body))
            continue
        edits = [one for one in made if isinstance(one.body, JsonEdit)]
        if edits and rng.random() < 0.1:
            carried = rng.choice(edits)
            made.append(Made(commit_id, carried.name, rank, past, carried.body))
            continue
        keys = rng.sample(KEYS, rng.randint(0, 3))
        put = tuple(DictEntry(key, _value(key, number, rng)) for key in keys if rng.random() < 0.7)
        erased = tuple(key for key in keys if key not in [one.key for one in put])
        spoken = [*(one.key for one in put), *erased]
        replaced: list[Replaced] = []
        for place, key in enumerate(spoken):
            names = [tip.name for tip in seen[key].tips] if key in seen else []
            if rng.random() < 0.15:
                names = [rng.choice(made).name for _ in range(rng.randint(0, 3)) if made]
            replaced += [Replaced(name, (place,)) for name in names]
        made.append(Made(commit_id, commit_id, rank, past, JsonEdit(put, erased, tuple(replaced))))
    return made


def _value(key: str, number: int, rng: random.Random) -> str:
    is_place = key == ITEM and rng.random() < 0.8
    if key in ("", COUNTER) and rng.random() < 0.7:
        return f'{{"add":{rng.choice(["", "", " "])}{number}}}'
    return f'{{"in":["","l"],"at":"V{number}"}}' if is_place else str(number)


def _by_key(tips: list[Tip]) -> dict[bytes, list[Tip]]:
    found: dict[bytes, list[Tip]] = {}
    for tip in tips:
        found.setdefault(tip.key, []).append(tip)
    return found


def _adds(key: str, one: DocumentValue) -> int | None:
    return find_increment(key, one.value)


def _state(past: set[Made]) -> dict[str, DocumentEntry]:
    snapshots = [one for one in past if isinstance(one.body, JsonSnapshot)]
    bits = {one.commit_id: 1 << number for number, one in enumerate(snapshots)}
    return reduce_values(
        DocumentCommit(
            one.name,
            (0, 0, one.rank, one.commit_id),
            one.body,
            bits.get(one.commit_id, 0),
            sum(bits[other.commit_id] for other in snapshots if one in other.past),
        )
        for one in past
    )


def _play(database: Database, seed: int, *, with_snapshots: bool) -> Story:
    rng = random.Random(seed)
    waiting = _history(rng, rng.randint(2, 14), with_snapshots=with_snapshots)
    rng.shuffle(waiting)
    with database.write() as connection:
        story = Story(database, connection, put_branch(connection))
        while waiting or rng.random() < 0.9:
            ready = [one for one in waiting if one.past.isdisjoint(waiting)]
            what = rng.random()
            if ready and (what < 0.5 or not story.here):
                batch: list[Made] = []
                while ready and (not batch or rng.random() < 0.4):
                    chosen = rng.choice(ready)
                    waiting.remove(chosen)
                    batch.append(chosen)
                    ready = [one for one in waiting if one.past.isdisjoint(waiting)]
                story.accept(*batch)
                step = "accept"
            elif what < 0.9 and story.here:
                chosen = rng.choice(story.here)
                story.flip(chosen)
                step = "flip"
            elif story.here:
                chosen = rng.choice(story.here)
                story.move(chosen, 1 if not chosen.passed or rng.random() < 0.5 else -1)
                step = "move"
            else:
                continue
            story.compare(f"seed {seed}: {step} {chosen.num}")
        return story


@pytest.mark.slow
@FIRST
def test_rows_follow_each_step_without_being_made_anew(database: Database, first: int) -> None:
    for seed in range(first, first + 20):
        assert _play(database, seed, with_snapshots=False).remade == 0


@pytest.mark.slow
@FIRST
def test_rows_are_made_anew_where_snapshots_come_or_cover_what_changes(
    database: Database, first: int
) -> None:
    assert sum(_play(database, seed, with_snapshots=True).remade for seed in range(first, first + 20))


@pytest.mark.sqlite
def test_a_void_of_everything_leaves_nothing_standing_and_its_return_all(database: Database) -> None:
    with database.write() as connection:
        story = Story(database, connection, put_branch(connection))
        for one in _history(random.Random(7), 14, with_snapshots=False):
            story.accept(one)
        query = select(func.count()).select_from(document_tips)
        before = connection.execute(query).scalar_one()
        for one in (*story.here, *story.here):
            story.flip(one)
            story.compare("flip")
        assert connection.execute(query).scalar_one() == before > 0
        assert connection.execute(select(func.count()).select_from(document_operations)).scalar_one()
