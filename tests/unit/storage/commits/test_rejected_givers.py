"""Rejected commits that give keys: each payer has a share of the room, and no flood pushes out another's."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from protocol.ids import CommitId, UserId
from storage.commits import rejected_givers
from storage.commits.rejected_givers import RejectedGiver, keep_rejected_givers, list_rejected_givers
from storage.engine.database import Database
from tests.support.ids import as_commit_id

BRANCH = 1
ANN, BEN, CAT = UserId(b"a" * 32), UserId(b"b" * 32), UserId(b"c" * 32)


class _Store:
    """A store, and commits that come to it one after another."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids = (as_commit_id(number.to_bytes(32, "big")) for number in count())

    def keep(
        self, author: UserId | None, number: int = 1, size: int = 1, *, by_writer: bool = False
    ) -> list[CommitId]:
        """Give it commits of one author, each in a batch of its own."""
        ids = [next(self._ids) for _ in range(number)]
        for one in ids:
            self.keep_again(one, author, size, by_writer=by_writer)
        return ids

    def keep_again(
        self, commit_id: CommitId, author: UserId | None, size: int = 1, *, by_writer: bool = False
    ) -> None:
        """Give it one commit."""
        giver = RejectedGiver(author, by_writer, bytes(size))
        with self._database.write() as connection:
            keep_rejected_givers(self._database, connection, BRANCH, {commit_id: giver})

    def kept(self) -> list[CommitId]:
        """List what it holds."""
        with self._database.read() as connection:
            return list_rejected_givers(connection, BRANCH)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[_Store]:
    database = Database(tmp_path)
    yield _Store(database)
    database.close()


@pytest.mark.parametrize("author", [ANN, None])
@pytest.mark.parametrize("bound, value", [("REJECTION_COUNT_MAX", 4), ("KEY_GIVERS_SIZE_MAX", 4 * 1000)])
def test_the_last_beyond_a_bound_is_not_kept(
    store: _Store, monkeypatch: pytest.MonkeyPatch, author: UserId | None, bound: str, value: int
) -> None:
    monkeypatch.setattr(rejected_givers, bound, value)
    ids = store.keep(author, 5, 1000)
    assert store.kept() == ids[:4]


@pytest.mark.parametrize("is_flooded_first", [True, False])
def test_a_flood_by_strangers_leaves_a_share_to_each_author_with_a_credential(
    store: _Store, monkeypatch: pytest.MonkeyPatch, *, is_flooded_first: bool
) -> None:
    """Who the strangers are makes no difference: authors are made up."""
    monkeypatch.setattr(rejected_givers, "REJECTION_COUNT_MAX", 12)
    if is_flooded_first:
        store.keep(None, 30)
        store.keep(None, 30, by_writer=True)
    honest = [*store.keep(ANN, 3), *store.keep(BEN, 3)]
    if not is_flooded_first:
        store.keep(None, 30)
        store.keep(None, 30, by_writer=True)
    kept = store.kept()
    assert set(honest) <= set(kept)
    assert len(kept) == 12


def test_what_some_leave_unused_others_take_until_these_need_it(
    store: _Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected_givers, "REJECTION_COUNT_MAX", 12)
    flood = store.keep(CAT, 30)
    assert store.kept() == flood[:12]
    writers = store.keep(None, 30, by_writer=True)
    assert store.kept() == [*flood[:6], *writers[:6]]
    others = store.keep(None, 30)
    assert store.kept() == [*flood[:4], *writers[:4], *others[:4]]


def test_few_large_ones_take_the_room_of_many_small_ones(
    store: _Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejected_givers, "REJECTION_COUNT_MAX", 100)
    monkeypatch.setattr(rejected_givers, "KEY_GIVERS_SIZE_MAX", 1000)
    large = store.keep(None, 4, 300)
    small = store.keep(ANN, 40, 10)
    assert store.kept() == [*large[:2], *small]


def test_what_comes_again_keeps_its_place(store: _Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may send a stranger's commit again, once it was forgotten that it was rejected."""
    monkeypatch.setattr(rejected_givers, "REJECTION_COUNT_MAX", 3)
    ids = store.keep(None, 3)
    store.keep_again(ids[0], None)
    store.keep(None, 3)
    assert store.kept() == ids
