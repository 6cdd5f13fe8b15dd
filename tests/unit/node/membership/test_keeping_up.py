"""What a node does by itself for its repos when a root branch has grown."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from protocol.ids import TopicKey
from storage.engine.database import StorageError
from storage.repos.repos import Repo
from tests.support.nodes import Node, open_nodes

T = TypeVar("T")
_REPOS = 5


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        yield node


async def test_each_repo_takes_one_job_of_a_thread(
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
        for number in range(_REPOS):
            alice.author.create_repo(f"repo {number}")
        await count_round()  # the names of their members are stated
        assert await count_round() == without + _REPOS
        nursery.cancel_scope.cancel()


class _Listener:
    def __init__(self) -> None:
        self.changes = 0

    def commits_accepted(self, topic: TopicKey, nums: tuple[int, ...]) -> None:
        """Nothing here."""

    def topics_changed(self) -> None:
        self.changes += 1

    def missed(self) -> None:
        """Nothing here."""


async def test_what_was_stored_before_a_step_failed_is_told(
    alice: Node, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.create_repo()
    listener = _Listener()

    def fail(_repo: Repo) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(alice.joiner._epochs, "store_offered_secrets", lambda _repo: listener.changes == 0)
    monkeypatch.setattr(alice.joiner._epochs, "hand_over", fail)
    async with trio.open_nursery() as nursery:
        alice.hub.add(listener)
        nursery.start_soon(alice.joiner.run)
        await trio.testing.wait_all_tasks_blocked()
        assert listener.changes == 1
        nursery.cancel_scope.cancel()
    alice.hub.remove(listener)
