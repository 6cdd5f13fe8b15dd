"""How a connection is opened: from a port that can be shared, to the first place of a name that answers."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from node.network import line
from node.network.line import Place, connect_from, listening_address, open_listener, open_tcp, shared_socket
from tests.support.machine import fail_after


@asynccontextmanager
async def _listener() -> AsyncIterator[tuple[trio.SocketListener, str]]:
    with fail_after(20):
        (listener,) = await open_listener("127.0.0.1:0")
        async with listener:
            yield listener, listening_address([listener])


async def test_the_port_of_a_connection_is_no_other_connections_and_can_be_shared() -> None:
    """A port that `connect` chose may be another connection's, too: binding to it fails."""
    async with _listener() as (_, address):
        dialed = await open_tcp(address)
        assert dialed.tcp is not None
        local = dialed.tcp.socket.getsockname()
        with socket.socket() as exclusive, pytest.raises(OSError, match="in use"):
            exclusive.bind(local)
        shared_socket(socket.AF_INET, local).close()
        assert dialed.tcp.socket.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
        await dialed.stream.aclose()


async def test_the_next_place_of_a_name_is_dialed_when_one_is_silent(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    dialed: list[tuple[float, Any]] = []
    places: list[tuple[socket.AddressFamily, Place]] = [
        *((socket.AF_INET6, (f"2001:db8::{number}", 9, 0, 0)) for number in (1, 2)),
        *((socket.AF_INET, (f"192.0.2.{number}", 9)) for number in range(1, 20)),
    ]

    async def resolve(*_: object, **__: object) -> list[Any]:
        return [(family, socket.SOCK_STREAM, 6, "", place) for family, place in places]

    async def connect(family: int, local: object, remote: Place) -> trio.socket.SocketType:
        dialed.append((trio.current_time(), remote[0]))
        if len(dialed) < line._PLACES_DIALED_MAX:
            await trio.sleep_forever()
        raise ConnectionRefusedError(f"{remote[0]} refuses")

    monkeypatch.setattr(trio.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(line, "connect_from", connect)
    began = trio.current_time()
    with trio.move_on_after(60) as scope:
        await open_tcp("relay.example:9")
    assert scope.cancelled_caught
    assert [host for _, host in dialed[:3]] == ["2001:db8::1", "192.0.2.1", "2001:db8::2"]
    assert len(dialed) == line._PLACES_DIALED_MAX
    assert dialed[1][0] - began == pytest.approx(line._NEXT_PLACE_SECONDS)


async def test_a_name_that_no_place_answers_for_says_once_what_they_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with _listener() as (listener, address):
        await listener.aclose()
        place = ("127.0.0.1", int(address.rpartition(":")[2]))

        async def resolve(_host: str, _port: int) -> list[tuple[int, tuple[str, int]]]:
            return [(socket.AF_INET, place)] * 2

        monkeypatch.setattr(line, "_resolve", resolve)
        with pytest.raises(OSError, match=r"^Connection refused$"):
            await open_tcp(address)


async def test_a_failed_dial_leaves_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[trio.socket.SocketType] = []

    def keep(family: int, place: tuple[str, int]) -> trio.socket.SocketType:
        made.append(shared_socket(family, place))
        return made[-1]

    monkeypatch.setattr(line, "shared_socket", keep)
    async with _listener() as (listener, address):
        await listener.aclose()
        host, _, port = address.rpartition(":")
        with pytest.raises(ConnectionRefusedError):
            await connect_from(socket.AF_INET, (host, 0), (host, int(port)))
    assert [one.fileno() for one in made] == [-1]
