"""Relays between whole nodes in one process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from node.relay.relay import RelayService
from node.sync.connection import Connection
from protocol.crypto.keys import AccountToken, ConvergenceSecret, TopicSeed
from protocol.crypto.signing import check_claims
from protocol.formats.block import encrypt_block
from protocol.formats.publication import decode_publication
from protocol.ids import ObjectId
from protocol.session.deposits import sign_deposit, size_of
from storage.engine.database import Database
from storage.relay.accounts import invite_to_account, join_account
from storage.relay.files import finish_file, keep_blocks
from storage.relay.quotas import RelayQuotas, Visitor
from storage.relay.relay import load_kept_topics, open_topics, store_publications
from tests.support.blocking import inline
from tests.support.builders import World
from tests.support.forging import bare_of
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


def fill_relay(database: Database, world: World, visitor: Visitor) -> int:
    """Keep a branch's commits for others, and a file of two leaves, of a peer with an account; gives how many commits.

    All are on one topic. The last one is kept without its body.
    """
    topic, secret = world.topic().topic, ConvergenceSecret(b"c" * 32)
    *whole, last = world.publications(world.branch)
    items = [(decode_publication(item), item) for item in (*whole, bare_of(last))]
    leaves = [encrypt_block(content, secret)[0] for content in (b"one", b"two")]
    root = encrypt_block(b"", secret, tuple(one.block_id for one in leaves))[0]
    came = [root, *leaves]
    size = sum(size_of(len(one.encoded)) for one in came)
    deposit = sign_deposit(
        TopicSeed(b"t" * 32), ObjectId(root.block_id), size
    )  # the store believes who signed it
    with database.write() as connection:
        open_topics(database, connection, [topic], visitor, PLENTY, 1)
        (kept,) = load_kept_topics(connection).values()
        store_publications(database, connection, kept.num, visitor, items, PLENTY, 2)
        where = (database, connection, kept.num, deposit, 0, [one.block_id for one in came])
        file = keep_blocks(*where, came, visitor, PLENTY, 3)
        assert finish_file(connection, file.num)
        token = AccountToken(b"a" * 32)
        invite_to_account(database, connection, "ann", 1 << 20, token, 1000, 0)
        assert not join_account(connection, token, visitor.peer, 1).refusal
    return len(items)


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
