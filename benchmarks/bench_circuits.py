"""Circuits through a relay: files over one against a direct connection, and a relay's memory and bytes with many.

python benchmarks/bench_circuits.py [MiB of a file] [circuits] [MiB that pass through them]

- *Files*: three daemons. Bob fetches a file from Alice through the relay alone, then another of the same size on a direct
  connection, by `ravel file get`. All share this machine's cores: over a circuit, three daemons encrypt and decrypt.
  The relay has no room for files then, so that all of it comes through the circuit.
- *Deposited files*: the relay takes another such file from Alice, and gives it to Bob when she has left.
- *Many circuits*: one relay as a daemon, and nodes in this process that open circuits to each other; then some of them send
  at once, on circuits that become wide. The figures include what this process needs to decrypt what passes.
"""

import itertools
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio
from msgspec import structs

from benchmarks.common import figure, note
from benchmarks.daemons import resident_megabytes, running
from node.wire.transport import SecureStream, dial
from protocol.crypto.hashing import circuit_address
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key
from protocol.formats.links import PeerAddress, invitation_text, parse_invitation
from protocol.formats.text import id_text, parse_id
from protocol.ids import PeerId
from protocol.limits.formats import MIB
from protocol.limits.network import (
    CIRCUIT_DATA_SIZE_MAX,
    CIRCUIT_WINDOW_SIZE,
    WIDE_CIRCUIT_AFTER_SIZE,
    WIDE_CIRCUIT_WINDOW_SIZE,
)
from protocol.limits.peers import IDLE_TIMEOUT_SECONDS
from protocol.session.messages import (
    CircuitCredit,
    CircuitData,
    CircuitOpen,
    Circuits,
    Goodbye,
    KeepAlive,
    Message,
    decode_message,
    encode_message,
)
from ravel.types.peers import PeerView
from tests.e2e.cluster import Peer, run_ravel, until

_NOWHERE = "127.0.0.1:1"
_CIRCUITS_EACH = 16
_SENDERS = 16
_SETTINGS = {
    "relay.enabled": "true",
    "relay.circuits_max": "100000",
    "relay.peer_circuits_max": "256",
    "relay.circuit_rate_max": "16777216",
    "relay.circuit_day_max": "1000000",
}


def _relay(folder: Path) -> Peer:
    """Return a relay whose bounds do not matter."""
    relay = Peer(folder / "relay")
    for key, value in _SETTINGS.items():
        run_ravel(relay, "config", "set", key, value)
    return relay


def _files(folder: Path, size: int) -> None:
    relay = _relay(folder)
    run_ravel(relay, "config", "set", "relay.topic_size_max", "1")
    alice, bob = (Peer(folder / name, introduces=False) for name in ("alice", "bob"))
    run_ravel(alice, "config", "set", "network.punching", "false")
    with running(relay, alice, bob):
        alice.client.add_peer(relay.listen, str(relay.client.show_status()["node"]), relay=True)
        alice.client.create_repo("files")
        for name in ("warm", "relayed", "direct"):
            path = folder / name
            path.write_bytes(os.urandom(MIB if name == "warm" else size))
            run_ravel(alice, "file", "add", "main", str(path))
        link = parse_invitation(
            alice.client.create_invitation("files", permission="write", expires_seconds=3600)["invitation"]
        )
        others = [one for one in link.peers if one.address == relay.listen]
        own = PeerId(parse_id(str(alice.client.show_status()["node"])))
        hidden = structs.replace(link, peers=(PeerAddress(_NOWHERE, own), *others))
        bob.client.join_repo(invitation_text(hidden))
        rates = {path: _fetch(folder, alice, bob, size, path) for path in ("relayed", "direct")}
        figure("circuit_share_of_direct", rates["relayed"] / rates["direct"], "", size=size)
        relay.stop()
        run_ravel(relay, "config", "set", "relay.topic_size_max", "2048")
        relay.start()
        figure(
            "deposited_share_of_direct", _deposited(folder, alice, bob, size) / rates["direct"], "", size=size
        )


def _deposited(folder: Path, alice: Peer, bob: Peer, size: int) -> float:
    """Bob's MiB a second of a file that the relay alone has, since Alice has left."""

    def is_kept() -> bool:
        return any(
            one["relays"] == 1 for one in alice.client.list_files("main")["files"] if one["name"] == "kept"
        )

    path = folder / "kept"
    path.write_bytes(os.urandom(size))
    run_ravel(alice, "file", "add", "main", str(path))
    began = time.perf_counter()
    until(is_kept, "the relay keeps the file")
    figure("file_deposit", size / MIB / (time.perf_counter() - began), "MiB/s", size=size)
    until(
        lambda: any(one["name"] == "kept" for one in bob.client.list_files("main")["files"]), "its name came"
    )
    until(lambda: any(one["relay"] for one in _connected(bob)), "Bob is back at the relay")
    alice.stop()
    began = time.perf_counter()
    run_ravel(bob, "file", "get", "main", "kept", "--out", str(folder / "got-kept"))
    rate = size / MIB / (time.perf_counter() - began)
    figure("file_deposited", rate, "MiB/s", size=size)
    return rate


def _connected(peer: Peer) -> list[PeerView]:
    return [one for one in peer.client.list_peers()["peers"] if one["state"] == "connected"]


def _fetch(folder: Path, alice: Peer, bob: Peer, size: int, path: str) -> float:
    """Bob's MiB a second of a file, on a connection of this kind."""
    key = str(alice.client.show_status()["node"])
    if path == "direct":
        bob.client.add_peer(alice.listen, key)

    until(
        lambda: [one["path"] for one in _connected(bob) if one["peer"] == key] == [path],
        f"a {path} connection",
    )
    run_ravel(bob, "file", "get", "main", "warm", "--force", "--out", str(folder / "got"))
    began = time.perf_counter()
    run_ravel(bob, "file", "get", "main", path, "--force", "--out", str(folder / "got"))
    rate = size / MIB / (time.perf_counter() - began)
    figure(f"file_{path}", rate, "MiB/s", size=size)
    return rate


class _Node:
    """A node that opens and accepts circuits, and takes what comes."""

    def __init__(self, stream: SecureStream) -> None:
        self.stream = stream
        self.credit: dict[int, int] = {}
        self.received = 0
        self.wide: set[int] = set()
        self.news = trio.Event()

    async def say(self, *messages: Message) -> None:
        await self.stream.send_frames([encode_message(message) for message in messages])

    async def live(self) -> None:
        while True:
            await trio.sleep(IDLE_TIMEOUT_SECONDS / 3)
            await self.say(KeepAlive())

    async def run(self) -> None:
        while True:
            frame = await self.stream.receive_frame()
            assert frame is not None, "the relay hung up"
            match decode_message(frame):
                case Circuits():
                    await self.say(Circuits())
                case CircuitOpen(number):
                    await self.say(CircuitCredit(number, CIRCUIT_WINDOW_SIZE))
                case CircuitCredit(number, count):
                    self.credit[number] = self.credit.get(number, 0) + count
                case CircuitData(number, data):
                    self.received += len(data)
                    await self.say(CircuitCredit(number, len(data) + self._widen(number)))
                case Goodbye(reason):
                    raise RuntimeError(f"the relay hung up: {reason}")
                case _:
                    pass
            self.news.set()
            self.news = trio.Event()

    def _widen(self, number: int) -> int:
        """Credit for a circuit beyond what was used, once much has come: this node gets bytes on one circuit."""
        if number in self.wide or self.received < WIDE_CIRCUIT_AFTER_SIZE:
            return 0
        self.wide.add(number)
        return WIDE_CIRCUIT_WINDOW_SIZE - CIRCUIT_WINDOW_SIZE

    async def until(self, number: int) -> None:
        """Wait until a circuit has credit."""
        while not self.credit.get(number):
            await self.news.wait()

    async def until_received(self, size: int) -> None:
        """Wait until so many bytes have come."""
        while self.received < size:
            await self.news.wait()

    async def send(self, number: int, size: int) -> None:
        """Send so many bytes on a circuit."""
        while size > 0:
            await self.until(number)
            count = min(self.credit[number], CIRCUIT_DATA_SIZE_MAX, size)
            self.credit[number] -= count
            size -= count
            await self.say(CircuitData(number, bytes(count)))


async def _many(relay: Peer, circuits: int, size: int) -> None:
    host, _, port = relay.listen.rpartition(":")
    relay_key = PeerId(parse_id(str(relay.client.show_status()["node"])))
    count = max(2, circuits // _CIRCUITS_EACH)
    seeds = [NodeSeed(secrets.token_bytes(32)) for _ in range(count)]
    for seed in seeds:  # else all are strangers of one subnet
        relay.client.allow_peer(id_text(public_key(seed)))
    async with trio.open_nursery() as nursery:
        nodes: list[_Node] = []
        for seed in seeds:
            stream = await trio.open_tcp_stream(host, int(port))
            node = _Node(await dial(stream, seed, relay_key, AgreementSecret(secrets.token_bytes(32))))
            nodes.append(node)
            nursery.start_soon(node.run)
            nursery.start_soon(node.live)
        await trio.sleep(1)
        before = resident_megabytes(relay.pid)
        each = circuits // count
        began = time.perf_counter()
        for node, asked in zip(nodes, itertools.chain(seeds[1:], seeds[:1]), strict=True):
            address = circuit_address(relay_key, PeerId(public_key(asked)))
            for number in range(1, 2 * each, 2):
                await node.say(CircuitOpen(number, address), CircuitCredit(number, CIRCUIT_WINDOW_SIZE))
        for node in nodes:
            for number in range(1, 2 * each, 2):
                await node.until(number)
        note(f"{each * count} circuits of {count} nodes opened in {time.perf_counter() - began:.1f} s")
        after = resident_megabytes(relay.pid)
        figure(
            "relay_memory_of_a_circuit", (after - before) * 1000 / (each * count), "KB", circuits=each * count
        )
        senders = nodes[: min(_SENDERS, count)]
        began = time.perf_counter()
        async with trio.open_nursery() as sending:
            for node in senders:
                sending.start_soon(node.send, 1, size // len(senders))
        asked_nodes = [*nodes[1:], nodes[0]][: len(senders)]  # each node's circuits lead to the next one
        for node in asked_nodes:
            await node.until_received(size // len(senders))
        figure(
            "relay_circuit_bytes", size / MIB / (time.perf_counter() - began), "MiB/s", senders=len(senders)
        )
        figure("relay_memory_grown_while_passing", resident_megabytes(relay.pid) - after, "MB")
        nursery.cancel_scope.cancel()
    for node in nodes:
        await node.stream.aclose()


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    """Print the figures."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    circuits = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    passing = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    with _folder() as folder:
        _files(folder, size * MIB)
    with _folder() as folder:
        relay = _relay(folder)
        with running(relay):
            trio.run(_many, relay, circuits, passing * MIB)


if __name__ == "__main__":
    main()
