"""Where a node says that it can be dialed, and how far that reaches."""

import ipaddress
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.network.interfaces import (
    InterfaceAddress,
    NamedAddress,
    choose_addresses,
    list_addresses,
    unstable_hosts,
)
from node.network.line import listening_address, open_listener
from node.network.own_addresses import FoundBy, OwnAddresses
from protocol.ids import PeerId
from protocol.limits.network import (
    INTERFACE_ADDRESSES_MAX,
    INTERFACES_LOOK_SECONDS,
    OBSERVERS_MAX,
    OWN_ADDRESSES_TOLD_MAX,
)
from protocol.session.reach import Reach

MACHINE, NEAR, FAR = Reach.MACHINE, Reach.PRIVATE, Reach.EVERYBODY
LAN = ("192.168.1.7/24", "fd12::7/64")
PUBLIC = ("93.184.216.34/24", "2606:2800:220::7/64")


def _interfaces(*texts: str) -> tuple[InterfaceAddress, ...]:
    found = [ipaddress.ip_interface(text) for text in texts]
    return tuple(InterfaceAddress(one.ip, one.network.prefixlen) for one in found)


async def _own(listen: str, *interfaces: str, advertise: str = "") -> OwnAddresses:
    async def look() -> tuple[InterfaceAddress, ...]:
        return _interfaces(*interfaces)

    own = OwnAddresses(listen, advertise, look)
    await own.start()
    return own


def _shown(own: OwnAddresses) -> list[tuple[str, Reach | None]]:
    return [(one.address, one.reach) for one in own.known]


async def test_a_node_on_every_interface_knows_those_of_its_versions() -> None:
    assert _shown(await _own("*:5", *LAN)) == [("192.168.1.7:5", NEAR), ("[fd12::7]:5", NEAR)]
    assert _shown(await _own("0.0.0.0:5", *LAN)) == [("192.168.1.7:5", NEAR)]
    assert _shown(await _own("[::]:5", *LAN)) == [("[fd12::7]:5", NEAR)]
    assert _shown(await _own("*:5")) == []
    assert (await _own("*:5")).reach is None


@pytest.mark.parametrize(
    "listen, expected, is_open",
    [
        ("127.0.0.1:5", [("127.0.0.1:5", MACHINE)], False),
        ("localhost:5", [("localhost:5", MACHINE)], False),
        ("192.168.1.7:5", [("192.168.1.7:5", NEAR)], True),
        ("host.example:5", [("host.example:5", FAR)], True),
    ],
)
async def test_a_node_on_one_address_knows_that(
    listen: str, expected: list[tuple[str, Reach | None]], is_open: bool
) -> None:
    own = await _own(listen, *LAN)
    assert _shown(own) == expected
    assert own.is_open is is_open
    assert own.interfaces == (), "it is not looked for what nobody can dial"


async def test_what_the_user_says_comes_first_and_the_farthest_next() -> None:
    own = await _own("*:5", *LAN, "93.184.216.34/24", advertise="host.example:7")
    assert _shown(own)[:3] == [("host.example:7", FAR), ("93.184.216.34:5", FAR), ("192.168.1.7:5", NEAR)]
    assert [one.found_by for one in own.known][:2] == [FoundBy.CONFIGURED, FoundBy.INTERFACE]


async def test_a_public_ipv6_address_counts_once_somebody_has_come_in() -> None:
    own = await _own("*:5", "2606:2800:220::7/64")
    assert own.reach is NEAR, "a router may refuse what comes in"
    own.note_entry("[2606:2800:220::8]:4000")
    own.note_entry("93.184.216.34:4000")
    own.note_entry("[fd12::1]:4000")
    own.note_entry("no address")
    assert own.reach is NEAR, "a neighbour, another version, a private network, nothing"
    own.note_entry("[2606:4700::1]:4000")
    assert own.reach is FAR


async def test_a_link_names_few_and_one_for_this_network_among_them() -> None:
    public = [f"93.184.{number}.1/24" for number in range(9)] + [
        f"2606:2800:{number}::1/64" for number in range(9)
    ]
    own = await _own("*:5", *public, *LAN, advertise="host.example:7")
    told = own.for_links
    assert len(told) == OWN_ADDRESSES_TOLD_MAX
    assert [one.reach for one in told] == [FAR, FAR, FAR, NEAR]
    assert (await _own("*:5", *LAN, advertise="nothing")).for_links == []


async def test_a_change_is_noticed_and_ends_what_was_known_of_the_old_network(
    autojump_clock: MockClock,
) -> None:
    here = [("2606:2800:220::7/64",)]

    async def look() -> tuple[InterfaceAddress, ...]:
        return _interfaces(*here[-1])

    own = OwnAddresses("*:5", "", look)
    await own.start()
    own.note_entry("[2606:4700::1]:4000")
    changes: list[tuple[Reach | None, set[str]]] = []
    own.when_changed(lambda gone: changes.append((own.reach, set(gone))))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(own.run)
        await trio.sleep(3 * INTERFACES_LOOK_SECONDS)
        assert changes == []
        here.append(("2606:2800:221::7/64",))
        await trio.sleep(3 * INTERFACES_LOOK_SECONDS)
        assert changes == [(NEAR, {"2606:2800:220::7"})]
        nursery.cancel_scope.cancel()


async def test_a_node_on_loopback_does_not_look_for_changes(autojump_clock: MockClock) -> None:
    own = await _own("127.0.0.1:5", *LAN)
    with trio.fail_after(1):
        await own.run()


# --- interfaces ---


def test_what_leads_to_this_machine_alone_or_nowhere_is_left_out() -> None:
    named = [
        NamedAddress("lo", "127.0.0.1", 8),
        NamedAddress("lo", "::1", 128),
        NamedAddress("eth0", "fe80::1", 64),
        NamedAddress("eth0", "169.254.1.1", 16),
        NamedAddress("docker0", "172.17.0.1", 16),
        NamedAddress("br-0123456789ab", "172.18.0.1", 16),
        NamedAddress("virbr0", "192.168.122.1", 24),
        NamedAddress("eth0", "no address", 24),
        NamedAddress("eth0", "2606:2800:220::aa", 64),
        NamedAddress("eth0", "fd12::7", 64),
        NamedAddress("eth0", "192.168.1.7", 24),
        NamedAddress("eth0:1", "192.168.1.7", 24),
    ]
    temporary = frozenset({ipaddress.ip_address("2606:2800:220::aa")})
    assert choose_addresses(named, temporary) == _interfaces("192.168.1.7/24", "fd12::7/64")


def test_the_number_of_addresses_is_bounded_and_their_order_does_not_matter() -> None:
    named = [NamedAddress("eth0", f"10.0.{number}.1", 24) for number in range(INTERFACE_ADDRESSES_MAX + 1)]
    chosen = choose_addresses(named)
    assert len(chosen) == INTERFACE_ADDRESSES_MAX
    assert choose_addresses(named[::-1]) == chosen


def test_addresses_that_the_system_replaces_are_known_by_the_kernels_flags() -> None:
    rows = [
        "2606280002200000000000000000aaaa 02 40 00 01     eth0",
        "2606280002200000000000000000bbbb 02 40 00 80     eth0",
        "2606280002200000000000000000cccc 02 40 00 a0     eth0",
        "a line of another form",
    ]
    found = unstable_hosts("\n".join(rows))
    assert found == {ipaddress.ip_address(f"2606:2800:220::{end}") for end in ("aaaa", "cccc")}


def test_this_machine_can_be_asked() -> None:
    assert all(not one.host.is_loopback for one in list_addresses())


# --- listening ---


async def test_one_port_is_taken_by_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """On loopback: no test listens for others."""
    listen = trio.open_tcp_listeners
    asked: list[tuple[str, int]] = []
    taken = [True, False]

    async def on_loopback(port: int, *, host: str) -> list[trio.SocketListener]:
        asked.append((host, port))
        if host == "::":
            if taken.pop(0):
                raise OSError(98, "in use")
            return list(await listen(0, host="::1"))
        return list(await listen(port, host="127.0.0.1"))

    monkeypatch.setattr("trio.open_tcp_listeners", on_loopback)
    listeners = await open_listener("*:0")
    port = listeners[0].socket.getsockname()[1]
    assert listening_address(listeners) == f"*:{port}"
    assert [host for host, _ in asked] == ["0.0.0.0", "::", "0.0.0.0", "::"]  # noqa: S104  # asked for, not bound
    assert asked[-1] == ("::", port)
    for one in listeners:
        await one.aclose()


async def test_a_system_without_ipv6_listens_by_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    listen = trio.open_tcp_listeners

    async def without_ipv6(port: int, *, host: str) -> list[trio.SocketListener]:
        if host == "::":
            raise OSError(97, "address family not supported")
        return list(await listen(port, host="127.0.0.1"))

    monkeypatch.setattr("trio.open_tcp_listeners", without_ipv6)
    (listener,) = await open_listener("*:0")
    assert listening_address([listener]).startswith("127.0.0.1:"), "as told: of every interface it is 0.0.0.0"
    await listener.aclose()


async def test_a_port_that_is_taken_by_one_version_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listen = trio.open_tcp_listeners

    async def taken(port: int, *, host: str) -> list[trio.SocketListener]:
        if host == "::":
            raise OSError(98, "in use")
        return list(await listen(0, host="127.0.0.1"))

    monkeypatch.setattr("trio.open_tcp_listeners", taken)
    with pytest.raises(OSError, match="in use"):
        await open_listener("*:7474")
    with pytest.raises(OSError, match="no port is free"):
        await open_listener("*:0")


# --- what peers see ---


def _peer(number: int) -> PeerId:
    return PeerId(bytes([number]) * 32)


def _found(own: OwnAddresses) -> list[tuple[str, Reach | None]]:
    return [(one.address, one.reach) for one in own.known if one.found_by is FoundBy.PEERS]


async def test_what_peers_at_different_places_see_alike_is_an_address() -> None:
    own = await _own("*:5", *LAN)
    own.note_claim(_peer(1), "203.0.113.5:4001", "93.184.216.34:7474")
    assert _found(own) == [], "documentation's addresses are not public"
    own.note_claim(_peer(1), "8.8.4.4:4001", "93.184.216.34:7474")
    own.note_claim(_peer(2), "8.8.4.4:4002", "93.184.216.99:7474")
    assert _found(own) == [], "two keys in one subnet are one liar's"
    own.note_claim(_peer(2), "8.8.4.4:4002", "93.184.217.99:7474")
    assert _found(own) == [("8.8.4.4:5", None)], "nobody knows whether the router forwards the port"
    own.note_entry("93.184.216.34:4000")
    assert _found(own) == [("8.8.4.4:5", Reach.EVERYBODY)]
    assert own.reach is Reach.EVERYBODY


@pytest.mark.parametrize(
    "claim, across",
    [
        ("192.168.0.1:1", "93.184.216.34:7474"),
        ("127.0.0.1:1", "93.184.216.34:7474"),
        ("127.0.0.1:1", "192.168.1.9:7474"),
        ("169.254.169.254:80", "192.168.1.9:7474"),
        ("[::ffff:8.8.4.4]:1", "93.184.216.34:7474"),
        ("[fe80::1%eth0]:1", "192.168.1.9:7474"),
        ("host.example:1", "93.184.216.34:7474"),
        ("8.8.4.4", "93.184.216.34:7474"),
        ("8.8.4.4:1", "unknown"),
        ("", ""),
    ],
)
async def test_a_claim_that_cannot_be_true_there_is_dropped(claim: str, across: str) -> None:
    own = await _own("*:5", *LAN)
    for number in range(9):
        own.note_claim(_peer(number), claim, across.replace("93.184.216", f"93.184.{number}"))
    assert _found(own) == []
    assert own._claims == {}


async def test_peers_of_this_network_may_see_another_private_address() -> None:
    """A container's host forwards its port."""
    own = await _own("*:5", "172.17.0.2/16")
    own.note_claim(_peer(1), "192.168.1.7:4001", "192.168.1.9:7474")
    own.note_claim(_peer(2), "192.168.1.7:4002", "192.168.1.9:7475")
    assert _found(own) == [], "one machine"
    own.note_claim(_peer(3), "192.168.1.7:4002", "192.168.1.10:7474")
    assert _found(own) == [("192.168.1.7:5", None)]


async def test_most_peers_are_believed_and_so_many_are_remembered() -> None:
    own = await _own("*:5", *LAN)
    for number in range(OBSERVERS_MAX + 1):
        liar = number % 3 == 0
        own.note_claim(_peer(number), "8.8.8.8:1" if liar else "8.8.4.4:1", f"93.184.{number}.1:7474")
    assert len(own._claims) == OBSERVERS_MAX
    assert _found(own) == [("8.8.4.4:5", None)]
    own.note_claim(_peer(100), "[2606:4700::1]:1", "[2606:4701::1]:7474")
    own.note_claim(_peer(101), "[2606:4700::1]:1", "[2606:4702::1]:7474")
    assert _found(own) == [("8.8.4.4:5", None), ("[2606:4700::1]:5", None)]


async def test_what_the_user_says_makes_others_views_needless() -> None:
    own = await _own("*:5", *LAN, advertise="host.example:7")
    for number in range(3):
        own.note_claim(_peer(number), "8.8.4.4:1", f"93.184.{number}.1:7474")
    assert _found(own) == []
