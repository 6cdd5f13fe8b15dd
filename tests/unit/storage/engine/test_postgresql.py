"""Rows in PostgreSQL: one writer, whatever becomes of the server; the folder's own database and no other; no secret said."""

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, insert, select, text
from sqlalchemy.exc import DBAPIError, OperationalError

from node.care.fsck import check_store
from node.ingest.replica import Replica
from protocol.crypto.keys import ConvergenceSecret, StoreKey
from protocol.formats.block import encrypt_block
from storage.blobs.packs import Packs
from storage.check.check_integrity import count_rows
from storage.commits.commits import digest_timeline, iterate_arrivals
from storage.engine.backup_rows import load_database, save_database
from storage.engine.database import (
    DATABASE_NAME,
    Database,
    NewerSchema,
    NoStore,
    OlderSchema,
    StorageError,
    read_store,
)
from storage.engine.postgresql import PostgresqlBackend, find_risks
from storage.engine.store_identity import PACKS_NAME
from storage.repos.epochs import load_epochs
from storage.repos.repos import load_repos
from storage.schema.peer_schema import peers
from storage.schema.schema import authors, repos, store_seal, topics
from storage.schema.tables import metadata
from tests.support.builders import STORE_KEY
from tests.support.nodes import Node
from tests.support.older_stores import OLDER, older_is_known
from tests.support.postgresql import PostgresqlServer

pytestmark = pytest.mark.postgresql

ROW = {"peer": b"p" * 32, "address": "127.0.0.1:1"}


@pytest.fixture
def url(postgresql_server: PostgresqlServer) -> str:
    """Make a database without a store."""
    return postgresql_server.make_database()


@pytest.fixture
def older() -> Iterator[None]:
    with older_is_known():
        yield


@pytest.fixture
def own(postgresql_server: PostgresqlServer, tmp_path: Path) -> str:
    """Make the database of the store in `tmp_path`, with the newest schema."""
    return postgresql_server.url_of(tmp_path)


def _addresses(database: Database) -> list[str]:
    with database.read() as connection:
        return list(connection.execute(select(peers.c.address)).scalars())


def _write(database: Database, number: int) -> None:
    with database.write() as connection:
        connection.execute(insert(peers), [{"peer": number.to_bytes(32), "address": str(number)}])


def test_a_new_store_has_the_declared_schema(tmp_path: Path, url: str) -> None:
    database = Database(tmp_path, url=url)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        partial = (
            "SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%WHERE%' AND schemaname = current_schema()"
        )
        assert set(connection.execute(text(partial)).scalars()) == {
            "blocks_id_key", "commits_about", "commits_documents", "commits_threads", "relay_commits_variants_key",
        }  # fmt: skip
    database.close()
    assert {path.name for path in tmp_path.iterdir()} == {"store-id"}


def test_a_write_is_durable_and_a_read_cannot_write(tmp_path: Path, own: str) -> None:
    postgres = Database(tmp_path, url=f"{own}&options=-csynchronous_commit%3Doff")
    with postgres.write() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        assert connection.execute(text("SHOW jit")).scalar_one() == "off"
    with pytest.raises(StorageError, match="read-only"), postgres.read() as connection:
        connection.execute(insert(peers), [ROW])
    with postgres.read() as connection:
        assert [risk.partition(" ")[0] for risk in find_risks(connection)] == ["the", "full_page_writes"]
        assert postgres.size(connection) > 100_000  # type: ignore[operator]  # not None here
    postgres.close()


def test_one_writer_uses_a_database(tmp_path: Path, own: str) -> None:
    first = Database(tmp_path, url=own)
    with pytest.raises(StorageError, match="another Ravel uses it"):
        Database(tmp_path, url=own)
    first.close()
    Database(tmp_path, url=own).close()


def test_a_server_that_was_started_again_is_connected_again(
    tmp_path: Path, own: str, postgresql_server: PostgresqlServer
) -> None:
    database = Database(tmp_path, url=own)
    _write(database, 1)
    postgresql_server.stop()
    try:
        with pytest.raises(StorageError):
            _write(database, 2)
        assert database.fault != ""
        with pytest.raises(StorageError):
            _addresses(database)
    finally:
        postgresql_server.start()
    assert _addresses(database) == ["1"]
    _write(database, 3)
    assert (database.fault, _addresses(database)) == ("", ["1", "3"])
    postgresql_server.stop()
    postgresql_server.start()
    assert _addresses(database) == ["1", "3"], "connections that broke meanwhile are made again"
    _write(database, 4)
    with pytest.raises(StorageError, match="another Ravel"):
        Database(tmp_path, url=own)
    database.close()


def test_a_server_that_stops_in_the_middle_undoes_all(
    tmp_path: Path, own: str, postgresql_server: PostgresqlServer
) -> None:
    database = Database(tmp_path, url=own)
    with pytest.raises(StorageError), database.write() as connection:
        first = database.next_nums(connection, authors, 1)
        connection.execute(insert(peers), [ROW])
        postgresql_server.stop()
        postgresql_server.start()
        connection.execute(select(peers))
    with pytest.raises(StorageError), database.read() as connection:
        connection.execute(select(peers))
        postgresql_server.stop()
        postgresql_server.start()
        connection.execute(select(peers))
    assert _addresses(database) == []
    with database.write() as connection:
        assert database.next_nums(connection, authors, 1) == first
    database.close()


class _Proxy:
    """Stands between a client and the server. It can swallow what the server says of the next COMMIT, and hang up."""

    def __init__(self, server: PostgresqlServer) -> None:
        self._target = f"{server.socket_folder}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cuts = threading.Event()
        self.accepts = True
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if not self.accepts:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                cut = threading.Event()
                for work in (self._requests, self._answers):
                    threading.Thread(target=work, args=(client, server, cut), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError), server:
            while data := client.recv(1 << 16):
                if b"COMMIT\0" in data and self.cuts.is_set():
                    cut.set()
                server.sendall(data)

    def _answers(self, client: socket.socket, server: socket.socket, cut: threading.Event) -> None:
        with suppress(OSError), client:
            while data := server.recv(1 << 16):
                if cut.is_set():  # it has committed: this is its answer
                    self.cuts.clear()
                    client.shutdown(socket.SHUT_RDWR)
                    server.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@pytest.fixture
def proxy(postgresql_server: PostgresqlServer) -> Iterator[_Proxy]:
    proxy = _Proxy(postgresql_server)
    yield proxy
    proxy.close()


def _through(url: str, proxy: _Proxy) -> str:
    name = url.partition("@/")[2].partition("?")[0]
    return f"postgresql://ravel@127.0.0.1:{proxy.port}/{name}?sslmode=disable"


def test_a_commit_whose_answer_was_lost_is_asked_for(tmp_path: Path, own: str, proxy: _Proxy) -> None:
    database = Database(tmp_path, url=_through(own, proxy))
    _write(database, 1)
    proxy.cuts.set()
    _write(database, 2)
    assert not proxy.cuts.is_set(), "the answer was swallowed"
    _write(database, 3)
    assert _addresses(database) == ["1", "2", "3"]
    database.close()


def test_a_commit_that_turns_out_kept_after_it_was_said_lost_ends_writing(
    tmp_path: Path, own: str, proxy: _Proxy
) -> None:
    through = _through(own, proxy)
    database = Database(tmp_path, url=through)
    proxy.cuts.set()
    proxy.accepts = False
    with pytest.raises(StorageError):
        _write(database, 1)
    proxy.accepts = True
    for _ in range(2):
        with pytest.raises(StorageError, match="start the daemon again"):
            _write(database, 2)
    assert "start the daemon again" in database.fault
    database.close()
    again = Database(tmp_path, url=through)
    _write(again, 2)
    assert _addresses(again) == ["1", "2"]
    again.close()


def test_a_pack_stays_whose_rows_may_have_been_committed(tmp_path: Path, own: str, proxy: _Proxy) -> None:
    block = encrypt_block(bytes(300_000), ConvergenceSecret(b"c" * 32))[0]
    through = _through(own, proxy)
    database = Database(tmp_path, url=through)

    def add() -> None:
        with Packs(database).draft() as draft:
            draft.put(block)
            draft.finish()
            proxy.cuts.set()
            proxy.accepts = False  # nobody can be asked what became of it
            with database.write() as connection:
                draft.keep(connection)
            raise AssertionError("kept")

    with pytest.raises(StorageError):
        add()
    database.close()
    proxy.accepts = True
    again = Database(tmp_path, url=through)
    with again.read() as connection:
        assert Packs(again).find(connection, block.block_id) == block
    again.close()


def test_a_statement_that_failed_is_not_committed_over(tmp_path: Path, own: str) -> None:
    database = Database(tmp_path, url=own)
    with pytest.raises(StorageError, match="failed"), database.write() as connection:
        connection.execute(insert(peers), [ROW])
        with suppress(DBAPIError):
            connection.execute(text("SELECT 1 / 0"))
    assert _addresses(database) == []
    with pytest.raises(StorageError) as caught, database.write() as connection:
        connection.execute(insert(peers), [ROW, ROW])
    assert "duplicate key" in str(caught.value)
    assert "7070" not in str(caught.value), "values of rows are not said"
    database.close()


def test_texts_and_numbers_of_peers_are_kept_as_they_came(tmp_path: Path, own: str) -> None:
    database = Database(tmp_path, url=own)
    names = ["\0", "a\0b", "\x010", "\x01", "\x011\0", "é\U0001f600", ""]
    with database.write() as connection:
        for number, name in enumerate(names):
            row = {"peer": number.to_bytes(32), "address": name}
            connection.execute(insert(peers), [row])
        connection.execute(
            insert(repos).values(
                num=1, repo_id=b"r" * 32, name="\0", init_id=b"", init_key=b"", epoch_num=0, is_behind=False
            )
        )
        connection.execute(text("INSERT INTO branches VALUES (1, 1, 'b', 'x', 'r', 0, 0, false, false)"))
        connection.execute(
            insert(topics).values(num=1, branch_num=1, epoch_num=2**62 - 1, topic=b"t", commit_count=2**62)
        )
    with database.read() as connection:
        found = connection.execute(select(peers.c.address).order_by(peers.c.peer)).scalars().all()
        assert found == names
        for number, name in enumerate(names):
            same = connection.execute(select(peers.c.peer).where(peers.c.address == name)).scalars().all()
            assert same == [number.to_bytes(32)]
        assert connection.execute(select(topics.c.epoch_num)).scalar_one() == 2**62 - 1
    database.close()


def test_a_folder_opens_its_own_database_and_no_other(
    tmp_path: Path, url: str, postgresql_server: PostgresqlServer
) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    urls = [url, postgresql_server.make_database()]
    for folder, own in zip(folders, urls, strict=True):
        folder.mkdir()
        Database(folder, url=own).close()
    with pytest.raises(StorageError, match="another folder"):
        Database(folders[0], url=urls[1])
    with pytest.raises(StorageError, match="another folder"), read_store(folders[0], url=urls[1]):
        raise AssertionError("read")
    with pytest.raises(StorageError, match="has to name it"):
        save_database(folders[0], "", tmp_path / "copy")
    with pytest.raises(StorageError, match="has to name it"):
        Database(folders[0])
    assert {path.name for path in folders[0].iterdir()} == {"store-id"}
    (tmp_path / "elsewhere").mkdir()
    Database(tmp_path / "elsewhere").close()
    shutil.copy(
        tmp_path / "elsewhere" / DATABASE_NAME, folders[0]
    )  # its packs would be swept by this one's rows
    with pytest.raises(StorageError, match="has to name it"):
        Database(folders[0])
    with pytest.raises(StorageError, match="has to name it"), read_store(folders[0]):
        raise AssertionError("read")
    (folders[0] / DATABASE_NAME).unlink()
    with_file, with_packs = tmp_path / "file", tmp_path / "packs"
    for folder in (with_file, with_packs):
        folder.mkdir()
    Database(with_file).close()
    (with_packs / PACKS_NAME).mkdir()
    (with_packs / PACKS_NAME / "a").write_bytes(b"large")
    empty = postgresql_server.make_database()
    for folder in (with_file, with_packs):
        with pytest.raises(StorageError, match="has a store already"):
            Database(folder, url=empty)
    assert (with_packs / PACKS_NAME / "a").exists(), "nothing was swept"
    with pytest.raises(NoStore), read_store(tmp_path, url=empty):
        raise AssertionError("read")


@pytest.mark.usefixtures("older")
def test_an_older_store_is_copied_to_a_file_before_it_is_migrated(
    tmp_path: Path, url: str, postgresql_server: PostgresqlServer
) -> None:
    postgresql_server.make_older(tmp_path, url, OLDER, _put_peer)
    with pytest.raises(OlderSchema, match=OLDER), read_store(tmp_path, url=url):
        raise AssertionError("read")
    Database(tmp_path, url=url).close()
    kept = tmp_path / "ravel-of-r0000.sqlite"
    assert kept.stat().st_mode & 0o777 == 0o600
    with read_store(tmp_path, url=url) as connection:
        assert connection.execute(select(peers.c.address)).scalars().all() == ["x:1"]
    older = tmp_path / "older"
    older.mkdir()
    kept.rename(older / "ravel.sqlite")
    Database(older).close()
    with read_store(older) as connection:
        assert connection.execute(select(peers.c.address)).scalars().all() == ["x:1"]
    Database(tmp_path, url=url).close()
    assert not kept.exists(), "nothing is left to migrate"


@pytest.mark.usefixtures("older")
def test_a_store_that_cannot_be_copied_is_not_migrated(
    tmp_path: Path, url: str, postgresql_server: PostgresqlServer
) -> None:
    postgresql_server.make_older(tmp_path, url, OLDER, _put_peer)
    (tmp_path / "ravel-of-r0000.sqlite.part").mkdir()
    with pytest.raises(StorageError, match="left as it is"):
        Database(tmp_path, url=url)
    with pytest.raises(OlderSchema), read_store(tmp_path, url=url):
        raise AssertionError("read")


def _put_peer(connection: Connection) -> None:
    row = {"peer": b"p" * 32}
    connection.execute(text("INSERT INTO peers (peer, address) VALUES (:peer, 'x:1')"), row)


def test_a_database_of_a_newer_ravel_is_left_alone(tmp_path: Path, own: str) -> None:
    database = Database(tmp_path, url=own)
    with database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'r9999'"))
    database.close()
    with pytest.raises(NewerSchema, match="r9999"):
        Database(tmp_path, url=own)


def test_a_store_moves_to_a_file_and_back_and_is_the_same(
    tmp_path: Path, url: str, postgresql_server: PostgresqlServer
) -> None:
    node = Node(tmp_path / "alice", "alice")  # in a file
    _, branch = node.create_repo("a name with \0 in it")
    for number in range(20):
        node.write(branch, f"post {number}")
    before = node.digest(branch)
    node.replica.close()
    with read_store(tmp_path / "alice") as connection:
        counts = count_rows(connection)
    load_database(tmp_path / "alice", url)
    assert not (tmp_path / "alice" / "ravel.sqlite").exists()
    with read_store(tmp_path / "alice", url=url) as connection:
        assert count_rows(connection) == counts
    assert check_store(tmp_path / "alice", STORE_KEY, url).problems == []
    with pytest.raises(StorageError, match="has a store already"):
        load_database(tmp_path / "alice", url)
    back = tmp_path / "back"
    back.mkdir()
    save_database(tmp_path / "alice", url, back / "ravel.sqlite")
    assert (back / "ravel.sqlite").stat().st_mode & 0o777 == 0o600
    assert check_store(back, STORE_KEY).problems == []
    again = Node(back, "alice")
    assert again.digest(again.branch()) == before
    assert again.replica.repos[1].name == "a name with \0 in it"
    again.replica.close()


def test_an_older_store_is_sealed_at_its_first_opening_with_a_key(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.engine.postgresql._PAGE", 3)
    folder = tmp_path / "alice"
    with monkeypatch.context() as patched:
        patched.setattr("tests.support.nodes.STORE_KEY", None)
        node = Node(folder, "alice")
        _, branch = node.create_repo()
        for number in range(20):
            node.write(branch, f"post {number}")
        before, secrets = node.digest(branch), _secrets(node)
        node.replica.close()
    load_database(folder, url)
    assert _found_in(tmp_path, folder, url, secrets) == len(secrets), "or this test shows nothing"
    with monkeypatch.context() as patched:
        patched.setattr(PostgresqlBackend, "sweep", _fail)
        Database(folder, STORE_KEY, url).close()
    with read_store(folder, STORE_KEY, url) as connection:
        assert connection.execute(select(store_seal.c.is_clean)).scalar_one() is False
    places = _places(folder, url)
    for _ in range(2):
        Database(folder, STORE_KEY, url).close()
        with read_store(folder, STORE_KEY, url) as connection:
            assert connection.execute(select(store_seal.c.is_clean)).scalar_one() is True
    assert not places & _places(folder, url), "tables were written anew"
    assert _found_in(tmp_path, folder, url, secrets) == 0
    assert check_store(folder, STORE_KEY, url).problems == []
    for key, said in ((StoreKey(b"x" * 32), "belong together"), (None, "without its key")):
        with pytest.raises(StorageError, match=said):
            Replica(folder, key, url)
    again = Replica(folder, STORE_KEY, url)
    with again.database.read() as connection:
        assert digest_timeline(connection, branch.num) == before
    again.close()


def _secrets(node: Node) -> set[bytes]:
    branch = node.branch()
    with node.replica.database.read() as connection:
        found: set[bytes] = {row.commit_key for row in iterate_arrivals(connection, [branch.num])}
        found |= {repo.init_key for repo in load_repos(connection)}
        found |= {epoch.key for epoch in load_epochs(connection)}
    return found - {b"", bytes(32)}


def _found_in(scratch: Path, folder: Path, url: str, secrets: set[bytes]) -> int:
    """Count how many of these secrets stand in a store's rows."""
    copy = scratch / "copy"
    save_database(folder, url, copy)
    content = copy.read_bytes()
    copy.unlink()
    return sum(secret in content for secret in secrets)


def _places(folder: Path, url: str) -> set[str]:
    """Return the files of a server that hold a store's tables with secrets."""
    names = (
        "SELECT pg_relation_filepath(name::regclass) FROM unnest(ARRAY['commits', 'epochs', 'repos']) AS name"
    )
    with read_store(folder, url=url) as connection:
        return set(connection.execute(text(names)).scalars())


def _fail(*_given: object) -> None:
    raise OperationalError("VACUUM", {}, Exception("No space left on device"))


def test_what_is_wrong_with_a_url_is_said_without_its_password(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    place = postgresql_server.socket_folder
    postgresql_server.execute(
        "CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    )
    for url, said in {
        "postgresql://ravel:secret@h:port/db": "not a URL",
        "mysql://ravel:secret@h/db": "begins with postgresql",
        "postgresql://ravel:sec/ret@h/db": "not a URL",
        f"postgresql://ravel:secret@/nowhere?host={place}": "does not exist",
        f"postgresql://nobody:secret@/postgres?host={place}": "nobody",
        f"postgresql://ravel:secret@/postgres?host={tmp_path}": "No such file",
        f"postgresql://ravel:secret@/latin?host={place}": "LATIN1",
        f"postgresql://ravel:secret@/postgres?host={place}&options=-csearch_path%3Dnone": "schema",
    }.items():
        with pytest.raises(StorageError, match=said) as caught:
            Database(tmp_path, url=url)
        assert "secret" not in str(caught.value)
        assert "sec/ret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
