"""A relay's circuits: who may open one, what they may use, and that a slow side stalls its own alone."""

from collections import Counter
from dataclasses import replace
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from node.circuits.quotas import DAY_SECONDS, CircuitAccounts, NamingQuotas
from node.sync.circuit_port import CircuitPort
from protocol.ids import PeerId, TopicKey
from protocol.limits.network import (
    CIRCUIT_ACCOUNTS_MAX,
    CIRCUIT_DATA_SIZE_MAX,
    CIRCUIT_IDLE_SECONDS,
    CIRCUIT_OPEN_SECONDS,
    CIRCUIT_SUBNET_SHARE,
    CIRCUIT_WINDOW_SIZE,
    CIRCUITS_INCOMING_MAX,
    CIRCUITS_OPENED_AT_ONCE_MAX,
    MEETINGS_AT_ONCE_MAX,
    NODE_OF_SUBNET_NAMED_SECONDS,
    NODES_OF_SUBNET_NAMED_AT_ONCE_MAX,
    NODES_OF_SUBNET_TOLD_MAX,
    NODES_OF_TOPIC_TOLD_MAX,
    TOPICS_OF_SUBNET_NAMED_MAX,
    WIDE_CIRCUIT_AFTER_SIZE,
    WIDE_CIRCUIT_WINDOW_SIZE,
    WIDE_CIRCUITS_OF_NODE_MAX,
    WIDE_CIRCUITS_OF_RELAY_SIZE,
)
from protocol.session.messages import CircuitClose, CircuitCredit, CircuitData, CircuitOpen
from storage.relay.quotas import STRANGER, Visitor
from tests.support.circuits import PLENTY, Recorder, Star, key_of
from tests.support.machine import fail_after
from tests.support.relays import until

_WHOLE = bytes(CIRCUIT_DATA_SIZE_MAX)


def _star(**quotas: int | bool) -> tuple[Star, Recorder, Recorder]:
    """A relay with Alice, who asks, and Bob, who accepts."""
    star = Star(replace(PLENTY, **quotas))  # type: ignore[arg-type]  # the names of its fields
    alice, bob = Recorder(), Recorder(accepts=CIRCUIT_WINDOW_SIZE)
    star.add("alice", alice)
    star.add("bob", bob)
    return star, alice, bob


def _port(one: Recorder) -> CircuitPort:
    assert one.port is not None, "it is connected"
    return one.port


def _ask(star: Star, one: Recorder, name: str = "bob") -> int:
    """Ask for a circuit, and grant a window; its number."""
    number = _port(one).new_number()
    _port(one).ask(number, star.address(name))
    _port(one).grant(number, CIRCUIT_WINDOW_SIZE)
    return number


def test_bytes_pass_both_ways_and_numbers_are_each_connections_own() -> None:
    star, alice, bob = _star()
    carol = Recorder()
    star.add("carol", carol)
    first, second = _ask(star, alice), _ask(star, carol)
    assert (first, second, bob.offered_numbers) == (1, 1, [2, 4])
    assert alice.credit == carol.credit == {1: CIRCUIT_WINDOW_SIZE}
    _port(alice).send(first, b"from alice")
    _port(carol).send(second, b"from carol")
    _port(bob).send(2, b"from bob")
    assert bob.data == {2: b"from alice", 4: b"from carol"}
    assert (alice.data, carol.data) == ({1: b"from bob"}, {})
    assert star.switch.totals.bytes_passed == len(b"from alicefrom carolfrom bob")
    assert star.switch.usage_of([key_of("alice"), key_of("nobody")]) == (1, len(b"from alicefrom bob"))
    assert star.switch.open_by == {STRANGER: 2}
    assert star.switch.totals.passed == {STRANGER: len(b"from alicefrom carolfrom bob")}
    assert star.switch.bytes_per_second == len(b"from alicefrom carolfrom bob")
    _port(bob).end(2, "closed")
    assert (alice.ends, carol.ends, star.switch.count) == ({1: "closed"}, {}, 1)


def test_a_node_that_is_not_here_or_takes_no_circuits_is_not_found() -> None:
    class Refuser(Recorder):
        def agreed(self, port: CircuitPort) -> None:
            """It says nothing."""

    star, alice, _ = _star()
    star.add("dave", Refuser())
    for name in ("nobody", "dave", "alice"):
        number = _ask(star, alice, name)
        assert alice.ends[number] == "not_here"
    star.sides["bob"][1].cut()
    assert alice.ends[_ask(star, alice)] == "not_here"
    assert star.switch.count == 0


def test_the_latest_connection_of_a_node_is_where_it_is_found() -> None:
    star, alice, old = _star()
    old_side = star.sides["bob"][1]
    new = Recorder(accepts=1)
    star.add("bob", new)
    _ask(star, alice)
    assert (old.offered_numbers, new.offered_numbers) == ([], [2])
    old_side.cut()
    _ask(star, alice)
    assert new.offered_numbers == [2, 4]


def test_one_circuit_over_a_peers_part_is_refused() -> None:
    star, alice, _ = _star(peer=2)
    first, second, third = (_ask(star, alice) for _ in range(3))
    assert alice.ends == {third: "peer_full"}
    _port(alice).end(first, "closed")
    fourth = _ask(star, alice)
    assert fourth not in alice.ends
    assert second not in alice.ends


def test_one_circuit_over_a_relays_total_is_refused() -> None:
    star, alice, _ = _star(total=1)
    carol = Recorder()
    star.add("carol", carol)
    _ask(star, alice)
    assert carol.ends[_ask(star, carol)] == "relay_full"


def test_strangers_of_one_subnet_share_an_account_and_known_peers_do_not() -> None:
    star = Star(replace(PLENTY, peer=1), known=frozenset({key_of("known")}))
    star.add("bob", Recorder(accepts=1))
    ones = [Recorder() for _ in range(CIRCUIT_SUBNET_SHARE + 1)]
    for number, one in enumerate(ones):
        star.add(f"stranger {number}", one, subnet="198.51.100.0/24")
        _ask(star, one)
    assert [one.ends for one in ones] == [*[{}] * CIRCUIT_SUBNET_SHARE, {1: "subnet_full"}]
    known = Recorder()
    star.add("known", known, subnet="198.51.100.0/24")
    _ask(star, known)
    assert known.ends == {}


def test_a_relay_for_known_peers_opens_circuits_for_them_alone() -> None:
    star = Star(replace(PLENTY, takes_strangers=False), known=frozenset({key_of("known")}))
    star.add("bob", Recorder(accepts=1))
    stranger, known = Recorder(), Recorder()
    star.add("stranger", stranger)
    star.add("known", known)
    _ask(star, stranger)
    _ask(star, known)
    assert (stranger.ends, known.ends) == ({1: "not_known"}, {})


def test_one_circuit_over_what_a_node_takes_of_others_is_refused() -> None:
    star, alice, bob = _star()
    for _ in range(CIRCUITS_INCOMING_MAX):
        _ask(star, alice)
    assert alice.ends[_ask(star, alice)] == "not_taken"
    assert len(bob.offered_numbers) == CIRCUITS_INCOMING_MAX


def test_circuits_opened_and_closed_over_and_over_are_refused() -> None:
    star, alice, bob = _star()
    for _ in range(CIRCUITS_OPENED_AT_ONCE_MAX):
        _port(alice).end(_ask(star, alice), "closed")
    assert alice.ends[_ask(star, alice)] == "peer_full"
    assert len(bob.offered_numbers) == CIRCUITS_OPENED_AT_ONCE_MAX
    star.pass_time(1)
    assert _ask(star, alice) not in alice.ends


def test_the_bytes_of_a_day_end_the_circuit_and_the_next_day_begins_anew() -> None:
    star, alice, bob = _star(day=1000)
    number = _ask(star, alice)
    _port(alice).send(number, bytes(999))
    assert alice.ends == {}
    _port(bob).send(2, b"x")
    assert (alice.ends, bob.ends) == ({number: "day_used"}, {2: "day_used"})
    assert (len(bob.data[2]), alice.data[number]) == (999, b"x"), "what came was passed on"
    assert alice.ends[_ask(star, alice)] == "day_used"
    star.pass_time(DAY_SECONDS)
    assert _ask(star, alice) not in alice.ends


def test_a_circuit_that_is_not_accepted_in_time_ends() -> None:
    star, alice, bob = _star()
    bob.accepts = 0
    number = _ask(star, alice)
    star.pass_time(CIRCUIT_OPEN_SECONDS - 1)
    assert alice.ends == {}
    star.pass_time(1)
    assert (alice.ends, bob.ends) == ({number: "timeout"}, {2: "timeout"})


def test_an_idle_circuit_ends_and_one_in_use_does_not() -> None:
    star, alice, _ = _star()
    idle, used = _ask(star, alice), _ask(star, alice)
    star.pass_time(CIRCUIT_IDLE_SECONDS - 1)
    _port(alice).send(used, b"x")
    star.pass_time(1)
    assert alice.ends == {idle: "idle"}


def test_circuits_of_a_node_that_leaves_end_and_others_stay() -> None:
    star, alice, _ = _star()
    carol = Recorder(accepts=1)
    star.add("carol", carol)
    to_bob, to_carol = _ask(star, alice), _ask(star, alice, "carol")
    star.sides["bob"][0].cut()
    assert alice.ends == {to_bob: "gone"}
    assert star.switch.count == 1
    _port(alice).send(to_carol, b"x")
    assert carol.data == {2: b"x"}


def test_a_peer_over_its_rate_gets_no_more_credit_until_it_may_send_again() -> None:
    rate = CIRCUIT_WINDOW_SIZE
    star, alice, bob = _star(rate=rate)
    number = _ask(star, alice)
    sent = 0
    for _ in range(60):  # sixty seconds of a sender that sends all that it may
        while alice.credit[number] - sent > 0:
            size = min(alice.credit[number] - sent, CIRCUIT_DATA_SIZE_MAX)
            _port(alice).send(number, _WHOLE[:size])
            _port(bob).grant(2, size)
            sent += size
        star.pass_time(1)
    assert 59 * rate <= sent <= 60 * rate + 2 * CIRCUIT_WINDOW_SIZE
    assert len(bob.data[2]) == sent, "nothing is held here"


async def test_the_clock_passes_credit_on_and_stands_while_there_is_no_circuit(
    autojump_clock: MockClock,
) -> None:
    star, alice, bob = _star(rate=CIRCUIT_WINDOW_SIZE)
    star.switch._clock = trio.current_time
    looks = 0
    tick = star.switch.tick

    def look() -> float:
        nonlocal looks
        looks += 1
        return tick()

    star.switch.tick = look  # type: ignore[method-assign]  # counted on its way
    with fail_after(1000):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(star.switch.run)
            await trio.sleep(500)
            assert looks == 1
            number = _ask(star, alice)
            for _ in range(2 * CIRCUIT_WINDOW_SIZE // CIRCUIT_DATA_SIZE_MAX):
                await until(lambda: alice.credit[number] >= CIRCUIT_DATA_SIZE_MAX)
                alice.credit[number] -= CIRCUIT_DATA_SIZE_MAX
                _port(alice).send(number, _WHOLE)
                _port(bob).grant(2, CIRCUIT_DATA_SIZE_MAX)
            await trio.sleep(CIRCUIT_IDLE_SECONDS + 2)
            assert alice.ends == {number: "idle"}
            assert looks < 1000
            nursery.cancel_scope.cancel()


def test_a_circuit_that_is_not_read_stalls_and_others_go_on() -> None:
    star, alice, bob = _star()
    stalled, going = _ask(star, alice), _ask(star, alice)
    for _ in range(CIRCUIT_WINDOW_SIZE // CIRCUIT_DATA_SIZE_MAX):
        _port(alice).send(stalled, _WHOLE)
    assert alice.credit[stalled] == CIRCUIT_WINDOW_SIZE, "no more may be sent"
    for _ in range(100):
        _port(alice).send(going, _WHOLE)
        _port(bob).grant(4, CIRCUIT_DATA_SIZE_MAX)
    assert len(bob.data[4]) == 100 * CIRCUIT_DATA_SIZE_MAX
    assert star.sides["alice"][0].closed == ""


def test_a_relay_holds_a_window_of_a_node_that_does_not_read() -> None:
    star, alice, _ = _star()
    to_bob = star.sides["bob"][1]
    number = _ask(star, alice)
    to_bob.holds = True
    for _ in range(CIRCUIT_WINDOW_SIZE // CIRCUIT_DATA_SIZE_MAX):
        _port(alice).send(number, _WHOLE)
    said = [one for one in to_bob.said if isinstance(one, CircuitData)]
    assert sum(len(one.data) for one in said) == CIRCUIT_WINDOW_SIZE
    star.sides["alice"][0].say(CircuitData(number, b"x"))
    assert star.sides["alice"][1].closed == "circuit_overrun", "who sends more is left"
    to_bob.say_held()
    assert star.sides["bob"][0].closed == ""


@pytest.mark.parametrize(
    "message, reason",
    [
        (CircuitData(3, b"for the other's circuit"), "unknown_circuit"),
        (CircuitCredit(3, 1), "unknown_circuit"),
        (CircuitClose(3, "closed"), "unknown_circuit"),
        (CircuitData(2, b"by the number of the other end"), "unknown_circuit"),
        (CircuitOpen(2, Star().address("bob")), "wrong_circuit"),
    ],
)
def test_who_speaks_of_a_circuit_that_is_not_its_own_is_left_and_the_circuit_goes_on(
    message: CircuitData | CircuitCredit | CircuitClose | CircuitOpen, reason: str
) -> None:
    star, alice, bob = _star()
    mallory = Recorder()
    star.add("mallory", mallory)
    _ask(star, alice)
    number = _ask(star, alice)
    assert number == 3
    node, relay = star.sides["mallory"]
    node.say(message)
    assert relay.closed == reason
    _port(alice).send(number, b"on")
    assert bob.data == {4: b"on"}


def test_credit_that_comes_after_the_end_is_passed_over() -> None:
    star, alice, bob = _star()
    number = _ask(star, alice)
    star.sides["bob"][0].holds = True
    _port(bob).grant(2, 5)
    _port(bob).send(2, b"late")
    _port(alice).end(number, "closed")
    star.sides["bob"][0].say_held()
    assert bob.ends == {2: "closed"}
    assert [side.closed for sides in star.sides.values() for side in sides] == [""] * 4


def test_one_account_over_the_bound_takes_the_place_of_one_without_a_circuit() -> None:
    accounts = CircuitAccounts(PLENTY)
    (busy,) = accounts.of(Visitor(key_of("busy"), is_known=True), 0.0)
    busy.circuits = 1
    for number in range(CIRCUIT_ACCOUNTS_MAX):
        accounts.of(Visitor(PeerId(number.to_bytes(32, "big")), is_known=True), 0.0)
    assert len(accounts) == CIRCUIT_ACCOUNTS_MAX
    assert accounts.of(Visitor(key_of("busy"), is_known=True), 0.0) == (busy,)


def test_nodes_that_meet_on_a_topic_are_named_to_each_other_and_to_nobody_else() -> None:
    told: list[tuple[str, TopicKey, list[PeerId]]] = []

    class Port:
        """A connection, as far as names go."""

        def __init__(self, name: str) -> None:
            self.peer = key_of(name)
            self.subnet = ""
            self._name = name

        def name(self, topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
            told.extend([(self._name, topic, sorted(nodes))] if nodes else [])

    switch = Star().switch
    topic, other = TopicKey(b"t" * 32), TopicKey(b"o" * 32)
    alice, bob, carol, dave = (cast(CircuitPort, Port(name)) for name in ("alice", "bob", "carol", "dave"))
    for port, one in ((alice, topic), (dave, other), (bob, topic)):
        switch.rendezvous_asked(port, one)
    assert told == [("bob", topic, [key_of("alice")]), ("alice", topic, [key_of("bob")])]
    told.clear()
    switch.lost(alice)
    switch.rendezvous_asked(carol, topic)
    assert told == [("carol", topic, [key_of("bob")]), ("bob", topic, [key_of("carol")])]
    for port in (bob, carol, dave):
        switch.lost(port)
    assert switch._meetings == {} == switch._topics


def test_of_many_nodes_the_latest_are_named() -> None:
    named: Counter[int] = Counter()

    class Port:
        """A connection, as far as names go."""

        def __init__(self, number: int) -> None:
            self.peer = PeerId(number.to_bytes(32, "big"))
            self.subnet = ""
            self._number = number

        def name(self, _topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
            named[self._number] = len(nodes)

    switch = Star().switch
    for number in range(NODES_OF_TOPIC_TOLD_MAX + 1):
        switch.rendezvous_asked(cast(CircuitPort, Port(number)), TopicKey(b"t" * 32))
    named.clear()
    switch.rendezvous_asked(cast(CircuitPort, Port(999)), TopicKey(b"t" * 32))
    assert named.pop(999) == NODES_OF_TOPIC_TOLD_MAX
    assert set(named) == set(range(1, NODES_OF_TOPIC_TOLD_MAX + 1))


def test_strangers_of_one_subnet_are_not_all_that_a_node_hears_of() -> None:
    """Who follows a topic may come with any number of keys, and come again and again."""
    star = Star(known=frozenset({PeerId((3).to_bytes(32, "big"))}))
    named: dict[int, list[int]] = {}

    class Port:
        """A connection, as far as names go."""

        def __init__(self, number: int, subnet: str) -> None:
            self.peer = PeerId(number.to_bytes(32, "big"))
            self.subnet = subnet
            self._number = number

        def name(self, _topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
            named.setdefault(self._number, []).extend(int.from_bytes(one, "big") for one in nodes)

    def meet(number: int, subnet: str) -> CircuitPort:
        port = cast(CircuitPort, Port(number, subnet))
        star.switch.rendezvous_asked(port, TopicKey(b"t" * 32))
        return port

    meet(1, "198.51.100.0/24")
    flood = [meet(number, "203.0.113.0/24") for number in range(1000, 1000 + 200)]
    assert named[1] == list(range(1000, 1000 + NODES_OF_SUBNET_NAMED_AT_ONCE_MAX))
    named.clear()
    meet(2, "192.0.2.0/24")
    assert named[2] == [1, *range(1200 - NODES_OF_SUBNET_TOLD_MAX, 1200)]
    assert named[1] == [2]
    for port in flood:
        star.switch.lost(port)
    star.now += NODE_OF_SUBNET_NAMED_SECONDS
    named.clear()
    for number in (2000, 2001):
        meet(number, "203.0.113.0/24")
    assert named[1] == named[2] == [2000]
    meet(3, "203.0.113.0/24")
    assert named[1] == [2000, 3], "the operator knows it"


def _topic(number: int) -> TopicKey:
    return TopicKey(number.to_bytes(32, "big"))


def test_strangers_of_one_subnet_are_not_named_anew_for_meeting_on_many_topics() -> None:
    """Any number of topics costs nothing: what was used on one of them must not be forgotten for others."""
    switch, named = Star().switch, Counter[TopicKey]()

    class Port:
        """A connection, as far as names go."""

        def __init__(self, name: str, subnet: str) -> None:
            self.peer = PeerId(name.encode().ljust(32))
            self._is_member = name == "member"
            self.subnet = subnet

        def name(self, topic: TopicKey, nodes: tuple[PeerId, ...]) -> None:
            named[topic] += len(nodes) if self._is_member else 0

    def meet(name: str, subnet: str, topic: TopicKey) -> None:
        port = cast(CircuitPort, Port(name, subnet))
        switch.rendezvous_asked(port, topic)
        if name != "member":
            switch.lost(port)

    meet("member", "192.0.2.0/24", _topic(0))
    for _ in range(2):
        for _ in range(NODES_OF_SUBNET_NAMED_AT_ONCE_MAX + 1):
            meet("stranger", "203.0.113.0/24", _topic(0))
        for number in range(1, CIRCUIT_ACCOUNTS_MAX + 2):
            meet("stranger", "203.0.113.0/24", _topic(number))
    assert named[_topic(0)] == NODES_OF_SUBNET_NAMED_AT_ONCE_MAX
    meet("another", "198.51.100.0/24", _topic(0))
    assert named[_topic(0)] == NODES_OF_SUBNET_NAMED_AT_ONCE_MAX + 1, "others are named"


def test_strangers_are_named_on_as_many_topics_as_one_asks_for_at_once_and_again_after_a_minute() -> None:
    quotas = NamingQuotas()

    def take_all(count: int, now: float) -> int:
        return sum(quotas.take(_topic(number), "203.0.113.0/24", now) for number in range(count))

    assert TOPICS_OF_SUBNET_NAMED_MAX >= MEETINGS_AT_ONCE_MAX
    assert take_all(TOPICS_OF_SUBNET_NAMED_MAX + 1, 0.0) == TOPICS_OF_SUBNET_NAMED_MAX
    later = NODE_OF_SUBNET_NAMED_SECONDS
    assert not quotas.take(_topic(1000), "203.0.113.0/24", later - 1)
    assert all(quotas.take(_topic(1000 + number), "203.0.113.0/24", later) for number in range(100))


def test_what_subnets_have_used_is_forgotten_of_the_longest_unused() -> None:
    quotas = NamingQuotas()
    first, second, *others = (f"subnet {number}" for number in range(CIRCUIT_ACCOUNTS_MAX))
    for name in [first, second] * NODES_OF_SUBNET_NAMED_AT_ONCE_MAX + others:
        assert quotas.take(_topic(0), name, 0.0)
    assert not quotas.take(_topic(0), first, 0.0), "all are remembered"
    assert quotas.take(_topic(0), "one more", 0.0)
    assert not quotas.take(_topic(0), first, 0.0)
    assert quotas.take(_topic(0), second, 0.0)


def test_metrics_name_only_reasons_that_are_known() -> None:
    star, alice, _ = _star()
    _port(alice).end(_ask(star, alice), "a reason of its own")
    _port(alice).end(_ask(star, alice), "closed")
    assert dict(star.switch.totals.ended) == {"other": 1, "closed": 1}


_NARROW, _WIDE = CIRCUIT_WINDOW_SIZE, WIDE_CIRCUIT_WINDOW_SIZE


def _use(
    star: Star, one: Recorder, number: int, other: Recorder, size: int = WIDE_CIRCUIT_AFTER_SIZE
) -> None:
    """Send so many bytes on a circuit, which are read at once."""
    received = other.offered_numbers[-1]
    for _ in range(size // _NARROW):
        _port(one).send(number, bytes(_NARROW))
        one.credit[number] -= _NARROW
        _port(other).grant(received, _NARROW)


def test_a_direction_that_has_passed_much_gets_more_credit_and_the_other_does_not() -> None:
    star, alice, bob = _star()
    number = _ask(star, alice)
    _port(bob).grant(2, _WIDE - _NARROW)
    assert alice.credit == {number: _NARROW}, "not before"
    _use(star, alice, number, bob)
    assert alice.credit == {number: _WIDE}
    assert bob.credit == {2: _NARROW}
    large = bytes(CIRCUIT_DATA_SIZE_MAX)
    bob.data.clear()
    _port(alice).send(number, large)
    assert bob.data[2] == large
    star.sides["bob"][1].say(CircuitCredit(number, 1))
    assert star.sides["bob"][0].closed == "unknown_circuit"


def test_a_relay_holds_a_wide_window_of_a_node_that_does_not_read() -> None:
    star, alice, bob = _star()
    number = _ask(star, alice)
    _port(bob).grant(2, _WIDE - _NARROW)
    _use(star, alice, number, bob)
    to_bob = star.sides["bob"][1]
    to_bob.holds, before = True, len(to_bob.said)
    for _ in range(_WIDE // CIRCUIT_DATA_SIZE_MAX):
        _port(alice).send(number, bytes(CIRCUIT_DATA_SIZE_MAX))
    said = [one for one in to_bob.said[before:] if isinstance(one, CircuitData)]
    assert sum(len(one.data) for one in said) == _WIDE
    star.sides["alice"][0].say(CircuitData(number, b"x"))
    assert star.sides["alice"][1].closed == "circuit_overrun"


def test_no_more_than_a_usual_window_is_held_of_a_node_that_granted_much_at_once() -> None:
    star, alice, bob = _star()
    number = _ask(star, alice)
    _port(bob).grant(2, _WIDE - _NARROW)
    _port(alice).send(number, bytes(_NARROW))
    assert alice.credit == {number: _NARROW}, "bob has used none, as far as the relay knows"
    _port(bob).grant(2, 1000)
    assert alice.credit == {number: _NARROW + 1000}
    star.sides["alice"][0].say(CircuitData(number, bytes(1001)))
    assert star.sides["alice"][1].closed == "circuit_overrun"


@pytest.mark.slow
def test_wide_directions_are_bounded_for_a_node_and_for_the_relay_and_end_with_their_circuits() -> None:
    star, *_ = _star(total=1000, rate=1 << 40, day=1 << 40)
    most = WIDE_CIRCUITS_OF_RELAY_SIZE // (_WIDE - _NARROW)
    names = [f"node {number}" for number in range(most // WIDE_CIRCUITS_OF_NODE_MAX + 1)]
    circuits: list[tuple[Recorder, int]] = []
    for name in names:
        one, other = Recorder(), Recorder(accepts=_NARROW)
        for who, recorder in ((name, one), (f"peer of {name}", other)):
            star.add(who, recorder)
        for _ in range(WIDE_CIRCUITS_OF_NODE_MAX + 1):
            number = _ask(star, one, f"peer of {name}")
            _port(other).grant(other.offered_numbers[-1], _WIDE - _NARROW)
            _use(star, one, number, other)
            circuits.append((one, number))
    wide = [(one, number) for one, number in circuits if one.credit[number] == _WIDE]
    assert len(wide) == most
    assert max(Counter(id(one) for one, _ in wide).values()) == WIDE_CIRCUITS_OF_NODE_MAX
    assert {one.credit[number] for one, number in circuits} == {_WIDE, _NARROW}
    for one, number in circuits:
        _port(one).end(number, "closed")
    assert not star.switch._wide


def test_a_peer_over_its_rate_gets_no_wide_credit_until_it_may_send_again() -> None:
    star, alice, bob = _star(rate=WIDE_CIRCUIT_AFTER_SIZE // 4)
    number = _ask(star, alice)
    _port(bob).grant(2, _WIDE - _NARROW)
    sent = 0
    for _ in range(20):
        while alice.credit[number] - sent > 0:
            size = min(alice.credit[number] - sent, CIRCUIT_DATA_SIZE_MAX)
            _port(alice).send(number, bytes(size))
            _port(bob).grant(2, size)
            sent += size
        star.pass_time(1)
    rate = WIDE_CIRCUIT_AFTER_SIZE // 4
    assert 19 * rate <= sent <= 20 * rate + 2 * _WIDE
    assert len(bob.data[2]) == sent, "nothing is held here"
