"""A stream that hands bytes to the system at once: what it does when the system does not take them, and at the end."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from node.api.socket_stream import DirectStream
from tests.support.machine import fail_after


@asynccontextmanager
async def _pair() -> AsyncIterator[tuple[DirectStream, trio.SocketStream]]:
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(one)) for one in socket.socketpair())
    with fail_after(30):
        async with DirectStream(ours) as stream, theirs:
            yield stream, theirs


async def test_what_is_sent_comes_and_what_comes_is_read() -> None:
    async with _pair() as (stream, other):
        await stream.send_all(b"question")
        assert await other.receive_some() == b"question"
        await other.send_all(b"answer")
        assert await stream.receive_some(4) == b"answ"
        assert await stream.receive_some() == b"er"
        await stream.send_eof()
        assert await other.receive_some() == b""
        await other.aclose()
        assert await stream.receive_some() == b""


async def test_more_than_the_system_takes_waits_for_the_other_end() -> None:
    content = bytes(range(256)) * 20_000
    async with _pair() as (stream, other):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, content)
            await trio.testing.wait_all_tasks_blocked()
            assert nursery.child_tasks, "a send that does not end is waited for"
            said = bytearray()
            while len(said) < len(content):
                said += await other.receive_some()
        assert said == content


async def test_an_end_that_has_left_breaks_it() -> None:
    async with _pair() as (stream, other):
        await other.aclose()
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"to nobody")


async def test_one_that_is_closed_is_not_used() -> None:
    async with _pair() as (stream, _):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_read_closed, stream)
            await trio.testing.wait_all_tasks_blocked()
            await stream.aclose()
        await _read_closed(stream)
        with pytest.raises(trio.BrokenResourceError):
            await stream.send_all(b"late")


async def _read_closed(stream: DirectStream) -> None:
    with pytest.raises(trio.ClosedResourceError):
        await stream.receive_some()
