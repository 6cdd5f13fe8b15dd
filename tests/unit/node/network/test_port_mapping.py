"""The router is asked for a port, and what it answers is believed as far as it can be true."""

import ipaddress
import json
import threading
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from node.network.interfaces import InterfaceAddress
from node.network.own_addresses import FoundBy, OwnAddresses, PortMapping, Router, RouterState
from node.network.port_mapping import PortMapper, Wanted, ask_router, read_answer
from node.network.router_worker import parse_gateway, upnp_problem
from protocol.ids import PeerId
from protocol.limits.network import (
    INTERFACES_LOOK_SECONDS,
    MAPPING_DEADLINE_SECONDS,
    MAPPING_LINE_SIZE_MAX,
    MAPPING_PAUSE_MAX_SECONDS,
    MAPPING_PAUSE_MIN_SECONDS,
    MAPPING_SECONDS,
)
from protocol.session.reach import Reach
from tests.support.machine import fail_after
from tests.support.routers import PUBLIC, UpnpRouter, nat_pmp, pcp, serve_gateway, serve_upnp

HOST = ipaddress.IPv4Address(PUBLIC)
NOWHERE = "http://127.0.0.1:1/"


async def _own(listen: str = "*:7474", *interfaces: str, advertise: str = "") -> OwnAddresses:
    found = [ipaddress.ip_interface(text) for text in interfaces or ("192.168.1.7/24",)]

    async def look() -> tuple[InterfaceAddress, ...]:
        return tuple(InterfaceAddress(one.ip, one.network.prefixlen) for one in found)

    own = OwnAddresses(listen, advertise, look)
    await own.start()
    return own


def _line(**said: object) -> bytes:
    return json.dumps({"way": "pcp", "host": PUBLIC, "port": 7474, "seconds": 3600} | said).encode()


# --- what is believed ---


def test_a_mapping_is_read() -> None:
    assert read_answer(_line()) == PortMapping("pcp", HOST, 7474, 3600)
    assert read_answer(_line(seconds=0)) == PortMapping("pcp", HOST, 7474, int(MAPPING_SECONDS)), "for ever"
    assert read_answer(json.dumps({"problem": "p" * 500}).encode()) == "p" * 300


@pytest.mark.parametrize(
    "line, outcome",
    [
        (b"", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"{" * 3000, "cannot be read"),
        (_line(host="192.168.1.1"), "another router stands before it"),
        (_line(host="100.64.0.1"), "another router stands before it"),
        (_line(host="127.0.0.1"), "another router stands before it"),
        (_line(host="255.255.255.255"), "another router stands before it"),
        (_line(host="224.0.0.1"), "another router stands before it"),
        (_line(host="router.example"), "is none"),
        (_line(host="8.8.4.4\n9"), "is none"),
        (_line(host="8" * 65), "cannot be read"),
        (_line(port=0), "port 0"),
        (_line(port=65536), "cannot be read"),
        (_line(seconds=2**32), "cannot be read"),
        (_line(way="magic"), "cannot be read"),
        (_line(more=1), "cannot be read"),
        (json.dumps({"problem": "p" * 501}).encode(), "cannot be read"),
    ],
)
def test_what_cannot_be_true_is_no_mapping(line: bytes, outcome: str) -> None:
    found = read_answer(line)
    assert isinstance(found, str)
    assert outcome in found
    assert len(found) <= 300


async def test_a_router_that_peers_contradict_proves_no_reach() -> None:
    own = await _own()
    own.note_router(Router(RouterState.MAPPED, "upnp", PortMapping("upnp", HOST, 7001, 60)))

    def at_router() -> list[tuple[str, Reach | None]]:
        return [(one.address, one.reach) for one in own.known if one.found_by is FoundBy.ROUTER]

    assert at_router() == [(f"{PUBLIC}:7001", Reach.EVERYBODY)]
    for seen, reach in ((PUBLIC, Reach.EVERYBODY), ("8.8.8.8", None)):
        for number in range(2):
            own.note_claim(PeerId(bytes([number]) * 32), f"{seen}:9", f"93.184.{number}.1:7474")
        assert at_router() == [(f"{PUBLIC}:7001", reach)]


async def test_a_port_is_wanted_where_it_helps() -> None:
    assert (await _own()).wants_port
    assert (await _own("0.0.0.0:7474")).wants_port  # nothing listens
    assert (await _own("192.168.1.7:7474")).wants_port
    assert not (await _own("127.0.0.1:7474")).wants_port
    assert not (await _own("[::]:7474")).wants_port, "it forwards IPv4"
    assert not (await _own("*:7474", "93.184.216.34/24")).wants_port, "it has a public address"
    assert not (await _own("*:7474", "fd12::7/64")).wants_port
    assert not (await _own(advertise="host.example:1")).wants_port
    assert not (await _own(advertise="nothing")).wants_port


# --- asking again ---


class _Asked:
    """What a router answers, one after the other; the last one for ever. None: never."""

    def __init__(self, *answers: bytes | OSError | None) -> None:
        self._answers = list(answers)
        self.at: list[float] = []
        self.wanted: list[Wanted] = []

    async def __call__(self, wanted: Wanted) -> bytes:
        self.at.append(trio.current_time())
        self.wanted.append(wanted)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            await trio.sleep_forever()
        if isinstance(answer, OSError):
            raise answer
        assert answer is not None
        return answer

    @property
    def pauses(self) -> list[float]:
        return [later - before for before, later in zip(self.at, self.at[1:], strict=False)]


async def _run(own: OwnAddresses, asked: _Asked, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await PortMapper(own, asked).run()


async def test_a_mapping_is_renewed_at_half_its_time_with_the_port_that_was_given(
    autojump_clock: MockClock,
) -> None:
    own, asked = await _own(), _Asked(_line(port=7001, seconds=3600))
    await _run(own, asked, 4000)
    assert asked.pauses == [1800, 1800]
    assert asked.wanted == [Wanted(7474, 7474), Wanted(7474, 7001), Wanted(7474, 7001)]
    assert own.router.state is RouterState.MAPPED
    assert own.for_links[0].address == f"{PUBLIC}:7001"
    assert own.reach is Reach.EVERYBODY


async def test_a_router_that_grants_a_moment_or_an_age_is_asked_at_a_bounded_rate(
    autojump_clock: MockClock,
) -> None:
    for granted, pause in ((1, MAPPING_PAUSE_MIN_SECONDS), (2**31, MAPPING_SECONDS / 2)):
        asked = _Asked(_line(seconds=granted))
        await _run(await _own(), asked, 2.5 * pause)
        assert asked.pauses == [pause, pause]


async def test_a_router_that_forwards_nothing_is_asked_ever_more_seldom(autojump_clock: MockClock) -> None:
    own, asked = await _own(), _Asked(b'{"problem": "refused"}', OSError("no process"), b"garbage")
    await _run(own, asked, 20_000)
    for number, pause in enumerate(asked.pauses[:3]):
        assert 0.7 <= pause / (2**number * MAPPING_PAUSE_MIN_SECONDS) <= 1.001
    assert 0.7 <= asked.pauses[-1] / MAPPING_PAUSE_MAX_SECONDS <= 1.001
    assert own.router == Router(RouterState.NONE, "an answer that cannot be read")
    assert [one.found_by for one in own.known] == [FoundBy.INTERFACE]


async def test_a_router_that_never_answers_is_given_up(autojump_clock: MockClock) -> None:
    own, asked = await _own(), _Asked(None)
    await _run(own, asked, MAPPING_DEADLINE_SECONDS + 1)
    assert own.router.state is RouterState.NONE
    assert "no answer" in own.router.detail


async def test_a_new_network_has_another_router(autojump_clock: MockClock) -> None:
    places = [("192.168.1.7/24",), ("192.168.2.7/24",), ("93.184.216.34/24",)]

    async def look() -> tuple[InterfaceAddress, ...]:
        found = [ipaddress.ip_interface(text) for text in places[0]]
        return tuple(InterfaceAddress(one.ip, one.network.prefixlen) for one in found)

    own = OwnAddresses("*:7474", "", look)
    await own.start()
    asked = _Asked(_line(), None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(own.run)
        nursery.start_soon(PortMapper(own, asked).run)
        await trio.sleep(1)
        assert [one.found_by for one in own.known] == [FoundBy.ROUTER, FoundBy.INTERFACE]
        del places[0]
        await trio.sleep(INTERFACES_LOOK_SECONDS)
        assert len(asked.at) == 2
        assert [one.found_by for one in own.known] == [FoundBy.INTERFACE], (
            "the other's port leads nowhere now"
        )
        del places[0]
        await trio.sleep(INTERFACES_LOOK_SECONDS + MAPPING_DEADLINE_SECONDS)
        assert own.router.state is RouterState.NOT_NEEDED
        nursery.cancel_scope.cancel()


# --- the process that asks ---


async def _ask(gateway: Callable[[bytes], bytes | None], description: str = NOWHERE) -> PortMapping | str:
    with serve_gateway(gateway) as address, fail_after(60):
        return read_answer(await ask_router(Wanted(7474, 7474), gateway=address, description=description))


@pytest.mark.extended
@pytest.mark.slow
async def test_each_way_gives_a_mapping() -> None:
    assert await _ask(pcp) == PortMapping("pcp", HOST, 7474, 3600)
    assert await _ask(nat_pmp) == PortMapping("nat-pmp", HOST, 7474, int(MAPPING_SECONDS))
    for router, seconds in ((UpnpRouter(), int(MAPPING_SECONDS)), (UpnpRouter(is_permanent=True), 0)):
        with serve_upnp(router) as url:
            assert await _ask(_refuse, url) == PortMapping("upnp", HOST, 7474, int(MAPPING_SECONDS))
            assert router.forwarded == {7474: f"7474 for {seconds}"}


def _refuse(data: bytes) -> bytes | None:
    return pcp(data, code=2)


@pytest.mark.slow
async def test_another_machines_port_is_left_to_it() -> None:
    router = UpnpRouter(held=(7474,))
    with serve_upnp(router) as url:
        found = await _ask(_refuse, url)
    assert isinstance(found, PortMapping)
    assert found.port != 7474
    assert list(router.forwarded) == [found.port]


@pytest.mark.slow
@pytest.mark.parametrize(
    "gateway, outcome",
    [
        (lambda data: pcp(data, host="10.0.0.1"), "not public"),
        (lambda data: nat_pmp(data, host="192.168.0.1"), "not public"),
        (lambda data: nat_pmp(data, code=3), "NAT-PMP code 3"),
        (lambda data: pcp(data, nonce=b"another node"), "another request"),
        (lambda data: b"\x02\x81" + bytes(200), "another request"),
        (lambda data: b"\x00\x80\x00\x00", "no answer"),
    ],
)
async def test_a_forged_gateway_gives_none(gateway: Callable[[bytes], bytes | None], outcome: str) -> None:
    found = await _ask(gateway)
    assert isinstance(found, str)
    assert outcome in found


PAGES = {
    "garbage": b"\xff\x00<" * 1000,
    "huge": b"<a>" * (48 << 20),
    "deep": b"<a>" * 300_000,
    "bomb": b"<!DOCTYPE a [" + b"".join(b'<!ENTITY e%d "&e%d;&e%d;">' % (n + 1, n, n) for n in range(60)) + b"]>",
    "empty": b"",
    "elsewhere": b"<root><URLBase>http://127.0.0.1:1/</URLBase></root>",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
async def test_a_forged_description_gives_none(page: str) -> None:
    with serve_upnp(UpnpRouter(), lambda: PAGES[page]) as url:
        found = await _ask(_refuse, url)
    assert isinstance(found, str)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["192.168.1.1", "x" * 5000, "<![CDATA[8.8.8.8", "-1", ""])
async def test_a_forged_address_gives_none(host: str) -> None:
    with serve_upnp(UpnpRouter(host)) as url:
        assert isinstance(await _ask(_refuse, url), str)


@pytest.mark.slow
async def test_a_router_that_holds_the_line_is_left_with_the_process() -> None:
    asked, is_over = threading.Event(), threading.Event()

    def hold() -> bytes:
        asked.set()
        is_over.wait(60)
        return b""

    with serve_upnp(UpnpRouter(), hold) as url, trio.CancelScope() as scope, fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_ask, _refuse, url)
            await trio.to_thread.run_sync(asked.wait, 60)
            scope.cancel()
    is_over.set()
    assert scope.cancelled_caught, "the process was ended, and waited for"


async def test_a_process_that_cannot_be_started_or_says_too_much_is_no_router(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/nowhere/python")
        with pytest.raises(OSError, match="/nowhere/python"):
            await ask_router(Wanted(1, 1))
    monkeypatch.setattr("sys.executable", "/usr/bin/yes")  # it prints its arguments for ever
    with fail_after(60):
        line = await ask_router(Wanted(1, 1))
    assert len(line) <= MAPPING_LINE_SIZE_MAX + 1
    assert read_answer(line) == "an answer that cannot be read"


def test_no_router_is_not_called_a_success() -> None:
    assert upnp_problem(Exception("Success")) == upnp_problem(Exception()) == "no router answers"
    assert upnp_problem(Exception("ConflictInMappingEntry")) == "ConflictInMappingEntry"


def test_the_gateway_is_that_of_the_default_route() -> None:
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
    local = "eth0 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    default = (
        f"eth0 00000000 {int.from_bytes(bytes((192, 168, 1, 254)), 'little'):08X} 0003 0 0 0 00000000 0 0 0\n"
    )
    assert parse_gateway(head + local + default) == ("192.168.1.254", 5351)
    assert parse_gateway(head + local) is None
    assert parse_gateway("") is None
