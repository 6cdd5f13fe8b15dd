"""Posts: one at a time, and many by one request."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from node.authoring.drafting import WrittenCommit
from node.authoring.write_queue import WriteRequest
from node.content import posts as posts_module
from node.content.posts import Posts
from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from protocol.limits.formats import TEXT_SIZE_MAX
from storage.engine.errors import StorageError
from tests.support.nodes import Node, ids, open_nodes


def _posts_of(node: Node) -> Posts:
    return Posts(node.hub, node.author, lambda _: node.branch())


async def test_a_post_has_the_rank_that_the_timeline_gives_it(tmp_path: Path) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        made = [await _posts_of(alice).write("main", text) for text in "abc"]
        assert [one["rank"] for one in made] == [1, 2, 3]
        assert ids(alice)[1:] == [one["commit"] for one in made]


async def test_many_posts_follow_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts_module, "WRITE_GROUP_COMMITS_MAX", 4)
    with open_nodes(tmp_path, "alice") as (alice,):
        _, branch = alice.create_repo()
        made = await _posts_of(alice).write_many("main", [str(number) for number in range(11)])
        assert ids(alice)[1:] == made["commits"]
        assert made["rank"] == 11
        assert len(alice.heads(branch)) == 1


async def test_posts_of_a_stream_share_a_transaction_and_a_refused_one_leaves_the_others(
    tmp_path: Path,
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        before = alice.replica.database.commit_count
        made = await _posts_of(alice).write_each("main", ["a", "b", "c"])
        assert alice.replica.database.commit_count - before == 1
        huge = "\N{GRINNING FACE}" * TEXT_SIZE_MAX  # more bytes than a body has
        more = await _posts_of(alice).write_each("main", ["d", huge, "e"])
        alone = await _posts_of(alice).write_each("main", [huge])
        written = [one["commit"] for one in (*made, *more) if not isinstance(one, Exception)]
        assert ids(alice)[1:] == written
        assert len(written) == 5
        refused = [one for one in (*more, *alone) if isinstance(one, Exception)]
        assert [getattr(one, "code", "") for one in refused] == ["bad_request", "bad_request"]


async def test_a_failure_of_the_disk_is_raised_for_all_posts_of_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        tries = list[object]()

        def fail(requests: object) -> object:
            tries.append(requests)
            raise StorageError("disk full")

        monkeypatch.setattr(alice.author.queue, "write_group", fail)
        with pytest.raises(StorageError):
            await _posts_of(alice).write_each("main", ["a", "b"])
        assert len(tries) == 1


@pytest.mark.parametrize("error", [StorageError("disk full"), ServiceError("not_permitted", "not any more")])
async def test_what_is_cut_says_what_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(posts_module, "WRITE_GROUP_COMMITS_MAX", 4)
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()
        write_group, count = alice.author.queue.write_group, 0

        def fail_at_third(
            requests: Sequence[WriteRequest],
        ) -> tuple[list[list[WrittenCommit] | Exception], IngestResult]:
            nonlocal count
            count += 1
            return ([error], IngestResult()) if count == 3 else write_group(requests)

        monkeypatch.setattr(alice.author.queue, "write_group", fail_at_third)
        with pytest.raises(ServiceError, match="the first 8 of 20 posts are written") as caught:
            await _posts_of(alice).write_many("main", [str(number) for number in range(20)])
        assert caught.value.code in ("storage_failed", "not_permitted")
        assert len(ids(alice)) == 9


async def test_what_fails_at_once_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_nodes(tmp_path, "alice") as (alice,):
        alice.create_repo()

        def fail(_requests: object) -> object:
            raise StorageError("disk full")

        monkeypatch.setattr(alice.author.queue, "write_group", fail)
        with pytest.raises(StorageError):
            await _posts_of(alice).write_many("main", ["a"])
