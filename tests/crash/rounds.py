"""Two nodes that are killed at any moment, round after round, and must have all that they ever acknowledged.

A round has the victim do one thing (write, add files one by one or many by a request, take in what the other wrote,
export, collect garbage, back up, repair rows that follow from others, edit indexed documents, make a node, upgrade a store),
kills the process that does it with SIGKILL while it does, starts the
node again and compares it with the ledger: what its API answered before. `python -m tests.crash.rounds` plays rounds of a
seed; see the Makefile's `crash`. A seed says what happens in each round and when to strike; where that falls within the
work is the machine's to say.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import text

from node.care.backup import restore_backup
from node.care.backup_folder import list_backups
from node.care.fsck import check_store
from node.home.home import open_home
from node.home.identity import open_keys
from node.runtime.errors import ServiceError
from ravel import Client, connect
from ravel.files import encode_head
from storage.engine.database import Database
from tests.e2e.cluster import ANY_PORT, Peer, join, peers, run_ravel, until, until_equal
from tests.support.keys import no_passphrase
from tests.support.machine import patience
from tests.support.older_stores import (
    OLDER,
    PEER_COUNT,
    add_peers,
    make_older_store,
    older_is_known,
    upgrade_and_count,
)
from tests.support.postgresql import PostgresqlServer, find_programs
from tests.support.processes import RAVEL
from tests.support.read_exports import read_export

_WRITERS: Final = 2
_ACKS_MAX: Final = 25
"""Acknowledgements after which, at the latest, the process is killed."""
_WAIT_SECONDS: Final = patience(60)
_DOCUMENTS: Final = "card/"
"""Beginning of the names of JSON documents."""
ACTS: Final = (
    "write",
    "file",
    "files",
    "sync",
    "export",
    "gc",
    "backup",
    "repair",
    "documents",
    "begin",
    "upgrade",
)
"""What a process can be killed in."""
_FILE_SIZES: Final = (1, 5_000, 300_000, 2_000_000)
"""Bytes: of one block, of rows, of a pack, of a pack with a tree."""


@dataclass
class Ledger:
    """What was acknowledged: ids of commits, contents of files and numbers in documents by their names."""

    commits: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    documents: dict[str, int] = field(default_factory=dict)


class Crashes:
    """Two running nodes that share a branch, and what each of them acknowledged."""

    def __init__(
        self, alice: Peer, bob: Peer, folder: Path, chance: random.Random, server: PostgresqlServer | None
    ) -> None:
        self.struck: Counter[str] = Counter()
        self._server = server
        self._peers = (alice, bob)
        self._ledgers = {alice.home: Ledger(), bob.home: Ledger()}
        self._folder = folder
        self._chance = chance
        self._names = 0
        _, self._branch = join(alice, bob)
        until_equal(alice, bob, self._branch)

    @property
    def acts(self) -> dict[str, Callable[[Peer], None]]:
        """What a node can be killed in."""
        return {
            "write": self._write,
            "file": self._add_files,
            "files": self._add_many_files,
            "sync": self._take_in,
            "export": self._export,
            "gc": self._collect,
            "backup": self._back_up,
            "repair": self._repair,
            "documents": self._edit_documents,
            "begin": self._begin,
            "upgrade": self._upgrade,
        }

    def play(self, act: str) -> None:
        """One round. Raises AssertionError where something is lost."""
        victim = self._chance.choice(self._peers)
        self.acts[act](victim)
        self._compare(victim)

    def finish(self) -> int:
        """Let them meet, and see that both have what either acknowledged; gives the number of commits."""
        alice, bob = self._peers
        alice.client.write_post(self._branch, "the last")  # what bob can have by a connection alone
        until_equal(alice, bob, self._branch, _WAIT_SECONDS)
        for peer in self._peers:
            held = self._held(peer)
            for ledger in self._ledgers.values():
                assert ledger.commits <= held, f"{peer.home.name} lacks {len(ledger.commits - held)} commits"
        for peer in self._peers:
            for ledger in self._ledgers.values():
                for name, content in ledger.files.items():
                    self._check_file(peer, name, content)
                self._check_documents(peer, ledger)
        for peer in self._peers:
            peer.stop()
            _check_whole(peer.home, peer.storage_url)
        return len(held)

    # --- acts ---

    def _write(self, victim: Peer) -> None:
        ledger = self._ledgers[victim.home]

        def write(api: Client) -> None:
            ledger.commits.add(str(api.write_post(self._branch, "a post")["commit"]))

        self._kill_amid(victim, write, _ACKS_MAX)

    def _add_files(self, victim: Peer) -> None:
        ledger = self._ledgers[victim.home]
        sizes = [self._chance.choice(_FILE_SIZES) for _ in range(10 * _ACKS_MAX)]
        contents = [(self._name(), self._chance.randbytes(size)) for size in sizes]

        def add(api: Client) -> None:
            name, content = contents.pop()
            api.add_file(self._branch, [content], name=name)
            ledger.files[name] = content

        self._kill_amid(victim, add, _ACKS_MAX // 3)

    def _add_many_files(self, victim: Peer) -> None:
        """By requests that each add all of their files or none, also the one that is cut."""
        ledger = self._ledgers[victim.home]
        requests = [
            {self._name(): self._chance.randbytes(self._chance.choice(_FILE_SIZES[:3])) for _ in range(20)}
            for _ in range(2 * _ACKS_MAX)
        ]
        tried: list[dict[str, bytes]] = []

        def add(api: Client) -> None:
            contents = requests.pop()
            tried.append(contents)
            api.add_files(
                self._branch, (encode_head(name, len(data)) + data for name, data in contents.items())
            )
            ledger.files.update(contents)

        self._kill_amid(victim, add, _ACKS_MAX // 5)
        there = self._file_names(victim)
        for contents in tried:
            assert contents.keys() <= there or contents.keys().isdisjoint(there), (
                "a part of a request is there"
            )
            self.struck["files"] += contents.keys().isdisjoint(there)

    def _take_in(self, victim: Peer) -> None:
        """The other writes while the victim is away, which is killed while it takes that in."""
        (other,) = (peer for peer in self._peers if peer is not victim)
        victim.kill()
        items = [
            {"id": self._name(), "parents": [], "author": "a", "time": 1, "text": "x" * 50}
            for _ in range(self._chance.randint(1, 400))
        ]
        for start in range(0, len(items), 100):
            other.client.import_commits(self._branch, items[start : start + 100], "crash")
        victim.start()
        self._pause(0.5)
        self.struck["sync"] += self._count(victim) < self._count(other)
        victim.kill()
        victim.start()

    def _export(self, victim: Peer) -> None:
        def export(api: Client) -> None:
            api.export_store()

        self._kill_amid(victim, export, 2)
        folder = Path(open_home(victim.home).export_destination)
        read_export(folder)
        victim.client.export_store()
        assert read_export(folder).rows >= self._count(victim)

    def _collect(self, victim: Peer) -> None:
        """Garbage is what a removed file leaves."""
        ledger = self._ledgers[victim.home]
        name, content = self._name(), self._chance.randbytes(self._chance.choice(_FILE_SIZES))
        victim.client.add_file(self._branch, [content], name=name)
        ledger.files[name] = content
        gone = self._chance.choice(list(ledger.files))
        del ledger.files[gone]
        victim.client.remove_file(self._branch, gone)
        victim.stop()
        self._kill_command(victim, "gc", "--removed")
        victim.start()

    def _back_up(self, victim: Peer) -> None:
        """Beside the daemon, into the folder of those before; either of them is killed."""
        out = self._folder / f"backups of {victim.home.name}"
        before = list_backups(out) if out.exists() else []
        if self._chance.random() < 0.5:
            self._kill_command(victim, "backup", str(out))
        else:
            process = self._start_command(victim, "backup", str(out))
            self._pause(1.0)
            victim.kill()
            assert process.wait(_WAIT_SECONDS) == 0, "a backup needs no daemon"
            victim.start()
        there = list_backups(out) if out.exists() else []
        assert there[: len(before)] == before
        for backup in there[-2:]:
            restored = self._folder / "restored"
            restore_backup(backup.path, restored, "")  # into a file, wherever the rows came from
            _check_whole(restored)
            shutil.rmtree(restored)

    def _repair(self, victim: Peer) -> None:
        """Of a store whose ranks and heads are wrong, as they follow from commits."""
        until_equal(
            *self._peers, self._branch, _WAIT_SECONDS
        )  # or a late commit of the other's changes the digest
        before = victim.client.show_digest(self._branch)
        victim.stop()
        key = open_keys(victim.home, no_passphrase).store_key
        with closing(Database(victim.home, key, victim.storage_url)) as database, database.write() as rows:
            rows.execute(text("UPDATE commits SET rank = 0"))
            rows.execute(text("DELETE FROM heads"))
        self._kill_command(victim, "fsck", "--repair")
        run_ravel(victim, "fsck", "--repair")
        for copy in victim.home.glob("*repair*"):
            copy.unlink()
        victim.start()
        assert victim.client.show_digest(self._branch) == before

    def _edit_documents(self, victim: Peer) -> None:
        """Of an index, whose rows a query brings level."""
        ledger = self._ledgers[victim.home]
        victim.client.declare_json_index(self._branch, ["number"], prefix=_DOCUMENTS)
        numbers = [self._chance.randrange(1000) for _ in range(10 * _ACKS_MAX)]
        names = [self._name() for _ in numbers]

        def edit(api: Client) -> None:
            name, number = _DOCUMENTS + names.pop(), numbers.pop()
            api.document(self._branch, name).put("number", number)
            ledger.documents[name] = number
            if number % 3 == 0:
                self._sorted_documents(api)

        self._kill_amid(victim, edit, _ACKS_MAX // 2)
        self._check_documents(victim, ledger)

    def _begin(self, _victim: Peer) -> None:
        """Make another node; killed in `init`, and in its first start."""
        home = self._folder / "new"
        init = ("init", "--clear", "--listen", ANY_PORT, "--api", ANY_PORT)
        self._kill_amid_seconds("begin", _start_ravel("--home", str(home), *init), (0.2, 0.8))
        peer = Peer(home)
        self._kill_amid_seconds("begin", self._start_command(peer, "run"), (0.3, 1.5))
        try:
            peer.start()
            peer.client.create_repo("begun")
            peer.client.write_post("begun:main", "the first")
            peer.stop()
        finally:
            peer.close()
        _check_whole(home)
        shutil.rmtree(home)

    def _upgrade(self, victim: Peer) -> None:
        """Of another store, which an older Ravel left, and whose rows are where the victim's are."""
        home, url = self._folder / "older", ""
        home.mkdir()
        with older_is_known():
            if self._server is not None and victim.storage_url:
                url = self._server.make_database()
                self._server.make_older(home, url, OLDER, add_peers)
            else:
                make_older_store(home, PEER_COUNT)
        opening = [sys.executable, "-m", "tests.support.older_stores", "open", str(home), url]
        self._kill_amid_seconds("upgrade", subprocess.Popen(opening), (0.3, 1.2))
        assert upgrade_and_count(home, url) == PEER_COUNT
        shutil.rmtree(home)
        if self._server is not None and url:
            self._server.execute(f"DROP DATABASE {urlsplit(url).path[1:]} WITH (FORCE)")

    # --- steps ---

    def _kill_amid(self, victim: Peer, request: Callable[[Client], None], acks_max: int) -> None:
        """Have some make a request again and again, kill the daemon soon after some answers, and start it."""
        answered = threading.Semaphore(0)
        is_over = threading.Event()

        def work() -> None:
            with closing(connect(victim.home)) as api:
                while not is_over.is_set():
                    try:
                        request(api)
                    except ServiceError as error:
                        if is_over.is_set() and error.code in (
                            "not_running",
                            "interrupted",
                            "answer_lost",
                        ):
                            return
                        raise
                    answered.release()

        with ThreadPoolExecutor(_WRITERS) as pool:
            writers = [pool.submit(work) for _ in range(_WRITERS)]
            for _ in range(self._chance.randint(1, acks_max)):
                assert answered.acquire(timeout=_WAIT_SECONDS), f"{victim.home.name} does not answer"
            self._pause(0.03)
            is_over.set()
            victim.kill()
            for writer in writers:
                writer.result(_WAIT_SECONDS)
        victim.start()

    def _start_command(self, victim: Peer, *arguments: str) -> subprocess.Popen[bytes]:
        return _start_ravel("--home", str(victim.home), *arguments)

    def _kill_command(self, victim: Peer, *arguments: str) -> None:
        # It takes some tenths to begin, and hundredths then.
        self._kill_amid_seconds(arguments[0], self._start_command(victim, *arguments), (0.25, 1.0))

    def _kill_amid_seconds(
        self, act: str, process: subprocess.Popen[bytes], seconds: tuple[float, float]
    ) -> None:
        """Kill a process after some time, unless it has ended."""
        try:
            process.wait(self._chance.uniform(*seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            self.struck[act] += 1
        process.wait()

    def _pause(self, longest: float) -> None:
        threading.Event().wait(self._chance.uniform(0, longest))

    def _compare(self, victim: Peer) -> None:
        ledger = self._ledgers[victim.home]
        lacking = ledger.commits - self._held(victim)
        assert not lacking, f"{victim.home.name} acknowledged {len(lacking)} commits that it does not have"
        for name, content in list(ledger.files.items())[-3:]:
            self._check_file(victim, name, content)

    def _check_file(self, peer: Peer, name: str, content: bytes) -> None:
        with peer.client.get_file(self._branch, name) as download:
            assert b"".join(download.pieces) == content, f"{peer.home.name} has another {name}"

    def _sorted_documents(self, api: Client) -> dict[str, int]:
        """Numbers by name, in the order of the index; nothing while that is made, or where the query ran out of time."""
        try:
            found = [*api.documents(self._branch, _DOCUMENTS, sort=["number"])]
        except ServiceError as error:
            if error.code not in ("busy", "too_large"):
                raise
            return {}
        return {one["name"]: one["value"]["number"] for one in found}

    def _check_documents(self, peer: Peer, ledger: Ledger) -> None:
        found: dict[str, int] = {}

        def is_found() -> bool:
            found.update(self._sorted_documents(peer.client))
            return bool(found) or not ledger.documents

        until(is_found, "the index is there", _WAIT_SECONDS)
        assert ledger.documents.items() <= found.items(), f"{peer.home.name} has other documents"
        assert [*found.values()] == sorted(found.values())

    def _held(self, peer: Peer) -> set[str]:
        held: set[str] = set()
        following: int | None = -1
        while following is not None:
            window = peer.client.show_timeline(self._branch, after_position=following, limit=1000)
            held.update(item["commit"] for item in window["items"])
            following = None if window["next"] is None else int(window["next"])
        return held

    def _file_names(self, peer: Peer) -> set[str]:
        found: set[str] = set()
        after: int | None = 0
        while after is not None:
            window = peer.client.list_files(self._branch, after=after, limit=1000)
            found.update(file["name"] for file in window["files"])
            after = window["next"]
        return found

    def _count(self, peer: Peer) -> int:
        return int(peer.client.show_digest(self._branch)["commits"])

    def _name(self) -> str:
        self._names += 1
        return f"name {self._names}"


def _start_ravel(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*RAVEL, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _check_whole(home: Path, url: str = "") -> None:
    findings = check_store(home, open_keys(home, no_passphrase).store_key, url)
    assert not findings.kinds, findings.problems


def play(
    folder: Path, seed: int, acts: list[str], server: PostgresqlServer | None = None
) -> tuple[int, Counter[str]]:
    """Play rounds; gives the number of commits at the end and how often what was to be struck was struck on its way.

    With a server one node has its rows in a database of it, and the other in a file.
    """
    url = "" if server is None else server.make_database()
    with peers(folder, "alice", "bob", storage_url=url) as (alice, bob):
        crashes = Crashes(alice, bob, folder, random.Random(seed), server)
        for number, act in enumerate(acts):
            print(f"round {number + 1} of {len(acts)}: {act}", file=sys.stderr, flush=True)
            crashes.play(act)
        return crashes.finish(), crashes.struck


@contextmanager
def _server(is_wanted: bool) -> Iterator[PostgresqlServer | None]:
    """A server of PostgreSQL, or none."""
    programs = find_programs() if is_wanted else None
    if programs is None:
        assert not is_wanted, "no PostgreSQL server is installed: see .ci/run"
        yield None
        return
    server = PostgresqlServer(programs)
    try:
        yield server
    finally:
        server.remove()


def main() -> None:
    """Play ROUNDS of a seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--postgresql", action="store_true", help="one node's rows in a PostgreSQL server of its own"
    )
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    acts = [chance.choice(ACTS) for _ in range(arguments.rounds)]
    with tempfile.TemporaryDirectory() as folder, _server(arguments.postgresql) as server:
        commits, struck = play(Path(folder), arguments.seed, acts, server)
    print(
        f"{len(acts)} rounds {dict(Counter(acts))}, struck on their way {dict(struck)}: all {commits} commits are there"
    )


if __name__ == "__main__":
    main()
