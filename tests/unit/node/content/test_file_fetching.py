"""Contents of files come before they are opened, where a repo keeps all of them."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from trio.testing import MockClock

from node.content import file_fetching, files
from node.content.file_fetching import FileFetcher
from node.content.files import FileService
from node.sync.fetching import fetch_blocks
from node.sync.hub import Hub
from node.sync.kept_parts import keep_contents
from protocol.ids import BlockId, ObjectId
from protocol.limits.formats import LEAF_SIZE
from storage.repos.deletion import forget_repo
from storage.repos.repos import DAY_MS, Branch
from tests.support.nodes import Node, open_nodes, share
from tests.unit.node.care.test_giving_up import NOW_MS, online
from tests.unit.node.care.test_giving_up_files import _files, _stream, places, read

pytestmark = pytest.mark.slow


@pytest.fixture
async def nodes(tmp_path: Path, autojump_clock: MockClock) -> AsyncIterator[list[Node]]:
    """Alice, carol and bob, whose clocks show the 200th day. Alice added a file on the first, and one now."""
    with open_nodes(tmp_path, "alice", "carol", "bob") as (alice, carol, bob):
        await share(alice, carol, bob)
        await _files(alice).add("main", "old", _stream(b"old"))
        for node in (alice, carol, bob):
            node.set_clock(NOW_MS)
        await _files(alice).add("main", "new", _stream(os.urandom(2 * LEAF_SIZE)))
        yield [alice, carol, bob]


def _fetcher(node: Node) -> FileFetcher:
    return FileFetcher(node.hub, _files(node))


def _keep(node: Node, days: int = 0, *, keeps_files: bool = True) -> None:
    keep_contents(node.replica, node.repo(), None, days, node.now(), keeps_files=keeps_files)
    node.hub.proofs.rule_changed(node.repo().num)


async def test_files_come_where_the_repo_keeps_them_and_only_there(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    fetcher = _fetcher(carol)
    async with online((carol, alice)):
        await fetcher.look()
        assert await places(carol) == ["away", "away"]
        _keep(carol)
        await fetcher.look()
        assert await places(carol) == ["here", "here"]
        await _files(alice).add("main", "later", _stream(b"later"))
        async with online((carol, alice)):
            await fetcher.look()
        assert await places(carol) == ["here"] * 3


async def test_a_file_that_nobody_has_comes_once_somebody_does(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, bob = nodes
    async with online((bob, alice)):
        pass
    _keep(carol)
    fetcher = _fetcher(carol)
    await fetcher.look()
    async with online((carol, bob)):
        await fetcher.look()
        assert await places(carol) == ["away", "away"]
    async with online((carol, alice)):
        await fetcher.look()
        assert await places(carol) == ["here", "here"]


async def test_what_is_not_kept_does_not_come_until_it_is(
    nodes: list[Node], autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    fetcher = _fetcher(carol)
    async with online((carol, alice)):
        keep_contents(carol.replica, carol.repo(), set(), keeps_files=True)
        await fetcher.look()
        assert await places(carol) == ["away", "away"], "the branch is not kept"
        _keep(carol, 90)
        await fetcher.look()
        assert await places(carol) == ["away", "here"]
        _keep(carol, 300)
        await fetcher.look()
        assert await places(carol) == ["here", "here"]
        carol.set_clock(NOW_MS + 400 * DAY_MS)
        assert carol.repo().keeps_files


async def test_after_a_change_of_another_repos_rule_no_file_is_opened_again(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    _keep(carol)
    fetcher, opened = _fetcher(carol), 0
    fetch = FileService.fetch

    async def count(
        self: FileService, branch: Branch, object_id: ObjectId, has_room: Callable[[], bool]
    ) -> bool:
        nonlocal opened
        opened += 1
        return await fetch(self, branch, object_id, has_room)

    monkeypatch.setattr(FileService, "fetch", count)
    repo_num = carol.repo().num
    async with online((carol, alice)):
        for changed, expected in ((repo_num, 2), (repo_num + 1, 0), (repo_num, 2)):
            opened = 0
            carol.hub.proofs.rule_changed(changed)
            await fetcher.look()
            assert opened == expected
        opened = 0
        carol.hub.proofs.rules.ring()  # a repo is about to be deleted, or is not
        await fetcher.look()
        assert opened == 0


async def test_a_disk_that_is_low_is_left_to_what_people_open(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    _keep(carol)
    fetcher = _fetcher(carol)
    async with online((carol, alice)):
        with monkeypatch.context() as patch:
            patch.setattr(file_fetching, "FREE_SIZE_MIN", 1 << 62)
            await fetcher.look()
            assert await places(carol) == ["away", "away"]
        await fetcher.look()
        assert await places(carol) == ["here", "here"]


async def test_a_file_stops_where_the_disk_gets_low(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    _keep(carol)
    fetcher = _fetcher(carol)
    monkeypatch.setattr(files, "_WINDOW_SIZE", LEAF_SIZE)
    room = iter([True] * 4)
    async with online((carol, alice)):
        with monkeypatch.context() as patch:
            patch.setattr(FileFetcher, "_has_room", lambda _: next(room, False))
            await fetcher.look()
            assert [len(absent) for absent in fetcher._absent.values()] == [1], "one leaf of two is here"
        await fetcher.look()
    assert len(await read(carol, "new")) == 2 * LEAF_SIZE


async def test_of_files_that_nobody_has_so_many_are_remembered(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, bob = nodes
    async with online((bob, alice)):
        pass
    monkeypatch.setattr(file_fetching, "ABSENT_MAX", 1)
    _keep(carol)
    fetcher = _fetcher(carol)
    async with online((carol, bob)):
        await fetcher.look()
    (absent,) = fetcher._absent.values()
    assert len(absent) == 1, "of two"


async def test_nothing_is_tried_while_nobody_is_there(nodes: list[Node], autojump_clock: MockClock) -> None:
    alice, carol, _ = nodes
    async with online((carol, alice)):
        pass
    _keep(carol)
    fetcher = _fetcher(carol)
    await fetcher.look()
    assert fetcher._absent == {}, "else these would come a few in each look"


async def test_a_repo_that_is_deleted_meanwhile_is_left(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    alice, carol, _ = nodes
    _keep(carol)
    fetcher = _fetcher(carol)
    await _files(alice).add("main", "third", _stream(os.urandom(3 * LEAF_SIZE)))
    fetched = list[BlockId]()
    monkeypatch.setattr(files, "_WINDOW_SIZE", LEAF_SIZE)

    async def fetch_then_delete(hub: Hub, branch: Branch, ids: Sequence[BlockId]) -> None:
        await fetch_blocks(hub, branch, ids)
        fetched.extend(ids)
        for repo in list(carol.replica.repos.values()) if len(fetched) == 7 else ():
            with carol.replica.change() as change:
                forget_repo(change.connection, repo.num)
                change.changed_repos.add(repo.repo_id)

    async with online((carol, alice)):
        monkeypatch.setattr(files, "fetch_blocks", fetch_then_delete)
        await fetcher.look()
    assert len(fetched) == 7, "two files, and of the third the root, the last leaf, and the first"
    assert carol.replica.repos == {}
