"""Replication between two real daemons over loopback, encryption included: first sync, latency on an idle link, memory.

python benchmarks/bench_replication.py [commits of the first sync] [commits of the memory figure]
"""

import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.bench_ingest import measure as measure_ingest
from benchmarks.common import figure, note, percentile, write_history
from benchmarks.daemons import Caller, resident_megabytes, running
from node.home.identity import open_keys
from ravel.calls.branches import BranchesCalls
from tests.e2e.cluster import Peer, digest, until
from tests.support.keys import no_passphrase

_LATENCY_ROUNDS = 200
_POLL_SECONDS = 0.001
_SYNC_PARTS = 10


def _history(folder: Path, name: str, commit_count: int) -> tuple[Peer, str]:
    """Return a peer, not started, whose store holds a history; and its branch id as text."""
    from protocol.formats.text import id_text

    peer = Peer(folder / name)
    keys = open_keys(peer.home, no_passphrase)
    replica, _, branch = write_history(peer.home, commit_count, keys.user_seed, keys.store_key)
    replica.close()
    return peer, id_text(branch.branch_id)


@dataclass(frozen=True, slots=True)
class FirstSync:
    """Rates at which a newcomer got a branch."""

    rate: float  # commits per second, from the first one to the last
    seconds: float  # from the request to join to the last one
    rates: list[float]  # the same of each tenth of the commits
    sender: list[float]  # its resident megabytes at the end of each tenth
    receiver: list[float]


def first_sync(commit_count: int) -> FirstSync:
    """Time a newcomer that gets a branch, from the moment that it has its first commit to the last."""
    with tempfile.TemporaryDirectory() as name:
        alice, branch = _history(Path(name), "alice", commit_count)
        bob = Peer(Path(name) / "bob")
        with running(alice, bob):
            repo = alice.client.list_repos()["repos"][0]["repo"]
            link = alice.client.create_invitation(repo, permission="write", expires_seconds=3600)[
                "invitation"
            ]
            client = bob.client
            began = time.perf_counter()
            client.join_repo(link)
            looks: list[tuple[float, int]] = []  # when so many commits were there
            sender, receiver = [], []
            while not looks or looks[-1][1] <= commit_count:
                try:
                    count = client.list_branches(repo)["branches"][0]["commits"]
                except IndexError:
                    count = 0
                if count > max(0, len(looks) - 1) * commit_count / _SYNC_PARTS:
                    looks.append((time.perf_counter(), count))
                    sender.append(resident_megabytes(alice.pid))
                    receiver.append(resident_megabytes(bob.pid))
                time.sleep(0.02)
            assert digest(alice, branch)["digest"] == digest(bob, branch)["digest"]
            return FirstSync(
                _rate(looks[0], looks[-1]),
                looks[-1][0] - began,
                [_rate(*pair) for pair in pairwise(looks)],
                sender,
                receiver,
            )


def _rate(before: tuple[float, int], after: tuple[float, int]) -> float:
    return (after[1] - before[1]) / (after[0] - before[0])


def latency() -> list[float]:
    """Seconds from asking one daemon for a write to the commit being visible at another."""
    with tempfile.TemporaryDirectory() as name:
        alice, branch = _history(Path(name), "alice", 10)
        bob = Peer(Path(name) / "bob")
        with running(alice, bob):
            repo = alice.client.list_repos()["repos"][0]["repo"]
            bob.client.join_repo(
                alice.client.create_invitation(repo, permission="write", expires_seconds=3600)["invitation"]
            )
            until(lambda: digest(bob, branch)["commits"] == 11, "bob has everything")
            seconds = []
            with (
                closing(Caller(alice, BranchesCalls.write_post, {"branch": branch, "text": ""})) as writer,
                closing(Caller(bob, BranchesCalls.list_branches, {"repo": repo})) as reader,
            ):
                for number in range(_LATENCY_ROUNDS):
                    began = time.perf_counter()
                    writer.call({"text": f"round {number}"})
                    while reader.call()["branches"][0]["commits"] < 12 + number:
                        time.sleep(_POLL_SECONDS)  # what a client can ask is whether it is there yet
                    seconds.append(time.perf_counter() - began)
            return seconds


def memory(commit_count: int) -> tuple[float, float]:
    """Resident megabytes of a daemon with an empty store, and of one that holds a history and has served its digest."""
    with tempfile.TemporaryDirectory() as name:
        empty = Peer(Path(name) / "empty")
        full, branch = _history(Path(name), "full", commit_count)
        with running(empty, full):
            digest(full, branch)
            return resident_megabytes(empty.pid), resident_megabytes(full.pid)


def main() -> None:
    """Print the figures."""
    sync_count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    memory_count = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    before = measure_ingest(sync_count).rate
    sync = first_sync(sync_count)
    figure("first_sync", sync.rate, "commits/s", commits=sync_count)
    figure("first_sync_last_tenth_to_first", sync.rates[-1] / sync.rates[0], "ratio")
    for name, resident in (("sender", sync.sender), ("receiver", sync.receiver)):
        figure(f"first_sync_{name}", max(resident), "MB", at_first=resident[0], at_last=resident[-1])
    ingest = (before + measure_ingest(sync_count).rate) / 2  # both, since neighbours come and go
    note(f"validated ingest in this run: {ingest:.0f} commits/s")
    figure("first_sync_to_ingest", sync.rate / ingest, "ratio", goal=0.7)
    seconds = latency()
    for share in (0.5, 0.99):
        figure(
            f"write_to_visible_p{share * 100:.0f}",
            percentile(seconds, share) * 1000,
            "ms",
            rounds=len(seconds),
        )
    empty, full = memory(memory_count)
    figure("resident_empty", empty, "MB")
    figure("resident_full", full, "MB", commits=memory_count)
    figure("resident_full_to_empty", full / empty, "ratio")


if __name__ == "__main__":
    main()
