"""What a node writes itself: when it may, and what it costs the store beside the commits."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from node.authoring.drafting import Draft
from node.runtime.errors import ServiceError
from protocol.block import Block
from protocol.commit import Commit, Content, HeaderKeys, Links, create_commit
from protocol.content import Post
from protocol.ids import CommitId
from protocol.keys import ConvergenceSecret, GivenKey, SigningKey
from protocol.limits.peers import BATCH_SIZE_TARGET
from storage.engine.database import DATABASE_NAME
from storage.topics.difference import load_publications, plan_sending
from tests.support.machine import fail_after
from tests.support.nodes import open_nodes

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
            alice.author.write_many(branch, lambda _: [Draft(Post("a")), Draft(Post("b"))])
        log = tmp_path / "alice" / f"{DATABASE_NAME}-wal"
        assert log.stat().st_size < 4 * pages * _PAGE_SIZE


def test_commits_give_no_keys_of_what_they_ack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing reads them. What older versions have given is taken all the same: see `test_acceptance`."""
    written: list[Content] = []

    def note(
        acks: tuple[CommitId, ...], links: Links, content: Content, key: SigningKey, secret: ConvergenceSecret
    ) -> tuple[Commit, Block]:
        written.append(content)
        return create_commit(acks, links, content, key, secret)

    monkeypatch.setattr("node.authoring.drafting.create_commit", note)
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        alice.author.write_many(branch, lambda _: [Draft(Post("a")), Draft(Post("b"))])
    assert [content.keys for content in written[1:]].count(HeaderKeys(acks=(GivenKey(b""),))) >= 3
    assert {key for content in written for key in content.keys.acks + content.keys.deps} == {b""}


async def test_a_branch_whose_first_commit_has_not_come_is_not_written_to(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """As after joining over a line that was cut a moment later."""
    with fail_after(60), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        alice.create_repo()
        link = alice.invite(alice.repo())
        await bob.joiner.begin(link)
        root = bob.replica.root_branch(bob.repo())
        topic = alice.replica.by_topic[root.topic]
        with alice.replica.database.read() as connection:
            nums = plan_sending(connection, topic.topic_num, ()).nums
            items = load_publications(connection, topic, nums, BATCH_SIZE_TARGET)
        assert (await bob.hub.ingest(root, items, _happened(), None)).accepted
        branch = bob.branch()
        for write in (
            lambda: bob.author.write(branch, Post("too early")),
            lambda: bob.author.write_many(branch, lambda _: [Draft(Post("too early"))]),
        ):
            with pytest.raises(ServiceError) as caught:
                write()
            assert caught.value.code == "incomplete"


def _happened() -> trio.Event:
    event = trio.Event()
    event.set()
    return event
