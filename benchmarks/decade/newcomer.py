"""A newcomer: a daemon that joins a repo by a link, whose bytes are counted on the way."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from benchmarks.daemons import resident_megabytes
from benchmarks.memory import processor_seconds_of_daemon
from node.runtime.errors import ServiceError
from protocol.formats.links import PeerAddress, invitation_text, parse_invitation
from tests.e2e.cluster import Peer, run_ravel, until

WAITED_SECONDS: Final = 3600.0
"""For a first sync of a million commits."""
_POLL_SECONDS: Final = 0.02
_SYNC_POLL_SECONDS: Final = 0.5
"""Once posts come: a look costs the newcomer's daemon some milliseconds, which would count as a first sync's."""
_PARTS: Final = 10
_READ_SIZE: Final = 1 << 18
Figures = dict[str, tuple[float, str]]
"""Value and unit by name."""


def join(node: Peer, repo: str, home: Path, settle: Callable[[Peer], object]) -> Figures:
    """Have a newcomer join a repo of a running node, fetch all of it, and come back when `settle` says that it is quiet."""
    wanted = _count_posts(node, repo)
    made = node.client.create_invitation(repo, permission="write", expires_seconds=86_400)["invitation"]
    newcomer = Peer(home, introduces=False)
    run_ravel(newcomer, "config", "set", "search.enabled", "false")
    with counting_proxy(parse_invitation(made).peers[0].address) as proxy:
        newcomer.start()
        try:
            began = time.perf_counter()
            joining = threading.Thread(
                target=newcomer.client.join_repo, args=(_lead_to(made, proxy.address),)
            )
            joining.start()
            figures = _watch(newcomer, repo, wanted, proxy, began)
            joining.join()
            settle(newcomer)
            newcomer.stop()
            newcomer.start()
            until(lambda: count_topics(newcomer) > 0, "the newcomer is back", WAITED_SECONDS)
            settle(newcomer)
            figures["decade_topics_level"] = (count_topics(newcomer), "topics")
            return figures
        finally:
            newcomer.close()


def count_topics(node: Peer) -> int:
    """Count the topics of the one connection of a node."""
    peers = [one for one in node.client.show_status()["peers"] if one["state"] == "connected"]
    return len(peers[0]["topics"]) if peers else 0


def _lead_to(link: str, address: str) -> str:
    """Return an invitation that leads to its peer by another address."""
    found = parse_invitation(link)
    return invitation_text(replace(found, peers=(PeerAddress(address, found.peers[0].peer),)))


def _watch(newcomer: Peer, repo: str, wanted: int, proxy: "_Proxy", began: float) -> Figures:
    figures: Figures = {}
    looks: list[_Look] = []
    count = 0
    while count < wanted:
        assert time.perf_counter() < began + WAITED_SECONDS, f"{count} of {wanted} commits came"
        # What a client can ask is how many are there. A look costs the daemon time: see the two pauses.
        time.sleep(_SYNC_POLL_SECONDS if looks else _POLL_SECONDS)
        count = _count_posts(newcomer, repo)
        now = time.perf_counter()
        if count and not looks:
            figures["decade_join"] = (now - began, "s")
            figures["decade_join_bytes"] = (proxy.size / 1000, "KB")
            figures["decade_topics_directly"] = (count_topics(newcomer), "topics")
        if count and (not looks or count - looks[-1].count >= wanted / _PARTS or count >= wanted):
            looks.append(_Look(now, processor_seconds_of_daemon(newcomer.pid), count))
    if len(looks) > 2:
        first, last = looks[0], looks[-1]
        got = last.count - first.count
        figures["decade_first_sync"] = (got / (last.at - first.at), "commits/s")
        used = (last.processor - first.processor) / got
        figures["decade_first_sync_processor"] = (used * 1e6, "us a commit")
        rates = [(after.count - before.count) / (after.at - before.at) for before, after in pairwise(looks)]
        costs = [
            (after.processor - before.processor) / (after.count - before.count)
            for before, after in pairwise(looks)
        ]
        figures["decade_first_sync_last_tenth"] = (rates[-1] / rates[0], "of the first")
        figures["decade_first_sync_last_tenth_processor"] = (
            costs[-1] / max(costs[0], 1e-6),
            "times the first",
        )
    figures["decade_first_sync_bytes"] = (proxy.size / wanted, "bytes a commit")
    figures["decade_newcomer_memory"] = (resident_megabytes(newcomer.pid), "MB")
    return figures


def _count_posts(peer: Peer, repo: str) -> int:
    """Count commits in branches other than the root branch, as far as the repo is here."""
    with suppress(ServiceError):
        return sum(one["commits"] for one in peer.client.list_branches(repo)["branches"])
    return 0


@dataclass(frozen=True, slots=True)
class _Look:
    """Count of posts at a moment, and the processor seconds that the newcomer had used."""

    at: float
    processor: float
    count: int


@dataclass(slots=True)
class _Proxy:
    """Passes bytes on to an address, and counts them."""

    address: str
    size: int = 0


@contextmanager
def counting_proxy(target: str) -> Iterator[_Proxy]:
    """Open a proxy in front of `target`, until the end."""
    host, _, port = target.rpartition(":")
    ends: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        proxy = _Proxy(f"127.0.0.1:{listening.getsockname()[1]}")

        def accept() -> None:
            with suppress(OSError):  # the end
                while True:
                    here, _ = listening.accept()
                    ends.append(here)
                    there = socket.create_connection((host, int(port)))
                    ends.append(there)
                    for pair in ((here, there), (there, here)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()

        def pump(source: socket.socket, sink: socket.socket) -> None:
            with suppress(OSError):  # either has hung up
                while data := source.recv(_READ_SIZE):
                    proxy.size += len(data)  # two threads: one counts requests, the other nearly all
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield proxy
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # it waits no more, and no socket comes beside the closing
            accepting.join()
            for end in ends:
                end.close()
