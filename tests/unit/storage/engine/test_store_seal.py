"""A sealed store: a copy of it holds no secret, an older one is sealed at its first opening, other keys are refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from node.authoring.drafting import Draft
from node.care.fsck import check_store
from node.ingest.replica import Replica
from protocol.crypto.keys import BlockKey, BranchSecret, ConvergenceSecret, StoreKey
from protocol.formats.content import FileEntry, Files
from protocol.formats.links import BranchCapability, BranchChannel
from protocol.formats.object import build_object
from protocol.ids import BranchId, RepoId, TopicKey
from storage.blobs.files import load_files
from storage.commits.commits import iterate_arrivals, load_rows
from storage.engine.column_encryption import BadSecret, KeyedCipher, commit_key_context, file_place
from storage.engine.copies import copy_database, drop_open_copies
from storage.engine.database import Database, StorageError, read_store
from storage.engine.sqlite import SqliteBackend
from storage.repos.epochs import load_epochs
from storage.repos.repos import add_branch_alone, load_branches, load_repos
from storage.schema.schema import store_seal
from tests.support.builders import STORE_KEY
from tests.support.ids import as_commit_id, as_epoch_id, as_object_id
from tests.support.nodes import Node, open_nodes

ALONE = BranchCapability(
    RepoId(b"R" * 32),
    as_commit_id(b"I" * 32),
    BranchId(b"B" * 32),
    "alone",
    (
        BranchChannel(
            as_epoch_id(b"E" * 32),
            TopicKey(b"T" * 32),
            BranchSecret(b"secret of a branch".ljust(32)),
            ConvergenceSecret(b"its convergence".ljust(32)),
        ),
    ),
    (),
)


def _secrets(replica: Replica) -> set[bytes]:
    """Return all that opens anything in a store, as the node uses it."""
    with replica.database.read() as connection:
        found = {ALONE.channels[0].branch_secret, ALONE.channels[0].convergence_secret}
        repos = load_repos(connection)
        for repo in repos:
            found |= {repo.init_key, repo.invitation or b""}
        for epoch in load_epochs(connection):
            found |= {epoch.key, epoch.writers_secret or b"", epoch.writers_seed or b"", *epoch.keys[:3]}
        for branch in load_branches(connection, {repo.num: repo for repo in repos}):
            found |= {row.commit_key for row in iterate_arrivals(connection, [branch.num])}
            found |= {row.object_key for row in load_files(connection, branch.num, 0, 100)}
    return found - {b"", bytes(32)}


def _found_in(folder: Path, secrets: set[bytes]) -> int:
    """Count how many of these secrets stand in any file of a folder, as they are or in hexadecimal digits."""
    content = b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    return sum(secret in content or secret.hex().encode() in content for secret in secrets)


async def _fill(alice: Node, bob: Node) -> None:
    """Store one of every secret: bob's repo being joined, alice's with a file, a branch by itself."""
    repo, branch = alice.create_repo()
    alice.write(branch, "one")
    reference, blocks = build_object(b"content" * 1000, alice.epoch().convergence_secret)
    with alice.replica.packs.draft() as draft:
        for block in blocks:
            draft.put(block)
        draft.finish()
        entry = Files((FileEntry("a file", 7000),))
        alice.author.write(
            branch, Draft(entry, files=(reference,)), after=lambda connection, _: draft.keep(connection)
        )
        draft.is_kept = True
    await bob.joiner.begin(alice.invite(repo))
    with bob.replica.change() as change:
        assert add_branch_alone(bob.replica.database, change.connection, ALONE)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob") as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.sqlite  # of PostgreSQL: test_postgresql
async def test_a_copy_of_the_folder_holds_no_secret(tmp_path: Path, nodes: list[Node]) -> None:
    alice, bob = nodes
    await _fill(alice, bob)
    for node, least in ((alice, 10), (bob, 6)):
        secrets = _secrets(node.replica) | {STORE_KEY}
        assert len(secrets) >= least
        assert _found_in(tmp_path, secrets) == 0, "while it is open, its log included"
        node.replica.close()
        assert _found_in(tmp_path, secrets) == 0
        node.open()
        assert _secrets(node.replica) | {STORE_KEY} == secrets


@pytest.mark.slow
@pytest.mark.sqlite
async def test_an_older_store_is_sealed_at_its_first_opening_with_a_key(
    tmp_path: Path, nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    for node in nodes:  # as they would be without keys
        node.replica.close()
        (tmp_path / node.seed.rstrip(b"-").decode() / "ravel.sqlite").unlink()
    with monkeypatch.context() as patched:
        patched.setattr("tests.support.nodes.STORE_KEY", None)
        for node in nodes:
            node.open()
        await _fill(*nodes)
        known = [_secrets(node.replica) for node in nodes]
        for node in nodes:
            node.replica.close()
    assert all(_found_in(tmp_path, secrets) > 4 for secrets in known), "or this test shows nothing"
    for node, secrets in zip(nodes, known, strict=True):
        node.open()
        assert _secrets(node.replica) == secrets
        assert _found_in(tmp_path / node.seed.rstrip(b"-").decode(), secrets) == 0
        node.replica.close()
        assert check_store(tmp_path / node.seed.rstrip(b"-").decode(), STORE_KEY).problems == []
        node.open()
    nodes[0].write(nodes[0].branch(), "goes on")


@pytest.mark.sqlite
async def test_what_could_not_be_swept_is_swept_at_the_next_opening(
    tmp_path: Path, nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob = nodes
    await _fill(alice, bob)
    alice.replica.close()
    folder = tmp_path / "alice"
    leftover = b"a secret that lay here once".ljust(32)
    database = Database(folder, STORE_KEY)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE gone (x BLOB)"))
        connection.execute(text("INSERT INTO gone VALUES (:x)"), {"x": leftover * 200})
        connection.execute(text("UPDATE store_seal SET is_clean = 0"))
    database.close()

    def full(*_given: object) -> None:
        raise OperationalError("VACUUM", {}, Exception("database or disk is full"))

    with monkeypatch.context() as patched:
        patched.setattr(SqliteBackend, "sweep", full)
        database = Database(folder, STORE_KEY)
    with database.write() as connection:
        connection.exec_driver_sql("PRAGMA secure_delete=OFF")
        connection.execute(text("DROP TABLE gone"))
    database.close()
    assert _found_in(folder, {leftover}) == 1, "SQLite leaves on its pages what it replaced"
    alice.open()
    assert _found_in(folder, {leftover}) == 0


@pytest.mark.sqlite  # VACUUM FULL of PostgreSQL waits for readers, and fails
def test_what_is_swept_while_somebody_reads_is_swept_again_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.engine.sqlite._BUSY_TIMEOUT_SECONDS", 0.0)
    leftover = b"a secret that lay here once".ljust(32)
    database = Database(tmp_path, STORE_KEY)
    with database.write() as connection:
        connection.execute(text("CREATE TABLE gone (x BLOB)"))
        connection.execute(text("INSERT INTO gone VALUES (:x)"), {"x": leftover * 200})
    with database.write() as connection:
        connection.exec_driver_sql("PRAGMA secure_delete=OFF")
        connection.execute(text("DROP TABLE gone"))
        connection.execute(text("UPDATE store_seal SET is_clean = 0"))
    database.close()
    with read_store(tmp_path):
        Database(tmp_path, STORE_KEY).close()
        assert _found_in(tmp_path, {leftover}) == 1, "or this test shows nothing"
    with read_store(tmp_path) as reader:
        assert reader.execute(select(store_seal.c.is_clean)).scalar_one() is False
    Database(tmp_path, STORE_KEY).close()
    assert _found_in(tmp_path, {leftover}) == 0
    with read_store(tmp_path) as reader:
        assert reader.execute(select(store_seal.c.is_clean)).scalar_one() is True


@pytest.mark.sqlite  # copies of PostgreSQL's rows are the same files
def test_a_copy_of_a_store_that_no_key_had_opened_yet_goes_whatever_its_schema(tmp_path: Path) -> None:
    Database(tmp_path).close()  # as `ravel gc` opens it
    before, after = (tmp_path / f"ravel-of-{revision}.sqlite" for revision in ("r0100", "r0101"))
    copy_database(tmp_path / "ravel.sqlite", before)
    Database(tmp_path, STORE_KEY).close()
    copy_database(tmp_path / "ravel.sqlite", after)
    assert drop_open_copies(tmp_path) == [before]
    assert {path.name for path in tmp_path.glob("*.sqlite")} == {"ravel.sqlite", after.name}


async def test_another_key_or_none_opens_no_secret(tmp_path: Path, nodes: list[Node]) -> None:
    alice, bob = nodes
    await _fill(alice, bob)
    alice.replica.close()
    with pytest.raises(StorageError, match="belong together"):
        Database(tmp_path / "alice", StoreKey(b"x" * 32))
    with (
        pytest.raises(StorageError, match="belong together"),
        read_store(tmp_path / "alice", StoreKey(b"x" * 32)) as reader,
    ):
        raise AssertionError(reader)
    with pytest.raises(StorageError, match="without its key"):
        Replica(tmp_path / "alice")
    database = Database(tmp_path / "alice")  # for what takes no secrets
    with pytest.raises(StorageError, match="without its key"), database.read() as connection:
        load_rows(connection, [row[0] for row in connection.execute(text("SELECT commit_id FROM commits"))])
    with pytest.raises(StorageError, match="without its key"), database.write() as connection:
        load_epochs(connection)
    database.close()
    with pytest.raises(StorageError, match="without its key"), read_store(tmp_path / "alice") as connection:
        load_repos(connection)
    alice.open()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE epochs SET key = :other",
        "UPDATE epochs SET key = :more",
        "UPDATE epochs SET writers_secret = key",
        "UPDATE repos SET init_key = (SELECT key FROM epochs)",
        "UPDATE epochs SET epoch_id = :other",
    ],
)
def test_a_secret_that_was_altered_or_moved_is_refused(tmp_path: Path, damage: str) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        with alice.replica.database.write() as connection:
            values = {"other": bytes(32), "more": bytes(8)}
            connection.execute(text(damage), {name: values[name] for name in values if f":{name}" in damage})
        alice.is_damaged = True
        alice.replica.close()
        with pytest.raises(StorageError, match="was altered"):
            alice.open()


def test_boxes_of_one_place_and_secret_are_equal_and_no_others() -> None:
    key = KeyedCipher(StoreKey(b"k" * 32))
    box = key.seal(b"place", b"secret")
    assert box == key.seal(b"place", b"secret")
    assert key.open(b"place", box) == b"secret"
    others = [
        key.seal(b"other", b"secret"),
        key.seal(b"place", b"terces"),
        key.seal(b"places", b"ecret"),
        KeyedCipher(StoreKey(b"l" * 32)).seal(b"place", b"secret"),
    ]
    assert len({one[:24] for one in (box, *others)}) == 5
    for place, kept in ((b"other", box), (b"place", box[:-1]), (b"place", b""), (b"place", others[3])):
        with pytest.raises(BadSecret):
            key.open(place, kept)


def test_masks_differ_by_place() -> None:
    key = KeyedCipher(StoreKey(b"k" * 32))
    places = [
        commit_key_context(as_commit_id(b"c" * 32)),
        commit_key_context(as_commit_id(b"d" * 32)),
        file_place(1, as_object_id(b"c" * 32)),
        file_place(2, as_object_id(b"c" * 32)),
    ]
    masked = {key.mask(place, BlockKey(bytes(32))) for place in places}
    assert len(masked) == 4
    assert all(key.mask(place, key.mask(place, BlockKey(b"x" * 32))) == b"x" * 32 for place in places)
    assert key.mask(places[0], BlockKey(b"")) == b""
