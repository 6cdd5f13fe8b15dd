"""Attacks by who knows where a node listens by WebSocket, before and beside the session."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from tests.hostile.peer import Attacker, Parted
from tests.hostile.table import Role, attack

_CONNECTIONS = 60
"""Nearly as many as may be without a handshake."""
_PIECE_SIZE = 64 * 1024
_REQUEST = (
    b"GET /ravel HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)
_EMPTY_FRAME = b"\x82\x80\0\0\0\0"
"""A binary message without content, masked by zeros."""
_PING = b"\x89\x80\0\0\0\0"


async def _by_many(mallory: Attacker, work: Callable[[trio.abc.Stream], Awaitable[None]]) -> None:
    """Do this on connection after connection, many at a time."""

    async def go_on() -> None:
        assert mallory.open_web is not None, "the daemon listens so"
        async for _ in mallory.rounds():
            with suppress(Parted, OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                async with await mallory.open_web() as wire:
                    await work(wire)
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        for _ in range(_CONNECTIONS):
            nursery.start_soon(go_on)


async def _upgrade(wire: trio.abc.Stream) -> None:
    await wire.send_all(_REQUEST + b"\r\n")
    said = b""
    while b"\r\n\r\n" not in said:
        more = await wire.receive_some()
        if not more:
            raise Parted
        said += more


async def _frames(mallory: Attacker, frame: bytes) -> None:
    async def send(wire: trio.abc.Stream) -> None:
        await _upgrade(wire)
        while True:
            mallory.sent["bytes"] += _PIECE_SIZE
            await wire.send_all(frame * (_PIECE_SIZE // len(frame)))

    await _by_many(mallory, send)


@attack(Role.STRANGER, needs_daemon=True)
async def empty_web_frames(mallory: Attacker) -> None:
    """WebSocket frames without content, before any handshake, are parsed a few at a time, and few of them taken."""
    await _frames(mallory, _EMPTY_FRAME)


@attack(Role.STRANGER, needs_daemon=True)
async def web_pings(mallory: Attacker) -> None:
    """Pings, each of which asks for a pong, count as small frames do."""
    await _frames(mallory, _PING)


@attack(Role.STRANGER, needs_daemon=True)
async def long_web_heads(mallory: Attacker) -> None:
    """A request for a WebSocket with header after header is refused by its size."""

    async def send(wire: trio.abc.Stream) -> None:
        mallory.sent["bytes"] += _PIECE_SIZE
        await wire.send_all(_REQUEST + b"a:b\r\n" * (_PIECE_SIZE // 5))
        await wire.receive_some()

    await _by_many(mallory, send)
