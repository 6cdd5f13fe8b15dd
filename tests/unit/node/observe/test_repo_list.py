"""The list of repos: a look describes what has changed, and a reader with a cursor gets no more than that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trio
from trio.testing import MockClock

from node.api.event_streams import Event as StreamedEvent
from node.api.services import Services
from node.membership.member_checkpoints import _COMPUTED_MAX
from node.network.peer_state import PeerState
from node.observe import repo_list
from node.observe.standing import _link
from node.runtime.errors import ServiceError
from node.sync.addresses import AddressSource
from protocol.formats.body import MembersCheckpoint
from protocol.formats.text import id_text
from protocol.ids import AnyId, Digest
from protocol.session.events import Event
from protocol.session.outputs import Output
from protocol.session.session import Session
from ravel.types.repos import RepoView
from storage.engine.errors import StorageError
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.served import assert_listed_as_new, service_of

COUNT: Final = 8


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[Node]:
    with open_nodes(tmp_path / "nodes", "alice") as (node,):
        yield node


@pytest.fixture
def service(alice: Node, tmp_path: Path) -> Services:
    for number in range(COUNT):
        alice.create_repo(f"repo {number}")
    return service_of(alice, tmp_path)


async def _names(service: Services, since: str) -> list[str]:
    answer = await service.branches.repo_list.list(since)
    assert not answer["complete"]
    return [view["name"] for view in answer["repos"]]


async def test_a_look_describes_what_has_changed(alice: Node, service: Services) -> None:
    found = service.branches.repo_list
    cursor = (await found.list())["cursor"]
    assert found.described_count == COUNT
    assert (await found.list())["complete"]
    assert await _names(service, cursor) == []
    assert found.described_count == COUNT, "nothing has changed"
    repos = list(alice.replica.repos.values())
    for number in (6, 2):
        alice.write(alice.replica.branches_in(repos[number].num)[1], "hello")
    assert await _names(service, cursor) == ["repo 2", "repo 6"], "in the order of the list"
    assert found.described_count == COUNT + 2
    later = (await found.list(cursor))["cursor"]
    assert await _names(service, later) == []
    await service.branches.create("repo 1", "side")
    await service.branches.repos.create("new")
    assert await _names(service, later) == ["repo 1", "new"]
    assert found.described_count == COUNT + 4
    assert await _names(service, cursor) == ["repo 1", "repo 2", "repo 6", "new"], (
        "a cursor is good again and again"
    )
    await assert_listed_as_new(service)


async def test_a_repo_is_described_until_all_its_checkpoints_were_looked_at(
    alice: Node, service: Services
) -> None:
    root = alice.replica.root_branch(next(iter(alice.replica.repos.values())))
    for number in range(2 * _COMPUTED_MAX):
        alice.author.write(root, MembersCheckpoint(Digest(number.to_bytes(32, "big"))))
    found = service.branches.repo_list
    counts = []
    for _ in range(4):
        await found.list()
        counts.append(found.described_count - COUNT)
    assert counts == [0, 1, 1, 1], "eight, four at a time"


async def test_a_repo_that_was_deleted_is_named_as_gone(service: Services) -> None:
    whole = await service.branches.repo_list.list()
    gone = whole["repos"][3]["repo"]
    await service.branches.repos.forget(gone, accept_loss=True)
    after = await service.branches.repo_list.list(whole["cursor"])
    assert (after["repos"], after["gone"], after["complete"]) == ([], [gone], False)
    assert (await service.branches.repo_list.list(after["cursor"]))["gone"] == []
    assert len((await service.branches.repo_list.list())["repos"]) == COUNT - 1
    with pytest.raises(ServiceError) as refused:
        await service.branches.repos.forget(gone, accept_loss=True)
    assert refused.value.code == "not_found"


async def test_who_looked_before_too_many_went_gets_the_whole_list(
    service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repo_list, "GONE_REPOS_KEPT_MAX", 2)
    first = await service.branches.repo_list.list()
    ids = [view["repo"] for view in first["repos"]]
    for number in range(2):
        await service.branches.repos.forget(ids[number], accept_loss=True)
        await service.branches.repo_list.list()
    assert sorted((await service.branches.repo_list.list(first["cursor"]))["gone"]) == sorted(ids[:2])
    second = await service.branches.repo_list.list()
    await service.branches.repos.forget(ids[2], accept_loss=True)
    assert (await service.branches.repo_list.list(first["cursor"]))["complete"], "one over"
    assert (await service.branches.repo_list.list(second["cursor"]))["gone"] == [ids[2]]


@pytest.mark.parametrize("cursor", ["", "x", "-", "-1", "{run}-", "{run}-x", "{run}-²", "{run}-" + "9" * 17])
async def test_what_is_no_cursor_of_this_run_gets_the_whole_list(service: Services, cursor: str) -> None:
    run = (await service.branches.repo_list.list())["cursor"].partition("-")[0]
    answer = await service.branches.repo_list.list(cursor.format(run=run))
    assert (answer["complete"], len(answer["repos"])) == (True, COUNT)


async def test_a_cursor_of_another_run_gets_the_whole_list(
    alice: Node, service: Services, tmp_path: Path
) -> None:
    cursor = (await service.branches.repo_list.list())["cursor"]
    restarted = service_of(alice, tmp_path)
    assert (await restarted.branches.repo_list.list(cursor))["complete"]
    assert (await service.branches.repo_list.list(cursor.replace(cursor[-4:], "9999")))["complete"], (
        "nor one of the future"
    )


async def test_a_cursor_says_nothing_of_whether_anything_has_changed(alice: Node, service: Services) -> None:
    """A token for some repos would learn from it that others have changed."""

    def moment(cursor: str) -> int:
        return int(cursor.partition("-")[2])

    first = moment((await service.branches.repo_list.list())["cursor"])
    second = moment((await service.branches.repo_list.list())["cursor"])
    alice.write(alice.branch(), "elsewhere")
    third = moment((await service.branches.repo_list.list())["cursor"])
    assert first < second < third


async def test_what_the_store_did_not_give_is_described_by_the_next_look(
    alice: Node, service: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = (await service.branches.repo_list.list())["cursor"]
    alice.write(alice.branch(), "hello")
    with monkeypatch.context() as failing:
        failing.setattr(service.branches.repo_list.views, "describe", _fail)
        with pytest.raises(StorageError):
            await service.branches.repo_list.list(cursor)
    assert await _names(service, cursor) == ["repo 0"]


def _fail(*_: object) -> None:
    raise StorageError("the disk is full")


async def test_many_who_ask_at_once_describe_each_repo_once(service: Services) -> None:
    answers = []

    async def ask() -> None:
        answers.append(await service.branches.repo_list.list())

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(ask)
    assert service.branches.repo_list.described_count == COUNT
    assert {len(one["repos"]) for one in answers} == {COUNT}


async def test_a_petname_of_a_peer_and_a_refused_invitation_are_shown(alice: Node, service: Services) -> None:
    cursor = (await service.branches.repo_list.list())["cursor"]
    alice.replica.people.set_petnames({}, {AnyId(bytes(32)): "laptop"})
    await service.branches.repo_list.list(cursor)
    assert service.branches.repo_list.described_count == 2 * COUNT, "any sentence may name it"
    repo = next(iter(alice.replica.repos.values()))
    alice.replica.shown.restate([repo.num])
    await service.branches.repo_list.list(cursor)
    assert service.branches.repo_list.described_count == 2 * COUNT + 1


@pytest.mark.slow
async def test_beside_a_peer_only_what_has_changed_is_looked_at(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links are those that a look at all topics of all connections would find, and sessions name all that changed."""
    _check_sessions(monkeypatch)
    with fail_after(120), open_nodes(tmp_path, "alice", "bob") as (alice, bob):
        await share(alice, bob)
        for number in range(COUNT):
            alice.create_repo(f"other {number}")
        service = service_of(alice, tmp_path)
        await _check(service, alice)
        states = service.branches.standings._network.inbound
        async with connected(bob, alice) as (_, side):
            state = PeerState(side.peer, "", "in", "connected", 0, AddressSource.INCOMING, None)
            state.connection = side
            states.append(state)
            await until_equal(alice, bob)
            await trio.sleep(5)
            await _check(service, alice)
            (shared, *_) = (await service.branches.repo_list.list())["repos"]
            assert shared["standing"]["in_sync_with"] == [id_text(bob.key)]
            held_at = shared["standing"]["held_at"]
            cursor = (await service.branches.repo_list.list())["cursor"]
            before = service.branches.repo_list.described_count
            for number in range(3):
                bob.write(bob.branch(), f"post {number}")
                await until_equal(alice, bob)
                await _check(service, alice)
            after = await service.branches.repo_list.list(cursor)
            assert [view["repo"] for view in after["repos"]] == [shared["repo"]]
            assert (after["repos"][0]["standing"]["held_at"] or 0) >= (held_at or 0)
            assert service.branches.repo_list.described_count - before <= 6, "others do not depend on it"
            alice.write(alice.branch(), "back")
            await _check(service, alice)
            await service.branches.create(shared["repo"], "side")
            await _check(service, alice)
            await until_equal(alice, bob, "side")
            await trio.sleep(5)
            await _check(service, alice)
        states.clear()
        alice.write(alice.branch(), "alone again")
        await _check(service, alice)
        standing = (await service.branches.repo_list.list())["repos"][0]["standing"]
        assert (standing["state"], standing["unheld"]) == ("alone", 1)


async def _check(service: Services, node: Node) -> None:
    await assert_listed_as_new(service)
    tables, standings = node.replica.tables, service.branches.standings
    for state in standings._network.peers:
        assert state.connection is not None
        for num in tables.repos:
            progress = [state.connection.session.progress_of(one.topic) for one in tables.topics_in(num)]
            joined = [one for one in progress if one is not None and one.is_joined]
            waiting = sum(state.connection.is_waiting(one.topic) for one in tables.topics_in(num))
            now = node.hub.clock_ms() // 1000
            is_linked = bool(joined or waiting)
            expected = _link(state, joined, tables, num, waiting, now) if is_linked else None
            assert standings._links.get(num, {}).get(state.connection) == expected


def _check_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each session looked at after each event: what has changed of its topics is named."""
    original = Session.handle

    def seen(session: Session) -> dict[object, object]:
        return {
            one.topic: (one.state, one.behind, one.to_send, one.sent, one.confirmed, one.bodiless)
            for one in session.topics
        }

    def handle(self: Session, event: Event) -> list[Output]:
        before = seen(self)
        outputs = original(self, event)
        changed = {topic for topic, now in seen(self).items() if before.get(topic) != now}
        assert changed <= self._changed
        return outputs

    monkeypatch.setattr(Session, "handle", handle)


async def test_a_stream_of_changes_has_these_alone_and_goes_on_from_a_cursor(
    service: Services, autojump_clock: MockClock
) -> None:
    source = service.node.follow(changes=True)
    (peers, first) = await source.next()
    assert (peers.name, first.name, first.data["complete"]) == ("peers", "repos", True)
    assert first.cursor == first.data["cursor"]
    await service.branches.repos.create("new")
    for one in (source, service.node.follow(first.cursor, changes=True)):
        *_, event = await one.next()
        assert (event.data["complete"], [view["name"] for view in _repos(event)]) == (False, ["new"])


async def test_a_stream_without_changes_has_the_whole_list_when_it_has_changed(
    service: Services, autojump_clock: MockClock
) -> None:
    source = service.node.follow()
    await source.next()
    with trio.move_on_after(100) as waited:
        await source.next()
    assert waited.cancelled_caught, "nothing has changed"
    await service.branches.repos.create("new")
    (event,) = await source.next()
    assert (event.cursor, event.data["complete"], len(_repos(event))) == ("", True, COUNT + 1)


def _repos(event: StreamedEvent) -> list[RepoView]:
    found = event.data["repos"]
    assert isinstance(found, list)
    return found
