"""Two relays of one community in step: what one was given the other has, so losing one loses nothing."""

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from sqlalchemy import func, select
from trio.testing import MockClock, wait_all_tasks_blocked

from node.content.files import FileService
from node.sync.file_deposits import FileDepositor
from node.sync.partner_files import PartnerFiles
from node.sync.relay_client import RelayClient
from protocol.ids import TopicKey
from protocol.limits.peers import DEPOSIT_PAUSE_SECONDS
from storage.relay.quotas import RelayQuotas, forget_topics
from storage.schema.relay_schema import relay_files
from tests.support.machine import fail_after
from tests.support.nodes import Node, connected, open_nodes, share, until_equal
from tests.support.relays import PLENTY, open_relay, until, visit


async def _stream(data: bytes) -> AsyncGenerator[bytes]:
    await trio.lowlevel.checkpoint()
    yield data


async def _add(node: Node, name: str, data: bytes) -> None:
    await FileService(node.hub, node.author, node.branch).add("main", name, _stream(data))


@contextmanager
def _partners(folder: Path, quotas: RelayQuotas = PLENTY) -> Iterator[tuple[Node, Node]]:
    """Two relays that name each other as partners."""
    with open_relay(folder) as first, open_relay(folder, quotas, "second") as second:
        for one in (first, second):
            assert one.hub.relay is not None
            one.hub.relay.is_partner = lambda _: True
            one.hub.relay.is_dialed = lambda _: True
        yield first, second


def _whole(relay: Node) -> int:
    with relay.replica.database.read() as connection:
        whole = select(func.count()).select_from(relay_files).where(relay_files.c.is_whole)
        return int(connection.execute(whole).scalar_one())


@pytest.mark.slow
async def test_what_one_relay_was_given_the_other_has_and_losing_one_loses_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    early, late = os.urandom(3000), os.urandom(2000)
    with (
        fail_after(300),
        open_nodes(tmp_path, "alice", "bob") as (alice, bob),
        _partners(tmp_path) as (first, second),
    ):
        await share(alice, bob)
        await _add(alice, "early", early)
        async with connected(alice, first), trio.open_nursery() as nursery:
            nursery.start_soon(FileDepositor(alice.hub).run)
            await until(lambda: _whole(first) == 1)
            async with connected(first, second):
                nursery.start_soon(PartnerFiles(first.hub).run)
                nursery.start_soon(PartnerFiles(second.hub).run)
                await until(lambda: _whole(second) == 1)
                alice.write(alice.branch(), "while both are there")
                await _add(alice, "late", late)
                await until(lambda: _whole(second) == 2)
            nursery.cancel_scope.cancel()
        async with connected(bob, second):  # the first one is gone
            await until_equal(alice, bob)
            files = FileService(bob.hub, bob.author, bob.branch)
            for name, data in (("early", early), ("late", late)):
                file = await files.open("main", name)
                assert b"".join([part async for part in files.read(file, 0, file.size)]) == data


@pytest.mark.slow
async def test_a_topic_that_was_forgotten_and_is_kept_again_is_soon_in_step_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A session knows no way back from a refusal: it ends, and the next one compares the topic."""
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,), _partners(tmp_path) as (first, second):
        alice.create_repo()
        service = first.hub.relay
        assert service is not None
        async with connected(first, second) as (ours, theirs):
            async with connected(alice, first):
                await wait_all_tasks_blocked()
            with first.replica.database.write() as connection:
                forget_topics(connection, [one.num for one in service.topics.values()])
            service._refresh(has_lost=True)
            first.hub.relay_forgot()
            async with connected(alice, first):
                alice.write(alice.branch(), "while it was forgotten at the one")
                began = trio.current_time()
                await until(lambda: bool(ours.reason and theirs.reason))
                assert trio.current_time() - began <= 700
                assert "offers_again" in {ours.reason, theirs.reason}
        async with connected(first, second):
            await wait_all_tasks_blocked()
        assert second.hub.relay is not None
        held = [
            {one.topic: one.commit_count for one in await relay.list_all()}
            for relay in (service, second.hub.relay)
        ]
        assert held[0] == held[1]
        assert sum(held[0].values()) > 3


@pytest.mark.slow
async def test_topics_are_looked_at_for_files_when_something_has_come_alone(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two relays may share 100,000."""
    looks, entrusted = 0, RelayClient.entrusted

    def look(self: RelayClient) -> list[TopicKey]:
        nonlocal looks
        looks += 1
        return entrusted(self)

    monkeypatch.setattr(RelayClient, "entrusted", look)
    with fail_after(300), open_nodes(tmp_path, "alice") as (alice,), _partners(tmp_path) as (first, second):
        alice.create_repo()
        await visit(alice, first)
        async with connected(first, second), trio.open_nursery() as nursery:
            await wait_all_tasks_blocked()
            nursery.start_soon(PartnerFiles(first.hub).run)
            await trio.sleep(DEPOSIT_PAUSE_SECONDS / 2)
            assert looks == 1
            await trio.sleep(DEPOSIT_PAUSE_SECONDS)
            assert looks == 2
            nursery.cancel_scope.cancel()
