"""Sessions by WebSocket against TCP: the encrypted stream alone, and a file between two daemons.

python benchmarks/bench_websocket.py [MiB]

Both ends of a stream share one process, and daemons this machine's cores. The dialer sends: its messages are masked.
"""

import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import trio
from msgspec import structs

from benchmarks.common import figure
from benchmarks.daemons import running
from node.network.line import Line, listening_address, open_listener, open_tcp
from node.network.websocket import WebListener, dial_websocket
from node.runtime.errors import ServiceError
from node.wire.transport import accept, dial
from protocol.crypto.keys import AgreementSecret, NodeSeed
from protocol.crypto.signing import public_key
from protocol.formats.links import capability_text, parse_capability
from protocol.formats.web_address import parse_web_address
from protocol.limits.formats import MIB
from tests.e2e.cluster import Peer, run_ravel, until

_FRAME_SIZE = MIB
_SEED = NodeSeed(b"s" * 32)
_EPHEMERAL = AgreementSecret(b"e" * 32)


async def _stream_rate(size: int, way: str) -> float:
    """MiB a second from the dialer to the acceptor."""
    web = WebListener(await open_listener("127.0.0.1:0"))
    received = 0
    has_all = trio.Event()

    async def serve(tcp: trio.SocketStream) -> None:
        nonlocal received
        stream: trio.abc.Stream = tcp
        if way == "websocket":
            stream, _ = await web.accept(tcp)
        secure = await accept(stream, _SEED, _EPHEMERAL)
        while (frame := await secure.receive_frame()) is not None:
            received += len(frame)
            if received == size:
                has_all.set()
        await secure.aclose()

    async def connect() -> Line:
        place = listening_address(web.listeners)
        address = parse_web_address(f"ws://{place}")
        assert address is not None
        return await dial_websocket(address) if way == "websocket" else await open_tcp(place)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, web.listeners)
        secure = await dial((await connect()).stream, _SEED, public_key(_SEED), _EPHEMERAL)
        frame = os.urandom(_FRAME_SIZE)
        began = time.perf_counter()
        for _ in range(size // _FRAME_SIZE):
            await secure.send_frame(frame)
        await secure.aclose()
        await has_all.wait()
        taken = time.perf_counter() - began
        nursery.cancel_scope.cancel()
    return size / MIB / taken


def _streams(size: int) -> None:
    rates = {way: trio.run(_stream_rate, size, way) for way in ("tcp", "websocket")}
    for way, rate in rates.items():
        figure(f"stream_{way}", rate, "MiB/s", size=size)
    figure("stream_websocket_share", rates["websocket"] / rates["tcp"], "", size=size)


def _files(folder: Path, size: int) -> None:
    rates = {}
    for way in ("tcp", "websocket"):
        alice, bob = (Peer(folder / way / name, introduces=False) for name in ("alice", "bob"))
        run_ravel(alice, "config", "set", "network.websocket_listen", "127.0.0.1:0")
        with running(alice, bob):
            status = alice.client.show_status()
            alice.client.create_repo("files")
            path = folder / "content"
            path.write_bytes(os.urandom(size))
            run_ravel(alice, "file", "add", "main", str(path))
            address = alice.listen if way == "tcp" else str(status["websocket_listen"])
            bob.client.add_peer(address, str(status["node"]))
            link = parse_capability(alice.client.share_repo("files")["capability"])
            bob.client.follow_repo(capability_text(structs.replace(link, peers=())))
            until(partial(_has_file, bob), "the file is known")
            began = time.perf_counter()
            run_ravel(bob, "file", "get", "main", "content", "--out", str(folder / way / "got"))
            rates[way] = size / MIB / (time.perf_counter() - began)
            (shown,) = [one for one in bob.client.list_peers()["peers"] if one["state"] == "connected"]
            assert shown["websocket"] == (way == "websocket")
            figure(f"file_{way}", rates[way], "MiB/s", size=size)
    figure("file_websocket_share", rates["websocket"] / rates["tcp"], "", size=size)


def _has_file(peer: Peer) -> bool:
    try:
        return bool(peer.client.list_files("main")["files"])
    except ServiceError:  # the branch has not come yet
        return False


def main() -> None:
    """Measure both."""
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 128) * MIB
    _streams(size)
    with tempfile.TemporaryDirectory() as name:
        _files(Path(name), size)


if __name__ == "__main__":
    main()
