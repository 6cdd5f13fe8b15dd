"""Bundles between nodes: what one writes another takes by the way of peers, and nobody else can use."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from node.care.bundle_reading import read_bundle
from node.care.bundle_writing import write_bundle
from node.contract.bundles import BundleReading
from node.runtime.blocking import inline
from node.runtime.errors import ServiceError
from protocol.formats.body import Permission
from protocol.formats.bundle import BundleBatch, BundleDecoder, BundleEncoder
from protocol.formats.text import id_text
from tests.support.nodes import Node, ids, open_nodes, renewing_of

_START: Final = 1_700_000_000_000


async def bundle_of(node: Node, since: int | None = None, branches: Sequence[str] | None = None) -> bytes:
    """A bundle of a node's one repo."""
    chosen = [one for one in node.replica.branches.values() if branches is None or one.name in branches]
    return b"".join([some async for some in write_bundle(node.replica, node.repo(), chosen, since, inline())])


async def read(node: Node, content: bytes, step: int = 1 << 16) -> BundleReading:
    """Have a node read a bundle, some bytes at a time."""

    async def chunks() -> AsyncGenerator[bytes]:
        for start in range(0, len(content), step):
            yield content[start : start + step]

    return await read_bundle(node.hub, node.joiner, chunks())


def batches_of(content: bytes) -> list[BundleBatch]:
    """The batches of a bundle."""
    return [one for one in BundleDecoder().feed(content) if isinstance(one, BundleBatch)]


def rebuilt(batches: Sequence[BundleBatch]) -> bytes:
    """A whole bundle of these batches."""
    encoder = BundleEncoder()
    parts = [encoder.start(None), *(encoder.encode_batch(one.topic, one.items) for one in batches)]
    return b"".join([*parts, encoder.encode_end(sum(len(one.items) for one in batches), 0, ())])


def commits_of(node: Node) -> list[bytes]:
    """Ids of all commits that a node has accepted."""
    with node.replica.database.read() as connection:
        return [row[0] for row in connection.exec_driver_sql("SELECT commit_id FROM commits")]


def advance(node: Node) -> int:
    """Set the node's clock a day on; return the moment in between."""
    now = next(node._clock)
    node.replica.close()
    node.open(now + 86_400_000)
    return now + 43_200_000


async def test_a_newcomer_takes_a_whole_repo_of_many_epochs_from_a_bundle(tmp_path: Path) -> None:
    """By the link of the newest epoch alone: its init gives the keys of all before it. Read again, nothing is new."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        for number in range(3):
            alice.write(main, f"post {number}")
            await renewing_of(alice).renew("repo")
        alice.write(main, "last")
        await bob.joiner.begin(alice.invite(repo))
        content = await bundle_of(alice)
        found = await read(bob, content)
        assert ids(bob) == ids(alice)
        assert bob.digest(bob.branch("root")) == alice.digest(alice.branch("root"))
        counts = {key: found[key] for key in ("refused", "waiting", "unopened", "missing", "left_out")}
        assert set(counts.values()) == {0}, counts
        assert found["commits"] == found["taken"], found
        again = await read(bob, content)
        assert (again["taken"], again["waiting"]) == (0, 0)
        assert again["already"] >= found["commits"]


async def test_what_a_bundle_carries_goes_on_to_others_by_a_bundle(tmp_path: Path) -> None:
    """A reader, who cannot sign on the writers' topic, carries what it was brought: the same publications."""
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, main = alice.create_repo()
        alice.write(main, "hello")
        await bob.joiner.begin(alice.invite(repo, Permission.READ))
        await carol.joiner.follow(alice.capability())
        await read(bob, await bundle_of(alice))
        passed_on = await bundle_of(bob)
        assert batches_of(passed_on) == batches_of(await bundle_of(alice))
        await read(carol, passed_on)
        assert ids(carol) == ids(alice)


async def test_a_bundle_since_a_day_says_what_it_stands_on(tmp_path: Path) -> None:
    """Who lacks that is told, keeps what waits, and has all of it once what is between has come."""
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, main = alice.create_repo()
        alice.write(main, "old")
        link = alice.invite(repo)
        first, monday = await bundle_of(alice), advance(alice)
        alice.write(main, "between")
        tuesday = advance(alice)
        for number in range(5):
            alice.write(main, f"new {number}")
        later = await bundle_of(alice, since=tuesday)
        await bob.joiner.begin(link)
        await read(bob, first)
        found = await read(bob, later)
        assert (found["commits"], found["taken"], found["since"]) == (5, 0, tuesday // 1000)
        assert (found["missing"], found["waiting"]) == (1, 5)
        found = await read(bob, await bundle_of(alice, since=monday))
        assert (found["commits"], found["waiting"], found["missing"]) == (6, 0, 0)
        assert ids(bob) == ids(alice)
        found = await read(bob, later)
        assert (found["taken"], found["already"], found["missing"]) == (0, 5, 0)
        assert (await read(bob, await bundle_of(alice, since=2**52)))["commits"] == 0
        await carol.joiner.begin(link)
        with pytest.raises(ServiceError) as refused:
            await read(carol, later)
        assert refused.value.code == "not_found"
        assert "what came before 2023-11-16" in refused.value.advice


async def test_a_bundle_of_some_branches_has_the_root_branch_and_these(tmp_path: Path) -> None:
    """The others do not come, and nothing waits for them."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        side, ingested = alice.author.create_branch(repo, "side")
        alice.hub.announce(ingested)
        alice.write(main, "on main")
        alice.write(side, "on side")
        await bob.joiner.begin(alice.invite(repo))
        found = await read(bob, await bundle_of(alice, branches=["side"]))
        assert (found["waiting"], found["unopened"]) == (0, 0)
        assert bob.digest(bob.branch("side")) == alice.digest(side)
        assert bob.digest(bob.branch("main"))[1] == 0


async def test_a_bundle_holds_no_key_no_text_and_no_name(tmp_path: Path) -> None:
    """What is in clear is what a relay sees: topics, ids, acks, ranks and marks."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo("the name of the repo")
        alice.write(main, "the text of a post")
        await renewing_of(alice).renew("repo")
        alice.invite(repo)
        content = await bundle_of(alice)
        secrets: list[Any] = [
            alice.seed,
            alice.user_seed,
            alice.key,
            alice.author.user,
            repo.repo_id,
            repo.init_key,
        ]
        for epoch in alice.replica.tables.epochs.values():
            secrets += [epoch.key, epoch.keys.read_key, epoch.keys.convergence_secret]
            secrets += [epoch.writers_secret] if epoch.writers_secret else []
        hidden = [
            *secrets,
            *(one.hex().encode() for one in secrets),
            *(id_text(one).encode() for one in secrets),
        ]
        assert len(hidden) >= 30
        hidden += [b"the name of the repo", b"the text of a post", b"main", b"alice"]
        assert [one for one in hidden if one in content] == []
        with pytest.raises(ServiceError) as refused:
            await read(bob, content)
        assert refused.value.code == "not_found"
        assert not bob.replica.repos


async def test_a_reading_that_is_cut_at_any_part_goes_on_and_takes_nothing_twice(tmp_path: Path) -> None:
    """Each time some more came, and the last time the rest."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        side, ingested = alice.author.create_branch(repo, "side")
        alice.hub.announce(ingested)
        for number in range(4):
            alice.write(main, f"post {number}")
            alice.write(side, f"post {number}")
        await bob.joiner.begin(alice.invite(repo))
        parts = batches_of(await bundle_of(alice))
        content = rebuilt([BundleBatch(one.topic, (item,)) for one in parts for item in one.items])
        count = 0
        for stop in range(1, len(content) * 3 // 4, len(content) // 19):
            with pytest.raises(ServiceError) as cut:
                await read(bob, content[:stop])
            assert cut.value.code == "interrupted"
            before, count = count, len(commits_of(bob))
            assert count >= before
        found = await read(bob, content)
        assert ids(bob) == ids(alice)
        assert found["taken"] == len(commits_of(bob)) - count > 0


@pytest.mark.parametrize(
    "change, refused, unopened",
    [
        (lambda batches: batches * 2, 0, 0),
        (lambda batches: batches[::-1], 0, 4),  # the writers' topic is known once the init came
        (lambda batches: [BundleBatch(one.topic, one.items[::-1]) for one in batches], 0, 0),
        (lambda batches: [*batches, BundleBatch(batches[-1].topic, (b"no publication",))], 1, 0),
        (lambda batches: [*batches, BundleBatch(batches[0].topic, batches[-1].items)], 4, 0),
    ],
)
async def test_what_is_doubled_or_reordered_or_no_publication_is_judged_as_from_a_peer(
    tmp_path: Path, change: Callable[[list[BundleBatch]], list[BundleBatch]], refused: int, unopened: int
) -> None:
    """The repo is the same after it, or after it was read again, and what is refused is counted."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        for number in range(3):
            alice.write(main, f"post {number}")
        await bob.joiner.begin(alice.invite(repo))
        content = rebuilt(change(batches_of(await bundle_of(alice))))
        found = await read(bob, content)
        assert (found["refused"], found["waiting"], found["unopened"] > 0) == (refused, 0, unopened > 0)
        if unopened:
            assert (await read(bob, content))["unopened"] == 0
        assert ids(bob) == ids(alice)
