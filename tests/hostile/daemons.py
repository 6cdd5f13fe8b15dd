"""A real daemon under attack, and what its user feels of it: the times of writes and reads, memory, disk, processor."""

import multiprocessing
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from node.authoring.author import Author
from node.home.folder_mark import MARK_NAME
from node.home.identity import open_keys
from node.ingest.replica import Replica
from node.runtime.errors import ServiceError
from protocol.crypto.signing import public_key
from ravel import connect
from ravel.home import read_run_file
from tests.e2e.cluster import Peer
from tests.hostile.attacks import ATTACKS
from tests.hostile.raid import Raid, Raided, raid, warm_up
from tests.hostile.stage import Stage, set_up, stage_of
from tests.hostile.table import Role
from tests.support.keys import no_passphrase

WRITE_PAUSE_SECONDS: Final = 0.05
READ_PAUSE_SECONDS: Final = 0.02
_SAMPLE_SECONDS: Final = 0.2
_READ_COUNT: Final = 50
_NAME: Final = "victim"


@dataclass(slots=True)
class Felt:
    """What the user's calls took, in seconds; a call that failed is counted, with the time until then."""

    writes: list[float] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    write_cpu: list[float] = field(default_factory=list)
    """Seconds of the processor that the daemon took while each write lasted: what was done before it, on any machine."""
    failures: list[str] = field(default_factory=list)
    resident_max: int = 0
    """Bytes of memory, at the most."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One attack on one daemon: what was felt before and meanwhile, and what it left."""

    name: str
    before: Felt
    meanwhile: Felt
    raided: Raided
    seconds: float
    memory_growth: int  # bytes, over the most before the attack
    disk_growth: int  # bytes of the folder, all that was written included
    cpu_seconds: float


class Field:
    """A furnished home, and copies of it that run as daemons."""

    def __init__(self, folder: Path, length: int) -> None:
        """Make the home: a repo with `length` posts."""
        self._folder = folder
        self._home = folder / "prepared" / _NAME
        Peer(self._home)
        keys = open_keys(self._home, no_passphrase)
        replica = Replica(self._home, keys.store_key)
        try:
            author = Author(replica, keys.user_seed, lambda: time.time_ns() // 1_000_000)
            repo, _ = author.founding.create_repo("besieged")
            author.founding.create_branch(repo, "main")
            granted = set_up(replica, author, repo, length)
            self.stage: Final[Stage] = stage_of(replica, public_key(keys.node_seed), repo, granted)
        finally:
            replica.close()

    def attack(self, name: str, *, calm_seconds: float, seconds: float) -> Outcome:
        """Run a daemon, see how it is without an attacker, and attack it. An empty name: nobody attacks."""
        home = self._folder / "running" / _NAME
        shutil.rmtree(home.parent, ignore_errors=True)
        shutil.copytree(self._home, home, ignore=shutil.ignore_patterns(MARK_NAME))  # it stands for the first
        size_before = _size(home)
        peer = Peer(home)
        is_relay = bool(name) and ATTACKS[name].role is Role.RELAY_CLIENT
        try:
            web = ("--set", "network.websocket_listen=127.0.0.1:0")
            peer.start(*web, *(("--set", "relay.enabled=true") if is_relay else ()))
            branch = str(peer.client.list_branches(_repo(peer))["branches"][0]["branch"])
            with _felt(peer, branch) as before:
                time.sleep(calm_seconds)  # what is measured is how the daemon does meanwhile
            listens = str(peer.client.show_status()["websocket_listen"])
            web_address = listens.removeprefix("ws://").partition("/")[0]
            what = Raid(name, self.stage, peer.listen, read_run_file(home).api, web_address, seconds)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                pool.submit(warm_up).result()  # the attacker's process has started when it is measured
                cpu_before, began = _cpu_seconds(peer.pid), time.perf_counter()
                with _felt(peer, branch) as meanwhile:
                    raided = pool.submit(raid, what).result()
                spent = time.perf_counter() - began
                cpu = _cpu_seconds(peer.pid) - cpu_before
            try:
                peer.stop()
            except subprocess.TimeoutExpired:
                meanwhile.failures.append("the daemon did not stop within 10 seconds")
        finally:
            peer.close()
        return Outcome(
            name,
            before,
            meanwhile,
            raided,
            spent,
            meanwhile.resident_max - before.resident_max,
            _size(home) - size_before,
            cpu,
        )


def _repo(peer: Peer) -> str:
    return str(peer.client.list_repos()["repos"][0]["repo"])


@contextmanager
def _felt(peer: Peer, branch: str) -> Iterator[Felt]:
    """Write and read all the time, as two clients, and look at the daemon's memory."""
    felt, is_over = Felt(), threading.Event()

    def call_on(
        found: list[float], pause: float, calls: Sequence[Any], cpu: list[float] | None = None
    ) -> None:
        number = 0
        with closing(connect(peer.home)) as client:
            while not is_over.wait(pause):
                began, cpu_before = time.perf_counter(), 0.0 if cpu is None else _thread_seconds(peer.pid)
                try:
                    calls[number % len(calls)](client)
                except ServiceError as error:
                    felt.failures.append(f"{error.code}: {error}"[:200])
                found.append(time.perf_counter() - began)
                if cpu is not None:
                    cpu.append(_thread_seconds(peer.pid) - cpu_before)
                number += 1

    def sample() -> None:
        while not is_over.wait(_SAMPLE_SECONDS):
            felt.resident_max = max(felt.resident_max, _resident(peer.pid))

    writes = [lambda client: client.write_post(branch, "a user's words")]
    reads = [
        lambda client: client.show_timeline(branch, after_position=0, limit=_READ_COUNT),
        lambda client: client.show_status(),
        lambda client: client.show_digest(branch),
    ]
    threads = [
        threading.Thread(target=call_on, args=(felt.writes, WRITE_PAUSE_SECONDS, writes, felt.write_cpu)),
        threading.Thread(target=call_on, args=(felt.reads, READ_PAUSE_SECONDS, reads)),
        threading.Thread(target=sample),
    ]
    for thread in threads:
        thread.start()
    try:
        yield felt
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _thread_seconds(pid: int) -> float:
    """Seconds of the processor that all threads of a process have taken, to the microsecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def _cpu_seconds(pid: int) -> float:
    """Of the daemon and its children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
