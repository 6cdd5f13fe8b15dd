"""Upkeep by a node of its repos when a root branch has grown."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from node.ingest.ingest_result import IngestResult
from node.runtime.errors import ServiceError
from protocol.formats.content import Post
from protocol.ids import TopicKey
from storage.engine.database import StorageError
from storage.repos.deletion import forget_repo
from storage.repos.repos import Repo
from tests.support.nodes import Node, open_nodes

T = TypeVar("T")
_REPOS = 5


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        yield node


async def test_each_repo_that_has_changed_takes_one_job_of_a_thread(
    alice: Node, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, run = list[str](), alice.hub.run_blocking

    async def counted(work: Callable[..., T], *args: Any) -> T:  # noqa: ANN401  # as the real one
        jobs.append(repr(work))
        return await run(work, *args)

    monkeypatch.setattr(alice.hub, "run_blocking", counted)

    async def count_round() -> int:
        jobs.clear()
        alice.hub.topics_changed()
        await wait_all_tasks_blocked()
        return len(jobs)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(alice.joiner.run)
        await wait_all_tasks_blocked()
        without = await count_round()
        repos = [alice.author.founding.create_repo(f"repo {number}")[0] for number in range(_REPOS)]
        assert await count_round() == without + _REPOS
        assert await count_round() == without, "nothing has changed"
        alice.author.founding.create_repo("one more")
        assert await count_round() == without + 1
        branch, ingested = alice.author.founding.create_branch(repos[0], "main")
        jobs.clear()
        alice.hub.announce(ingested)
        await wait_all_tasks_blocked()
        assert len(jobs) == without + 1
        alice.author.write(branch, Post("hello"))
        assert await count_round() == without, "root branches alone count"
        with alice.replica.change() as change:
            forget_repo(change.connection, repos[1].num)
            alice.replica.forget_membership(repos[1].repo_id)
        assert await count_round() == without + _REPOS, "it may be what another one's accepted offer is of"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("is_refused", [True, False])
async def test_what_did_not_come_to_an_end_is_tried_in_the_next_round(
    alice: Node, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    repo, _ = alice.create_repo()
    alice.create_repo("other")
    tried: list[int] = []

    def fail(of: Repo, _now: float, _stored: IngestResult) -> None:
        tried.append(of.num)
        if is_refused and of.num == repo.num:
            raise ServiceError("not_permitted", "no")

    monkeypatch.setattr(alice.joiner._duties, "perform", fail)
    if not is_refused:
        monkeypatch.setattr(alice.replica.own_feeds, "uncertain", frozenset({repo.repo_id}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(alice.joiner.run)
        await wait_all_tasks_blocked()
        tried.clear()
        alice.hub.topics_changed()
        await wait_all_tasks_blocked()
        assert tried == [repo.num]
        nursery.cancel_scope.cancel()


async def test_rounds_take_a_fifth_of_the_time_where_each_change_is_followed_by_the_next(
    alice: Node, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write of this user waits for the jobs of a round."""
    rounds, keep_lobbies = list[float](), alice.joiner._keep_lobbies

    async def keep_slowly(changed: set[int]) -> bool:
        rounds.append(trio.current_time())
        alice.hub.topics_changed()
        await trio.sleep(0.02)
        return await keep_lobbies(changed)

    monkeypatch.setattr(alice.joiner, "_keep_lobbies", keep_slowly)
    with trio.move_on_after(10):
        await alice.joiner.run()
    assert 95 <= len(rounds) <= 101


class _Listener:
    def __init__(self) -> None:
        self.changes = 0

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Do nothing."""

    def topics_changed(self) -> None:
        self.changes += 1

    def missed(self) -> None:
        """Do nothing."""


async def test_what_was_stored_before_a_step_failed_is_told(
    alice: Node, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.create_repo()
    listener = _Listener()

    def fail(_repo: Repo, _now: float, _stored: IngestResult) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(alice.joiner._keys, "take", lambda *_: listener.changes == 0)
    monkeypatch.setattr(alice.joiner._duties, "perform", fail)
    async with trio.open_nursery() as nursery:
        alice.hub.add(listener)
        nursery.start_soon(alice.joiner.run)
        await trio.testing.wait_all_tasks_blocked()
        assert listener.changes == 1
        nursery.cancel_scope.cancel()
    alice.hub.remove(listener)
