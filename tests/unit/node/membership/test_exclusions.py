"""Epochs: who was excluded reads nothing more, and everybody else goes on, also where epochs were forked."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.ingest.publication_parsing import open_batch
from node.observe.absent import find_absence
from node.runtime.errors import ServiceError
from protocol.crypto.boxes import BOX_SIZE, Sealer
from protocol.crypto.hashing import writers_sealing_key
from protocol.crypto.keys import WritersSecret
from protocol.formats.body import Permission, Remove
from protocol.formats.text import id_text
from protocol.ids import RepoId, UserId
from storage.topics.difference import plan_sending
from storage.topics.publishing import load_publications
from tests.support.machine import fail_after
from tests.support.nodes import (
    Node,
    connected,
    ids,
    meet,
    members_of,
    open_nodes,
    share,
    together,
    until_equal,
)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with open_nodes(tmp_path, "alice", "bob", "carol", "dave", "erin") as opened:
        yield opened


def _can_read(reader: Node, source: Node) -> bool:
    """Return True if anything that the source has on its current topics opens with what the reader has."""
    for name in source.replica.tables.writing_topics(source.repo().num):
        topic = source.replica.by_topic[name]
        with source.replica.database.read() as connection:
            nums = plan_sending(connection, topic.num, ()).nums
            items = load_publications(connection, topic, nums, 1 << 30)
        assert items, "the topic is in use"
        for known in reader.replica.by_topic.values():
            batch = open_batch(known, items)
            if batch.opened or batch.rejected or batch.waiting:
                return True
    return False


def _is_cut_off(node: Node) -> bool:
    """Return True if a node knows that members have gone on to secrets that are not here."""
    return find_absence(node.replica, node.repo(), node.author.user).behind_since is not None


@pytest.mark.slow
async def test_the_excluded_read_nothing_that_follows(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        alice.write(alice.branch(), "for all three")
        await together(alice, bob, carol)
        assert _can_read(bob, alice)
        before = alice.epoch()
        answer = await members_of(alice).remove("", id_text(bob.author.user), "")
        assert answer["epoch"] == id_text(alice.epoch().epoch_id) != id_text(before.epoch_id)
        await together(alice, carol)
        assert carol.epoch().epoch_id == alice.epoch().epoch_id
        alice.write(alice.branch(), "for two")
        carol.write(carol.branch(), "from the other")
        await together(alice, carol)
        assert len(ids(alice)) == 4
        for other in (alice, carol):
            await meet(bob, other)
        assert len(ids(bob)) == 2
        assert not _can_read(bob, alice)
        assert not _can_read(bob, carol)
        assert _is_cut_off(bob)


@pytest.mark.slow
async def test_who_was_away_for_several_epochs_catches_up(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, dave, erin = nodes
    with fail_after(120):
        await share(alice, *nodes[1:])
        bob.write(bob.branch(), "before I left")
        for gone in (carol, dave, erin):
            await members_of(alice).remove("", id_text(gone.author.user), "")
            alice.write(alice.branch(), "one more")
        assert len(alice.replica.tables.epochs) == 4
        await together(alice, bob)
        assert ids(alice) == ids(bob)
        assert bob.epoch().epoch_id == alice.epoch().epoch_id
        bob.write(bob.branch(), "back again")
        await together(alice, bob)
        assert ids(alice) == ids(bob)


@pytest.mark.slow
async def test_who_joins_later_reads_all_that_was_before(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, dave, erin = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        alice.write(alice.branch(), "in the first epoch")
        for gone in (bob, carol):
            await members_of(alice).remove("", id_text(gone.author.user), "")
            alice.write(alice.branch(), "and in the next")
        link = alice.invite(alice.repo(), Permission.WRITE)
        await dave.joiner.begin(link)
        await together(alice, dave)
        assert len(ids(dave)) == 4
        dave.write(dave.branch(), "hello")
        await together(alice, dave)
        assert ids(alice) == ids(dave)
        await erin.joiner.follow(alice.capability())
        await together(alice, erin)
        assert ids(erin) == ids(alice), "who follows reads all too"
        await members_of(alice).remove("", id_text(dave.author.user), "")
        alice.write(alice.branch(), "neither for dave nor for erin")
        await meet(erin, alice)
        assert not _can_read(erin, alice)


@pytest.mark.slow
async def test_forked_epochs_are_merged_and_nobody_else_is_lost(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, dave, erin = nodes
    with fail_after(120):
        await share(alice, *nodes[1:])
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await together(alice, *nodes[1:])
        await members_of(alice).remove("", id_text(dave.author.user), "")
        await members_of(bob).remove("", id_text(erin.author.user), "")
        alice.write(alice.branch(), "without dave")
        bob.write(bob.branch(), "without erin")
        await together(alice, bob, carol)
        assert ids(alice) == ids(bob) == ids(carol)
        assert alice.epoch().epoch_id == bob.epoch().epoch_id == carol.epoch().epoch_id
        carol.write(carol.branch(), "in the one that all prefer")
        assert len(carol.replica.tables.epochs) == 4, (
            "carol, who may write, has started the one that all prefer"
        )
        bob.write(bob.branch(), "in the one that merges")
        assert len(bob.replica.tables.epochs) == 4
        await together(alice, bob, carol)
        assert ids(alice) == ids(bob) == ids(carol)
        assert alice.epoch().epoch_id == bob.epoch().epoch_id == carol.epoch().epoch_id
        assert not _can_read(dave, alice)
        assert not _can_read(erin, alice)
        assert alice.replica.members(alice.repo()).keys() == {one.author.user for one in (alice, bob, carol)}


@pytest.mark.slow
async def test_who_joins_by_an_older_link_is_given_the_new_epoch(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob)
        link = alice.invite(alice.repo(), Permission.WRITE)
        await members_of(alice).remove("", id_text(bob.author.user), "")
        alice.write(alice.branch(), "in the new epoch")
        await carol.joiner.begin(link)
        await together(alice, carol)
        assert ids(carol) == ids(alice)
        carol.write(carol.branch(), "heard")
        await together(alice, carol)
        assert ids(carol) == ids(alice)


@pytest.mark.slow
async def test_who_was_added_in_one_fork_is_given_the_other(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, dave, erin = nodes
    with fail_after(120):
        await share(alice, bob, carol, dave)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await together(alice, bob)
        await members_of(bob).remove("", id_text(carol.author.user), "")
        await members_of(alice).remove("", id_text(dave.author.user), "")
        bob.write(bob.branch(), "bob's epoch")
        link = alice.invite(alice.repo(), Permission.WRITE)
        await erin.joiner.begin(link)
        await together(alice, erin)
        erin.write(erin.branch(), "alice's epoch")
        await together(alice, bob)
        bob.write(bob.branch(), "merged")
        await together(alice, bob)
        await together(bob, erin, alice)
        assert ids(erin) == ids(bob) == ids(alice)
        assert erin.epoch().epoch_id == bob.epoch().epoch_id
        assert not _can_read(carol, bob)
        assert not _can_read(dave, bob)


@pytest.mark.slow
async def test_a_reader_is_given_what_opens_and_not_what_writes(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(alice).remove("", id_text(bob.author.user), "read")
        alice.write(alice.branch(), "for readers too")
        await together(alice, bob, carol)
        assert ids(bob) == ids(carol) == ids(alice)
        assert bob.epoch().epoch_id == alice.epoch().epoch_id, "who is demoted loses the secret to write with"
        assert bob.epoch().writers_secret is None
        assert carol.epoch().writers_secret == alice.epoch().writers_secret
        with pytest.raises(ServiceError, match="M5"):
            bob.write(bob.branch(), "not any more")
        await members_of(alice).grant("", id_text(bob.author.user), "write")
        async with connected(bob, alice):
            while bob.epoch().writers_secret is None:
                await bob.hub.changes.wait(bob.hub.changes.count)
        bob.write(bob.branch(), "again")
        await together(alice, bob)
        assert ids(bob) == ids(alice)


@pytest.mark.slow
async def test_epochs_and_who_writes_in_which_survive_a_restart(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        alice.write(alice.branch(), "before")
        await members_of(alice).remove("", id_text(bob.author.user), "")
        alice.write(alice.branch(), "after")
        await together(alice, carol)
        shown, epoch = ids(carol), carol.epoch()
        carol.replica.close()
        carol.open()
        assert ids(carol) == shown
        assert carol.epoch() == epoch
        assert carol.replica.members(carol.repo()) == alice.replica.members(alice.repo())
        carol.write(carol.branch(), "and on")
        await together(alice, carol)
        assert ids(carol) == ids(alice)


@pytest.mark.slow
async def test_an_epoch_that_an_exclusion_did_not_get_to_start_is_started_before_the_next_write(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        first = alice.epoch()
        root = alice.replica.root_branch(alice.repo())
        alice.hub.announce(alice.author.write(root, Remove(bob.author.user, None, ()))[1])
        assert alice.epoch() == first, "cut off here"
        await together(alice, carol)
        alice.write(alice.branch(), "not for bob")
        assert alice.epoch() != first
        await together(alice, carol)
        assert ids(alice) == ids(carol)
        await meet(bob, alice)
        assert not _can_read(bob, alice)


@pytest.mark.slow
async def test_a_leaver_reads_nothing_that_admins_write_after(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(bob).leave("", force=False)
        await together(alice, bob, carol)
        alice.write(alice.branch(), "now that bob is gone")
        await together(alice, carol)
        await meet(bob, alice)
        assert not _can_read(bob, alice)


@pytest.mark.slow
async def test_a_branch_added_beside_an_epoch_is_written_in_it(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, bob, carol, *_ = nodes
    with fail_after(120):
        await share(alice, bob, carol)
        await members_of(alice).grant("", id_text(bob.author.user), "manage")
        await together(alice, bob, carol)
        branch, ingested = bob.author.founding.create_branch(bob.repo(), "beside")
        bob.hub.announce(ingested)
        bob.write(branch, "in the old epoch")
        await members_of(alice).remove("", id_text(carol.author.user), "")
        await together(alice, bob)
        alice.write(alice.branch("beside"), "in the new one")
        await together(alice, bob)
        async with connected(alice, bob):
            await until_equal(alice, bob, "beside")
        assert alice.digest(alice.branch("beside"))[1] == 3
        await meet(carol, bob)
        assert carol.digest(carol.branch("beside"))[1] == 2, "the root, and what was written before"


@pytest.mark.slow
async def test_a_writers_box_of_garbage_keeps_nobody_from_writing(
    nodes: list[Node], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bob, an admin, starts an epoch with a writers' box for dave that opens nothing: no verdict rests on it."""
    alice, bob, carol, dave, _ = nodes
    with fail_after(120):
        await share(alice, bob, carol, dave)
        await members_of(alice).grant("", id_text(bob.author.user), "admin")
        await together(alice, bob, carol, dave)

        class BadSealer(Sealer):
            def seal(self, user: UserId) -> bytes:
                return bytes(BOX_SIZE) if user == dave.author.user else super().seal(user)

        def seal_badly(secret: WritersSecret, repo_id: RepoId) -> Sealer:
            return BadSealer(secret, writers_sealing_key(secret, repo_id))

        with monkeypatch.context() as patch:
            patch.setattr(Sealer, "of_writers", seal_badly)
            await members_of(bob).remove("", id_text(carol.author.user), "")
        await together(alice, bob, dave)
        assert dave.epoch().epoch_id == bob.epoch().epoch_id
        assert dave.epoch().writers_secret is None
        dave.write(dave.branch(), "where all who read publish")
        await together(alice, bob, dave)
        assert ids(dave) == ids(alice) == ids(bob)
        assert len(ids(dave)) == 2


@pytest.mark.slow
async def test_what_was_written_in_an_epoch_that_does_not_count_is_read_by_all(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    """Alice excludes carol while she excludes bob; dave had heard of carol alone, and wrote in her epoch."""
    alice, bob, carol, dave, _ = nodes
    with fail_after(120):
        await share(alice, bob, carol, dave)
        for admin in (carol, bob):
            await members_of(alice).grant("", id_text(admin.author.user), "admin")
        await together(alice, bob, carol, dave)
        await members_of(carol).remove("", id_text(bob.author.user), "")
        await together(carol, dave)
        dave.write(dave.branch(), "in good faith")
        await members_of(alice).remove("", id_text(carol.author.user), "")
        await together(alice, bob)
        bob.write(bob.branch(), "elsewhere")
        await meet(bob, dave)
        assert len(ids(bob)) == 2, "to open carol's epoch is for an admin who holds it"
        await meet(alice, dave)
        await meet(alice, bob)
        for node in (alice, bob):
            assert ids(node) == ids(dave)
        assert len(ids(dave)) == 3
        assert carol.author.user not in alice.replica.members(alice.repo())
