"""Writes of a node's own user: when it may write, and what that costs the store beside the commits."""

from pathlib import Path

import pytest
import trio
from sqlalchemy import Connection
from trio.testing import MockClock

from node.authoring.author import Author
from node.authoring.drafting import Draft
from node.ingest.publication_parsing import open_batch
from node.runtime.errors import ServiceError
from protocol.crypto.keys import UserSeed
from protocol.crypto.signing import key_pair
from protocol.formats.body import Grant, Permission, encode_body
from protocol.formats.content import Post
from protocol.formats.declared_kind import declare_kind
from protocol.formats.publication import decode_publication
from storage.engine.database import DATABASE_NAME
from tests.support.builders import NOW_MS, World, count_accepted, give, publications_of
from tests.support.forging import POST, forge, heads_of, target_in
from tests.support.ids import as_commit_id
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes
from verifier.tangle_kinds import GROUP

_PAGE_SIZE = 4096


@pytest.mark.slow
def test_the_databases_log_is_used_anew_while_a_node_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who reads while it writes would have the log grow with all that is written: it reached 5 GB in an import."""
    pages = 50
    monkeypatch.setattr("storage.engine.sqlite._WAL_PAGES", pages)
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        for number in range(60):
            alice.author.write(branch, Post(f"one {number}"))
            alice.author.write_many(branch, [Draft(Post("a")), Draft(Post("b"))])
        log = tmp_path / "alice" / f"{DATABASE_NAME}-wal"
        assert log.stat().st_size < 4 * pages * _PAGE_SIZE


def test_a_post_is_stored_by_statements_that_were_made_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica, branch = world.copy(is_writer=True)
    author = Author(replica, UserSeed(b"w" * 32), lambda: NOW_MS)
    author.write(branch, Post("the first"))

    def make_anew(_connection: Connection, statement: object, *_: object) -> None:
        raise AssertionError(f"to make it takes longer than to store a post: {statement}")

    monkeypatch.setattr(Connection, "execute", make_anew)
    author.write(branch, Post("the second"))


@pytest.mark.parametrize("is_writer", [True, False])
def test_who_holds_the_writers_secret_publishes_on_their_topic_and_says_so(
    world: World, *, is_writer: bool
) -> None:
    replica, branch = world.copy(is_writer=is_writer)
    author = Author(replica, UserSeed(b"w" * 32), lambda: NOW_MS)
    written, ingested = author.write(branch, Post("a"))
    epoch = replica.writing_epoch(replica.repos[branch.repo_num])
    name = epoch.writers_topic if is_writer else epoch.topic
    assert [*ingested.accepted] == [name]
    assert name is not None
    [opened] = open_batch(replica.by_topic[name], [written.encoded]).opened
    content = opened.signed.commit.content
    assert (content.by_writer, content.whole, content.epoch) == (is_writer, True, epoch.epoch_id)
    other, _ = world.copy(is_writer=not is_writer)
    assert count_accepted(give(other, [written.encoded])) == 1


async def test_a_branch_whose_first_commit_has_not_come_is_not_written_to(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    # As after joining over a line that was cut a moment later.
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        alice.create_repo()
        link = alice.invite(alice.repo())
        await bob.joiner.begin(link)
        root = alice.replica.root_branch(alice.repo())
        for item in publications_of(alice.replica, root):  # all that Bob's node follows once its init is here
            topic = bob.replica.by_topic[decode_publication(item).topic]
            assert (await bob.hub.intake.ingest(topic, [item], _happened(), None)).accepted
        branch = bob.branch()
        for write in (
            lambda: bob.author.write(branch, Post("too early")),
            lambda: bob.author.write_many(branch, [Draft(Post("too early"))]),
        ):
            with pytest.raises(ServiceError) as caught:
                write()
            assert caught.value.code == "incomplete"


def _happened() -> trio.Event:
    event = trio.Event()
    event.set()
    return event


def test_more_heads_of_the_root_branch_than_a_commit_can_name_are_merged_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A place that named some of them alone would lack what others count on.
    root = world.replica.root_branch(world.repo)
    (before,) = heads_of(world, root)
    secret = key_pair(UserSeed(b"w" * 32))[1]
    for number in range(5):
        body = encode_body(Grant(key_pair(UserSeed(bytes([number]) * 32))[0], Permission.READ))
        give(world.replica, [forge(world, target_in(world, root), body, (before,), secret)])
    heads = heads_of(world, root)
    assert len(heads) == 5
    for module in ("choosing_heads", "preparing", "feed_encoder"):
        monkeypatch.setattr(f"node.authoring.{module}.ACK_COUNT_MAX", 2)
    written, _ = world.author.write(world.branch, Post("a"))
    [opened] = open_batch(world.topic(), [written.encoded]).opened
    place = opened.signed.commit.place(GROUP)
    assert place is not None
    assert set(place.previous) == set(heads_of(world, root))
    assert len(place.previous) <= 2
    operations = world.replica.membership(world.repo.repo_id).operations
    assert all(operations.is_within(operations[one], place.previous) for one in heads)


def test_a_feed_is_written_on_though_earlier_places_of_it_have_not_come_back(world: World) -> None:
    """Links of feeds are words, and no cause of a commit: after a loss its author's earlier ones may come later."""
    secret = key_pair(UserSeed(b"w" * 32))[1]
    changes = {"feed_sequence": 7, "feed_previous": as_commit_id(b"p" * 32), "metadata": declare_kind(POST)}
    acks, target = (world.branch.facts.root_id,), target_in(world, world.branch)
    latest = forge(world, target, encode_body(POST), acks, secret, **changes)  # type: ignore[arg-type]  # a table
    assert count_accepted(give(world.replica, [latest])) == 1
    written, _ = world.author.write(world.branch, Post("the eighth"))
    [opened] = open_batch(world.topic(), [written.encoded]).opened
    commit = opened.signed.commit
    assert commit.content.feed_sequence == 8
    assert commit.links.lipmaa == decode_publication(latest).commit_id
