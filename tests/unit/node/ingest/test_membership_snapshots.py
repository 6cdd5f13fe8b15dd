"""Snapshots of memberships in the store: what a start judges again, and that none that was changed says anything."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import Connection, delete, func, insert, select, text

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.care.repair import repair_store
from node.ingest import replica as replica_module
from node.ingest.replica import Replica, load_membership
from protocol.codec import encode
from protocol.crypto.keys import StoreKey, UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Permission
from storage.repos.deletion import forget_repo
from storage.repos.membership_parts import add_part, load_parts
from storage.schema.schema import branches, membership_parts
from tests.support.builders import STORE_KEY
from tests.support.restored import state_of
from verifier import membership_snapshots
from verifier.membership import Membership


class Home:
    """A folder with one repo, whose owner grants rights."""

    def __init__(self, folder: Path, store_key: StoreKey | None = STORE_KEY) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._store_key = store_key
        with self.opened() as replica:
            self._author(replica).founding.create_repo("repo")

    def _author(self, replica: Replica) -> Author:
        return Author(replica, UserSeed(b"w" * 32), lambda: 1_700_000_000_000)

    @contextmanager
    def opened(self) -> Iterator[Replica]:
        """The store, opened as at a start, and closed as at a stop."""
        replica = Replica(self.folder, self._store_key)
        try:
            yield replica
        finally:
            replica.close()

    def grant(self, replica: Replica, count: int) -> None:
        """Grant something to so many more."""
        (repo,) = replica.repos.values()
        known = len(replica.membership(repo.repo_id).operations)
        users = [key_pair(UserSeed(number.to_bytes(32)))[0] for number in range(known, known + count)]
        drafts = [Draft(Grant(user, Permission.WRITE)) for user in users]
        self._author(replica).write_many(replica.root_branch(repo), drafts)

    def grow(self, count: int) -> None:
        """Grant so much in one life of the node."""
        with self.opened() as replica:
            self.grant(replica, count)

    def restored(self) -> int:
        """Start; give how many operations were restored, and compare all with what judging them again gives."""
        with self.opened() as replica:
            (repo,) = replica.repos.values()
            found = replica.membership(repo.repo_id)
            with replica.database.read() as connection:
                judged = load_membership(connection, replica.tables, repo.repo_id)
            assert state_of(found) == state_of(judged)
            return found.saved_count

    def saved(self) -> int:
        """Start; give how many operations were restored."""
        with self.opened() as replica:
            (repo,) = replica.repos.values()
            return replica.membership(repo.repo_id).saved_count

    def change(self, change: Callable[[Connection], object]) -> None:
        """Change rows while the node is stopped."""
        with self.opened() as replica, replica.database.write() as connection:
            change(connection)

    def parts(self) -> list[tuple[int, bytes]]:
        """The first number of each part, and its content as it lies."""
        columns = membership_parts.c
        with self.opened() as replica, replica.database.read() as connection:
            query = select(columns.first, columns.content).order_by(columns.first)
            return [(first, content) for first, content in connection.execute(query)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was judged of root branches."""
    found: list[object] = []
    judge = Membership.authorise_root_commit

    def note(*args: object, **kwargs: object) -> object:
        found.append(args)
        return judge(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Membership, "authorise_root_commit", note)
    return found


@pytest.mark.parametrize("count", [20, 80])
def test_a_start_judges_what_has_come_since_the_snapshot_and_nothing_else(
    home: Home, judged: list[object], count: int
) -> None:
    home.grow(count)
    home.grow(1)  # which is not worth a part
    judged.clear()
    with home.opened():
        pass
    assert len(judged) == 1
    assert home.restored() == count + 1


def test_what_is_judged_is_saved_once_it_is_enough_and_each_operation_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "SAVED_FROM", 30)
    with home.opened() as replica:
        for _ in range(7):
            home.grant(replica, 10)
        with replica.database.read() as connection:  # a crash now loses 10 of 71
            firsts = connection.execute(select(membership_parts.c.first)).scalars().all()
        assert sorted(firsts) == [0, 31]
    assert [first for first, _ in home.parts()] == [0, 31]
    assert home.restored() == 61
    home.grow(6)
    assert home.restored() == 77


def test_a_start_saves_what_it_had_to_judge(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.grow(40)
    home.change(lambda connection: connection.execute(delete(membership_parts)))
    monkeypatch.setattr(replica_module, "SAVED_FROM", 30)
    with home.opened() as replica, replica.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(membership_parts)).scalar() == 1


def _replace_parts(parts: list[tuple[int, bytes]]) -> Callable[[Connection], object]:
    def replace(connection: Connection) -> None:
        connection.execute(delete(membership_parts))
        (root,) = connection.execute(select(branches.c.num)).scalars()
        for first, content in parts:
            connection.execute(insert(membership_parts).values(branch_num=root, first=first, content=content))

    return replace


def _set_content(change: str) -> Callable[[Connection], object]:
    return lambda connection: connection.execute(text(f"UPDATE membership_parts SET content = {change}"))  # noqa: S608  # ours


_CHANGES = {
    "a byte at the end": "CAST(substr(content, 1, length(content) - 1)"
    " || CASE substr(content, -1) WHEN x'00' THEN x'01' ELSE x'00' END AS BLOB)",  # one sealed content of 256 ends so
    "a byte at the beginning": "CAST(x'00' || substr(content, 2) AS BLOB)",
    "cut": "CAST(substr(content, 1, length(content) / 2) AS BLOB)",
    "empty": "x''",
    "longer": "CAST(content || x'00' AS BLOB)",
}


@pytest.mark.sqlite
@pytest.mark.parametrize("store_key", [STORE_KEY, None], ids=["sealed", "unsealed"])
@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_changed_part_is_judged_again_and_replaced(
    tmp_path: Path, store_key: StoreKey | None, change: str
) -> None:
    home = Home(tmp_path / "home", store_key)
    home.grow(20)
    home.change(_set_content(change))
    assert home.saved() == 0
    assert home.restored() == 21, "the stop has saved it"


@pytest.mark.parametrize("lost, kept_count", [(0, 0), (21, 21)])
def test_of_parts_those_before_a_lost_one_are_taken(home: Home, lost: int, kept_count: int) -> None:
    home.grow(20)
    home.grow(20)
    columns = membership_parts.c
    home.change(lambda connection: connection.execute(delete(membership_parts).where(columns.first == lost)))
    assert home.saved() == kept_count
    assert home.restored() == 41


@pytest.mark.parametrize("store_key", [STORE_KEY, None, StoreKey(b"other".ljust(32))])
def test_a_part_of_another_store_says_nothing(home: Home, tmp_path: Path, store_key: StoreKey | None) -> None:
    home.grow(20)
    other = Home(tmp_path / "other", store_key)
    other.grow(20)
    [(first, content)] = other.parts()
    home.change(_replace_parts([(first, content)]))
    assert home.saved() == 0
    assert home.restored() == 21


def test_a_part_of_another_version_is_made_anew(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.grow(20)
    monkeypatch.setattr(membership_snapshots, "SNAPSHOT_VERSION", membership_snapshots.SNAPSHOT_VERSION + 1)
    assert home.saved() == 0
    assert home.restored() == 21


def test_the_check_finds_a_part_that_says_what_does_not_follow_and_the_repair_drops_it(home: Home) -> None:
    home.grow(20)
    part = membership_snapshots._decoder

    def lie(connection: Connection) -> None:
        (content,) = load_parts(connection, 1)
        said = part.decode(content)
        granted = structs.replace(said.operations[-1], timestamp=1)
        add_part(connection, 1, 0, encode(structs.replace(said, operations=(*said.operations[:-1], granted))))

    assert check_store(home.folder, STORE_KEY).problems == []
    home.change(lie)
    found = check_store(home.folder, STORE_KEY)
    assert [(one.kind, one.about) for one in found.problems] == [("membership", "repo")]
    repair = repair_store(home.folder, STORE_KEY)
    assert (repair.changed["memberships"], repair.left.problems) == (1, [])
    assert home.restored() == 0
    assert home.restored() == 21


def test_a_part_of_commits_that_are_gone_says_nothing(home: Home, tmp_path: Path) -> None:
    # The store was set back, but for its snapshot.
    home.grow(20)
    earlier = tmp_path / "earlier"
    shutil.copytree(home.folder, earlier)
    home.grow(20)
    parts = home.parts()
    shutil.rmtree(home.folder)
    earlier.rename(home.folder)
    home.change(_replace_parts(parts))
    assert home.saved() == 0
    assert home.restored() == 21


def test_a_repo_is_forgotten_with_its_snapshot(home: Home) -> None:
    home.grow(20)
    with home.opened() as replica, replica.change() as change:
        forget_repo(change.connection, 1)
    assert not home.parts()
