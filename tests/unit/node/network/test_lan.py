"""Peers find one another on the local network by what only who knows their keys can read."""

from itertools import pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network.lan import Announcement, Found, LanDiscovery, watch_lan
from node.network.network import Network
from node.sync.addresses import AddressSource
from protocol.crypto.hashing import lan_mark
from protocol.ids import Mark, PeerId
from protocol.limits.network import (
    LAN_LINE_SIZE_MAX,
    LAN_PAUSE_MAX_SECONDS,
    LAN_PAUSE_MIN_SECONDS,
    LAN_ROTATION_SECONDS,
    LAN_SIGHTINGS_MAX,
)
from tests.support.machine import fail_after
from tests.support.multicast import need_multicast
from tests.support.nodes import Node, open_nodes
from tests.unit.node.sync.test_introductions import address_of, networked, until_met

NEVER = "127.0.0.1:9"


class _Lan:
    """A local network in memory: anyone who announces is heard by all."""

    def __init__(self) -> None:
        self.here: list[tuple[Announcement, Found]] = []
        self.said: list[Announcement] = []

    async def watch(self, own: Announcement, found: Found) -> None:
        self.said.append(own)
        for other, tell in self.here:
            tell(own)
            found(other)
        entry = (own, found)
        self.here.append(entry)
        try:
            await trio.sleep_forever()
        finally:
            self.here.remove(entry)


async def test_a_kept_peer_is_found_where_it_is_now(tmp_path: Path, autojump_clock: MockClock) -> None:
    lan = _Lan()
    with fail_after(600), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with networked(alice) as at_alice, networked(bob) as at_bob, trio.open_nursery() as nursery:
            at_alice.keep(bob.key, NEVER)
            for network in (at_alice, at_bob):
                nursery.start_soon(LanDiscovery(network, address_of(network), lan.watch).run)
            await until_met(at_alice, bob)
            (state,) = [one for one in at_alice.peers if one.connection is not None]
            assert (state.source, state.address) == (AddressSource.LAN, address_of(at_bob))
            nursery.cancel_scope.cancel()


@pytest.mark.slow
async def test_announcements_are_new_every_hour_and_say_nothing_to_strangers(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    lan = _Lan()
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        async with networked(alice) as at_alice, networked(bob) as at_bob, trio.open_nursery() as nursery:
            for network in (at_alice, at_bob):
                nursery.start_soon(LanDiscovery(network, address_of(network), lan.watch).run)
            await trio.sleep(3 * LAN_ROTATION_SECONDS - 1)
            assert at_alice.book.all == at_bob.book.all == [], "neither knows the other's key"
            nursery.cancel_scope.cancel()
    assert len(lan.said) == 6
    assert len({said.salt for said in lan.said}) == len({said.mark for said in lan.said}) == 6
    keys = (alice.key, bob.key)
    assert all(said.mark in [lan_mark(said.salt, key) for key in keys] for said in lan.said)


def _discovery(node: Node, network: Network, listen: str) -> LanDiscovery:
    network.keep(PeerId(b"k" * 32), NEVER)
    return LanDiscovery(network, listen, _Lan().watch)


@pytest.mark.parametrize(
    "listen, address, is_taken",
    [
        ("0.0.0.0:7474", "192.168.1.7:7474", True),
        ("[::]:7474", "[fd00::7]:7474", True),
        ("127.0.0.1:7474", "127.0.0.1:7475", True),
        ("0.0.0.0:7474", "127.0.0.1:25", False),
        ("127.0.0.1:7474", "192.168.1.7:7474", False),
        ("0.0.0.0:7474", "93.184.216.34:80", False),
        ("0.0.0.0:7474", "169.254.169.254:80", False),
        ("0.0.0.0:7474", "victim.example:80", False),
    ],
)
async def test_only_the_local_network_is_dialed_at_its_word(
    tmp_path: Path, autojump_clock: MockClock, listen: str, address: str, is_taken: bool
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with networked(alice) as network:
            salt = b"s" * 16
            _discovery(alice, network, listen).found(
                Announcement(address, salt, lan_mark(salt, PeerId(b"k" * 32)))
            )
            assert network.book.knows(PeerId(b"k" * 32)) == is_taken


async def test_so_much_is_heard_in_an_hour(tmp_path: Path, autojump_clock: MockClock) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        async with networked(alice) as network:
            discovery = _discovery(alice, network, "0.0.0.0:7474")
            salt = b"s" * 16
            for _ in range(LAN_SIGHTINGS_MAX):
                discovery.found(Announcement("192.168.1.7:7474", salt, Mark(b"of somebody")))
            discovery.found(Announcement("192.168.1.7:7474", salt, lan_mark(salt, PeerId(b"k" * 32))))
            assert not network.book.knows(PeerId(b"k" * 32))


@pytest.mark.slow
async def test_what_fails_is_tried_again_with_growing_pauses(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    tried: list[float] = []

    async def fail(own: Announcement, found: Found) -> None:
        tried.append(trio.current_time())
        raise OSError("no such network")

    with open_nodes(tmp_path, "alice") as (alice,):
        async with networked(alice) as network, trio.open_nursery() as nursery:
            nursery.start_soon(LanDiscovery(network, address_of(network), fail).run)
            await trio.sleep(3600)
            nursery.cancel_scope.cancel()
    pauses = [later - earlier for earlier, later in pairwise(tried)]
    for pause, longest in zip(pauses, (LAN_PAUSE_MIN_SECONDS, 2 * LAN_PAUSE_MIN_SECONDS), strict=False):
        assert 0.7 * longest <= pause <= longest + 0.001
    assert 0.7 * LAN_PAUSE_MAX_SECONDS <= max(pauses) <= LAN_PAUSE_MAX_SECONDS + 0.001


@pytest.mark.extended
@pytest.mark.slow
async def test_two_processes_hear_each_other_by_mdns_on_loopback() -> None:
    need_multicast()
    heard = trio.Event()
    first = Announcement("127.0.0.1:7474", b"1" * 16, Mark(b"a" * 32))
    second = Announcement("127.0.0.1:7475", b"2" * 16, Mark(b"b" * 32))

    def found(announcement: Announcement) -> None:
        if announcement == first:
            heard.set()

    with fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_lan, first, lambda _: None)
            nursery.start_soon(watch_lan, second, found)
            await heard.wait()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "program",
    ["raise SystemExit('no library')", f"print('x' * {LAN_LINE_SIZE_MAX + 1}, end='', flush=True); input()"],
)
async def test_a_process_that_does_not_do_its_work_is_ended_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(f"input()\n{program}\n")
    monkeypatch.setattr("node.network.lan._WORKER", worker)
    with fail_after(30), pytest.raises(OSError, match="has ended"):
        await watch_lan(Announcement("127.0.0.1:7474", b"1" * 16, Mark(b"a" * 32)), lambda _: None)


async def test_what_strangers_announce_may_be_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import json\ninput()\n"
        "for line in (['\\x00:x', '00' * 16], ['10.0.0.1:1', 'zz'], ['10.0.0.1:1', '\\u00e9'], ['10.0.0.1:1', '00' * 16]):\n"
        "    print(json.dumps({'address': line[0], 'salt': line[1], 'mark': '11' * 32}), flush=True)\n"
        "print('[' * 3000, flush=True)\n"
    )
    monkeypatch.setattr("node.network.lan._WORKER", worker)
    heard: list[Announcement] = []
    with fail_after(30), pytest.raises(OSError, match="has ended"):
        await watch_lan(Announcement("127.0.0.1:7474", b"1" * 16, Mark(b"a" * 32)), heard.append)
    assert heard == [Announcement("10.0.0.1:1", bytes(16), Mark(b"\x11" * 32))]


async def test_a_process_that_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with fail_after(30), pytest.raises(OSError, match="/nowhere/python"):
        await watch_lan(Announcement("127.0.0.1:7474", b"1" * 16, Mark(b"a" * 32)), lambda _: None)
