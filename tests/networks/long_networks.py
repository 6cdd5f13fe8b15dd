"""What takes minutes: lines that are cut until connections are given up, that lose a fifth, and that flap. `make nets`."""

import random
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from protocol.limits.peers import IDLE_TIMEOUT_SECONDS
from tests.e2e.cluster import until
from tests.networks.lines import Line, PlacedPeer, cut, daemons, heal, set_lines
from tests.networks.namespaces import NamespaceNet
from tests.networks.test_networks import KINDS, gather, open_net, until_agreed, write

pytestmark = pytest.mark.slow

_FLAPS = 12


def _last_error(peer: PlacedPeer) -> str:
    return "".join(str(other["last_error"] or "") for other in peer.client.show_status()["peers"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ways", [(0, 1), (1, 0), (0, 1, 0)])
def test_a_line_that_is_cut_for_long_is_given_up_with_a_reason_and_dialed_again(
    tmp_path: Path, kind: str, ways: tuple[int, ...]
) -> None:
    net = open_net(kind, 2)
    with daemons(net, tmp_path, "alice", "bob") as (alice, bob):
        branch = gather(alice, bob)
        until_agreed(branch, 1, alice, bob)
        for sender, receiver in pairwise(ways):
            cut(net, sender, receiver)
        for peer in (alice, bob):
            write(peer, branch, 300, peer.home.name)
        until(
            lambda: bool(alice.client.show_status()["peers"] == []) or "idle" in _last_error(alice),
            "alice has given the connection up",
            IDLE_TIMEOUT_SECONDS + 30,
        )
        until(lambda: _last_error(bob) != "", "bob says why", IDLE_TIMEOUT_SECONDS + 30)
        heal(net, 0, 1)
        until_agreed(branch, 601, alice, bob, seconds=120)


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_flaps_and_loses_a_fifth_carries_everything_in_the_end(tmp_path: Path, kind: str) -> None:
    net = open_net(kind, 3)
    bad = Line(loss=0.2, delay=0.1, jitter=0.2, rate=500_000)
    for other in (1, 2):
        set_lines(net, 0, other, bad)
    chance = random.Random(5)
    with daemons(net, tmp_path, "alice", "bob", "carol") as everybody:
        branch = gather(*everybody)
        until_agreed(branch, 1, *everybody)
        for flap in range(_FLAPS):
            other = chance.choice((1, 2))
            pair = chance.sample((0, other), 2)
            cut(net, *pair)
            for peer in everybody:
                write(peer, branch, 100, f"{peer.home.name} {flap}")
            time.sleep(chance.uniform(0, 3))  # how long the line is cut
            heal(net, 0, other)
        until_agreed(branch, 1 + 300 * _FLAPS, *everybody, seconds=240)


@pytest.mark.skipif("namespaces" not in KINDS, reason="an interface of its own needs a namespace")
def test_an_interface_that_is_taken_down_and_up_again_is_no_reason_to_restart(tmp_path: Path) -> None:
    net = NamespaceNet(2)
    with daemons(net, tmp_path, "alice", "bob") as (alice, bob):
        branch = gather(alice, bob)
        until_agreed(branch, 1, alice, bob)
        for number, peer in ((0, alice), (1, bob)):
            net.set_interface(number, is_up=False)
            write(peer, branch, 100, peer.home.name)
            until(partial(lambda one: one.client.show_status(), peer), "it answers", 5)
            net.set_interface(number, is_up=True)
            until_agreed(branch, 101 + 100 * number, alice, bob, seconds=120)
        assert alice.stop() == bob.stop() == 0
