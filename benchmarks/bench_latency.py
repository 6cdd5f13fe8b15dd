"""From a write at one daemon to the commit being visible at another: on an idle link, and during a first sync.

python benchmarks/bench_latency.py [rounds] [commits of the other topic]

Two daemons over loopback share a small repo. One of them also holds a large one, which the other joins in the middle: its
first sync runs on the same connection, and both daemons share the machine's cores with it. The figure
holds the poll of the reader's API, which has to compete with the sync too; what that costs alone is given beside it.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import figure, note, percentile, write_history
from benchmarks.daemons import running
from node.home.identity import open_keys
from ravel.types.repos import RepoList
from tests.e2e.cluster import Peer, digest, until
from tests.support.keys import no_passphrase

_POLL_SECONDS = 0.0005


def _commits(peer: Peer, repo: str) -> int:
    """Return the id of the repo's one branch, or None while it is unknown."""
    found = [one for one in peer.client.list_repos()["repos"] if one["repo"] == repo]
    branches = peer.client.list_branches(repo)["branches"] if found else []
    return int(branches[0]["commits"]) if branches else 0


def _rounds(
    alice: Peer, bob: Peer, repo: str, count: int, is_over: Callable[[], bool]
) -> tuple[list[float], list[float]]:
    """Seconds from each write's answer to its being seen, and of each poll; until it is over or enough."""
    branch = str(alice.client.list_branches(repo)["branches"][0]["branch"])
    before = _commits(bob, repo)
    seen, polled = [], []
    for number in range(1, count + 1):
        began = time.perf_counter()
        alice.client.write_post(branch, f"round {number}")
        while True:
            asked = time.perf_counter()
            commits = int(bob.client.list_branches(repo)["branches"][0]["commits"])
            polled.append(time.perf_counter() - asked)
            if commits >= before + number:
                break
            time.sleep(_POLL_SECONDS)  # what a client can ask is whether it is there yet
        seen.append(time.perf_counter() - began)
        if is_over():
            break
    return seen, polled


def _print(name: str, seen: list[float], polled: list[float], **more: object) -> None:
    for share in (0.5, 0.99):
        figure(
            f"visible_{name}_p{share * 100:.0f}",
            percentile(seen, share) * 1000,
            "ms",
            rounds=len(seen),
            poll_ms=round(percentile(polled, share) * 1000, 1),
            **more,
        )


def _repo_named(listed: RepoList, name: str) -> str:
    return next(str(one["repo"]) for one in listed["repos"] if one["name"] == name)


def main() -> None:
    """Print the figures."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    large = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        alice, bob = Peer(Path(folder) / "alice"), Peer(Path(folder) / "bob")
        keys = open_keys(alice.home, no_passphrase)
        write_history(alice.home, large, keys.user_seed, keys.store_key)[0].close()
        note(f"a topic of {large} commits is there")
        with running(alice, bob):
            big = _repo_named(alice.client.list_repos(), "bench")
            small = str(alice.client.create_repo("small")["repo"])
            branch = str(alice.client.list_branches(small)["branches"][0]["branch"])
            bob.client.join_repo(
                alice.client.create_invitation(small, permission="write", expires_seconds=3600)["invitation"]
            )
            until(lambda: digest(bob, branch)["commits"] == 1, "bob has joined")
            _print("idle", *_rounds(alice, bob, small, count, lambda: False))
            bob.client.join_repo(
                alice.client.create_invitation(big, permission="write", expires_seconds=3600)["invitation"]
            )
            until(lambda: _commits(bob, big) > 0, "the first sync has begun", 120)
            began, first = time.perf_counter(), _commits(bob, big)
            seen, polled = _rounds(alice, bob, small, 100 * count, lambda: _commits(bob, big) > large)
            rate = (_commits(bob, big) - first) / (time.perf_counter() - began)
            _print("during_first_sync", seen, polled, goal=500, sync_commits_per_second=round(rate))


if __name__ == "__main__":
    main()
