"""Disorder of arrival at real daemons: some write together, then in two halves apart, then together again.

python benchmarks/bench_delivery.py [posts of each of the three times, 200 by default] [rounds, 2 by default] [OUT]

Two daemons, then four that all know each other. Each round is a branch. All write at the same time, as fast as their nodes
answer; after the time apart also while the halves sync, so that new commits meet old ones. OUT/2/NAME and OUT/4/NAME are
then exports, which `ravel study scuttlesort OUT/*/*` replays: an export says of each commit that had to wait for its causes
when it arrived. No seed decides what overtakes what.
"""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

import ravel
from benchmarks.common import figure, note
from benchmarks.daemons import running
from tests.e2e.cluster import Peer, digest, until

_NAMES: Final = ("ann", "ben", "cem", "dora")
_EQUAL_SECONDS: Final = 240.0


def measure(out: Path, peers: Sequence[Peer], posts: int, rounds: int) -> None:
    """Write and sync, export each store into `out`, and print which share of each log had to wait."""
    founder, *others = peers
    repo = founder.client.create_repo("delivery")["repo"]
    link = founder.client.create_invitation(repo, uses=len(others))["invitation"]
    for peer in others:
        peer.client.join_repo(link)
    half = len(peers) // 2
    across = [(one, other) for one in peers[:half] for other in peers[half:]]
    for number in range(rounds):
        branch = founder.client.create_branch(repo, f"round {number}")["branch"]
        _connect(list(combinations(peers, 2)))
        until(
            lambda branch=branch: all(digest(peer, branch)["commits"] for peer in peers),  # type: ignore[misc]  # bound now
            "all have the branch",
            _EQUAL_SECONDS,
        )

        _write(peers, branch, posts)
        _equal(peers, branch)
        _disconnect(across)
        _write(peers, branch, posts)
        _connect(across)
        _write(peers, branch, posts)
        _equal(peers, branch)
        note(f"{len(peers)} daemons, round {number}: {digest(founder, branch)['commits']} commits")
    for peer in peers:
        folder = out / peer.home.name
        shutil.copytree(peer.client.export_store()["path"], folder)
        commits = ravel.open_export(str(folder)).table("commits").arrow()
        for number in range(rounds):
            of_round = commits.filter(pc.field("branch_name") == f"round {number}")
            waited = of_round.num_rows - of_round["arrived_at"].null_count
            figure(
                "delivery_waited",
                waited / of_round.num_rows,
                "share",
                daemons=len(peers),
                node=peer.home.name,
                round=number,
                commits=of_round.num_rows,
            )


def _write(peers: Sequence[Peer], branch: str, posts: int) -> None:
    """Write from all nodes at the same time, as fast as they answer."""

    def write(peer: Peer) -> None:
        for number in range(posts // len(peers)):
            peer.client.write_post(branch, f"post {number}")

    with ThreadPoolExecutor(len(peers)) as pool:
        [*pool.map(write, peers)]


def _connect(pairs: Sequence[tuple[Peer, Peer]]) -> None:
    """Have the second of each pair dial the first."""
    for one, other in pairs:
        other.client.add_peer(one.listen, _node(one))
    until(lambda: all(_is_connected(one, other) for one, other in pairs), "they are connected")


def _disconnect(pairs: Sequence[tuple[Peer, Peer]]) -> None:
    for one, other in pairs:
        other.client.remove_peer(_node(one))
    until(lambda: not any(_is_connected(one, other) for one, other in pairs), "they are apart")


def _is_connected(one: Peer, other: Peer) -> bool:
    return any(
        peer["peer"] == _node(one) and peer["state"] == "connected"
        for peer in other.client.list_peers()["peers"]
    )


def _node(peer: Peer) -> str:
    return peer.client.show_status()["node"]


def _equal(peers: Sequence[Peer], branch: str) -> None:
    until(
        lambda: len({digest(peer, branch)["digest"] for peer in peers}) == 1,
        "all have the same timeline",
        _EQUAL_SECONDS,
    )


def main() -> None:
    """Print the figures, and leave the exports in OUT if it is given."""
    posts, rounds = (
        int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((1, 200), (2, 2))
    )
    with tempfile.TemporaryDirectory() as name:
        out = Path(sys.argv[3]) if len(sys.argv) > 3 else Path(name) / "exports"
        for count in (2, 4):
            peers = [Peer(Path(name) / str(count) / one, introduces=False) for one in _NAMES[:count]]
            with running(*peers):
                measure(out / str(count), peers, posts, rounds)


if __name__ == "__main__":
    main()
