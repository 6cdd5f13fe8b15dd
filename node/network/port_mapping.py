"""Has the router forward a port to this node, and keeps it so: asks again before the router forgets it.

The router is asked by a process of its own (`router_worker`), which has a deadline. What it answers is checked here: a
router that has no public address itself stands behind another one, and what it forwards helps nobody outside.
"""

import ipaddress
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
import structlog
import trio

from node.network.own_addresses import OwnAddresses, PortMapping, Router, RouterState
from node.runtime.backoff import Backoff
from protocol.limits.network import (
    MAPPING_DEADLINE_SECONDS,
    MAPPING_LINE_SIZE_MAX,
    MAPPING_PAUSE_MAX_SECONDS,
    MAPPING_PAUSE_MIN_SECONDS,
    MAPPING_SECONDS,
)
from protocol.session.reach import Reach, reach_of

log = structlog.get_logger()

_WORKER: Final = Path(__file__).with_name("router_worker.py")
_SHOWN_SIZE_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Wanted:
    """Request to the router: that `external` be forwarded to the node's port."""

    port: int
    external: int


Ask = Callable[[Wanted], Awaitable[bytes]]
"""Gives the worker's line. Raises OSError."""


class PortMapper:
    """Keeps a port of the router forwarded. `run` owns the work, and tells `addresses`."""

    def __init__(self, addresses: OwnAddresses, ask: Ask) -> None:
        self._addresses = addresses
        self._ask = ask
        self._moved = trio.Event()
        addresses.when_changed(lambda _: self._moved.set())

    async def run(self) -> None:
        """Ask until cancelled: again when a mapping is half over, or the network has changed."""
        external = self._addresses.port
        backoff = Backoff(MAPPING_PAUSE_MIN_SECONDS, MAPPING_PAUSE_MAX_SECONDS)
        while True:
            self._moved = trio.Event()
            if not self._addresses.wants_port:
                self._addresses.note_router(Router(RouterState.NOT_NEEDED))
                await self._moved.wait()
                continue
            found = await self._ask_once(external)
            if isinstance(found, PortMapping):
                external = found.port
                backoff.reset()
                pause = min(max(found.seconds / 2, MAPPING_PAUSE_MIN_SECONDS), MAPPING_SECONDS / 2)
                self._addresses.note_router(Router(RouterState.MAPPED, found.way, found))
            else:
                pause = backoff.fail()
                self._addresses.note_router(Router(RouterState.NONE, found))
            with trio.move_on_after(pause):
                await self._moved.wait()

    async def _ask_once(self, external: int) -> PortMapping | str:
        try:
            with trio.fail_after(MAPPING_DEADLINE_SECONDS):
                found = read_answer(await self._ask(Wanted(self._addresses.port, external)))
        except trio.TooSlowError:
            found = f"no answer within {MAPPING_DEADLINE_SECONDS:g} seconds"
        except OSError as error:
            found = f"the process that asks the router: {error}"
        log.info("router asked", outcome=found if isinstance(found, str) else f"{found.host}:{found.port}")
        return found


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    """Answer of the worker: a mapping, or a problem."""

    way: Annotated[str, msgspec.Meta(pattern="^(pcp|nat-pmp|upnp)$")] = "upnp"
    host: Annotated[str, msgspec.Meta(max_length=64)] = ""
    port: Annotated[int, msgspec.Meta(ge=0, lt=65536)] = 0
    seconds: Annotated[int, msgspec.Meta(ge=0, lt=2**32)] = 0
    problem: Annotated[str, msgspec.Meta(max_length=500)] = ""


def read_answer(line: bytes) -> PortMapping | str:
    """Parse the mapping, or why there is none: anybody on the local network may have made the answer."""
    try:
        said = msgspec.json.decode(line, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "an answer that cannot be read"
    if said.problem:
        return said.problem[:_SHOWN_SIZE_MAX]
    try:
        host = ipaddress.IPv4Address(said.host)
    except ValueError:
        return f"the router's address is none: {said.host!r}"
    if reach_of(host) is not Reach.EVERYBODY:
        return f"the router's own address, {host}, is not public: another router stands before it"
    if said.port == 0:
        return "the router forwards port 0, which is none"
    return PortMapping(said.way, host, said.port, said.seconds or int(MAPPING_SECONDS))


async def ask_router(wanted: Wanted, **known: object) -> bytes:
    """`Ask` in a process of its own. `known` spares it looking for the router: gateway, description."""
    asked = {"port": wanted.port, "external": wanted.external, "seconds": int(MAPPING_SECONDS), **known}
    command = [sys.executable, "-P", str(_WORKER)]  # -P: never a module of the current folder
    pipe = subprocess.PIPE
    process = await trio.lowlevel.open_process(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    try:
        assert process.stdin is not None, "a pipe was asked for"
        assert process.stdout is not None, "a pipe was asked for"
        with suppress(trio.BrokenResourceError):  # it has ended already, which reading tells
            await process.stdin.send_all(json.dumps(asked).encode() + b"\n")
        line = b""
        while b"\n" not in line and len(line) <= MAPPING_LINE_SIZE_MAX:
            some = await process.stdout.receive_some()
            if not some:
                break
            line += some
        return line[: MAPPING_LINE_SIZE_MAX + 1].partition(b"\n")[0]
    finally:
        with trio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await trio.aclose_forcefully(stream)
