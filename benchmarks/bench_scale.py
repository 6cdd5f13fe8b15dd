"""A daemon with very many repos and branches: what a look, a write and a new branch cost there, and meeting a peer again.

python -m benchmarks.bench_scale [repos] [branches of each]

A real daemon of a kept store (`wide_home`). Figures are of its processor time, which other work on the machine changes
little, and of the time that passes. Beside them stands a node of one repo with one branch: what is there should not cost.
A page that is open hears of peers and repos as they change. Then a second daemon, which knows the repos and has none of
their commits, gets all from the first; both are started again, and meet.
"""

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks.common import figure, note
from benchmarks.daemons import resident_megabytes, running
from benchmarks.wide_home import copy_wide_home, knowing_peer
from ravel import connect
from tests.e2e.cluster import Peer, until

_ROUNDS: Final = 20
_PAGE_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 1.0
_REST_SHARE: Final = 0.02
"""Of a processor: below it a daemon is at rest. What it does for its repos when it starts is no part of a look."""


def processor_seconds(pid: int) -> float:
    """Seconds that a process has used of the processor, with threads that have ended."""
    return time.clock_gettime(((~pid) << 3) | 2)  # clock_getcpuclockid(3), which Python has not


@contextmanager
def _measured(name: str, pid: int, rounds: int, **more: object) -> Iterator[None]:
    """Print what each of so many rounds takes of a process's processor time, and how long it is."""
    before, began = processor_seconds(pid), time.perf_counter()
    yield
    seconds, used = time.perf_counter() - began, processor_seconds(pid) - before
    figure(f"{name}_cpu", used / rounds * 1000, "ms", wall=round(seconds / rounds * 1000, 2), **more)


def _rest(peer: Peer) -> None:
    """Wait until a daemon is at rest."""
    used = processor_seconds(peer.pid)
    while True:
        time.sleep(1)  # a rate is a difference
        before, used = used, processor_seconds(peer.pid)
        if used - before < _REST_SHARE:
            return


def _repeat(name: str, peer: Peer, work: Callable[[], object], **more: object) -> None:
    work()  # what the first makes is kept
    with _measured(name, peer.pid, _ROUNDS, **more):
        for _ in range(_ROUNDS):
            work()


def measure_looks(peer: Peer, **more: object) -> None:
    """Print what a node at rest, looks and writes cost."""
    client, number = peer.client, count()
    figure("wide_start_cpu", processor_seconds(peer.pid) * 1000, "ms", **more)
    _rest(peer)
    figure("wide_resident", resident_megabytes(peer.pid), "MB", **more)
    repos = client.list_repos()["repos"]
    repo = repos[len(repos) // 2]["repo"]
    branch = client.list_branches(repo)["branches"][0]["branch"]
    _repeat("wide_list_repos", peer, client.list_repos, **more)
    cursor = client.list_repos()["cursor"]
    _repeat("wide_list_changes", peer, lambda: client.list_repos(since=cursor), **more)
    _repeat("wide_list_branches", peer, lambda: client.list_branches(repo), **more)
    _repeat("wide_status", peer, client.show_status, **more)
    _repeat("wide_unseen", peer, client.list_unseen, **more)
    _repeat("wide_write", peer, lambda: client.write_post(branch, f"post {next(number)}"), **more)
    _repeat("wide_create_branch", peer, lambda: client.create_branch(repo, f"more {next(number)}"), **more)
    _repeat("wide_create_repo", peer, lambda: client.create_repo(f"more {next(number)}"), **more)
    with _measured("wide_rest_second", peer.pid, int(_PAGE_SECONDS), **more):
        time.sleep(_PAGE_SECONDS)  # what a daemon at rest uses is measured
    _measure_page(peer, branch, **more)


def _measure_page(peer: Peer, branch: str, **more: object) -> None:
    """Print what an open page costs in a second, while nothing happens and while a post a second is written."""
    is_over = threading.Event()
    sizes: list[int] = []

    def listen() -> None:
        with closing(connect(peer.home)) as client, client.watch_node(changes=True) as events:
            for event in events:
                sizes.append(len(str(event.data)))
                if is_over.is_set():
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    until(lambda: len(sizes) >= 2, "the page has both lists")
    with _measured("wide_page_rest_second", peer.pid, int(_PAGE_SECONDS), **more):
        time.sleep(_PAGE_SECONDS)  # the same, with a page open
    sizes.clear()
    with _measured("wide_page_write_second", peer.pid, int(_PAGE_SECONDS), **more):
        for number in range(int(_PAGE_SECONDS)):
            peer.client.write_post(branch, f"beside a page {number}")
            time.sleep(1)  # one write a second, and what the page is sent of it
    figure("wide_page_event", sum(sizes) / max(1, len(sizes)), "bytes", events=len(sizes), **more)
    is_over.set()
    peer.client.create_repo("the last")
    listener.join()


def measure_meeting(folder: Path, repo_count: int, branch_count: int) -> None:
    """Print what two daemons need to get level with all topics: at first, and when they meet again."""
    alice = copy_wide_home(folder, repo_count, branch_count, "alice")
    bob = knowing_peer(folder / "bob", alice)
    total = repo_count * (1 + branch_count)
    for name in ("wide_first_sync", "wide_meeting"):
        with running(alice, bob):
            before = [processor_seconds(one.pid) for one in (alice, bob)]
            began = time.perf_counter()
            node = str(alice.client.show_status()["node"])
            bob.client.add_peer(alice.listen, node)
            until(lambda: _level(bob) >= total, "all topics are level", seconds=600)
            figure(name, time.perf_counter() - began, "s", topics=total)
            used = [processor_seconds(one.pid) - then for one, then in zip((alice, bob), before, strict=True)]
            figure(f"{name}_cpu", sum(used), "s", acceptor=round(used[0], 2), dialer=round(used[1], 2))
            figure(f"{name}_resident", resident_megabytes(bob.pid), "MB")
            bob.client.remove_peer(node)  # else both meet before they are ready
    shutil.rmtree(bob.home)


def _level(peer: Peer) -> int:
    """Topics that are level with the one peer."""
    time.sleep(_POLL_SECONDS)  # each look is work for the daemon, which is measured
    (one,) = peer.client.list_peers()["peers"]
    return sum(topic["state"] == "in sync" and not topic["behind"] for topic in one["topics"])


def main() -> None:
    """Print the figures."""
    repo_count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    branch_count = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with tempfile.TemporaryDirectory() as name:
        for repos, branches in ((1, 1), (repo_count, branch_count)):
            peer = copy_wide_home(Path(name), repos, branches, f"wide-{repos}")
            with running(peer):
                measure_looks(peer, repos=repos, branches=branches)
        note("two daemons")
        measure_meeting(Path(name), repo_count, branch_count)


if __name__ == "__main__":
    main()
