"""Whole histories of honest nodes after which all members hold the same, and nobody who was excluded reads on."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from protocol.formats.body import Permission
from protocol.formats.text import id_text
from protocol.ids import CommitId
from storage.commits.commits import load_timeline
from storage.commits.pending import count_pending
from tests.support.nodes import Node, connected, members_of, open_nodes, renewing_of, share

pytestmark = pytest.mark.slow


@pytest.fixture
def anyone(tmp_path: Path) -> Iterator[list[Node]]:
    """Give five nodes, the first the founder's."""
    with open_nodes(tmp_path, "alice", "ben", "cat", "dan", "eve") as nodes:
        yield nodes


async def sync(*nodes: Node, seconds: float = 5) -> None:
    """Let each two of some nodes meet, twice, for so long."""
    for _ in range(2):
        for one, other in combinations(nodes, 2):
            async with connected(one, other):
                await trio.sleep(seconds)


async def exclude(node: Node, other: Node, keeps: str = "") -> None:
    """Exclude another node's user, or lower its permission."""
    await members_of(node).remove("", id_text(other.author.user), keeps)


async def grant(node: Node, *others: Node, permission: str = "admin") -> None:
    """Grant a permission to users, one after the other: so the first is senior to the later ones."""
    for other in others:
        await members_of(node).grant("", id_text(other.author.user), permission)


def shown(node: Node, name: str = "main") -> list[CommitId]:
    """Return a branch's timeline."""
    with node.replica.database.read() as connection:
        return [row.commit_id for row in load_timeline(connection, node.branch(name).num, 0, 1000)]


def waiting(node: Node) -> int:
    """Return how many commits wait."""
    with node.replica.database.read() as connection:
        return count_pending(connection)


def assert_same(*nodes: Node, name: str = "main") -> None:
    """Assert that nothing waits on these nodes, and that they show the same of a branch, and the same members."""
    assert [waiting(node) for node in nodes] == [0] * len(nodes)
    for one, other in pairwise(nodes):
        assert shown(one, name) == shown(other, name)
        assert one.replica.members(one.repo()) == other.replica.members(other.repo())


def test_who_joins_last_reads_all_though_a_renewal_did_not_know_a_branch(anyone: list[Node]) -> None:
    async def main() -> None:
        alice, adm, bob, dan, carol = anyone
        await share(alice, adm, bob, carol)
        await grant(alice, adm)
        await sync(alice, adm, bob, carol)
        _, news = alice.author.founding.create_branch(alice.repo(), "plans", is_unique=True)
        alice.hub.announce(news)
        await sync(alice, bob)
        await renewing_of(adm).renew("")
        await sync(adm, carol)
        await sync(carol, bob)
        bob.write(bob.branch("plans"), "by bob, in the epoch of adm")
        await sync(alice, bob)
        await renewing_of(alice).renew("")
        alice.write(alice.branch("plans"), "by alice, in the next epoch")
        await sync(alice, adm, bob, carol, seconds=20)
        await dan.joiner.begin(alice.invite(alice.repo(), Permission.WRITE))
        await sync(alice, bob, adm, dan, seconds=30)
        for number in range(3):
            alice.write(alice.branch("plans"), f"later {number}")
        await sync(*anyone, seconds=70)
        assert len(shown(dan, "plans")) == 6
        assert_same(*anyone, name="plans")

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_nobody_stays_behind_whose_exclusion_was_contested(anyone: list[Node]) -> None:
    async def main() -> None:
        alice, bob, carol, dave = nodes = anyone[:4]
        await share(alice, bob, carol, dave)
        await grant(alice, dave)
        alice.write(alice.branch(), "hello")
        await sync(*nodes)
        await exclude(dave, bob)
        dave.write(dave.branch(), "without bob")
        await sync(dave, carol)
        carol.write(carol.branch(), "carol writes")
        await sync(dave, carol)
        await exclude(alice, dave, "write")  # beside the exclusion, which counts no more
        alice.write(alice.branch(), "dave is no admin")
        await sync(alice, bob)
        for _ in range(3):
            await sync(*nodes, seconds=20)
        for number in range(5):
            alice.write(alice.branch(), f"alice {number}")
        await sync(*nodes, seconds=70)
        assert len(alice.replica.members(alice.repo())) == 4
        assert len(shown(bob)) == 10
        assert_same(*nodes)

    trio.run(main, clock=MockClock(autojump_threshold=0))


def test_an_exclusion_that_counts_again_ends_reading(anyone: list[Node]) -> None:
    async def main() -> None:
        alice, ben, cat, dan, eve = anyone
        await share(alice, ben, cat, eve, dan)
        await grant(alice, cat, ben, eve)
        alice.write(alice.branch(), "hello")
        await sync(*anyone)
        await exclude(ben, dan)
        await exclude(cat, ben, "write")  # beside it: dan's exclusion does not count
        await sync(ben, cat, eve)
        assert dan.author.user in eve.replica.members(eve.repo())
        await renewing_of(eve).renew("")
        await exclude(alice, cat, "write")  # beside cat's removal: dan's exclusion counts again
        for _ in range(3):
            await sync(*anyone, seconds=20)
        assert dan.author.user not in alice.replica.members(alice.repo())
        before = shown(dan)
        for number in range(5):
            alice.write(alice.branch(), f"not for dan {number}")
        await sync(*anyone, seconds=30)
        assert shown(dan) == before
        epochs = dan.replica.tables.epochs.values()
        assert alice.epoch().epoch_id not in {one.epoch_id for one in epochs}
        assert_same(alice, ben, cat, eve)

    trio.run(main, clock=MockClock(autojump_threshold=0))
