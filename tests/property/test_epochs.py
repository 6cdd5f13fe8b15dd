"""Random groups that write, exclude, renew, invite and part, on whole nodes: in the end all who remain agree, and who was
excluded has nothing that opens what they write.

Seeds 0 to 9, or as many as RAVEL_EPOCHS says (`make histories`). Keys are random, so a failing seed fails with those who
did what, not with which epoch was preferred; put it into KEPT_SEEDS.
"""

import os
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from node.ingest.publication_parsing import opening_keys
from node.ingest.publication_reading import OpeningKeys, read_batch
from node.runtime.errors import ServiceError
from protocol.formats.body import Permission
from protocol.formats.text import id_text
from storage.topics.difference import plan_sending
from storage.topics.publishing import load_publications
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, ids, members_of, open_nodes, renewing_of, share
from tests.support.tiers import in_tiers

KEPT_SEEDS: Final = (98, 106)
"""Seeds that have failed; they are always tried."""
COUNT: Final = int(os.environ.get("RAVEL_EPOCHS", "10"))
NAMES: Final = ("alice", "bob", "carol", "dave", "erin")
_STEPS: Final = 14
_DEEDS: Final = ("write", "write", "write", "exclude", "grant", "renew", "invite", "meet", "meet", "meet")
_REFUSALS: Final = {"not_permitted", "already_exists", "bad_request", "incomplete"}
_MEETING_SECONDS: Final = 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", in_tiers([*KEPT_SEEDS, *sorted({*range(COUNT)} - {*KEPT_SEEDS})], quick=1))
def test_who_remains_agrees_and_who_was_excluded_reads_nothing_new(seed: int, tmp_path: Path) -> None:
    with open_nodes(tmp_path, *NAMES) as nodes:
        trio.run(_live, nodes, Random(seed), clock=MockClock(autojump_threshold=0))


async def _live(nodes: list[Node], random: Random) -> None:
    with fail_after(3600):
        alice, *others = nodes[:-1]  # the last comes by an invitation, some time
        await share(alice, *others)
        for admin in random.sample(others, random.randint(1, 2)):
            await members_of(alice).grant("", id_text(admin.author.user), "admin")
        for other in others:
            await _meet(alice, other)
        for _ in range(_STEPS):
            await _step(nodes, random)
        await _agree(nodes)
        alice.write(alice.branch(), "for all who are members now")
        await _agree(nodes)
        _check(nodes)


async def _step(nodes: list[Node], random: Random) -> None:
    """Somebody does something, or two meet. What the rules refuse is refused."""
    actor, other = random.sample(nodes, 2)
    user = id_text(other.author.user)
    if not any(branch.name == "main" for branch in actor.replica.branches.values()):
        return  # nothing has come yet
    try:
        match random.choice(_DEEDS):
            case "write":
                actor.write(actor.branch(), f"by {actor.key.hex()[:8]}")
            case "exclude" if other is not nodes[0]:
                await members_of(actor).remove("", user, random.choice(("", "", "read")))
            case "grant":
                await members_of(actor).grant("", user, random.choice(("write", "admin")))
            case "renew":
                await renewing_of(actor).renew("")
            case "invite" if other is nodes[-1]:
                await other.joiner.begin(actor.invite(actor.repo(), Permission.WRITE))
            case _:
                await _meet(actor, other)
    except ServiceError as error:
        if error.code not in _REFUSALS:
            raise


async def _meet(first: Node, second: Node) -> None:
    async with connected(first, second):
        await trio.sleep(_MEETING_SECONDS)


async def _agree(nodes: list[Node]) -> None:
    """Everybody meets everybody until that changes nothing."""
    before: list[object] = []
    here = [node for node in nodes if node.replica.repos]
    while (now := [_held(node) for node in here]) != before:
        before = now
        for first, second in combinations(here, 2):
            await _meet(first, second)


def _held(node: Node) -> object:
    return (
        [node.digest(branch) for branch in node.replica.branches.values()],
        node.epoch().epoch_id,
        node.repo().is_behind,
    )


def _check(nodes: list[Node]) -> None:
    alice = nodes[0]
    members = alice.replica.members(alice.repo())
    for node in nodes:
        if not node.replica.repos:
            continue
        if node.author.user in members:
            assert node.replica.members(node.repo()) == members
            assert _held(node) == _held(alice)
            assert ids(node) == ids(alice)
            may_write = members[node.author.user] >= Permission.WRITE
            assert node.epoch().writers_seed is not None or not may_write
        else:
            assert not _opens_anything(node, alice)


def _opens_anything(node: Node, source: Node) -> bool:
    """Whether any key of the node opens what stands on the topics that the source writes to."""
    openings = tuple(one for topic in node.replica.topics.values() for one in opening_keys(topic).openings)
    for name in source.replica.tables.writing_topics(source.repo().num):
        topic = source.replica.by_topic[name]
        with source.replica.database.read() as connection:
            nums = plan_sending(connection, topic.num, ()).nums
            items = load_publications(connection, topic, nums, 1 << 30)
        assert items or topic.writers_of, "at least the init of the epoch stands on its own topic"
        if read_batch(OpeningKeys(name, openings, holds_topic_key=False), items).candidates:
            return True
    return False
