"""Relays between whole nodes in one process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from node.runtime.blocking import inline
from node.sync.connection import Connection
from node.sync.relay import RelayService
from protocol.signing import check_claims
from storage.relay.quotas import RelayQuotas
from tests.support.nodes import Node, connected, open_nodes

PLENTY = RelayQuotas(
    total=1 << 30,
    topic=1 << 30,
    peer=1 << 30,
    subnet=1 << 30,
    topic_count=100,
    peer_topic_count=100,
    subnet_topic_count=100,
)
"""More than any test keeps."""


@contextmanager
def open_relay(folder: Path, quotas: RelayQuotas = PLENTY, name: str = "relay") -> Iterator[Node]:
    """A node that keeps topics for others, and whose clock stands."""
    with open_nodes(folder, name) as (node,):
        node.hub.relay = RelayService(node.replica.database, quotas, inline(), lambda: 0, check_claims)
        yield node


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    while True:
        if condition():
            return
        await trio.sleep(0.1)


def states(node: Node) -> list[str]:
    """How each topic stands on the node's one connection."""
    (source,) = node.hub.sources
    assert isinstance(source, Connection)
    return sorted(progress.state for progress in source.topics)


def is_settled(node: Node) -> bool:
    """Whether the node's one connection has nothing to do."""
    found = states(node)
    return bool(found) and all(state == "in sync" or state.startswith("refused") for state in found)


async def visit(node: Node, relay: Node) -> None:
    """Connect to the relay until all is said."""
    async with connected(node, relay):
        await trio.sleep(1)
        await until(lambda: is_settled(node))
        await trio.sleep(1)
