"""What waits for the writer keeps nothing else waiting: neither who reads, nor who compares topics."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from sqlalchemy import Engine, event

from node.runtime.blocking import threads
from node.runtime.errors import ServiceError
from node.sync.session_queries import topic_set
from protocol.formats.content import Post
from tests.support.builders import writing_topic
from tests.support.machine import fail_after
from tests.support.nodes import Node, open_nodes
from tests.support.served import service_of


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path, "alice") as (node,):
        yield node


@contextmanager
def _counted() -> Iterator[list[str]]:
    """The statements that are executed meanwhile."""
    said: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:  # noqa: ANN401  # SQLAlchemy's
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield said
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def test_any_number_of_waiting_writers_leaves_room_for_readers(alice: Node) -> None:
    _, branch = alice.create_repo()
    hub = alice.hub
    hub.run_blocking = hub.intake._run_blocking = threads()
    with fail_after(30):
        async with trio.open_nursery() as nursery:
            with alice.replica.database._lock.held():
                for number in range(20):
                    nursery.start_soon(hub.write, alice.author.write, branch, Post(str(number)))
                await trio.testing.wait_all_tasks_blocked()
                assert await hub.run_blocking(lambda: "read") == "read"
    assert alice.digest(branch)[1] == 21


def test_topics_are_compared_while_sketches_wait_to_be_written(
    alice: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, branch = alice.create_repo()
    kept = topic_set(writing_topic(alice.replica, branch), of_publications=False)
    sketches = alice.replica.sketches
    monkeypatch.setattr("storage.topics.sketches._WRITTEN_FIRST", 1)
    monkeypatch.setattr("storage.topics.sketches._SMALL_COUNT", 0)
    with alice.replica.database.read() as connection:
        digest = sketches.digest(connection, kept)
        began = threading.Event()
        taken = alice.replica.database._lock

        class Noted:
            @contextmanager
            def held(self, *, is_patient: bool = False) -> Iterator[None]:
                began.set()
                with taken.held(is_patient=is_patient):
                    yield

        monkeypatch.setattr(alice.replica.database, "_lock", Noted())
        with taken.held():
            writing = threading.Thread(target=sketches.write)
            writing.start()
            assert began.wait(10)
            assert not sketches._lock.locked()
            assert sketches.digest(connection, kept) == digest
        writing.join(10)
    with _counted() as said:
        sketches.write()  # they are written
    assert said == []


async def test_all_repos_are_shown_with_as_many_questions_as_one(alice: Node, tmp_path: Path) -> None:
    service = service_of(alice, tmp_path)
    counts = []
    for name in ("one", "two", "three"):
        await service.branches.repos.create(name)
        with _counted() as said:
            views = (await service.branches.repo_list.list())["repos"]
        counts.append(len(said))
    assert [view["name"] for view in views] == ["one", "two", "three"]
    assert [(view["branches"], view["commits"]) for view in views] == [(1, 3)] * 3
    assert len(set(counts)) == 1
    assert counts[0] < 10


async def test_a_repo_and_its_branch_are_made_in_one_transaction_under_a_free_name(
    alice: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = service_of(alice, tmp_path)
    with _counted() as said:
        await service.branches.repos.create("notes")
    assert sum(statement.startswith("BEGIN IMMEDIATE") for statement in said) == 1
    assert alice.branch().facts.is_root_branch is False
    with pytest.raises(ServiceError, match="there is a repo called"):
        alice.author.founding.create_repo("notes", "main", is_unique=True)
    with pytest.raises(ServiceError, match="there is a branch called"):
        alice.author.founding.create_branch(alice.repo(), "main", is_unique=True)
    assert len(alice.replica.repos) == 1
    alice.write(alice.branch(), "it can be written to")
    alice.create_repo("another")  # to whose user names of other repos are nothing
