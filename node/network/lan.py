"""Local network discovery: announces this node by mDNS, and finds known peers there.

A node announces where it listens, a random salt and the *mark* of its key under that salt. Who knows the key finds the
mark again; to everybody else each announcement is new: of a name, salt and mark that were never there before, made anew
every hour. Repos and users are not in it. An announcement proves nothing, and may be another's sent again with another
address: what is found is learned under the bounds of `node.sync.addresses`, and believed when the key is proven there.
"""

import ipaddress
import json
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
import structlog
import trio

from node.network.network import Network
from node.network.own_addresses import EVERYWHERE
from node.runtime.backoff import Backoff
from node.sync.addresses import AddressSource
from protocol.crypto.hashing import lan_mark
from protocol.ids import Mark, PeerId
from protocol.limits.formats import ADDRESS_SIZE_MAX
from protocol.limits.network import (
    LAN_LINE_SIZE_MAX,
    LAN_PAUSE_MAX_SECONDS,
    LAN_PAUSE_MIN_SECONDS,
    LAN_ROTATION_SECONDS,
    LAN_SIGHTINGS_MAX,
)
from protocol.session.reach import Reach, host_of, reach_of

log = structlog.get_logger()

_WORKER: Final = Path(__file__).with_name("lan_worker.py")
_TELLER: Final = PeerId(b"the local network")
"""Who tells what is found there: nobody in particular."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """Announcement of a node on the local network: its address (host:port), and its mark for those who know its key."""

    address: str
    salt: bytes
    mark: Mark


Found = Callable[[Announcement], None]
Watch = Callable[[Announcement, Found], Awaitable[None]]
"""Announces the one and calls the other for all that is heard, until cancelled or something fails (OSError)."""


class LanDiscovery:
    """Announces a node that listens on host:port, and takes up peers that it hears. `run` owns every task."""

    def __init__(self, network: Network, listen: str, watch: Watch) -> None:
        self._network = network
        self._own = network.introducer.own.peer
        self._listen = listen
        self._watch = watch
        self._sightings = 0

    async def run(self) -> None:
        """Discover, until cancelled."""
        backoff = Backoff(LAN_PAUSE_MIN_SECONDS, LAN_PAUSE_MAX_SECONDS)
        while True:
            self._sightings = 0
            salt = secrets.token_bytes(16)
            announcement = Announcement(self._listen, salt, lan_mark(salt, self._own))
            with trio.move_on_after(LAN_ROTATION_SECONDS) as rotation:
                try:
                    await self._watch(announcement, self.found)
                except OSError as error:
                    log.warning("no discovery on the local network", error=str(error))
            if rotation.cancelled_caught:
                backoff.reset()
                continue
            await trio.sleep(backoff.fail())

    def found(self, heard: Announcement) -> None:
        """Take up an announcement, if it is of a peer whose key is known."""
        self._sightings += 1
        host, own_host = host_of(heard.address), host_of(self._listen)
        if self._sightings > LAN_SIGHTINGS_MAX or host is None or own_host is None:
            return
        near = Reach.MACHINE if reach_of(own_host) is Reach.MACHINE else Reach.PRIVATE
        if reach_of(host) is not near:
            return
        network = self._network
        for peer in network.known_keys:
            if lan_mark(heard.salt, peer) == heard.mark:
                network.book.learn(
                    peer,
                    heard.address,
                    AddressSource.LAN,
                    told_by=_TELLER,
                    repos=network.book.repos_of(peer),
                    now=trio.current_time(),
                )
                network.introducer.tell_news()


def announced_address(listen: str) -> str:
    """Return the address to announce for a node that listens on host:port: of every interface, the IPv4 addresses."""
    host, _, port = listen.rpartition(":")
    return f"0.0.0.0:{port}" if host == EVERYWHERE else listen


async def watch_lan(own: Announcement, found: Found) -> None:
    """`Watch` by mDNS, in a process of its own (`lan_worker`)."""
    host, _, port = own.address.rpartition(":")
    wanted = {
        "host": str(ipaddress.ip_address(host.strip("[]"))),
        "port": port,
        "name": secrets.token_hex(16),
        "salt": own.salt.hex(),
        "mark": own.mark.hex(),
    }
    problem = " has ended; what it said last stands above"
    try:
        await _listen(wanted, found)
    except* OSError as group:  # it could not be started
        # Raised below: Python before 3.11.4 wraps in a group what is raised here.
        problem = f": {group.exceptions[0]}"
    raise OSError(f"the process that speaks mDNS{problem}")


async def _listen(wanted: Mapping[str, str], found: Found) -> None:
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(_run_worker)
        assert process.stdin is not None, "a pipe was asked for"
        assert process.stdout is not None, "a pipe was asked for"
        with suppress(trio.BrokenResourceError):  # it has ended already, which reading tells
            await process.stdin.send_all(json.dumps(wanted).encode() + b"\n")
        await _read_lines(process.stdout, found)
        nursery.cancel_scope.cancel()


async def _run_worker(task_status: trio.TaskStatus[trio.Process]) -> None:
    command = [sys.executable, "-P", str(_WORKER)]  # -P: never a module of the current folder
    pipe = subprocess.PIPE
    await trio.run_process(command, stdin=pipe, stdout=pipe, check=False, task_status=task_status)


async def _read_lines(stream: trio.abc.ReceiveStream, found: Found) -> None:
    """Read lines until the stream ends, or brings what is no line."""
    rest = b""
    async for some in stream:
        *lines, rest = (rest + some).split(b"\n")
        for line in lines:
            heard = read_announcement(line)
            if heard is not None:
                found(heard)
        if len(rest) > LAN_LINE_SIZE_MAX:
            return


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """Line of the worker's output about one address that it heard."""

    address: Annotated[str, msgspec.Meta(max_length=ADDRESS_SIZE_MAX)]
    salt: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    mark: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


def read_announcement(line: bytes) -> Announcement | None:
    """Parse a line of the worker; return None if it is no valid announcement, for any machine nearby can cause one."""
    try:
        said = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if host_of(said.address) is None:
        return None
    return Announcement(said.address, bytes.fromhex(said.salt), Mark(bytes.fromhex(said.mark)))
