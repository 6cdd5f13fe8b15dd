"""Costs of a community of ten years beside the same one at one year: each figure is their ratio.

python -m benchmarks.bench_decade [FOLDER [SHARE [ROUNDS]]]

Takes the folders that `benchmarks.decade.build` made in FOLDER ("": one for this run), and makes them first if they are not
there (SHARE 1: of full size, which takes most of an hour; it goes on after a kill). Each daemon has a copy of its folder:

- *start*: `ravel run` until `/readyz`, the quickest of some; the processor time of the daemon and its processes until then;
  the daemon's memory once it is quiet.
- *write*: processor time of the daemon for one post in the commons.
- *topics*: those that a connection has, directly and with a relay; directly also once both sides have all. With a relay
  also the bytes of a connection on which nothing is new.
- *join*: a newcomer joins the commons by a link that leads through a counting proxy, until the first posts are there.
- *first sync*: the newcomer's rate, and that of its last tenth beside its first; by the clock, and by its processor time,
  which tells more on a machine that others use too.
- *members*: processor time of the admin's node for a new member, and for an exclusion with its epoch.
- *store*: bytes by table, with its indexes.
- *commands*: the quickest of some, with their interpreter; processor time is that of the command and of the daemon.
"""

import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, rmtree
from typing import Final

import httpx

from benchmarks.common import figure, note
from benchmarks.daemons import resident_megabytes
from benchmarks.decade.build import RELAYS, build, sizes_of
from benchmarks.decade.life import user_seed
from benchmarks.decade.newcomer import WAITED_SECONDS, Figures, count_topics, counting_proxy, join
from benchmarks.memory import processor_seconds_of_daemon
from node.home.folder_mark import write_mark
from node.observe.watching import store_sizes
from node.runtime.errors import ServiceError
from protocol.crypto.signing import key_pair
from protocol.formats.text import id_text
from ravel.home import read_run_file
from storage.engine.sqlite import DATABASE_NAME
from tests.e2e.cluster import Peer, run_ravel, until
from tests.support.processes import RAVEL

_WRITES: Final = 70
"""Posts of a round."""
_POLL_SECONDS: Final = 0.005
_QUIET_SECONDS: Final = 0.5
"""A daemon that uses no processor for so long has done what it had to do."""
_GOALS: Final = {
    "decade_start": 1.5,
    "decade_start_processor": 1.5,
    "decade_start_memory": 1.3,
}
"""The most of each ratio. The goal of a first sync is its last tenth beside its first."""
_LAST_TENTH_GOAL: Final = 0.85


def main() -> None:
    """Print the figures."""
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.01
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(sys.argv[1]) if sys.argv[1:] and sys.argv[1] else Path(name) / "built"
        build(folder, sizes_of(share), seed=1)
        found = []
        for when in ("year", "decade"):
            note(f"measuring the {when}")
            found.append(measure(folder / when, Path(name) / when, rounds))
        note(repr(found[-1]))
    year, decade = found
    for what, (value, unit) in decade.items():
        before = year.get(what, (0.0, unit))[0]
        goal = {"goal": _GOALS[what]} if what in _GOALS else {}
        ratio = value / before if before else 0.0
        figure(what, ratio, "ratio", year=round(before, 4), decade=round(value, 4), of=unit, **goal)
    if "decade_first_sync_last_tenth" in decade:  # a small one is here before it was looked twice
        last = decade["decade_first_sync_last_tenth"][0]
        figure("decade_last_tenth_of_first_sync", last, "ratio", goal=_LAST_TENTH_GOAL)


def measure(built: Path, folder: Path, rounds: int) -> Figures:
    """Measure one community's folders, on copies of them in `folder`."""
    figures: Figures = {}
    figures |= _counts(built / "node")
    node, relay = _copy(built / "node", folder / "node"), _copy(built / RELAYS[0], folder / "relay")
    figures |= _sizes(node.home)
    for name, peer in (("", node), ("relay_", relay)):
        figures |= {f"decade_{name}{what}": one for what, one in _starts(peer, rounds).items()}
    try:
        node.start()
        relay.start()
        _settle(node)
        figures |= _commands(node, rounds)
        figures |= _writes(node, _WRITES * rounds)
        figures |= _members(node)
        figures |= _meetings(node, relay)
        relay.stop()
        repo, _ = _commons(node)
        figures |= join(node, repo, folder / "newcomer", _settle)
    finally:
        node.close()
        relay.close()
        rmtree(folder)
    return figures


def _copy(source: Path, home: Path) -> Peer:
    """Return a daemon of a copy of a node's folder, not started. It is the same node: the original stays where it is."""
    made = Peer(home)
    config = (home / "config.toml").read_text()
    rmtree(home)
    copytree(source, home)
    (home / "config.toml").write_text(config)
    write_mark(home)
    run_ravel(made, "config", "set", "search.enabled", "false")
    run_ravel(made, "config", "set", "relay.enabled", "true" if source.name in RELAYS else "false")
    return made


# --- start ---


def _starts(peer: Peer, rounds: int) -> Figures:
    starts = [_start(peer.home) for _ in range(rounds)]
    return {
        "start": (min(one.seconds for one in starts), "s"),
        "start_processor": (min(one.processor for one in starts), "s"),
        "start_memory": (min(one.megabytes for one in starts), "MB"),
    }


@dataclass(frozen=True, slots=True)
class _Start:
    seconds: float
    processor: float
    megabytes: float


def _start(home: Path) -> _Start:
    """Start a daemon, and end it when it was ready and is quiet."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [*RAVEL, "--home", str(home), "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client() as client:
            while True:
                with suppress(ServiceError, httpx.TransportError):
                    if client.get(f"http://{read_run_file(home).api}/readyz").status_code == 200:
                        break
                assert process.poll() is None, "the daemon has ended"
                time.sleep(_POLL_SECONDS)  # the state of another process can only be polled for
        seconds, processor = time.perf_counter() - began, processor_seconds_of_daemon(process.pid)
        _quiet(process.pid)
        return _Start(seconds, processor, resident_megabytes(process.pid))
    finally:
        process.terminate()
        process.wait()


def _quiet(pid: int) -> float:
    """Wait until a daemon does nothing; return what it has used of the processor."""
    used, since = processor_seconds_of_daemon(pid), time.perf_counter()
    while time.perf_counter() - since < _QUIET_SECONDS:
        time.sleep(_POLL_SECONDS * 10)  # the use of the processor of another process can only be polled for
        if (now := processor_seconds_of_daemon(pid)) > used:
            used, since = now, time.perf_counter()
    return used


def _settle(peer: Peer) -> None:
    _quiet(peer.pid)


# --- what a running daemon is asked for ---


def _commands(node: Peer, rounds: int) -> Figures:
    found: Figures = {}
    for name, command in (("status", ["status"]), ("repo_list", ["repo", "list"]), ("doctor", ["doctor"])):
        seconds, processor = [], []
        for _ in range(rounds):
            began, before = time.perf_counter(), _used_with_commands(node)
            # `doctor` exits with 1 where it finds a problem, such as a full disk.
            subprocess.run([*RAVEL, "--home", str(node.home), *command], check=False, capture_output=True)
            seconds.append(time.perf_counter() - began)
            processor.append(_used_with_commands(node) - before)
        found[f"decade_{name}"] = (min(seconds), "s")
        found[f"decade_{name}_processor"] = (min(processor), "s")
    return found


def _used_with_commands(node: Peer) -> float:
    """Return processor seconds of a daemon, and of the commands that this process has run."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return processor_seconds_of_daemon(node.pid) + children.ru_utime + children.ru_stime


def _writes(node: Peer, count: int) -> Figures:
    branch = _commons(node)[1]
    node.client.write_post(branch, "the first after a start")
    before = _quiet(node.pid)
    for number in range(count):
        node.client.write_post(branch, f"post number {number}")
    return {"decade_write_processor": ((_quiet(node.pid) - before) / count * 1000, "ms")}


def _members(node: Peer) -> Figures:
    """Measure what a member costs who comes, and one who is excluded, at the node of the admin who does it."""
    repo = _commons(node)[0]
    user = id_text(key_pair(user_seed(1, -1))[0])

    def cost(work: Callable[[], object]) -> float:
        before = _quiet(node.pid)
        work()
        return (_quiet(node.pid) - before) * 1000

    coming = cost(lambda: node.client.grant_permission(repo, user, "write"))
    going = cost(lambda: node.client.remove_member(repo, user))
    return {"decade_grant_processor": (coming, "ms"), "decade_exclusion_processor": (going, "ms")}


def _meetings(node: Peer, relay: Peer) -> Figures:
    """Count the topics of a connection with a relay that has all, and its bytes once both sides are level."""

    def meet() -> None:
        until(lambda: count_topics(node) > 0 and _is_in_sync(node), "the relay is in sync", WAITED_SECONDS)
        _settle(node)

    with counting_proxy(relay.listen) as proxy:
        node.client.add_peer(proxy.address, str(relay.client.show_status()["node"]), relay=True)
        meet()
        topics = count_topics(node)
        node.stop()
        before = proxy.size
        node.start()
        meet()
        return {
            "decade_topics_with_relay": (topics, "topics"),
            "decade_relay_again_bytes": ((proxy.size - before) / 1000, "KB"),
        }


def _commons(node: Peer) -> tuple[str, str]:
    """Return the ids of the commons and of its first branch."""
    repos = node.client.list_repos()["repos"]
    repo = next(str(one["repo"]) for one in repos if one["name"] == "commons")
    branches = node.client.list_branches(repo)["branches"]
    return repo, next(str(one["branch"]) for one in branches if one["name"] == "branch 0")


def _is_in_sync(node: Peer) -> bool:
    (peer,) = (one for one in node.client.show_status()["peers"] if one["state"] == "connected")
    return all(topic["state"] == "in sync" for topic in peer["topics"])


def _counts(home: Path) -> Figures:
    """Count what the community has, as its store tells."""
    counted = {
        "commits": "SELECT COUNT(*) FROM commits",
        "authors": "SELECT COUNT(*) FROM authors",
        "epochs": "SELECT COUNT(*) FROM epochs",
        "branches": "SELECT COUNT(*) FROM branches",
        "repos": "SELECT COUNT(*) FROM repos",
    }
    with closing(sqlite3.connect(f"file:{home / DATABASE_NAME}?mode=ro", uri=True)) as store:
        return {
            f"decade_{name}": (store.execute(query).fetchone()[0], name) for name, query in counted.items()
        }


def _sizes(home: Path) -> Figures:
    """Measure the store: its files, and the tables of the database with their indexes."""
    found: Figures = {
        f"decade_size_{name}": (size / 1e6, "MB") for name, size in store_sizes(home).items() if size
    }
    with closing(sqlite3.connect(f"file:{home / DATABASE_NAME}?mode=ro", uri=True)) as store:
        query = (
            "SELECT tbl_name, SUM(pgsize) FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name "
            "ORDER BY 2 DESC LIMIT 10"
        )
        try:
            rows = store.execute(query).fetchall()
        except sqlite3.OperationalError:  # this SQLite was built without that table
            rows = []
    return found | {f"decade_size_table_{name}": (size / 1e6, "MB") for name, size in rows}


if __name__ == "__main__":
    main()
