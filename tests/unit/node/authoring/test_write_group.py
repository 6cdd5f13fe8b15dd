"""Group commit: requests that come together are stored in one transaction, and each succeeds or fails by itself."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from node.authoring import feed_encoder as feed_encoder_module
from node.authoring import write_queue as write_queue_module
from node.authoring.author import Author
from node.authoring.drafting import Draft, WrittenCommit
from node.authoring.opening import OwnOpener
from node.authoring.write_queue import EncodedWrite, PlanMustWrite, WriteGroup, WriteRequest, nothing_more
from node.authoring.writing import write_commit
from node.content.documents import Documents
from node.ingest.publication_parsing import open_batch
from node.ingest.replica import Change, Replica
from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import public_key
from protocol.formats.body import Grant, Permission, Remove
from protocol.formats.commit import lipmaa
from protocol.formats.content import Post
from protocol.formats.document_kinds import DICT
from protocol.ids import CommitId, TopicKey
from protocol.limits.formats import ACK_COUNT_MAX, BODY_SIZE_MAX
from storage.commits.commits import load_facts, load_timeline
from storage.commits.heads import load_heads
from storage.engine.errors import StorageError
from tests.support.builders import NOW_MS, World, give, timeline
from tests.support.nodes import Node, open_nodes
from verifier.tangle_kinds import GROUP

_USER = public_key(UserSeed(b"b" * 32))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@contextmanager
def counted(replica: Replica, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Change]]:
    """Transactions that were committed meanwhile."""
    seen: list[Change] = []
    show = replica.show

    def note(change: Change) -> None:
        seen.append(change)
        show(change)

    with monkeypatch.context() as patch:
        patch.setattr(replica, "show", note)
        yield seen


def _post(world: World, text: str) -> WriteRequest:
    return WriteRequest(world.branch, [Draft(Post(text))])


def _ids(outcomes: Sequence[list[WrittenCommit] | Exception]) -> list[CommitId]:
    found = []
    for outcome in outcomes:
        assert isinstance(outcome, list)
        found += [one.commit_id for one in outcome]
    return found


def _heads(node: Node) -> int:
    return len(node.heads(node.branch()))


def test_requests_of_a_group_are_one_transaction_and_follow_one_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with counted(world.replica, monkeypatch) as transactions:
        outcomes, ingested = world.author.queue.write_group(
            [_post(world, str(number)) for number in range(9)]
        )
    assert len(transactions) == 1
    ids = _ids(outcomes)
    assert timeline(world.replica, world.branch)[-9:] == ids
    with world.replica.database.read() as connection:
        facts = load_facts(connection, ids)
    assert [facts[commit_id].acks for commit_id in ids[1:]] == [(commit_id,) for commit_id in ids[:-1]]
    assert [len(nums) for nums in ingested.accepted.values()] == [9]


def test_others_take_a_group_as_they_take_single_commits(world: World) -> None:
    outcomes, _ = world.author.queue.write_group([_post(world, str(number)) for number in range(20)])
    replica, branch = world.copy()
    give(replica, [one.encoded for outcome in outcomes if isinstance(outcome, list) for one in outcome])
    assert timeline(replica, branch) == timeline(world.replica, world.branch)


def test_several_branches_share_a_transaction(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    side = world.author.founding.create_branch(world.repo, "side")[0]
    root = world.replica.root_branch(world.repo)
    grant = Grant(_USER, Permission.READ)
    requests = [
        _post(world, "a"),
        WriteRequest(side, [Draft(Post("b"))]),
        WriteRequest(root, [Draft(grant)]),
        _post(world, "c"),
    ]
    with counted(world.replica, monkeypatch) as transactions:
        outcomes, _ = world.author.queue.write_group(requests)
    assert len(transactions) == 1
    ids = _ids(outcomes)
    assert timeline(world.replica, world.branch)[-2:] == [ids[0], ids[3]]
    assert timeline(world.replica, side)[-1] == ids[1]
    assert world.replica.permission(world.repo, grant.user) is Permission.READ


def test_one_that_the_rules_refuse_does_not_fail_the_others(world: World) -> None:
    root = world.replica.root_branch(world.repo)
    of_no_member = Remove(_USER, None, ())
    requests = [_post(world, "a"), WriteRequest(root, [Draft(of_no_member)]), _post(world, "b")]
    outcomes, ingested = world.author.queue.write_group(requests)
    assert isinstance(outcomes[1], ServiceError)
    assert outcomes[1].code == "already_exists"
    assert timeline(world.replica, world.branch)[-2:] == _ids([outcomes[0], outcomes[2]])
    assert sum(map(len, ingested.accepted.values())) == 2


def test_one_that_cannot_be_encoded_does_not_fail_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of its several commits none is written; the next request follows the one before.
    cut = WriteRequest(world.branch, [Draft(Post("x")), Draft(Post("y" * BODY_SIZE_MAX))])
    with counted(world.replica, monkeypatch) as transactions:
        outcomes, _ = world.author.queue.write_group([_post(world, "a"), cut, _post(world, "b")])
    assert len(transactions) == 1
    assert isinstance(outcomes[1], ServiceError)
    assert outcomes[1].code == "bad_request"
    assert timeline(world.replica, world.branch)[-2:] == _ids([outcomes[0], outcomes[2]])


def test_one_that_fails_at_the_end_does_not_fail_the_others(world: World) -> None:
    def fail(_connection: Connection, _written: object) -> None:
        raise StorageError("a row that cannot be")

    failing = WriteRequest(world.branch, [Draft(Post("x"))], fail)
    before = timeline(world.replica, world.branch)
    outcomes, _ = world.author.queue.write_group([_post(world, "a"), failing, _post(world, "b")])
    assert isinstance(outcomes[1], StorageError)
    assert timeline(world.replica, world.branch) == [*before, *_ids([outcomes[0], outcomes[2]])]


@pytest.mark.parametrize("place", ["feed", "heads", "plan"])
def test_a_disk_that_cannot_be_read_while_a_request_is_encoded_is_a_failure_of_the_store(
    world: World, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_: object) -> list[Draft]:
        raise OperationalError("SELECT", {}, sqlite3.OperationalError("disk I/O error"))

    request = WriteRequest(world.branch, fail) if place == "plan" else _post(world, "a")
    if place != "plan":
        name = {"feed": "load_feed_tip", "heads": "load_heads"}[place]
        monkeypatch.setattr(feed_encoder_module, name, fail)
    outcomes, _ = world.author.queue.write_group([request])
    assert isinstance(outcomes[0], StorageError)
    assert "disk I/O error" in str(outcomes[0])


def test_a_plan_that_fails_is_its_own_affair(world: World) -> None:
    def fail(_connection: Connection) -> list[Draft]:
        raise ServiceError("not_found", "no such thing")

    outcomes, _ = world.author.queue.write_group([WriteRequest(world.branch, fail), _post(world, "a")])
    assert isinstance(outcomes[0], ServiceError)
    assert _ids(outcomes[1:]) == timeline(world.replica, world.branch)[-1:]


def test_a_plan_sees_what_the_group_wrote_before_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # In the same transaction; one that finds nothing to do writes nothing.
    seen: list[int] = []

    def plan(connection: Connection) -> list[Draft]:
        seen.append(len(load_timeline(connection, world.branch.num, 0, 100)))
        return [Draft(Post("planned"))] if len(seen) < 3 else []

    before = len(timeline(world.replica, world.branch))
    planned = WriteRequest(world.branch, plan)
    with counted(world.replica, monkeypatch) as transactions:
        outcomes, _ = world.author.queue.write_group([planned, _post(world, "a"), planned, planned])
    assert len(transactions) == 1
    assert seen == [before, before + 2, before + 3]
    assert outcomes[3] == []
    assert timeline(world.replica, world.branch)[before:] == _ids(outcomes)


@pytest.mark.parametrize("is_first", [True, False])
def test_what_a_client_asks_for_behind_a_plan_is_written_behind_it(world: World, *, is_first: bool) -> None:
    """A plan waits for the transaction where it must write rows, or is not the first on its branch."""
    tries = 0

    def plan(_: Connection) -> list[Draft]:
        nonlocal tries
        tries += 1
        if is_first and tries == 1:
            raise PlanMustWrite
        return [Draft(Post("planned"))]

    before = [] if is_first else [_post(world, "a")]
    requests = [*before, WriteRequest(world.branch, plan), _post(world, "b"), _post(world, "c")]
    outcomes, _ = world.author.queue.write_group(requests)
    assert timeline(world.replica, world.branch)[-len(requests) :] == _ids(outcomes)


def test_a_group_is_divided_into_transactions_of_a_bounded_size(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue_module, "WRITE_GROUP_COMMITS_MAX", 3)
    plan = WriteRequest(world.branch, lambda _: [Draft(Post("p"))])
    with counted(world.replica, monkeypatch) as transactions:
        outcomes, _ = world.author.queue.write_group(
            [_post(world, "a"), plan, *[_post(world, "b")] * 4, plan]
        )
    assert len(transactions) == 3
    assert len(_ids(outcomes)) == 7
    assert timeline(world.replica, world.branch)[-7:] == _ids(outcomes)


def test_what_was_stored_is_told_where_the_store_fails_before_the_next_transaction(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_queue_module, "WRITE_GROUP_COMMITS_MAX", 2)
    database = world.replica.database
    read, before = database.read, database.commit_count

    def fail_later() -> AbstractContextManager[Connection]:
        if database.commit_count > before:
            raise StorageError("the disk is gone")
        return read()

    plan = WriteRequest(world.branch, lambda _: [Draft(Post("p"))])
    with monkeypatch.context() as patch:
        patch.setattr(database, "read", fail_later)
        outcomes, ingested = world.author.queue.write_group(
            [_post(world, "0"), _post(world, "1"), plan, plan]
        )
    assert timeline(world.replica, world.branch)[-2:] == _ids(outcomes[:2])
    assert [type(outcome) for outcome in outcomes[2:]] == [StorageError] * 2
    assert sum(map(len, ingested.accepted.values())) == 2


def test_commits_of_one_branch_in_two_epochs_are_each_on_their_own_topic(world: World) -> None:
    # A peer's commits began an epoch while the group was encoded.
    written, _ = world.author.write_many(world.branch, [Draft(Post("one")), Draft(Post("two"))])
    topics = [world.topic(), replace(world.topic(), topic=TopicKey(b"t" * 32))]
    group = WriteGroup(0)
    for topic, one in zip(topics, written, strict=True):
        group.add(EncodedWrite(world.branch, topic, nothing_more, [one], [Post("")]))
    opened = group.open_all(OwnOpener())
    assert [(topic, [one.signed.commit.commit_id for one in batch.opened]) for topic, batch in opened] == [
        (topic, [one.commit_id]) for topic, one in zip(topics, written, strict=True)
    ]


@contextmanager
def _without_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forbid reads of the store beside the transaction."""

    def fail() -> AbstractContextManager[Connection]:
        raise AssertionError("read")

    with monkeypatch.context() as patch:
        patch.setattr(world.replica.database, "read", fail)
        yield


def _acks(world: World, written: WrittenCommit) -> tuple[CommitId, ...]:
    with world.replica.database.read() as connection:
        return load_facts(connection, [written.commit_id])[written.commit_id].acks


def test_a_write_where_nobody_else_has_written_reads_nothing_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    last, _ = world.author.write(world.branch, Post("first"))
    for number in range(20):
        with _without_reading(world, monkeypatch):
            written, _ = world.author.write(world.branch, Post(str(number)))
        assert _acks(world, written) == (last.commit_id,)
        last = written


def test_what_others_have_written_meanwhile_is_acked(world: World) -> None:
    world.author.write(world.branch, Post("first"))
    other = Author(world.replica, UserSeed(b"b" * 32), lambda: NOW_MS)
    world.author.write(world.replica.root_branch(world.repo), Grant(other.user, Permission.WRITE))
    world.author.write(world.branch, Post("second"))
    theirs, _ = other.write(world.branch, Post("theirs"))
    written, _ = world.author.write(world.branch, Post("third"))
    assert _acks(world, written) == (theirs.commit_id,)
    assert _acks(world, other.write(world.branch, Post("again"))[0]) == (written.commit_id,)


def test_a_write_follows_what_was_written_of_the_repo(world: World) -> None:
    # A commit's cause in the root branch: whoever it names may be a member only since then.
    world.author.write(world.branch, Post("first"))
    root = world.replica.root_branch(world.repo)
    granted, _ = world.author.write(root, Grant(_USER, Permission.READ))
    written, _ = world.author.write(world.branch, Post("second"))
    [opened] = open_batch(world.topic(), [written.encoded]).opened
    place = opened.signed.commit.place(GROUP)
    assert place is not None
    assert place.previous == (granted.commit_id,)


def test_a_write_that_failed_is_followed_by_none(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = world.author.write(world.branch, Post("first"))

    def fail(_connection: Connection, _written: object) -> None:
        raise StorageError("the disk is full")

    with pytest.raises(StorageError):
        world.author.write(world.branch, Post("lost"), after=fail)
    written, _ = world.author.write(world.branch, Post("second"))
    assert _acks(world, written) == (first.commit_id,)


def test_a_long_feed_is_written_with_few_of_its_places_in_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A skip link that leads nowhere is no fault, and of no use to whoever follows the feed back.
    monkeypatch.setattr(feed_encoder_module, "_REMEMBERED_MAX", 8)
    for number in range(60):
        world.author.write(world.branch, Post(str(number)))
    assert (
        world.author.queue.write_group([_post(world, str(number)) for number in range(70)])[1].rejected == []
    )
    assert len(timeline(world.replica, world.branch)) == 131
    opened = open_batch(world.topic(), world.publications(world.branch)).opened
    links = {one.signed.commit.content.feed_sequence: one.signed.commit for one in opened}
    for sequence, commit in links.items():
        if lipmaa(sequence) != sequence - 1:
            assert commit.links.lipmaa == links[lipmaa(sequence)].commit_id


def test_an_epoch_that_is_due_is_started_once_for_all(world: World) -> None:
    root, before = world.replica.root_branch(world.repo), world.topic()
    world.author.write(root, Grant(_USER, Permission.READ))
    world.author.write(root, Remove(_USER, None, ()))
    outcomes, ingested = world.author.queue.write_group([_post(world, str(number)) for number in range(3)])
    assert timeline(world.replica, world.branch)[-3:] == _ids(outcomes)
    after, epoch = world.topic(), world.replica.writing_epoch(world.repo)
    assert {topic: len(nums) for topic, nums in ingested.accepted.items()} == {
        before.topic: 1,
        after.topic: 3,
    }
    assert after.topic == epoch.writers_topic != before.topic
    assert list(ingested.also_on) == [epoch.topic], (
        "the init stands on the topic of the epoch that it starts, too"
    )


async def test_writes_that_come_together_through_the_hub_share_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        with counted(alice.replica, monkeypatch) as transactions:
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(write_commit, alice.hub, alice.author, branch, Post(str(number)))
        assert len(transactions) <= 2
        assert alice.digest(branch)[1] == 21
        assert _heads(alice) == 1


async def test_two_who_set_one_key_at_the_same_moment_leave_no_conflict(tmp_path: Path) -> None:
    # As if one had come after the other.
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        documents = Documents(alice.hub, alice.author, lambda _: alice.branch())
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(documents.edit, DICT, "main", {"key": str(number)})
        _, entry = await documents.read_entry(DICT, "main", "key")
        assert len(entry.values) == 1


def test_more_heads_than_a_commit_acks_are_acked_by_several(world: World) -> None:
    root = (world.branch.facts.root_id,)
    world.author.write_many(
        world.branch, lambda _: [Draft(Post(str(number)), root) for number in range(2 * ACK_COUNT_MAX)]
    )
    for _ in range(3):
        world.author.write(world.branch, Post("next"))
    with world.replica.database.read() as connection:
        assert len(load_heads(connection, world.branch.num, 2 * ACK_COUNT_MAX)) == 1
