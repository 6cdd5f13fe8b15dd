"""Attacks on the HTTP API, by programs of this machine that do not have its token."""

import trio

from tests.hostile.peer import Attacker, Parted
from tests.hostile.table import Role, attack

_CONNECTIONS = 180
"""As many as are served at a time without the token, nearly."""
_PIECE_SIZE = 64 * 1024
_HOST = b"Host: localhost\r\n"
_TINY_CHUNKS = b"1\r\nx\r\n" * (_PIECE_SIZE // 6)


async def _open(mallory: Attacker, said: bytes) -> trio.abc.Stream:
    """A connection on which this was said. Raises Parted."""
    assert mallory.open_api is not None, "a daemon has an API"
    wire = await mallory.open_api()
    mallory.wires.append(wire)
    await _say(mallory, wire, said)
    return wire


async def _say(mallory: Attacker, wire: trio.abc.Stream, said: bytes) -> None:
    mallory.sent["bytes"] += len(said)
    try:
        await wire.send_all(said)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        raise Parted from None


@attack(Role.STRANGER, needs_daemon=True)
async def tiny_chunks(mallory: Attacker) -> None:
    """A body in chunks of one byte is parsed some chunks at a time, and others get their turn between them."""
    head = b"POST /open HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    await _by_many(mallory, head + _TINY_CHUNKS, _TINY_CHUNKS)


@attack(Role.STRANGER, needs_daemon=True)
async def pipelined_requests(mallory: Attacker) -> None:
    """Requests that come all at once are answered one by one, and others get their turn between them."""
    request = b"GET /healthz HTTP/1.1\r\n" + _HOST + b"\r\n"
    await _by_many(mallory, request * (_PIECE_SIZE // len(request)), b"")


@attack(Role.STRANGER, needs_daemon=True)
async def long_heads(mallory: Attacker) -> None:
    """Heads of many headers are refused by their size."""
    head = b"GET /healthz HTTP/1.1\r\n" + _HOST + b"a:\r\n" * 4000
    await _by_many(mallory, head, b"")


@attack(Role.STRANGER, needs_daemon=True)
async def dripping_requests(mallory: Attacker) -> None:
    """Requests to the API without a token, a byte at a time, do not keep out those with one (L4)."""
    assert mallory.open_api is not None, "a daemon has an API"
    head = b"POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n"
    wires: list[trio.abc.Stream] = []
    async for _ in mallory.rounds():
        while len(wires) < 1300:
            wires.append(await mallory.open_api())
            mallory.wires.append(wires[-1])
            await wires[-1].send_all(head)
        for wire in list(wires):
            try:
                await wire.send_all(b"x")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                wires.remove(wire)
        await trio.sleep(1)


async def _by_many(mallory: Attacker, first: bytes, more: bytes) -> None:
    """Say this on connection after connection, many at a time; what is answered is not read."""

    async def go_on() -> None:
        while not mallory.effort.is_over:
            try:
                wire = await _open(mallory, first)
                while more:
                    await _say(mallory, wire, more)
            except (Parted, OSError):
                continue
            finally:
                await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        for _ in range(_CONNECTIONS):
            nursery.start_soon(go_on)
