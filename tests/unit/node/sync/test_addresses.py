"""What is learned of peers' addresses stays within its bounds, no matter who tells it."""

from random import Random

import pytest
import trio
from trio.testing import MockClock

from node.network.admission import Admission, HalfOpen
from node.sync.addresses import AddressBook, AddressSource, Learned
from protocol.ids import PeerId, RepoId
from protocol.limits.network import (
    ADDRESS_BARRED_SECONDS,
    ADDRESS_FAILURES_MAX,
    ADDRESS_REACHED_SECONDS,
    ADDRESS_UNREACHED_SECONDS,
    ADDRESSES_BARRED_MAX,
    ADDRESSES_MAX,
    ADDRESSES_PER_PEER_MAX,
    ADDRESSES_PER_REPO_MAX,
    ADDRESSES_PER_TELLER_MAX,
    CONNECTIONS_PER_HOST_SHARE,
    HALF_OPEN_MAX,
    HANDSHAKE_ACCEPT_SECONDS,
    HANDSHAKE_TURN_SECONDS,
    HOST_TRIES_MAX,
    HOST_TRIES_SECONDS,
    HOSTS_TRIED_MAX,
    KNOWN_PLACES_SHARE,
    LEARNED_PAUSE_MAX_SECONDS,
    LEARNED_PAUSE_MIN_SECONDS,
    REACHED_FAILURES_MAX,
)

OWN, BOB = PeerId(b"o" * 32), PeerId(b"b" * 32)
REPO = RepoId(b"r" * 32)
HERE = "10.0.0.1:7474"


def _key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _book(banned: set[PeerId] | None = None) -> AddressBook:
    return AddressBook(OWN, banned if banned is not None else set())


def _learn(
    book: AddressBook,
    peer: PeerId = BOB,
    address: str = HERE,
    *,
    told_by: PeerId = BOB,
    repo: RepoId = REPO,
    now: float = 0.0,
) -> bool:
    return book.learn(peer, address, AddressSource.INTRODUCTION, told_by=told_by, repos=(repo,), now=now)


def _fail(book: AddressBook, learned: Learned, now: float, *, is_online: bool = True) -> bool:
    """Try, and fail at once."""
    return book.begin(learned, now) and book.failed(learned, now, is_online=is_online)


def test_addresses_are_bounded_at_all() -> None:
    book = _book()
    for number in range(ADDRESSES_MAX):
        assert _learn(book, PeerId(_key(number)), told_by=PeerId(_key(number)), repo=RepoId(_key(number)))
    assert not _learn(book)


def test_addresses_are_bounded_for_a_repo() -> None:
    book = _book()
    for number in range(ADDRESSES_PER_REPO_MAX):
        assert _learn(book, PeerId(_key(number)), told_by=PeerId(_key(number)))
    assert not _learn(book)
    assert _learn(book, repo=RepoId(b"another".ljust(32)))
    assert _learn(book), "the address is known"
    assert book.due(0.0)[-1].repos == {b"another".ljust(32)}, "and is not the full repo's"


def test_addresses_are_bounded_for_who_tells_them() -> None:
    book = _book()
    for number in range(ADDRESSES_PER_TELLER_MAX):
        assert _learn(book, PeerId(_key(number)), told_by=BOB)
    assert not _learn(book, PeerId(b"x" * 32), told_by=BOB)
    assert _learn(book, PeerId(b"x" * 32), told_by=PeerId(b"c" * 32))


def test_addresses_are_bounded_for_a_peer_whose_own_word_counts_more() -> None:
    book = _book()
    for number in range(ADDRESSES_PER_PEER_MAX):
        assert _learn(book, address=f"10.0.0.2:{number + 1}", told_by=PeerId(b"c" * 32), now=number)
    assert not _learn(book, told_by=PeerId(b"c" * 32))
    assert _learn(book, told_by=BOB)
    addresses = {one.address for one in book.all}
    assert len(addresses) == ADDRESSES_PER_PEER_MAX
    assert HERE in addresses
    assert "10.0.0.2:1" not in addresses, "the oldest went"


def test_this_node_and_the_banned_are_not_learned_nor_dialed() -> None:
    banned: set[PeerId] = set()
    book = _book(banned)
    assert not _learn(book, OWN)
    assert _learn(book)
    banned.add(BOB)
    assert not _learn(book, address="10.0.0.2:7474")
    assert book.due(0.0) == []


def test_names_are_not_learned() -> None:
    assert not _learn(_book(), address="host.example:7474")


def test_an_address_at_which_nobody_answers_is_dropped_and_barred_for_a_while() -> None:
    book = _book()
    _learn(book)
    now, tries = 0.0, 0
    while book.due(now):
        tries += 1
        was_dropped = _fail(book, book.due(now)[0], now)
        now += LEARNED_PAUSE_MAX_SECONDS
    assert tries == ADDRESS_FAILURES_MAX
    assert was_dropped
    assert not _learn(book, now=now)
    assert book.all == []
    book.due(now + ADDRESS_BARRED_SECONDS)
    assert _learn(book, now=now + ADDRESS_BARRED_SECONDS)


def test_so_many_are_barred_before_nothing_more_is_learned() -> None:
    book = _book()
    for number in range(ADDRESSES_BARRED_MAX):
        address = f"10.{number >> 8}.{number & 255}.1:7474"
        assert _learn(book, PeerId(_key(number)), address, told_by=PeerId(_key(number)))
        (learned,) = book.all
        for _ in range(ADDRESS_FAILURES_MAX):
            book.failed(learned, 0.0, is_online=True)
    assert not _learn(book)


def test_pauses_grow_between_two_tries() -> None:
    book = _book()
    _learn(book)
    (learned,) = book.due(0.0)
    _fail(book, learned, 0.0)
    first = learned.due_at
    _fail(book, learned, first)
    assert learned.due_at - first == 2 * first > 0


def test_where_a_peer_was_reached_it_is_sought_longer_but_not_for_ever() -> None:
    book = _book()
    _learn(book)
    (learned,) = book.due(0.0)
    book.begin(learned, 0.0)
    book.reached(learned, 0.0)
    book.left(learned, 10.0)
    failures = [book.failed(learned, 10.0, is_online=True) for _ in range(REACHED_FAILURES_MAX)]
    assert failures == [False] * (REACHED_FAILURES_MAX - 1) + [True]


def test_while_this_node_is_cut_off_no_peer_that_was_reached_is_dropped() -> None:
    book = _book()
    _learn(book)
    (learned,) = book.due(0.0)
    book.begin(learned, 0.0)
    book.reached(learned, 0.0)
    assert not any(_fail(book, learned, 0.0, is_online=False) for _ in range(10 * HOST_TRIES_MAX))
    assert book.all == [learned]


def test_while_this_node_is_cut_off_pauses_grow_to_two_minutes() -> None:
    """It may be let in at any time, so it does not wait an hour; nor does it try four times a minute for days."""
    book = _book()
    _learn(book)
    (learned,) = book.due(0.0)
    book.begin(learned, 0.0)
    book.reached(learned, 0.0)
    now, tries = 0.0, 0
    while now < 24 * 3600.0:
        assert book.begin(learned, now)
        book.failed(learned, now, is_online=False)
        now, tries = learned.due_at, tries + 1
    assert 700 < tries < 730
    book.left(learned, now)
    assert book.begin(learned, now)
    book.failed(learned, now, is_online=True)
    assert learned.due_at == now + 2 * LEARNED_PAUSE_MIN_SECONDS


def test_one_host_is_tried_so_often_whatever_keys_and_ports_are_said_to_be_there() -> None:
    book = _book()
    for number in range(HOST_TRIES_MAX + 1):
        assert _learn(book, PeerId(_key(number)), f"10.0.0.1:{number + 1}", told_by=PeerId(_key(number)))
    began = [book.begin(learned, 0.0) for learned in book.due(0.0)]
    assert began == [True] * HOST_TRIES_MAX + [False]
    _learn(book, address="10.0.0.2:7474")
    assert [book.begin(one, 0.0) for one in book.due(0.0)][-1:] == [True], "another host is another matter"
    later = HOST_TRIES_SECONDS + LEARNED_PAUSE_MAX_SECONDS
    assert book.begin(book.due(later)[0], later)


def test_a_peer_that_was_reached_takes_no_tries_from_its_host() -> None:
    book = _book()
    _learn(book)
    (learned,) = book.due(0.0)
    for _ in range(HOST_TRIES_MAX + 1):
        assert book.begin(learned, 0.0)
        book.reached(learned, 0.0)


def test_one_ipv6_network_is_one_host() -> None:
    book = _book()
    for number in range(HOST_TRIES_MAX + 1):
        _learn(book, PeerId(_key(number)), f"[fd00::{number + 1}]:7474", told_by=PeerId(_key(number)))
    assert sum(book.begin(learned, 0.0) for learned in book.due(0.0)) == HOST_TRIES_MAX


def test_so_many_hosts_are_tried_at_a_time() -> None:
    book = _book()
    for number in range(HOSTS_TRIED_MAX):
        address = f"10.{number >> 8}.{number & 255}.1:7474"
        assert _learn(
            book, PeerId(_key(number)), address, told_by=PeerId(_key(number)), repo=RepoId(_key(number))
        )
        assert book.begin(book.all[-1], 0.0)
        book.forget(PeerId(_key(number)))
    _learn(book, address="192.168.1.1:7474")
    assert not book.begin(book.all[0], 0.0)


def test_what_is_old_is_forgotten() -> None:
    book = _book()
    _learn(book)
    (learned,) = book.due(ADDRESS_UNREACHED_SECONDS)
    book.reached(learned, 0.0)
    assert book.due(ADDRESS_REACHED_SECONDS) == [learned]
    assert book.due(ADDRESS_REACHED_SECONDS + 1) == []
    _learn(book)
    assert book.due(ADDRESS_UNREACHED_SECONDS + 1) == []


def test_one_host_has_its_share_of_the_places_and_this_machine_has_all_that_strangers_have() -> None:
    admission = Admission(16)
    share, most = 16 // CONNECTIONS_PER_HOST_SHARE, 16 - 16 // KNOWN_PLACES_SHARE
    assert [admission.admit("10.0.0.1:1") for _ in range(share)] == [None] * share
    assert admission.admit("10.0.0.1:1") == "too_many_connections_of_host"
    assert [admission.admit("127.0.0.1:1") for _ in range(most - share)] == [None] * (most - share)
    assert admission.admit("10.0.0.2:1") == "too_many_connections"
    admission.leave("10.0.0.1:1")
    assert admission.admit("10.0.0.1:1") is None


def test_strangers_leave_places_for_known_peers_and_one_who_becomes_known_makes_room() -> None:
    admission = Admission(16)
    while admission.admit("127.0.0.1:1") is None:
        pass
    for _ in range(16 // KNOWN_PLACES_SHARE):
        assert admission.admit("10.0.0.1:1", is_known=True) is None
    admission.become_known("127.0.0.1:1")
    assert admission.admit("127.0.0.1:1") == "too_many_connections", "all places are taken"
    admission.leave("10.0.0.1:1", is_known=True)
    assert admission.admit("127.0.0.1:1") is None
    assert admission.admit("10.0.0.1:1", is_known=True) == "too_many_connections"


async def test_half_open_connections_make_room_for_the_newest_of_another_host(
    autojump_clock: MockClock,
) -> None:
    half_open, ended = HalfOpen(3), list[tuple[str, float]]()

    async def hold(address: str) -> None:
        with half_open.place(address):
            await trio.sleep(2 * HANDSHAKE_ACCEPT_SECONDS)
        ended.append((address, trio.current_time() - began))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for address in ("10.0.0.2:1", "10.0.0.1:1", "10.0.0.1:2", "10.0.0.3:1"):
            nursery.start_soon(hold, address)
            await trio.testing.wait_all_tasks_blocked()
        assert ended == [("10.0.0.1:1", 0.0)], "the oldest of the host that has most"
    assert [seconds for _, seconds in ended[1:]] == [pytest.approx(HANDSHAKE_ACCEPT_SECONDS)] * 3


async def test_handshakes_of_one_host_take_turns(autojump_clock: MockClock) -> None:
    half_open, began, waited = HalfOpen(4, max), trio.current_time(), list[float]()

    async def count(address: str, times: int) -> None:
        for _ in range(times):
            await half_open.wait_turn(address)
            waited.append(round((trio.current_time() - began) / HANDSHAKE_TURN_SECONDS, 3))

    await count("10.0.0.1:1", 4)
    assert waited == [0] * 4, "as many as are half open at a time"
    await count("10.0.0.1:2", 2)
    await count("10.0.0.2:1", 1)
    assert waited[4:] == [1, 2, 2], "then one a turn; another host waits for none of them"
    async with trio.open_nursery() as nursery:
        for _ in range(9):
            nursery.start_soon(count, "10.0.0.1:3", 1)
    assert max(waited) == 2 + 4, "no wait is longer than the places last"
    await trio.sleep(8 * HANDSHAKE_TURN_SECONDS)
    before = trio.current_time()
    await count("10.0.0.1:4", 4)
    assert trio.current_time() == pytest.approx(before), "after a rest as at first"


async def test_who_comes_often_pushes_nobody_of_its_host_out_for_good(autojump_clock: MockClock) -> None:
    half_open, came = HalfOpen(choose=Random(1).uniform), list[int]()

    async def connect(number: int) -> None:
        with half_open.place("10.0.0.1:1"):
            await half_open.wait_turn("10.0.0.1:1")
            came.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(400):  # a hundred a second, five times what is taken
            nursery.start_soon(connect, number)
            await trio.sleep(HANDSHAKE_TURN_SECONDS / 5)
    taken = [number for number in came if 2 * HALF_OPEN_MAX <= number < 400 - HALF_OPEN_MAX]
    assert len(taken) >= 20, "of 208 that came when all places were taken, and before the last"
    assert len(came) <= 2 * 400 / 5 + 2 * HALF_OPEN_MAX, "at first, in four seconds, and those who still wait"


def test_one_ipv6_network_has_one_share() -> None:
    admission = Admission(16)
    share = 16 // CONNECTIONS_PER_HOST_SHARE
    assert [admission.admit(f"[fd00::{number + 1}]:1") for number in range(share)] == [None] * share
    assert admission.admit("[fd00::99]:1") is not None
