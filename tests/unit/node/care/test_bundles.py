"""Bundles between nodes: what one writes another takes by the way of peers, and nobody else can use."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from node.care import bundle_reading, bundle_writing
from node.care.bundle_reading import read_bundle
from node.care.bundle_writing import write_bundle
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from protocol.formats.body import Permission
from protocol.formats.bundle import BundleBatch, BundleDecoder, BundleEncoder
from protocol.formats.publication import decode_publication
from protocol.formats.text import id_text
from protocol.limits.files import BUNDLE_PASSED_OVER_MAX
from ravel.types.bundles import BundleReading
from storage.commits import pending
from storage.commits.blocks import DamagedBlock
from storage.commits.pending import UNREAD, PendingPublication, keep_pending
from storage.engine.errors import StorageError
from storage.topics import carrying
from storage.topics.carrying import find_last, find_received_before
from storage.topics.publishing import load_publications
from tests.support.blocking import inline
from tests.support.nodes import Node, ids, members_of, open_nodes, renewing_of, share


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


@pytest.mark.slow
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
        side, ingested = alice.author.founding.create_branch(repo, "side")
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


@pytest.mark.slow
async def test_a_reading_that_is_cut_at_any_part_goes_on_and_takes_nothing_twice(tmp_path: Path) -> None:
    """Each time some more came, and the last time the rest."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        side, ingested = alice.author.founding.create_branch(repo, "side")
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


@pytest.mark.slow
async def test_a_bundle_of_two_repos_gives_the_one_that_is_here_and_counts_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many ids of what it cannot open the reader remembers."""
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        repo, main = alice.create_repo()
        alice.write(main, "hello")
        _, others = carol.create_repo()
        carol.write(others, "elsewhere")
        theirs = batches_of(await bundle_of(carol))
        await bob.joiner.begin(alice.invite(repo))
        both = rebuilt([*theirs, *batches_of(await bundle_of(alice))])
        count = sum(len(one.items) for one in theirs)
        for remembered in (BUNDLE_PASSED_OVER_MAX, count, count - 1, 0):
            monkeypatch.setattr(bundle_reading, "BUNDLE_PASSED_OVER_MAX", remembered)
            assert (await read(bob, both))["unopened"] == count
        assert ids(bob) == ids(alice)
        assert len(bob.replica.repos) == 1


async def test_a_bundle_of_which_too_much_waits_is_read_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader is told what to read first. At the bound it is read to its end."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        await read(bob, await bundle_of(alice))
        alice.write(main, "between")
        day = advance(alice)
        for number in range(4):
            alice.write(main, f"new {number}")
        later = await bundle_of(alice, since=day)
        monkeypatch.setattr(pending, "PENDING_COUNT_MAX", 6)  # an author's half is three
        with pytest.raises(ServiceError) as refused:
            await read(bob, later)
        assert (refused.value.code, "1 commit found no room" in refused.value.message) == ("incomplete", True)
        monkeypatch.setattr(pending, "PENDING_COUNT_MAX", 8)
        assert (await read(bob, later))["waiting"] == 4
        await read(bob, await bundle_of(alice))
        assert ids(bob) == ids(alice)


async def test_a_store_that_fails_ends_a_reading_and_keeps_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a full disk does. The same bundle goes on once there is room."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        for number in range(6):
            alice.write(main, f"post {number}")
        await bob.joiner.begin(alice.invite(repo))
        parts = batches_of(await bundle_of(alice))
        content = rebuilt([BundleBatch(one.topic, (item,)) for one in parts for item in one.items])
        ingest, room = bob.hub.intake.ingest, 8

        async def fill(*given: Any) -> IngestResult:  # noqa: ANN401  # as of Intake
            nonlocal room
            room -= 1
            if room < 0:
                raise StorageError("the disk is full")
            return await ingest(*given)

        with monkeypatch.context() as patched:
            patched.setattr(bob.hub.intake, "ingest", fill)
            with pytest.raises(StorageError):
                await read(bob, content)
        before = len(commits_of(bob))
        assert 0 < before < len(commits_of(alice))
        found = await read(bob, content)
        assert ids(bob) == ids(alice)
        assert found["taken"] == len(commits_of(bob)) - before


async def test_a_damaged_commit_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its batch are carried, and its reader hears of it."""
    with open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        repo, main = alice.create_repo()
        await bob.joiner.begin(alice.invite(repo))
        for number in range(3):
            alice.write(main, f"post {number}")
        damaged = len(commits_of(alice))

        def load(connection: Any, topic: Any, nums: Sequence[int], *more: Any) -> list[bytes]:  # noqa: ANN401  # as the function takes it
            if damaged in nums:
                raise DamagedBlock("a block")
            return load_publications(connection, topic, nums, *more)

        monkeypatch.setattr(bundle_writing, "load_publications", load)
        found = await read(bob, await bundle_of(alice))
        assert (found["left_out"], found["taken"]) == (1, found["commits"])
        assert ids(bob) == ids(alice)[:-1]


async def test_since_is_the_moment_from_which_on_this_node_took_commits_in(tmp_path: Path) -> None:
    """At each commit's own moment it begins with that commit."""
    with open_nodes(tmp_path, "alice") as (alice,):
        _, main = alice.create_repo()
        for number in range(5):
            alice.write(main, f"post {number}")
        with alice.replica.database.read() as connection:
            last = find_last(connection)
            rows = connection.exec_driver_sql("SELECT num, received_at FROM commits ORDER BY num").all()
            assert rows[-1][0] == last
            for num, received_at in rows:
                before = [one for one, at in rows if at < received_at]
                assert find_received_before(connection, received_at, last) == max(before, default=0), num
            assert find_received_before(connection, rows[-1][1] + 1, last) == last


@pytest.mark.slow
async def test_the_cost_of_a_bundle_grows_with_what_it_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the commits are at most twice the looks into the store; what is not carried costs none."""
    looks = 0

    def counting(work: Callable[..., Any]) -> Callable[..., Any]:
        def count(*given: Any, **named: Any) -> Any:  # noqa: ANN401  # as the function has it
            nonlocal looks
            looks += 1
            return work(*given, **named)

        return count

    for module, name in (
        (carrying, "select_rows"),
        (carrying, "select_in"),
        (bundle_writing, "load_publications"),
    ):
        monkeypatch.setattr(module, name, counting(getattr(module, name)))
    monkeypatch.setattr(bundle_writing, "BATCH_COUNT_MAX", 10)

    async def cost(node: Node, since: int | None = None) -> int:
        nonlocal looks
        looks = 0
        await bundle_of(node, since)
        return looks

    with open_nodes(tmp_path, "alice") as (alice,):
        _, main = alice.create_repo()
        costs = []
        for _ in range(2):
            for number in range(100):
                alice.write(main, f"post {number}")
            whole, day = await cost(alice), advance(alice)
            for number in range(20):
                alice.write(main, f"post {number}")
            costs.append((whole, await cost(alice, day)))
        (whole, part), (twice, later) = costs
        assert twice < 2.5 * whole
        assert later - part <= 2  # the search for the day takes one step more for twice as many
        assert later < whole


@pytest.mark.slow
async def test_a_member_who_was_away_takes_new_epochs_and_who_was_excluded_is_told_that_it_cannot(
    tmp_path: Path,
) -> None:
    """The same bundle has the boxes of who remains; the excluded gets the removal, and counts what is sealed from it."""
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        await share(alice, bob, carol)
        await read(bob, await bundle_of(alice))
        day = advance(alice)
        await members_of(alice).remove("repo", id_text(carol.author.user), "")
        alice.write(alice.branch(), "without carol")
        await renewing_of(alice).renew("repo")
        alice.write(alice.branch(), "in the next epoch")
        content = await bundle_of(alice, day)
        found = await read(bob, content)
        assert (found["unopened"], found["waiting"], found["refused"]) == (0, 0, 0)
        assert ids(bob) == ids(alice)
        found = await read(carol, content)
        assert (found["unopened"] > 0, found["refused"]) == (True, 0)
        assert carol.replica.permission(carol.repo(), carol.author.user) is None
        assert len(ids(carol)) < len(ids(alice))


async def test_what_the_writer_is_too_old_to_read_is_carried_for_who_can(tmp_path: Path) -> None:
    """It comes last, and is judged by its reader."""
    with open_nodes(tmp_path, "alice", "bob", "carol") as (alice, bob, carol):
        _, main = alice.create_repo()
        for other in (bob, carol):
            await other.joiner.follow(alice.capability())
            await read(other, await bundle_of(alice))
        alice.write(main, "of a newer version")
        last = batches_of(await bundle_of(alice))[-1]
        unread = PendingPublication(decode_publication(last.items[-1]).commit_id, last.items[-1], (), UNREAD)
        with bob.replica.database.write() as connection:
            keep_pending(bob.replica.database, connection, bob.replica.by_topic[last.topic].num, [unread])
        found = await read(carol, await bundle_of(bob))
        assert (found["taken"], found["already"]) == (1, found["commits"] - 1)
        assert ids(carol) == ids(alice)
