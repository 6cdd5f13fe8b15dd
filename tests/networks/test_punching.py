"""Two members behind home routers, who know an invitation and a relay: which way they find to each other.

`make nets-table` tries all pairs and takes their times. Here are those that differ in what the nodes must do.
"""

from pathlib import Path

import pytest

from tests.e2e.cluster import digest, until
from tests.networks import cases
from tests.networks.cases import PAIRS, Case, check_both_write, join, members, path_of
from tests.networks.routers import RouterKind
from tests.support.machine import patience

pytestmark = [pytest.mark.slow, pytest.mark.extended]

_HOST, _PORT, _SYMMETRIC = RouterKind.HOST_RESTRICTED, RouterKind.PORT_RESTRICTED, RouterKind.SYMMETRIC


@pytest.mark.parametrize(
    "case",
    [
        PAIRS[_HOST, _SYMMETRIC],  # one side alone can be dialed
        PAIRS[_PORT, _SYMMETRIC],  # neither can
        cases.DOUBLE_NAT,
        cases.HAIRPIN,
        cases.IPV6,
        cases.ONLY_443,
    ],
    ids=lambda case: case.name.replace(" ", "-"),
)
def test_members_find_the_path_that_theory_allows(tmp_path: Path, case: Case) -> None:
    with members(tmp_path, case) as found:
        assert join(case, found, patience(30)).path in case.paths
        check_both_write(found)


def test_two_routers_are_opened_from_inside_and_nothing_is_lost(tmp_path: Path) -> None:
    case = PAIRS[_PORT, _PORT]
    with members(tmp_path, case) as found:
        bob, alice = found.bob, found.alice
        bob.client.join_repo(found.link)
        for number in range(20):
            alice.client.write_post("main", f"post {number}")
        until(
            lambda: path_of(bob, found.keys[0]) == "punched" == path_of(alice, found.keys[1]),
            "both have dialed",
        )
        bob.client.write_post("main", "on the direct way")
        until(lambda: digest(bob, "main") == digest(alice, "main"), "alice has it")
        assert "through both routers" in alice.run("peer", "list")
        found.relay.kill()
        bob.client.write_post("main", "without the relay")
        until(lambda: digest(bob, "main") == digest(alice, "main"), "alice has that, too")
