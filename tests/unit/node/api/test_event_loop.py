"""The event loop serves peers, too: no answer is computed there for more than a few milliseconds at a time.

What is measured is the processor time of the loop's thread from one turn of a task to the next: other programs, and work
in threads, do not count. The bound grows with the time that this machine takes for a fixed amount of work.
"""

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, cast

import httpx
import pytest
import trio
from trio.lowlevel import Task

from node.api.node_events import NodeSource
from node.contract.table import ENDPOINTS
from node.network.network import Network
from node.network.peer_state import PeerState
from node.network.peers import TOPICS_AT_ONCE
from node.runtime.blocking import threads
from node.sync.addresses import AddressSource
from node.sync.connection import Connection
from node.sync.sync_progress import ConnectionRates
from protocol.ids import BlindTopic, BranchId, PeerId, TopicKey
from protocol.session.topic_progress import TopicProgress
from tests.support.machine import patience
from tests.support.nodes import Node, open_nodes
from tests.support.served import AUTH, app_of, service_of

STEP_SECONDS: Final = 0.005
"""Processor time of one turn on an idle machine; tested with the patience of deadlines."""
BRANCH_COUNT: Final = 15_000
"""About as many as 1,489 repos of ten branches have, whose topics one connection carries."""
TOPIC_COUNT: Final = 16_384
OF_THE_HOME: Final = {"check_health", "show_keys"}
"""What runs as a command in the node's folder, which is not there."""


class _Watch(trio.abc.Instrument):
    """The longest turn of any task, in seconds of processor time of this thread, and how many turns there were."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what was."""
        self._began = time.thread_time()
        self.longest = 0.0
        self.turns = 0

    def before_task_step(self, task: Task) -> None:
        """A turn begins."""
        self._began = time.thread_time()

    def after_task_step(self, task: Task) -> None:
        """It ends."""
        self.longest = max(self.longest, time.thread_time() - self._began)
        self.turns += 1


@dataclass(eq=False)
class _Talk:
    """What of a connection lists of peers and repos look at."""

    topics: list[TopicProgress]
    transfer_rates: ConnectionRates = field(default_factory=ConnectionRates)
    peer_is_relay: bool = False
    newer_features: tuple[str, ...] = ()
    older_features: tuple[str, ...] = ()
    unknown_count: int = 0
    waiting_count: int = 0
    progress_at: int = 0
    heard_at: int = 0

    @property
    def session(self) -> "_Talk":
        """Return what stands for the session."""
        return self

    def progress_of(self, topic: TopicKey) -> TopicProgress | None:
        """Return how a topic stands."""
        return self.topics[0] if topic == self.topics[0].topic else None

    def is_waiting(self, topic: TopicKey) -> bool:
        """Return True if a topic waits for its turn: none does."""
        del topic
        return False

    def take_changed(self) -> set[TopicKey]:
        """Return topics that have changed since: none has."""
        return set()


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A node with a repo, very many branches that are in memory alone, and a peer with very many topics."""
    with open_nodes(tmp_path / "nodes", "alice") as (made,):
        made.hub.run_blocking = made.hub.intake._run_blocking = threads()
        made.create_repo()
        tables = made.replica.tables
        known = next(one for one in tables.branches.values() if not one.facts.is_root_branch)
        numbers = range(10_000, 10_000 + BRANCH_COUNT)
        many = {
            number: replace(
                known,
                num=number,
                name=f"b{number}",
                facts=replace(known.facts, branch_id=BranchId(number.to_bytes(4, "big") * 8)),
            )
            for number in numbers
        }
        made.replica.shown.tables = replace(tables, branches={**tables.branches, **many})
        topic = next(iter(tables.by_topic))
        talk = _Talk([TopicProgress(topic, BlindTopic(topic), is_own=True, is_entrusted=False)] * TOPIC_COUNT)
        state = PeerState(
            *(PeerId(bytes([7]) * 32), "127.0.0.1:1", "in", "connected", 0.0, AddressSource.INCOMING, None),
            connection=cast("Connection", talk),
        )
        monkeypatch.setattr(Network, "peers", [state])
        gc.collect()
        gc.disable()  # whose turn it falls into is chance
        try:
            yield made
        finally:
            gc.enable()
            made.replica.shown.tables = tables


@pytest.mark.slow
async def test_no_answer_holds_the_event_loop(node: Node, tmp_path: Path) -> None:
    watch, service = _Watch(), service_of(node, tmp_path)
    made = await service.node.tokens.create("app", ["read"], ["repo"], [], 3600)
    app = {"Authorization": f"Bearer {made['token']}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app_of(service)), base_url="http://127.0.0.1/api/v1"
    ) as client:
        asked: list[tuple[str, str, bytes | None]] = [
            ("GET", one.fill_path({"repo": "repo", "branch": "repo:main", "kind": "feed"}), None)
            for one in ENDPOINTS
            if one.method == "GET"
            and one.name not in OF_THE_HOME
            and {part.name for part in one.path_parameters} <= {"repo", "branch", "kind"}
        ]
        asked += [
            *(("GET", f"/branches/{text}/digest", None) for text in ("aaaa", "mian", "repo:mian", "b10000")),
            *(("GET", f"/repos/{text}/members", None) for text in ("aaaa", "repp")),
            ("GET", "/search?text=word", None),
            ("POST", "/qr", b'{"text": "%b"}' % (b"ravel:invite:" + b"a7" * 1_400)),
        ]
        trio.lowlevel.add_instrument(watch)
        slow = {}
        for method, path, content in asked:
            for headers in (AUTH, app):
                await trio.lowlevel.checkpoint()
                watch.begin()
                answer = await client.request(method, path, headers=headers, content=content)
                await trio.lowlevel.checkpoint()
                assert answer.status_code < 500, path
                if watch.longest > patience(STEP_SECONDS):
                    slow[path[:60], answer.status_code] = watch.longest
        assert slow == {}


async def test_peers_with_many_topics_are_listed_in_many_turns_and_once_for_all_streams(
    node: Node, tmp_path: Path
) -> None:
    watch, service = _Watch(), service_of(node, tmp_path)
    trio.lowlevel.add_instrument(watch)
    await service.peers.peers.list_all()
    once = watch.turns
    assert once >= TOPIC_COUNT // TOPICS_AT_ONCE
    watch.begin()
    streams = [service.node.follow() for _ in range(20)]
    found: list[object] = []

    async def follow(source: NodeSource) -> None:
        found.extend(event.data for event in await source.next() if event.name == "peers")

    async with trio.open_nursery() as nursery:
        for stream in streams:
            nursery.start_soon(follow, stream)
    assert len(found) == len(streams)
    assert len(set(map(id, found))) == 1
    assert watch.turns < 3 * once + 20 * len(streams)
